"""What runs in place of the program's own calls: in a graph, of constructors whose operators torch's dispatch hides; in a
replay, of those of NumPy arrays of plain numbers.

Key functions: make_variable, from_array, array_like, view_like.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Variable

LARGEST_ARRAY = 65536  # numbers that a graph may hold as constants


def make_variable(data: torch.Tensor) -> torch.Tensor:
    """``Variable(data)``: the same memory, detached."""
    made: torch.Tensor = Variable(data)
    return made


def from_array(numbers: list[Any], shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A tensor of the numbers that a NumPy array held."""
    return torch.tensor(numbers, dtype=dtype).reshape(shape)


def array_parts(array: Any) -> tuple[list[Any], tuple[int, ...], torch.dtype]:
    """What :func:`from_array` makes a tensor of equal content from. Raises TypeError for a dtype that torch lacks."""
    tensor = torch.from_numpy(array)
    return tensor.reshape(-1).tolist(), tuple(tensor.shape), tensor.dtype


def array_like(kept: Any) -> Any:
    """A new array with the numbers and the layout of ``kept``."""
    made = kept.copy(order="K")
    made.flags.writeable = kept.flags.writeable
    return made


def view_like(owner: Any, shape: Any, dtype: Any, offset: int, strides: Any, writeable: bool) -> Any:
    """A view of an array's memory."""
    made = type(owner)(shape, dtype, owner, offset, strides)
    made.flags.writeable = writeable
    return made


def view_parts(owner: Any, view: Any) -> tuple[Any, ...]:
    """What :func:`view_like` makes ``view`` of, but for its owner."""
    offset = view.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    return (view.shape, view.dtype, offset, view.strides, bool(view.flags.writeable))

"""What a graph node runs where the program's own call can't be a node: constructors whose operators torch's dispatch hides.

Key functions: make_variable, from_array.
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

"""What a graph node runs where the program's own call can't be a node: constructors whose operators torch's dispatch hides.

Each does exactly what the call does. Key functions: make_variable, make_parameter, set_data, set_requires_grad, set_seed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Variable

LARGEST_ARRAY = 65536  # numbers that a graph may hold as constants


def make_variable(data: torch.Tensor, requires_grad: bool = False) -> torch.Tensor:
    """``Variable(data)``: the same memory, detached."""
    made: torch.Tensor = Variable(data, requires_grad=requires_grad)
    return made


def make_parameter(data: torch.Tensor, requires_grad: bool = True) -> torch.nn.Parameter:
    """``nn.Parameter(data)``: a leaf of its own; gradients that reach it stop there."""
    return torch.nn.Parameter(data, requires_grad)


def from_array(numbers: list[Any], shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A tensor of the numbers that a NumPy array held."""
    return torch.tensor(numbers, dtype=dtype).reshape(shape)


def array_parts(array: Any) -> tuple[list[Any], tuple[int, ...], torch.dtype]:
    """What :func:`from_array` makes a tensor of equal content from. Raises TypeError for a dtype that torch lacks."""
    tensor = torch.from_numpy(array)
    return tensor.reshape(-1).tolist(), tuple(tensor.shape), tensor.dtype


def new_memo() -> dict[Any, Any]:
    """What ``copy.deepcopy`` remembers of one call: tensors that share memory have copies that do."""
    return {}


def copy_tensor(tensor: torch.Tensor, memo: dict[Any, Any]) -> torch.Tensor:
    """A leaf's copy as ``copy.deepcopy`` makes it."""
    copied: torch.Tensor = tensor.__deepcopy__(memo)
    return copied


def same_address(a: torch.Tensor, b: torch.Tensor) -> bool:
    """``a.data_ptr() == b.data_ptr()``, while both are there."""
    return a.data_ptr() == b.data_ptr()


def set_seed(seed: int) -> None:
    """``torch.manual_seed(seed)``, without the generator that it gives back."""
    torch.manual_seed(seed)


def keep_random_state() -> torch.Tensor:
    """``torch.get_rng_state()``: of the CPU's stream."""
    return torch.get_rng_state()


def put_random_state(state: torch.Tensor) -> None:
    """``torch.set_rng_state(state)``."""
    torch.set_rng_state(state)


def set_data(tensor: torch.Tensor, value: torch.Tensor) -> None:
    """``tensor.data = value``: the same tensor object, other memory."""
    tensor.data = value


def may_become(tensor: torch.Tensor, value: torch.Tensor, sizes_vary: bool) -> bool:
    """Whether ``tensor.data = value`` is plain: of what guards know, it changes shape and strides alone, and the shape only
    where no size is a symbol (which would be the size at entry)."""
    return (
        type(value) in (torch.Tensor, torch.nn.Parameter)
        and type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor.layout is torch.strided is value.layout
        and tensor.dtype == value.dtype
        and (tensor.shape == value.shape or not sizes_vary)
        and tensor.device == value.device
    )


def set_requires_grad(tensor: torch.Tensor, value: bool) -> None:
    """``tensor.requires_grad = value``, and ``tensor.requires_grad_(value)``."""
    tensor.requires_grad = value


def as_it_is(tensor: torch.Tensor, requires_grad: bool) -> torch.Tensor:
    """A tensor that guards take for ``tensor`` as it is now, on the same memory; but for whether it requires a gradient."""
    if type(tensor) is torch.nn.Parameter:
        return torch.nn.Parameter(tensor.detach(), requires_grad)
    return tensor.detach().requires_grad_(requires_grad)

"""What a graph node runs in place of the program's own call: for constructors whose operators torch's dispatch hides, and
for calls whose code may branch on data, with a check of their results.

The program has seen the result's dtype and shape and continued accordingly, so a replay whose call returns something else
has left the recorded path. Key functions: make_variable, from_array, expecting; key type: OtherResult.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import Variable

from magpy_core._compat.torch.tensor_guards import no_torch_function
from magpy_core.findings import HERE, Unsupported
from magpy_core.opgraph.values import tensors_in

_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)
_TENSORS = (torch.Tensor, torch.nn.Parameter)
LARGEST_ARRAY = 65536  # numbers that a graph may hold as constants


def make_variable(data: torch.Tensor) -> torch.Tensor:
    """``Variable(data)``: the same memory, detached."""
    variable: torch.Tensor = Variable(data)
    return variable


def from_array(numbers: list[Any], shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A tensor of the numbers that a NumPy array held."""
    return torch.tensor(numbers, dtype=dtype).reshape(shape)


def array_parts(array: Any) -> tuple[list[Any], tuple[int, ...], torch.dtype]:
    """The arguments with which :func:`from_array` creates a tensor of the same content. Raises TypeError for a dtype that
    torch lacks."""
    tensor = torch.from_numpy(array)
    return tensor.reshape(-1).tolist(), tuple(tensor.shape), tensor.dtype


class OtherResult(Exception):
    """A node's call returns a result that doesn't fit the recorded path."""


def _facts(value: Any, sizes: bool) -> Any:
    kind = type(value)
    if kind in _TENSORS:
        shape: Any = value.dim()
        if sizes:
            shape = (tuple(value.shape), value.stride() if value.layout is torch.strided else ())
        return (kind, value.dtype, value.device, value.layout, value.requires_grad, shape)
    if kind in (tuple, list):
        return (kind, [_facts(v, sizes) for v in value])
    if kind is dict and all(type(k) in (str, int) for k in value):
        return (kind, [(k, _facts(v, sizes)) for k, v in value.items()])
    if kind in _PLAIN:
        return (kind, repr(value))  # distinguishes 0.0 from -0.0; a NaN equals a NaN
    raise Unsupported("MP107", f"{HERE} returns a {kind.__name__}: MagPy can't compare it with a later result.")


def may_differ(node: torch.fx.Node) -> bool:
    """Whether a node may raise OtherResult."""
    return bool(getattr(node.target, "may_differ", False))


def expecting(call: Callable[..., Any], result: Any, sizes: bool) -> Callable[..., Any]:
    """``call`` with a check that it returns the same kinds, dtypes and plain values as ``result``, and with ``sizes`` the
    same shapes. Raises Unsupported for a result that can't be compared."""
    with no_torch_function():
        facts = _facts(result, sizes)

    def expect(*args: Any, **kwargs: Any) -> Any:
        returned = call(*args, **kwargs)
        # a compiler that traces the graph passes its own fake tensors: they are not checked
        if all(type(t) in _TENSORS for t in tensors_in(returned)) and _facts(returned, sizes) != facts:
            raise OtherResult(getattr(call, "__name__", "a call"))
        return returned

    expect.__dict__.update(call.__dict__, may_differ=True)
    expect.__name__ = expect.__qualname__ = call.__name__
    return expect

"""Operations whose results have a shape that follows from the data of their arguments.

Key functions: ``shaped_by_data``, ``sizes_among``, ``numbers_among``, ``sparse``.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.fx

from magpy_core.knowledge.operators import Fact, named
from magpy_core.opgraph.functions import HOST_READS, may_size, node_name
from magpy_core.refgraph.kinds import is_a

_DATA_SHAPED, _FACTORIES, _SIZED = named(Fact.DATA_SHAPED), named(Fact.FACTORY), named(Fact.SIZED)
_OF_NUMBERS = named(Fact.OF_NUMBERS)
# Namespaces of torch's own operators; those of other libraries may read data.
_OWN = ("aten", "prims", "prim", "quantized", "_quantized", "quantized_decomposed", "mkldnn", "mkldnn_prepacked", "profiler")
_DENSE = (torch.strided, torch._mkldnn)  # type: ignore[attr-defined]


def shaped_by_data(func: Any, name: str, fx_args: tuple[Any, ...], fx_kwargs: dict[str, Any]) -> bool:
    """Whether the shape of an operation's result follows from data."""

    def given(index: int, key: str) -> Any:
        return fx_kwargs.get(key, fx_args[index] if len(fx_args) > index else None)

    if name == "repeat_interleave":  # with a number of repeats, the size follows from the input's
        return type(given(1, "repeats")) is not int
    if name == "one_hot":
        return type(given(1, "num_classes")) is not int or given(1, "num_classes") == -1
    if name == "where":  # with a condition alone, it returns indices
        return len(fx_args) + len(fx_kwargs) == 1
    if name == "tensor_split":
        return is_a(given(1, "indices_or_sections"), torch.fx.Node) or "indices" in fx_kwargs
    if is_a(func, torch._ops.OpOverload) and torch.Tag.dynamic_output_shape in func.tags:
        return True
    if is_a(func, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        base = func.overloadpacket if is_a(func, torch._ops.OpOverload) else func
        if base._qualified_op_name.partition("::")[0] not in _OWN:
            return True
        name = base.__name__
    return name in _DATA_SHAPED


def sparse(given: list[torch.Tensor], result: list[torch.Tensor]) -> bool:
    """Whether a sparse tensor is involved: its number of elements follows from data."""
    return any(t.layout not in _DENSE for t in (*given, *result))


def masked(name: str, tensors: list[torch.Tensor]) -> bool:
    """Whether a tensor is indexed by a mask."""
    return name == "__getitem__" and any(t.dtype in (torch.bool, torch.uint8) for t in tensors if t is not tensors[-1])


def is_constant(node: torch.fx.Node) -> bool:
    """Whether a graph value follows from plain numbers alone."""
    waiting = [node]
    for _ in range(16):
        if not waiting:
            return True
        node = waiting.pop()
        if node.op == "placeholder" or node_name(node) not in _OF_NUMBERS:
            return False
        waiting += node.all_input_nodes
    return False


def _numbers_in(value: Any) -> list[torch.Tensor]:
    if is_a(value, (tuple, list)):
        return [t for v in value for t in _numbers_in(v)]
    if is_a(value, slice):
        return _numbers_in((value.start, value.stop, value.step))
    return [value] if is_a(value, torch.Tensor) and value.dim() == 0 and not value.is_floating_point() else []


def numbers_among(name: str, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """The tensors among an operation's arguments that it may read as numbers that affect more than values: a dimension, a
    kernel size. ``sizes_among`` covers those in a subscript or passed as sizes."""
    known = name in ("__getitem__", "__setitem__") or name in _FACTORIES or name in _SIZED
    if known or name in HOST_READS or not may_size(name):
        return []
    return [t for t in tensors if t.dim() == 0 and not t.is_floating_point() and not t.is_complex()]


def sizes_among(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The tensors among the arguments that are read as a size, a count or the end of a slice."""
    if name == "__getitem__":
        key: Any = args[1] if len(args) > 1 else None
        return _numbers_in([k for k in (key if is_a(key, tuple) else (key,)) if is_a(k, slice)])
    if name in _FACTORIES:
        return _numbers_in([*args, *kwargs.values()])
    return _numbers_in([*args[1:], *(v for k, v in kwargs.items() if k not in ("input", "self"))]) if name in _SIZED else []

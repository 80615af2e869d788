"""What Python reads of a tensor without computing: metadata, sizes, fields, its numbers as a list or as text.

Each type is a pending call (`opgraph.host.Pending`). Key types: MetadataRead, SizeRead, FieldRead, ListRead, TextRead.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.autograd import is_view
from magpy_core._compat.torch.tensor_guards import storage_key
from magpy_core.findings import HERE, Unsupported
from magpy_core.knowledge.operators import Fact, named
from magpy_core.opgraph.operator_graph import OperatorGraph
from magpy_core.opgraph.values import tensors_in
from magpy_core.refgraph.kinds import is_a

_LAYOUT_READS = named(Fact.LAYOUT_READ) | {"is_contiguous"}
_EMPTY_INSIDE = named(Fact.EMPTY_INSIDE)
_LONGEST_LIST = 256  # numbers that ``tolist()`` may give


class Unrecorded:
    """A call that reads and changes nothing: a profiler's range."""

    def finish(self, result: Any) -> Any:
        return result


@dataclass(slots=True)
class MetadataRead:
    """What guards of the tensor's metadata cover. ``name``: without ``get:``."""

    ops: OperatorGraph
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def finish(self, result: Any) -> Any:
        tensor: Any = self.args[0] if self.args else next(iter(self.kwargs.values()), None)
        if not is_a(tensor, torch.Tensor):
            return result
        inside = self.ops.inputs.is_inside(tensor)
        if not inside:
            self.ops.inputs.guard(tensor)
        return self._read(tensor, inside, result)

    def _read(self, tensor: torch.Tensor, inside: bool, result: Any) -> Any:
        if self.name in _LAYOUT_READS:
            if self.ops.values.is_shaped_by_data(tensors_in(self.args)):
                raise Unsupported("MP109", f"{HERE} reads `{self.name}` of a tensor whose shape depends on tensor data.")
            self.ops.host.layout_read(self.name, self.args, self.kwargs, result)
        return result


class SizeRead(MetadataRead):
    """Sizes, which may vary from call to call, and the offset in the storage."""

    __slots__ = ()

    def _read(self, tensor: torch.Tensor, inside: bool, result: Any) -> Any:
        ops = self.ops
        if self.name == "storage_offset":
            if not inside:
                ops.host.guard_offset(ops.inputs.guard(tensor), result)
            elif is_view(tensor) or any(storage_key(t) == storage_key(tensor) for t, _ in ops.inputs.guarded.values()):
                raise Unsupported("MP106", f"{HERE} reads where a view begins in its storage, which a graph can't give.")
            return result
        if ops.values.is_shaped_by_data([tensor]):
            raise Unsupported("MP109", f"{HERE} gives Python a size that depends on tensor data.")
        return ops.host.size_read(tensor, self.name, result, self.args[1:])


@dataclass(slots=True)
class FieldRead:
    """``x.grad`` and other fields of the tensor object."""

    ops: OperatorGraph
    tensor: torch.Tensor
    name: str

    def finish(self, result: Any) -> Any:
        if not self.ops.inputs.is_inside(self.tensor):
            self.ops.host.guard_field(self.ops.inputs.guard(self.tensor), self.tensor, self.name, result)
        elif self.name != "is_leaf" and not (self.name in _EMPTY_INSIDE and result is None):
            raise Unsupported("MP106", f"{HERE} reads `.{self.name}` of a tensor of the region's own.")
        return result


@dataclass(slots=True)
class FieldWrite:
    """``x.grad = value``; deleted if it is None."""

    ops: OperatorGraph
    tensor: torch.Tensor
    name: str
    value: Any

    def finish(self, result: Any) -> Any:
        self.ops.host.field_written(self.tensor, self.name, self.value)
        return result


@dataclass(slots=True)
class ListRead:
    """``tensor.tolist()``: each number is a value of the graph."""

    ops: OperatorGraph
    tensor: torch.Tensor
    node: torch.fx.Node

    @staticmethod
    def is_possible(ops: OperatorGraph, tensor: Any) -> bool:
        """Whether the list can be so many numbers read one by one. A bool has no copy that could carry a symbol."""
        if ops.values.is_shaped_by_data([tensor]) or tensor.layout is not torch.strided or tensor.is_quantized:
            return False
        plain = tensor.dtype != torch.bool and not tensor.is_complex()
        return plain and tensor.numel() <= _LONGEST_LIST and ops.host.gives_number_to_program(tensor)

    def finish(self, result: Any) -> Any:
        """The list with the numbers that carry their symbols."""
        self.ops.host.hold_sizes([self.tensor])
        return self._carried(result, self.node)

    def _carried(self, value: Any, node: torch.fx.Node) -> Any:
        ops = self.ops
        if type(value) is list:
            parts = ((v, ops.graph.call_function(operator.getitem, (node, i))) for i, v in enumerate(value))
            return [self._carried(v, part) for v, part in parts]
        return ops.scalars.bind(value, ops.read_number(node, value))


@dataclass(slots=True)
class TextRead:
    """``f"{tensor}"`` of a tensor that holds one number: the text holds for this very number."""

    ops: OperatorGraph
    tensor: torch.Tensor
    node: torch.fx.Node

    @staticmethod
    def is_possible(tensor: Any) -> bool:
        plain = type(tensor) is torch.Tensor and tensor.dim() == 0 and tensor.layout is torch.strided
        return plain and not tensor.dtype.is_complex and not tensor.is_quantized and not tensor.is_meta

    def finish(self, result: Any) -> Any:
        number = self.tensor.detach().item()
        sym = self.ops.read_number(self.ops.graph.call_method("detach", (self.node,)), number)
        self.ops.host.branch(sym, number, "item")
        return result

"""Operation: a torch call that is a node of the graph, from its arguments to its result. Key types: Operation, Arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx

from magpy_core.findings import HERE, Unsupported
from magpy_core.knowledge.operators import Fact, named
from magpy_core.opgraph import functions as fns
from magpy_core.opgraph.data_shapes import masked, numbers_among, shaped_by_data, sizes_among, sparse
from magpy_core.opgraph.host_calls import ITEM
from magpy_core.opgraph.operator_graph import OperatorGraph
from magpy_core.opgraph.scalars import Sym
from magpy_core.opgraph.values import tensors_in
from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.source import Source
from magpy_core.refgraph.source_kinds import number_in

_INPUT_BY_NUMBER, _INPUT_BY_LAYOUT = named(Fact.INPUT_BY_NUMBER), named(Fact.INPUT_BY_LAYOUT)
_NODE_TARGETS: dict[str, Callable[..., Any]] = {"__getitem__": operator.getitem, "__setitem__": operator.setitem}
_CONST_TYPES = (bool, int, float, complex, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format,
                type(Ellipsis), bytes, torch.fx.Node)  # fmt: skip
_TENSOR_TYPE = type(torch.FloatTensor)
_PYTHON_DTYPES: dict[Any, torch.dtype] = {
    bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128,
}  # fmt: skip


class Arguments:
    """Converts the arguments of one operation. ``varying``: the symbolic scalars among them, with their current values.
    ``places``: what is in the brackets of a subscription."""

    def __init__(self, ops: OperatorGraph, places: Any = None) -> None:
        self.ops, self._places = ops, places if type(places) is tuple else (places,)
        self.varying: list[tuple[Sym, Any]] = []

    @property
    def vary_beyond_sizes(self) -> bool:
        """Whether a varying number among them is computed from more than input sizes."""
        leaves = (sym.leaves() for sym, _ in self.varying)
        return any(not all(leaf.kind == "source" and leaf.payload.kind == "size" for leaf in found) for found in leaves)

    @property
    def can_be_followed(self) -> bool:
        """Whether the shape tracker can follow sizes that depend on the varying numbers among them."""
        return all(sym.can_be_followed() for sym, _ in self.varying)

    def convert(self, value: Any) -> Any:
        """An argument as an FX argument; raises Unsupported(MP106) for what a graph can't hold."""
        if is_a(value, torch.Tensor):
            return self.ops.inputs.node(value)
        if type(value) in (int, float):
            sym = self.ops.scalars.get(value)
            return value if sym is None else self._number(sym, value)
        if kinds.is_numpy_number(value):  # `numpy.float64` is a float
            sym = self.ops.scalars.get(value) if type(value) in kinds.NUMPY_NUMBERS else None
            number = value.item()
            return number if sym is None else self._number(self.ops.scalars.call(ITEM, (sym,), number), number)
        if type(value) is type and value in _PYTHON_DTYPES:
            return _PYTHON_DTYPES[value]
        if is_a(value, _CONST_TYPES):
            return value
        if is_a(value, (list, tuple, dict)):
            return self._container(value)
        if is_a(value, slice):
            return slice(self.convert(value.start), self.convert(value.stop), self.convert(value.step))
        if is_a(value, range):
            return list(value)
        if is_a(value, torch.Generator):
            raise Unsupported(
                "MP116",
                f"{HERE} uses a torch.Generator: its state can't be part of a graph.",
                hint=fns.GENERATOR_HINT,
            )
        if type(value) is _TENSOR_TYPE:  # ``x.type(torch.LongTensor)``
            return f"{value.__module__}.{value.__name__}"
        if kinds.holds_memory(type(value)):
            if any(value is place for place in self._places) and (index := self.ops.host.index_of_array(value)) is not None:
                return self.ops.inputs.node(index)
            if self.ops.host.graph_incomplete:  # a refused call may have created it
                raise Unsupported("", "")
            raise Unsupported("MP105", fns.OUTSIDE_ARRAY, hint=fns.OUTSIDE_ARRAY_HINT)
        text = f"{HERE} takes a value of type `{type(value).__name__}`: a graph can't hold it."
        hint = (
            "Pass a list: `list(values)`." if _iterates(type(value)) else "Pass numbers, strings or tensors that it holds."
        )
        raise Unsupported("MP106", text, hint=hint)

    def _number(self, sym: Sym, value: Any) -> Any:
        if sym.follows_clock() or (sym.needs_host and (not sym.on_host or sym.follows_sizes())):
            self.ops.host.escape(sym, self.ops.host.site)
            return value
        self.varying.append((sym, value))
        return self.ops.inputs.number(sym)

    def _container(self, value: Any) -> Any:
        self.ops.host.guard_contents(value)
        if is_a(value, dict):
            return {k: self.convert(v) for k, v in value.items()}
        items = [self.convert(v) for v in value]
        if is_a(value, list):
            return items
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)


@dataclass(slots=True)
class Operation:
    """One torch call. ``versions``: the tensors it takes, with their version counters. ``numbers``: those that it may read
    as numbers that affect more than values. ``varying``: symbolic scalars that it takes. ``out``: ids of the tensors passed
    as ``out=``: under a dispatch mode some operations (`matrix_rank`, `unbind_copy`) don't write these, or don't increment
    their version, so the shadow recorder is disabled inside such a call."""

    ops: OperatorGraph
    target: Callable[..., Any]
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tensors: list[torch.Tensor]
    versions: list[tuple[torch.Tensor, int]] = field(default_factory=list)
    numbers: list[torch.Tensor] = field(default_factory=list)
    varying: list[tuple[Sym, Any]] = field(default_factory=list)
    out: frozenset[int] = frozenset()
    takes_number: bool = False
    """Whether it takes a varying number that may decide the shape of its result."""
    takes_data: bool = False
    """Whether such a number can't be followed by the shape tracker."""
    writes_view: bool = False

    @staticmethod
    def prepare(ops: OperatorGraph, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Operation:
        """Convert the arguments to graph values, and keep what is needed to detect in-place changes."""
        name = fns.function_name(target)
        tensors = tensors_in(args, kwargs)
        out = frozenset(id(t) for t in tensors_in(kwargs.get("out")))
        numbers = [t for t in numbers_among(name, tensors) if id(t) not in out and ops.is_data(t)]
        versions = [(t, -1 if id(t) in out else t._version) for t in tensors if not t.is_inference()]
        takes_number = any(map(ops.is_data, sizes_among(name, args, kwargs)))
        given = Arguments(ops, args[1] if name in _NODE_TARGETS and len(args) > 1 else None)
        fx_args = tuple(given.convert(a) for a in args)
        fx_kwargs = {k: given.convert(v) for k, v in kwargs.items()}
        in_place = fns.writes_in_place(name) or "out" in kwargs
        if in_place:
            ops.writes.prepare(tensors)
        writes_view = (
            (in_place or kwargs.get("inplace") is True)
            and torch.is_grad_enabled()
            and ops.writes.guard_history([*args[:1], kwargs.get("out")])
        )
        return Operation(
            ops, target, name, fx_args, fx_kwargs, tensors, versions, numbers, given.varying, out,
            takes_number or given.vary_beyond_sizes, takes_number or not given.can_be_followed, writes_view,
        )  # fmt: skip

    @property
    def is_observed_inside(self) -> bool:
        """Whether the shadow recorder observes which tensors are read as numbers inside the call."""
        return bool(self.numbers) and not self.out

    def __call__(self, result: Any) -> Any:
        """Records the call, which returned ``result``; returns what the program gets."""
        ops, name = self.ops, self.name
        if result is NotImplemented:  # ``x == "text"``: Python tries the other operand, or identity
            return result
        node = self._node()
        ops.host.annotate(node, result)
        if self.writes_view:
            node.meta[fns.MAY_RAISE] = True
        ops.values.note_result(result)
        self._guard_numbers()
        self._guard_identity(node, result)
        if name in fns.PARTS:
            self._guard_parts(node)
        from_data = self._is_shaped_by_data(result)
        self._record_writes(node)
        if name in fns.NUMBER_READS and type(result) in (int, float):
            return self._number_read(node, result)
        if name in fns.HOST_READS or (type(result) is bool and self.tensors):
            ops.host.branch(Sym("node", node, (), result), result, name)
        elif not self._returned_input(result):
            ops.values.bind(result, node, ops.inputs.guarded, from_data)
            if self.kwargs.get("requires_grad") is True and is_a(
                result, torch.Tensor
            ):  # `torch.zeros(2, requires_grad=True)`
                ops.leaves.made[node] = ops.host.site
        return result

    def _node(self) -> torch.fx.Node:
        graph, name = self.ops.graph, self.name
        if name.startswith("get:"):
            return graph.call_function(getattr, self.args)
        if name in _NODE_TARGETS:
            return graph.call_function(_NODE_TARGETS[name], self.args)
        if fns.is_tensor_method(self.target):
            return graph.call_method(name, self.args, self.kwargs)
        return graph.call_function(self.target, self.args, self.kwargs)

    def _guard_numbers(self) -> None:
        """Native code has read tensors as numbers: guard on their values."""
        ops = self.ops
        hidden = self.out or torch.is_inference_mode_enabled()  # the shadow recorder can't observe the call
        for tensor in self.numbers:
            if hidden or any(read is tensor for read in ops.read_inside):
                number = tensor.item()
                ops.host.branch(ops.read_number(ops.inputs.node(tensor), number), number, "item")

    def _guard_identity(self, node: torch.fx.Node, result: Any) -> None:
        """Whether an operation returns its own input may depend on a number it takes (`dropout` with 0.0) or on a layout; a
        later write to the result then changes the input too. Guard on these, and on the number of parts it returns."""
        name, host = self.name, self.ops.host
        if fns.writes_in_place(name):
            return
        if name in _INPUT_BY_LAYOUT or "memory_format" in node.kwargs or fns.returns_parts(name, result):
            self.ops.shapes.guard_path(node)
        drops = "dropout" in name
        if not (drops or name in _INPUT_BY_NUMBER or any(result is t for t in self.tensors)):
            return
        for sym, value in self.varying:
            for rate in (0.0, 1.0) if drops else ():  # only these rates make a difference
                host.branch(self.ops.scalars.call(operator.eq, (sym, rate), value == rate), value == rate, "truth")
            if not drops:
                host.branch(sym, value, "value")

    def _guard_parts(self, node: torch.fx.Node) -> None:
        """Python sees the number of parts, so it is guarded."""
        if self.takes_number:
            self._fix_numbers()
        for tensor in self.tensors[:1]:
            self.ops.fix_sizes(tensor)
        self.ops.shapes.guard_path(node)

    def _fix_numbers(self) -> None:
        """Specialize the numbers that the call takes."""
        host = self.ops.host
        if not self.varying:
            text = f"{HERE} returns a number of parts that depends on tensor data."
            host.refuse("MP109", text, site=host.site)
        for sym, value in self.varying:
            host.branch(sym, value, "value")
        self.takes_number = False

    @property
    def _is_reduction(self) -> bool:
        """Whether the result has one element, whatever the sizes."""
        return (
            self.name in fns.REDUCES and len(self.args) == 1 and not self.kwargs.keys() - {"dtype", "correction", "unbiased"}
        )

    def _is_shaped_by_data(self, result: Any) -> bool:
        return (
            (self.ops.values.is_shaped_by_data(self.tensors) and not self._is_reduction)
            or shaped_by_data(self.target, self.name, self.args, self.kwargs)
            or sparse(self.tensors, tensors_in(result))
            or masked(self.name, self.tensors)
            or (self.takes_number and fns.may_size(self.name) and not self._can_follow_numbers())
        )

    def _can_follow_numbers(self) -> bool:
        """Whether the shape tracker follows the numbers that decide its result's shape: from here on it has to."""
        self.ops.shapes.vary = self.ops.shapes.vary or not self.takes_data
        return not self.takes_data

    def _record_writes(self, node: torch.fx.Node) -> None:
        silent = fns.silently_written(self.target, self.args, self.kwargs)
        for tensor, version in self.versions:
            if tensor._version != version or (silent and self.ops.values.node(tensor) in silent):
                self.ops.writes.record(tensor, node)
                lists = sum(isinstance(one, (list, tuple)) for one in self.args) if self.name.startswith("_foreach_") else 0
                self.ops.writes.check_layout(self.name if version >= 0 else "out", tensor, self.tensors, lists)

    def _number_read(self, node: torch.fx.Node, result: Any) -> Any:
        ops, tensor = self.ops, self.tensors[0]
        sym, is_shown = Sym("node", node, (), result), ops.host.shows_number(tensor)
        if self.name == "__index__" or not (is_shown or ops.host.gives_number_to_program(tensor)):
            ops.host.branch(sym, result, "item")
            return result
        if type(result) is int and (source := self._source_at_entry()) is not None:
            ops.graph.erase_node(node)
            number: Any = ops.host.number_at_entry(source, result)
        else:
            number = ops.scalars.bind(result, sym)
        if is_shown:
            ops.host.show_number(tensor, number)
        return number

    def _source_at_entry(self) -> Source | None:
        """Of the tensor whose number is read, if that is an input on the CPU that nothing has written: compilers need
        numbers that decide places and sizes as inputs."""
        tensor = self.tensors[0]
        found = self.ops.inputs.guarded.get(id(tensor))
        if found is None or number_in(tensor) is None or self.ops.writes.has_touched(tensor):
            return None
        return found[1]

    def _returned_input(self, result: Any) -> bool:
        """Whether a torch operation returned one of its inputs unchanged (dropout in eval mode): the input keeps its node.
        Compilers treat some of these operations as a copy, and would lose a write to the result."""
        if fns.writes_in_place(self.name) or is_a(self.target, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
            return False
        return any(result is t and t._version == version for t, version in self.versions)


def _iterates(tp: type) -> bool:
    return any("__iter__" in vars(base) for base in tp.__mro__)

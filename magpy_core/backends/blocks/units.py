"""Units: the parts of an operator graph that is cut at the borders of its repeated blocks.

Two units are the same if they call the same operators with the same constants on corresponding results, and take tensors
that a compiler can't distinguish. Key types: Unit, Value; key functions: `cut`, `key_of`, `module_of`.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.fx
from torch.fx.node import map_aggregate

from magpy_core._compat.torch.operators import arguments_by_schema
from magpy_core._compat.torch.tensor_guards import is_view, storage_key
from magpy_core._compat.torch.torch_state import SET_GRAD, STATE_CALLS
from magpy_core.backends.blocks.finding import Run
from magpy_core.backends.blocks.printing import printed
from magpy_core.knowledge.operators import Fact, named
from magpy_core.opgraph.segments import Segment, split

_MAY_COPY = named(Fact.INPUT_BY_LAYOUT | Fact.INPUT_BY_NUMBER | Fact.CONVERTS)


@dataclass
class Unit(Segment):
    """A part of a graph that is compiled and called as one. ``grad_before`` and ``grad_after``: whether gradients are
    enabled at its beginning and at its end; ``flat``: the inputs that it gets as flat tensors; ``viewed``: those of them
    that are not flat themselves."""

    grad_before: bool = True
    grad_after: bool = True
    flat: frozenset[torch.fx.Node] = frozenset()
    viewed: frozenset[torch.fx.Node] = frozenset()

    @property
    def grad(self) -> bool:
        """Whether gradients are enabled for its first operation."""
        before = itertools.takewhile(lambda node: node.target in STATE_CALLS, self.nodes)
        return next((bool(node.args[0]) for node in reversed(list(before))), self.grad_before)


def cut(graph: torch.fx.Graph, nodes: Sequence[torch.fx.Node], runs: Sequence[Run], grad: bool) -> list[Unit]:
    """The units of a graph, in order: each repeated block is one, and the operations between two runs are one. ``grad``:
    whether gradients are enabled where the graph begins."""
    last = [nodes[at - 1] for at in dict.fromkeys(at for run in runs for at in run.cuts) if 0 < at < len(nodes)]
    wanted = [*([] for _ in last), graph.output_node().all_input_nodes]
    units = []
    for part in split(graph, last, wanted):
        before = grad
        for node in part.nodes:
            if node.target in STATE_CALLS:
                grad = bool(node.args[0])
        if part.nodes:
            units.append(Unit(part.nodes, part.inputs, part.outputs, grad_before=before, grad_after=grad))
    return units


def with_own_views(units: Sequence[Unit], keep: Collection[torch.fx.Node], returned: Iterable[torch.fx.Node]) -> None:
    """Let each unit make the views that it takes of earlier units' values and of inputs, instead of getting them: what
    shares memory must not pass from unit to unit. Where no history is recorded, it does not matter when a view is made.
    ``keep``: units that begin with one of these nodes stay as they are; ``returned``: the results of the graph."""
    own = [list(unit.nodes) for unit in units]
    for unit in units:
        made: dict[torch.fx.Node, None] = {}
        for node in unit.inputs if unit.nodes[0] not in keep else ():
            _make(node, made)
        unit.nodes = [*made, *unit.nodes]
        unit.inputs = _used(unit.nodes)
    needed = {node for unit in units for node in unit.inputs} | set(returned)
    for unit, nodes in zip(units, own, strict=True):
        unit.outputs = [node for node in nodes if node in needed]


def _make(node: torch.fx.Node, made: dict[torch.fx.Node, None]) -> None:
    """Add a view, after those that it is a view of."""
    if only_views(node) or (node.target is operator.getitem and only_views(node.all_input_nodes[0])):
        for base in node.all_input_nodes:
            _make(base, made)
        made[node] = None


def only_views(node: torch.fx.Node) -> bool:
    """Whether a node of ATen only makes views, never copies; of several, it is a list."""
    packet = getattr(node.target, "overloadpacket", None)
    return (
        packet is not None
        and packet.__name__ not in _MAY_COPY
        and bool(arguments_by_schema(node, written=False))
        and not arguments_by_schema(node, written=True)
    )


def _used(nodes: Sequence[torch.fx.Node]) -> list[torch.fx.Node]:
    inside = set(nodes)
    return list(dict.fromkeys(used for node in nodes for used in node.all_input_nodes if used not in inside))


def described(tensor: torch.Tensor) -> tuple[Any, ...]:
    """What compilers know about an input tensor."""
    shape, stride = tuple(tensor.shape), tuple(tensor.stride())
    graph = (tensor.requires_grad, tensor.is_leaf, is_view(tensor), tensor.is_inference())
    rest = (tensor.storage_offset(), isinstance(tensor, torch.nn.Parameter))
    return shape, stride, tensor.dtype, tensor.device, *graph, *rest


def operations_of(unit: Unit) -> tuple[dict[torch.fx.Node, str], tuple[Any, ...]]:
    """Names of a unit's inputs and operations by their place in it, and what the operations do with values so named."""
    names = {node: f"i{i}" for i, node in enumerate(unit.inputs)}
    operations = []
    for i, node in enumerate(unit.nodes):
        operations.append(printed(node, names))
        names[node] = f"n{i}"
    return names, tuple(operations)


def key_of(unit: Unit, values: Mapping[torch.fx.Node, Any], leaving: Sequence[bool]) -> tuple[Any, ...]:
    """A key that is equal for units that compile to the same code. ``values``: the fakes of its inputs; ``leaving``: which
    of its outputs go to another unit."""
    names, operations = operations_of(unit)
    tensors = [values[node] for node in unit.inputs]
    memory = [storage_key(tensor) for tensor in tensors]
    inputs = [
        (node.op == "placeholder", memory.index(key), *described(tensor))
        for node, tensor, key in zip(unit.inputs, tensors, memory, strict=True)
    ]
    return unit.grad_before, operations, tuple(inputs), tuple(names[node] for node in unit.outputs), tuple(leaving)


def module_of(unit: Unit, grad: bool) -> torch.fx.GraphModule:
    """The unit as a module. ``grad``: whether gradients are enabled where it is called. Its names don't depend on its
    position, so that torch's caches find it for a deeper model too."""
    graph = torch.fx.Graph()
    copies = {node: graph.placeholder(f"input_{i}") for i, node in enumerate(unit.inputs)}
    for node, copy in copies.items():
        copy.meta.update(node.meta if node.op == "placeholder" else {})
    if unit.grad_before is not grad:
        graph.call_function(SET_GRAD, (unit.grad_before,))
    for node in unit.nodes:
        args, kwargs = map_aggregate(
            (node.args, node.kwargs), lambda leaf: copies[leaf] if isinstance(leaf, torch.fx.Node) else leaf
        )
        copies[node] = graph.create_node(node.op, node.target, args, kwargs)  # named after its target
        copies[node].meta.update(node.meta)
    if unit.grad_after is not grad:
        graph.call_function(SET_GRAD, (grad,))
    graph.output(tuple(copies[node] for node in unit.outputs))
    graph.lint()
    return torch.fx.GraphModule(torch.nn.Module(), graph)


class Value(NamedTuple):
    """What compilers see of a unit's result."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool

    def fake(self, mode: Any) -> torch.Tensor:
        """A fake that is like it: the result of an operation, in new memory."""
        with mode, torch.enable_grad():
            fake = torch.empty_strided(self.shape, self.stride, dtype=self.dtype, device=self.device)
            return fake.requires_grad_().clone() if self.requires_grad else fake

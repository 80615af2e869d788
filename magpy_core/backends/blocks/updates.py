"""Updates: blocks of which none uses another's results, as an optimizer updates one parameter after the other.

If they compute elements one by one, one code with a symbolic size serves all of them, whatever their shapes: it gets flat
views of their tensors. Key type: FlatCode; key functions: `find_updates`, `flat_inputs`, `flat_key`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx
from torch.fx.node import map_aggregate
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from magpy_core._compat.torch.fake import fakify, guard_namespace, new_fake_mode, shape_guards, sym_expression
from magpy_core._compat.torch.operators import arguments_by_schema
from magpy_core._compat.torch.tensor_guards import storage_key
from magpy_core._compat.torch.torch_state import preserve_torch_state
from magpy_core.backends.blocks.finding import Run, independent_runs
from magpy_core.backends.blocks.units import Unit, module_of, only_views, operations_of
from magpy_core.backends.sharing import copied, viewed, written
from magpy_core.knowledge.operators import ELEMENTWISE

#: Fewer operations saved take less time than compiling one more unit (measured on CPU).
LEAST_SAVED = 300
#: Elements of a tensor from which on code for several threads is faster.
_FOR_THREADS = 8192


class FlatCode:
    """What is compiled for flat tensors of any size, once: ``module``, for ``fakes`` of the fake mode ``mode``."""

    def __init__(self, unit: Unit, values: Sequence[torch.Tensor], grad: bool) -> None:
        self.module = module_of(unit, grad)
        for node in self.module.graph.nodes:
            node.meta.pop("val", None)  # of one size
        self._flat = [node in unit.flat for node in unit.inputs]
        size = next(value.numel() for value, flat in zip(values, self._flat, strict=True) if flat)
        self.mode, self._shape_env = new_fake_mode(dynamic=False)
        first: torch.Tensor | None = None
        self.fakes: list[torch.Tensor] = []
        for i, (value, flat) in enumerate(zip(values, self._flat, strict=True)):
            if flat and first is not None:
                with self.mode:
                    fake = torch.empty(first.shape, dtype=value.dtype, device="cpu")
            else:
                real = torch.empty(size if flat else (), dtype=value.dtype, device="cpu")
                fake = fakify(self.mode, real, f"L[{i}]", {0} if flat else set())
                first = fake if flat else first
            self.fakes.append(fake)

    @property
    def is_elementwise(self) -> bool:
        """Whether a run of the module computes elements one by one."""
        check = _Elementwise(next(fake.shape[0] for fake in self.fakes if fake.dim()))
        with preserve_torch_state(), torch.no_grad(), self.mode:
            given = [copied(fake) for fake in self.fakes]
            with check:
                self.module(*given)
        return check.holds

    def serves(self, size: int) -> bool:
        """Whether what was assumed when it was compiled holds for tensors of ``size`` elements."""
        names = [f"L[{i}]" for i in range(len(self.fakes))]
        guards = shape_guards(self._shape_env, self.fakes, names)
        given = [torch.empty(size if flat else (), device="meta") for flat in self._flat]
        return all(eval(guard, dict(guard_namespace()), {"L": given}) for guard in guards)


class _Elementwise(TorchDispatchMode):
    """Looks at the operations on tensors of ``size`` elements."""

    def __init__(self, size: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._size, self.holds = sym_expression(size), True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        known = torch.Tag.pointwise in func.tags or func.overloadpacket.__name__ in ELEMENTWISE
        known = known or func is torch.ops.prim.device.default
        tensors = [leaf for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, torch.Tensor)]
        if not known or torch.Tag.nondeterministic_seeded in func.tags or not all(map(self._fits, tensors)):
            self.holds = False
        return result

    def _fits(self, tensor: torch.Tensor) -> bool:
        return tensor.dim() == 0 or (tensor.dim() == 1 and sym_expression(tensor.shape[0]) == self._size)


@dataclass(frozen=True)
class Updates:
    """The blocks of a run, in order: those that flat code can serve, and the others."""

    flat: list[list[torch.fx.Node]]
    others: list[list[torch.fx.Node]]


def find_updates(nodes: Sequence[torch.fx.Node], fakes: Mapping[torch.fx.Node, Any], mode: Any, grad: bool) -> list[Updates]:
    """The runs of updates that are worth flat code. ``fakes``: of the inputs, in the fake mode ``mode``; ``grad``: whether
    gradients are enabled where the graph is called."""
    names = {node: repr((fake.dim() == 0, fake.dtype, fake.device)) for node, fake in fakes.items()}
    runs = [run for run in independent_runs(nodes, names) if run.saved >= LEAST_SAVED and _is_unbroken(run, nodes)]
    if not runs:
        return []
    values = _values(nodes[: runs[-1].start], fakes, mode)
    found = []
    for run in runs:
        updates = Updates([], [])
        for start in run.cuts[:-1]:
            block = list(nodes[start : start + run.length])
            is_flat = flat_inputs(_unit_of(block, grad), values.of.get) is not None
            (updates.flat if is_flat else updates.others).append(block)
        if (
            (len(updates.flat) - 1) * run.length >= LEAST_SAVED
            and _is_elementwise(updates.flat[0], values.of.get, grad)
            and _share_nothing([_unit_of(block, grad) for block in (*updates.flat, *updates.others)], values)
        ):
            found.append(updates)
    return found


def _share_nothing(units: Sequence[Unit], values: _Values) -> bool:
    """Whether no unit reads what another one writes, so that their order does not matter."""
    users: dict[int, set[int]] = {}
    for i, unit in enumerate(units):
        for node in unit.inputs:
            users.setdefault(values.memory(node), set()).add(i)
    for unit in units:
        outside = set(unit.inputs)
        roots = {[target, *_viewed(target)][-1] for node in unit.nodes for target in _written(node)}
        if any(len(users[values.memory(root)]) > 1 for root in roots & outside):
            return False
    return True


def _written(node: torch.fx.Node) -> list[torch.fx.Node]:
    by_schema = arguments_by_schema(node, written=True)
    return written(node) if by_schema is None else by_schema


def _viewed(node: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """The chain of nodes that a node is a view of, or the in-place result of."""
    while node.op != "placeholder":
        by_schema = arguments_by_schema(node, written=False)
        given = next(viewed(node), None) if by_schema is None else next(iter([*by_schema, *_written(node)]), None)
        if given is None:
            return
        node = given
        yield node


def _is_unbroken(run: Run, nodes: Sequence[torch.fx.Node]) -> bool:
    """Whether no mode changes in it."""
    return all(node.next is following for node, following in itertools.pairwise(nodes[run.start : run.cuts[-1]]))


@dataclass(frozen=True)
class _Values:
    """Fakes of what a graph's inputs are and operations compute, in memory of their own. ``inputs``: the memory of an input
    by that of its copy."""

    of: dict[torch.fx.Node, Any]
    inputs: dict[int, int]

    def memory(self, node: torch.fx.Node) -> int:
        """Equal for values that may share memory."""
        key = storage_key(self.of[node])
        return self.inputs.get(key, key)


def _values(nodes: Sequence[torch.fx.Node], fakes: Mapping[torch.fx.Node, Any], mode: Any) -> _Values:
    """Of the inputs and of what ``nodes`` compute."""
    with preserve_torch_state(), torch.no_grad(), mode:
        values = {node: copied(fake) for node, fake in fakes.items()}
        inputs = {storage_key(values[node]): storage_key(fake) for node, fake in fakes.items()}
        for node in nodes:
            args, kwargs = map_aggregate(
                (node.args, node.kwargs), lambda leaf: values[leaf] if isinstance(leaf, torch.fx.Node) else leaf
            )
            function = getattr(args[0], node.target) if isinstance(node.target, str) else node.target
            values[node] = function(*(args[1:] if isinstance(node.target, str) else args), **kwargs)
    return _Values(values, inputs)


def _is_elementwise(block: list[torch.fx.Node], value_of: Callable[[torch.fx.Node], Any], grad: bool) -> bool:
    unit = _unit_of(block, grad)
    unit.flat = flat_inputs(unit, value_of) or frozenset()
    return FlatCode(unit, [value_of(node) for node in unit.inputs], grad).is_elementwise


def _unit_of(block: list[torch.fx.Node], grad: bool) -> Unit:
    inside = set(block)
    inputs = dict.fromkeys(used for node in block for used in node.all_input_nodes if used not in inside)
    outputs = [node for node in block if any(user not in inside for user in node.users)]
    return Unit(block, list(inputs), outputs, grad_before=grad, grad_after=grad)


def flat_inputs(unit: Unit, value_of: Callable[[torch.fx.Node], Any]) -> frozenset[torch.fx.Node] | None:
    """The inputs that flat code gets as views: all but single numbers. They must be contiguous and of one shape, with memory
    of their own, and the unit have no results; None otherwise."""
    values = [value_of(node) for node in unit.inputs]
    if unit.outputs or not all(isinstance(value, torch.Tensor) for value in values):
        return None
    large = [value for value in values if value.dim()]
    if not large or len({storage_key(value) for value in values}) < len(values):
        return None
    shape = large[0].shape
    if shape.numel() < 2 or not all(value.shape == shape and value.is_contiguous() for value in large):
        return None
    return frozenset(node for node, value in zip(unit.inputs, values, strict=True) if value.dim())


def flat_key(unit: Unit, values: Mapping[torch.fx.Node, Any]) -> tuple[Any, ...]:
    """A key that is equal for units that the same flat code serves."""
    _, operations = operations_of(unit)
    inputs = tuple((node in unit.flat, values[node].dtype) for node in unit.inputs)
    size = next(values[node].numel() for node in unit.inputs if node in unit.flat)
    for_threads = size >= _FOR_THREADS and torch.get_num_threads() > 1
    return "flat", unit.grad_before, operations, inputs, for_threads


def together(
    graph: torch.fx.Graph, found: Sequence[Updates], grad: bool
) -> tuple[torch.fx.Graph, dict[torch.fx.Node, torch.fx.Node]]:
    """A copy of ``graph`` in which the updates that flat code can serve stand before the others of their run, and the copy
    of each node."""
    order = list(graph.nodes) if grad else _with_early_views(graph)
    place = {node: i for i, node in enumerate(order)}
    for updates in found:
        blocks = [*updates.flat, *updates.others]
        start = min(place[block[0]] for block in blocks)
        sorted_nodes = [node for block in blocks for node in block]
        order[start : start + len(sorted_nodes)] = sorted_nodes
    copied = torch.fx.Graph()
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in order:
        copies[node] = copied.node_copy(node, copies.__getitem__)
    return copied, copies


def _with_early_views(graph: torch.fx.Graph) -> list[torch.fx.Node]:
    """The nodes, with the views that only the caller gets (`return loss.detach()`) directly after what they are views of: so
    both are results of one unit. When a view is made does not matter where no history is recorded."""
    views: dict[torch.fx.Node, list[torch.fx.Node]] = {}
    for node in graph.nodes:
        base = next(_viewed(node), None)
        if base is not None and base.op != "placeholder" and node.all_input_nodes == [base] and only_views(node):
            if all(user.op == "output" for user in node.users):
                views.setdefault(base, []).append(node)
    moved = {view for those in views.values() for view in those}
    return [one for node in graph.nodes if node not in moved for one in (node, *views.get(node, ()))]

"""Updates: blocks of which none uses another's results, as an optimizer updates one parameter after the other.

If they compute elements one by one, one code with a symbolic size serves all of them, whatever their shapes: it gets flat
views of their tensors (`flat_code.py`). Key type: Updates; key functions: `find_updates`, `together`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx
from torch.fx.node import map_aggregate

from magpy_core._compat.torch.operators import arguments_by_schema
from magpy_core._compat.torch.tensor_guards import storage_key
from magpy_core._compat.torch.torch_state import preserve_torch_state
from magpy_core.backends.blocks.finding import Run, independent_runs
from magpy_core.backends.blocks.flat_code import FlatCode, flat_inputs
from magpy_core.backends.blocks.units import Unit, only_views
from magpy_core.backends.sharing import copied, viewed, written
from magpy_core.limits import LIMITS


@dataclass(frozen=True)
class Updates:
    """The blocks of a run, in order: those that flat code can serve, and the others."""

    flat: list[list[torch.fx.Node]]
    others: list[list[torch.fx.Node]]


def find_updates(nodes: Sequence[torch.fx.Node], fakes: Mapping[torch.fx.Node, Any], mode: Any, grad: bool) -> list[Updates]:
    """The runs of updates that are worth flat code. ``fakes``: of the inputs, in the fake mode ``mode``; ``grad``: whether
    gradients are enabled where the graph is called."""
    names = {node: repr((fake.dim() == 0, fake.dtype, fake.device)) for node, fake in fakes.items()}
    runs = [run for run in independent_runs(nodes, names) if run.saved >= LIMITS.updates_save and _is_unbroken(run, nodes)]
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
            (len(updates.flat) - 1) * run.length >= LIMITS.updates_save
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

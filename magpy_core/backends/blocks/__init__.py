"""Repeated blocks of an operator graph are compiled once and called as often as they are repeated.

The graph is cut at the borders of its blocks into units; of those that are the same, one is compiled, forward and backward.
One function calls the compiled units in order, and autograd chains their backward passes. What is compiled, guarded and
replayed stays the whole graph. Key function: `compile_blocks`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.torch_state import STATE_CALLS
from magpy_core.backends.blocks.finding import find_runs
from magpy_core.backends.blocks.joining import Boxed, join
from magpy_core.backends.blocks.rules import may_cut, results_of, writes_stay_inside
from magpy_core.backends.blocks.units import Unit, Value, cut, described, key_of, module_of

Compile = Callable[[torch.fx.GraphModule, Sequence[Any]], tuple[Callable[..., Any], Boxed | None, list[str]]]

#: The part of a graph's operations that must be spared; what is cut fuses less and is called more often.
LEAST_SPARED = 1 / 3


def compile_blocks(gm: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any, compile_one: Compile) -> Any:
    """What ``compile_one(gm, fakes)`` would give, from one compilation per distinct unit; None if ``gm`` has no blocks that
    repay it, or can't be cut without doubt. ``gm`` is not changed."""
    inputs: list[torch.fx.Node] = gm.graph.find_nodes(op="placeholder")
    nodes = [node for node in gm.graph.nodes if node.op not in ("placeholder", "output") and node.target not in STATE_CALLS]
    given: Any = gm.graph.output_node().args[0]
    returned = list(given)
    if not may_cut(nodes, fakes) or not all(isinstance(node, torch.fx.Node) for node in returned):
        return None
    values = dict(zip(inputs, fakes, strict=True))
    runs = find_runs(nodes, {node: repr(described(fake)) for node, fake in values.items()})
    if not runs or sum(run.saved for run in runs) < LEAST_SPARED * len(nodes):
        return None
    grad = torch.is_grad_enabled()
    units = cut(gm.graph, nodes, runs, grad)
    if units[-1].grad_after is not grad or not writes_stay_inside(units, values, returned):
        return None
    distinct = _distinct(units, values, mode)
    return None if distinct is None else _compiled(distinct, inputs, returned, compile_one)


class _Kind:
    """Units that are the same: the module of the first, and the fakes to compile it for."""

    def __init__(self, module: torch.fx.GraphModule, fakes: list[Any], results: list[Value]) -> None:
        self.module, self.fakes, self.results = module, fakes, results


def _distinct(units: Sequence[Unit], values: dict[torch.fx.Node, Any], mode: Any) -> list[tuple[Unit, _Kind]] | None:
    kinds: dict[Any, _Kind] = {}
    found = []
    for unit in units:
        inside = {*unit.nodes}
        leaving = [any(user.op != "output" and user not in inside for user in node.users) for node in unit.outputs]
        key = key_of(unit, values, leaving)
        if (kind := kinds.get(key)) is None:
            module, given = module_of(unit, torch.is_grad_enabled()), [values[node] for node in unit.inputs]
            if (results := results_of(module, given, leaving, mode)) is None:
                return None
            kind = kinds[key] = _Kind(module, given, results)
        for node, result, leaves in zip(unit.outputs, kind.results, leaving, strict=True):
            if leaves:
                values[node] = result.fake(mode)
        found.append((unit, kind))
    return found


def _compiled(
    units: Sequence[tuple[Unit, _Kind]],
    inputs: Sequence[torch.fx.Node],
    outputs: Sequence[torch.fx.Node],
    compile_one: Compile,
) -> tuple[Callable[..., Any], Boxed, list[str]]:
    made: dict[_Kind, Boxed] = {}
    sources: list[str] = []
    for _, kind in units:
        if kind not in made:
            fn, boxed, texts = compile_one(kind.module, kind.fakes)
            made[kind] = boxed or _boxed(fn)
            sources += [text for text in texts if text not in sources]
    joined = join(inputs, [(unit, made[kind]) for unit, kind in units], outputs)
    return (lambda *values: joined(list(values))), joined, sources


def _boxed(fn: Callable[..., Any]) -> Boxed:
    return lambda inputs: fn(*inputs)

"""Compiles a graph unit by unit. Key function: `compile_blocks`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.torch_state import STATE_CALLS, preserve_torch_state
from magpy_core.backends.blocks.finding import Run, find_runs
from magpy_core.backends.blocks.joining import Boxed, join
from magpy_core.backends.blocks.rules import least_work, may_cut, results_of, writes_stay_inside
from magpy_core.backends.blocks.units import Unit, Value, cut, described, key_of, module_of

Compiled = tuple[Callable[..., Any], Boxed | None, list[str]]
Compile = Callable[[torch.fx.GraphModule, Sequence[Any]], Compiled]

#: The part of a graph's operations that blocks must save from being compiled.
LEAST_SAVED = 1 / 3


@dataclass(eq=False)
class _Kind:
    """Units that are the same: the module of the first, the fakes to compile it for, and its results for them."""

    module: torch.fx.GraphModule
    fakes: list[Any]
    results: list[Value]
    work: int


class _Graph:
    """A graph that may be cut: its operations, and the fakes of its inputs."""

    def __init__(self, gm: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any) -> None:
        self.graph, self.mode, self.grad = gm.graph, mode, torch.is_grad_enabled()
        self.inputs: list[torch.fx.Node] = gm.graph.find_nodes(op="placeholder")
        self.fakes = dict(zip(self.inputs, fakes, strict=True))
        self.nodes = [n for n in gm.graph.nodes if n.op not in ("placeholder", "output") and n.target not in STATE_CALLS]
        returned: Any = gm.graph.output_node().args[0]
        self.outputs: list[Any] = list(returned)

    def runs(self) -> list[Run]:
        """The runs of blocks that are worth compiling separately, judged by their number of operations."""
        if not may_cut(self.nodes, list(self.fakes.values())) or not all(isinstance(n, torch.fx.Node) for n in self.outputs):
            return []
        return self.worthwhile(find_runs(self.nodes, {node: repr(described(fake)) for node, fake in self.fakes.items()}))

    def worthwhile(self, runs: list[Run]) -> list[Run]:
        return runs if sum(run.saved for run in runs) >= LEAST_SAVED * len(self.nodes) else []

    def units(self, runs: Sequence[Run]) -> list[tuple[Unit, _Kind]]:
        """The units of these blocks, in order; empty unless the graph can safely be cut there."""
        units = cut(self.graph, self.nodes, runs, self.grad) if runs else []
        if not units or units[-1].grad_after is not self.grad or not writes_stay_inside(units, self.fakes, self.outputs):
            return []
        kinds: dict[Any, _Kind] = {}
        values = dict(self.fakes)
        found = []
        for unit in units:
            inside = set(unit.nodes)
            leaving = [any(user.op != "output" and user not in inside for user in node.users) for node in unit.outputs]
            key = key_of(unit, values, leaving)
            kind = kinds.get(key) or self._kind(unit, [values[node] for node in unit.inputs], leaving)
            if kind is None:
                return []
            kinds[key] = kind
            leaves = zip(unit.outputs, kind.results, leaving, strict=True)
            values |= {node: result.fake(self.mode) for node, result, left in leaves if left}
            found.append((unit, kind))
        return found

    def _kind(self, unit: Unit, fakes: list[Any], leaving: Sequence[bool]) -> _Kind | None:
        module = module_of(unit, self.grad)
        with preserve_torch_state():
            torch.set_autocast_cache_enabled(False)  # it would keep the fakes
            results = results_of(module, fakes, leaving, self.mode)
        return None if results is None else _Kind(module, fakes, *results)

    def larger(self, runs: Sequence[Run], units: Sequence[tuple[Unit, _Kind]]) -> list[Run]:
        """These runs with blocks merged until the call overhead is negligible; without runs that then have too few
        blocks."""
        kinds = {unit.nodes[0]: kind for unit, kind in units}
        found = []
        for run in runs:
            kind = kinds[self.nodes[run.start + run.length]]
            device = kind.fakes[0].device if kind.fakes else torch.device("cpu")
            together = max(1, math.ceil(least_work(device) / max(kind.work, 1))) if run.chained else 1
            found.append(run if together == 1 else run.merged(together))
        return self.worthwhile([run for run in found if run is not None])


def compile_blocks(gm: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any, compile_one: Compile) -> Compiled | None:
    """The result of ``compile_one(gm, fakes)``, from one compilation per distinct unit; None if ``gm`` has no blocks that
    are worth it, or can't safely be cut. ``gm`` is not changed."""
    graph = _Graph(gm, fakes, mode)
    runs = graph.runs()
    units = graph.units(runs)
    if (larger := graph.larger(runs, units) if units else []) != runs:
        units = graph.units(larger)
    if not units:
        return None
    try:
        return _compiled(graph, units, compile_one)
    except Exception:  # a compiler may raise anything: try the whole graph, whose error is reported
        return None


def _compiled(graph: _Graph, units: Sequence[tuple[Unit, _Kind]], compile_one: Compile) -> Compiled:
    compiled: dict[_Kind, Boxed] = {}
    sources: list[str] = []
    for _, kind in units:
        if kind not in compiled:
            fn, boxed, texts = compile_one(kind.module, kind.fakes)
            compiled[kind] = boxed or _boxed(fn)
            sources += [text for text in texts if text not in sources]
    joined = join(graph.inputs, [(unit, compiled[kind]) for unit, kind in units], graph.outputs)
    return (lambda *values: joined(list(values))), joined, sources


def _boxed(fn: Callable[..., Any]) -> Boxed:
    return lambda inputs: fn(*inputs)

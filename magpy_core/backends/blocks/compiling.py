"""Compiles a graph unit by unit. Key function: `compile_blocks`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.torch_state import STATE_CALLS, preserve_torch_state
from magpy_core.backends.blocks.finding import Run, find_runs
from magpy_core.backends.blocks.flat_code import FlatCode, flat_inputs, flat_key
from magpy_core.backends.blocks.fused import join_updates, split_off
from magpy_core.backends.blocks.joining import Boxed, join
from magpy_core.backends.blocks.parts import count
from magpy_core.backends.blocks.rules import least_work, may_cut, results_of, writes_stay_inside
from magpy_core.backends.blocks.units import Unit, Value, cut, described, key_of, module_of, with_own_views
from magpy_core.backends.blocks.updates import find_updates, together
from magpy_core.limits import LIMITS

Compiled = tuple[Callable[..., Any], Boxed | None, list[str]]
Compile = Callable[[torch.fx.GraphModule, Sequence[Any], Any], Compiled]
"""Compiles a graph for fakes of a mode."""


@dataclass(eq=False)
class _Kind:
    """Units that the same code serves: the module of the first, the fakes to compile it for, and its results for them."""

    module: torch.fx.GraphModule
    fakes: list[Any]
    mode: Any
    results: list[Value]
    work: int
    flat: FlatCode | None = None
    sizes: set[int] = field(default_factory=set)  # that the flat code must serve


class _Graph:
    """A graph that may be cut: its operations, and the fakes of its inputs."""

    def __init__(self, graph: torch.fx.Graph, fakes: Sequence[Any], mode: Any) -> None:
        self.graph, self.mode, self.grad = graph, mode, torch.is_grad_enabled()
        self.inputs: list[torch.fx.Node] = graph.find_nodes(op="placeholder")
        self.fakes = dict(zip(self.inputs, fakes, strict=True))
        self.nodes = [n for n in graph.nodes if n.op not in ("placeholder", "output") and n.target not in STATE_CALLS]
        returned: Any = graph.output_node().args[0]
        self.outputs: list[Any] = list(returned)
        self.may_cut = may_cut(self.nodes, fakes) and all(isinstance(n, torch.fx.Node) for n in self.outputs)
        self._updates: list[Run] = []
        self._flat: set[torch.fx.Node] = set()

    @property
    def on_cpu(self) -> bool:
        """Whether all inputs are there: what only serves it has not been measured on other devices."""
        return all(fake.device.type == "cpu" for fake in self.fakes.values() if isinstance(fake, torch.Tensor))

    @property
    def makes_views(self) -> bool:
        """Whether units may make views of their own: no history is recorded, and no operation changes sizes in place."""
        return (
            self.on_cpu
            and not self.grad
            and not any(
                node.target in STATE_CALLS or torch.Tag.inplace_view in getattr(node.target, "tags", ())
                for node in self.graph.nodes
            )
        )

    def with_updates(self) -> _Graph | None:
        """The graph, if flat code can serve updates in it; their order may differ."""
        found = find_updates(self.nodes, self.fakes, self.mode, self.grad) if self.may_cut and self.on_cpu else []
        if not found:
            return None
        graph, copies = together(self.graph, found, self.grad)
        made = _Graph(graph, list(self.fakes.values()), self.mode)
        place = {node: i for i, node in enumerate(made.nodes)}
        for updates in found:
            first, length = copies[updates.flat[0][0]], len(updates.flat[0])
            made._updates.append(Run(place[first], length, len(updates.flat), chained=False))
            made._flat |= {copies[block[0]] for block in updates.flat}
        return made

    def runs(self) -> list[Run]:
        """The runs of blocks that are worth compiling separately, judged by their number of operations."""
        if not self.may_cut:
            return []
        names = {node: repr(described(fake)) for node, fake in self.fakes.items()}
        found = find_runs(self.nodes, names, self._updates)
        if self.makes_views:  # each unit is compiled by itself, which takes as long as so many operations
            found = [run for run in found if run.saved >= LIMITS.block_saves]
        return self.worthwhile(found)

    def worthwhile(self, runs: list[Run]) -> list[Run]:
        return runs if sum(run.saved for run in runs) >= LIMITS.blocks_save * len(self.nodes) else []

    def units(self, runs: Sequence[Run]) -> list[tuple[Unit, _Kind]]:
        """The units of these blocks, in order; empty unless the graph can safely be cut there."""
        units = cut(self.graph, self.nodes, runs, self.grad) if runs else []
        if not units or units[-1].grad_after is not self.grad or not writes_stay_inside(units, self.fakes, self.outputs):
            return []
        if self.makes_views:
            with_own_views(units, self._flat, self.outputs)
        used = {node for unit in units for node in unit.inputs}
        kinds: dict[Any, _Kind] = {}
        values = dict(self.fakes)
        found = []
        for unit in units:
            leaving = [node in used for node in unit.outputs]
            kind = self._kind_of(kinds, unit, values, leaving)
            if kind is None:
                return []
            leaves = zip(unit.outputs, kind.results, leaving, strict=True)
            values |= {node: result.fake(self.mode) for node, result, left in leaves if left}
            found.append((unit, kind))
        return found

    def _kind_of(
        self, kinds: dict[Any, _Kind], unit: Unit, values: Mapping[torch.fx.Node, Any], leaving: Sequence[bool]
    ) -> _Kind | None:
        """One of these ``kinds``, or a new one; None if the graph can't be cut at this unit."""
        fakes = [values[node] for node in unit.inputs]
        flat = next((node for node in unit.nodes if node.target not in STATE_CALLS), None) in self._flat
        if flat:
            inputs = flat_inputs(unit, values.get)
            if inputs is None or (unit.grad and any(fake.requires_grad for fake in fakes)):
                return None
            unit.flat, unit.viewed = inputs, frozenset(node for node in inputs if values[node].dim() > 1)
        key = flat_key(unit, values) if flat else key_of(unit, values, leaving)
        if key not in kinds:
            made = self._flat_kind(unit, fakes) if flat else self._kind(unit, fakes, leaving)
            if made is None:
                return None
            kinds[key] = made
        if flat:
            kinds[key].sizes.add(max(fake.numel() for fake in fakes))
        return kinds[key]

    def _kind(self, unit: Unit, fakes: list[Any], leaving: Sequence[bool]) -> _Kind | None:
        module = module_of(unit, self.grad)
        with preserve_torch_state():
            torch.set_autocast_cache_enabled(False)  # it would keep the fakes
            results = results_of(module, fakes, leaving, self.mode)
        return None if results is None else _Kind(module, fakes, self.mode, *results)

    def _flat_kind(self, unit: Unit, fakes: list[Any]) -> _Kind:
        code = FlatCode(unit, fakes, self.grad)
        return _Kind(code.module, code.fakes, code.mode, [], 0, code)

    def chosen_units(self) -> list[tuple[Unit, _Kind]]:
        """The units that are compiled; empty if the graph is compiled as one."""
        for runs in (self.runs(), self.worthwhile(self._updates)):
            units = self.units(runs)
            larger = self._larger(runs, units) if units else []
            found = self.units(larger) if larger != runs else units
            if found:
                return found
        return []

    def _larger(self, runs: Sequence[Run], units: Sequence[tuple[Unit, _Kind]]) -> list[Run]:
        """These runs with blocks merged until the call overhead is negligible; without runs that then have too few
        blocks."""
        kinds: dict[torch.fx.Node, _Kind] = {}
        for unit, kind in units:
            for node in unit.nodes:
                kinds.setdefault(node, kind)  # a view may be made again by later units
        found = []
        slowed = self._is_slowed_by(units)
        for run in runs:
            if slowed and run in self._updates:
                continue
            kind = kinds[self.nodes[run.start + run.length]]
            device = kind.fakes[0].device if kind.fakes else torch.device("cpu")
            together = max(1, math.ceil(least_work(device) / max(kind.work, 1))) if run.chained else 1
            found.append(run if together == 1 else run.merged(together))
        return self.worthwhile([run for run in found if run is not None])

    def _is_slowed_by(self, units: Sequence[tuple[Unit, _Kind]]) -> bool:
        """Whether a call for each update takes a noticeable part of the graph's time. A graph of nothing but updates is a
        small part of a training step."""
        if sum(run.length * run.count for run in self._updates) >= LIMITS.only_updates * len(self.nodes):
            return False
        others = sum(kind.work for _, kind in units if kind.flat is None)
        updates = sum(kind.flat is not None for _, kind in units)
        return others < updates * least_work(torch.device("cpu")) / LIMITS.calls_of_updates


def compile_blocks(gm: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any, compile_one: Compile) -> Compiled | None:
    """The result of ``compile_one(gm, fakes)``, from one compilation per distinct unit; None if ``gm`` has no blocks that
    are worth it, or can't safely be cut. ``gm`` is not changed."""
    if (rest := split_off(gm, fakes)) is not None:
        try:
            made = compile_blocks(rest.module, fakes, mode, compile_one) or compile_one(rest.module, fakes, mode)
            fn, boxed, sources = made
            call = join_updates(rest, boxed or _boxed(fn))
            return (lambda *values: call(list(values))), call, sources
        except Exception:  # as below
            pass
    graph = _Graph(gm.graph, fakes, mode)
    for cut_graph in (graph.with_updates, lambda: graph):
        try:
            candidate = cut_graph()
            units = candidate.chosen_units() if candidate is not None else []
            if candidate is not None and units:
                return _compiled(candidate, units, compile_one)
        except Exception:  # a compiler may raise anything: try the whole graph, whose error is reported
            continue
    return None


def _compiled(graph: _Graph, units: Sequence[tuple[Unit, _Kind]], compile_one: Compile) -> Compiled:
    compiled: dict[_Kind, Boxed] = {}
    sources: list[str] = []
    parts = len({id(kind) for _, kind in units})
    for _, kind in units:
        if kind not in compiled:
            count(len(compiled), parts)
            fn, boxed, texts = compile_one(kind.module, kind.fakes, kind.mode)
            if kind.flat is not None and not all(map(kind.flat.serves, kind.sizes)):
                raise ValueError("flat code does not fit all sizes")
            compiled[kind] = boxed or _boxed(fn)
            sources += [text for text in texts if text not in sources]
    joined = join(graph.inputs, [(unit, compiled[kind]) for unit, kind in units], graph.outputs)
    return (lambda *values: joined(list(values))), joined, sources


def _boxed(fn: Callable[..., Any]) -> Boxed:
    return lambda inputs: fn(*inputs)

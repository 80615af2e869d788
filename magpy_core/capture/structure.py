"""How a trace is cut: decisions are checked before the graph, between its segments and after it. Key type: Structure."""

from __future__ import annotations

from dataclasses import dataclass

import torch.fx

from magpy_core.opgraph.conditions import only_for
from magpy_core.opgraph.expectations import Expectation
from magpy_core.opgraph.raising import may_end_process
from magpy_core.opgraph.replicas import communicates
from magpy_core.opgraph.segments import Segment, split
from magpy_core.recording.ledger import Decision
from magpy_core.recording.trace import Trace


@dataclass(frozen=True)
class Structure:
    """``conditions`` depend on the inputs alone; the nodes in ``ahead`` compute them before the graph. ``cuts``: one after
    each segment but the last. ``assertions`` are checked after the whole graph. ``placeholders``: the graph's inputs, in
    order. ``holds_writes``: the graph writes nothing if an assertion does not hold."""

    conditions: tuple[Decision, ...]
    cuts: tuple[Decision, ...]
    assertions: tuple[Decision, ...]
    ahead: frozenset[torch.fx.Node]
    segments: list[Segment]
    placeholders: tuple[torch.fx.Node, ...]
    holds_writes: bool = False

    @staticmethod
    def of(trace: Trace, *, compiled: bool = False) -> Structure:
        """``compiled``: the backend is a compiler."""
        conditions = tuple(d for d in trace.decisions if d.condition is not None)
        rest = [d for d in trace.decisions if d.condition is None]
        # On a GPU, what an assertion rules out (an index that is too large) ends the process instead of raising: cut there.
        on_cpu = all(tensor.facts.device.type == "cpu" for tensor in trace.inputs)
        after_graph = on_cpu or not rest or not may_end_process(trace.graph, rest[0].last_node)
        after_graph = after_graph and not any(map(communicates, trace.graph.nodes))  # which can't be undone
        holds_writes = compiled and after_graph and bool(rest) and all(d.held for d in rest)
        cuts = tuple(d for d in rest if not (after_graph and (d.asserted or holds_writes)))
        assertions = tuple(d for d in rest if after_graph and (d.asserted or holds_writes))
        asserted = [node for d in assertions for node in decided_by(d)]
        wanted = [*map(decided_by, cuts), [*trace.plan.outputs, *asserted]]
        ahead = frozenset(only_for((d.condition or () for d in conditions), (n for nodes in wanted for n in nodes)))
        segments = split(trace.graph, [d.last_node for d in cuts], wanted, ahead)
        if holds_writes:
            segments[0].expected = tuple(Expectation(d.sym, d.outcome) for d in assertions)
        placeholders = tuple(n for n in trace.graph.nodes if n.op == "placeholder")
        return Structure(conditions, cuts, assertions, ahead, segments, placeholders, holds_writes)

    @property
    def may_undo(self) -> bool:
        """Whether a part of the graph may have run when the capture turns out not to fit."""
        return len(self.segments) > 1 or bool(self.assertions)


def decided_by(decision: Decision) -> list[torch.fx.Node]:
    """The graph values that a decision depends on."""
    return [leaf.payload for leaf in decision.sym.leaves() if leaf.kind == "node"]

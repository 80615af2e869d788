"""How a trace is cut: decisions are checked before the graph, between its segments and after it. Key type: Structure."""

from __future__ import annotations

import itertools
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
        others = [d for d in trace.decisions if d.condition is None]
        after_graph = _may_check_afterwards(trace, others)
        holds_writes = compiled and after_graph and bool(others) and all(d.held for d in others)
        cuts, assertions = _cuts_and_assertions(others, after_graph=after_graph, holds_writes=holds_writes)
        asserted = itertools.chain.from_iterable(map(decided_by, assertions))
        wanted = [*map(decided_by, cuts), [*trace.plan.outputs, *asserted]]  # of each segment
        early = (d.condition or () for d in conditions)
        ahead = frozenset(only_for(early, itertools.chain.from_iterable(wanted)))
        segments = split(trace.graph, [d.last_node for d in cuts], wanted, ahead)
        if holds_writes:
            segments[0].expected = tuple(Expectation(d.sym, d.outcome) for d in assertions)
        placeholders = tuple(n for n in trace.graph.nodes if n.op == "placeholder")
        return Structure(conditions, tuple(cuts), tuple(assertions), ahead, segments, placeholders, holds_writes)

    @property
    def may_undo(self) -> bool:
        """Whether a part of the graph may have run when the capture turns out not to fit."""
        return len(self.segments) > 1 or bool(self.assertions)


def _may_check_afterwards(trace: Trace, decisions: list[Decision]) -> bool:
    """Whether the whole graph may run before decisions are checked."""
    if any(map(communicates, trace.graph.nodes)):
        return False  # communication can't be undone
    # On a GPU, what an assertion rules out (an index that is too large) ends the process instead of raising: cut there.
    on_cpu = all(tensor.facts.device.type == "cpu" for tensor in trace.inputs)
    return on_cpu or not decisions or not may_end_process(trace.graph, decisions[0].last_node)


def _cuts_and_assertions(
    decisions: list[Decision], *, after_graph: bool, holds_writes: bool
) -> tuple[list[Decision], list[Decision]]:
    """Which decisions are checked between segments, and which after the whole graph."""
    cuts: list[Decision] = []
    assertions: list[Decision] = []
    for decision in decisions:
        is_assertion = after_graph and (decision.asserted or holds_writes)
        (assertions if is_assertion else cuts).append(decision)
    return cuts, assertions


def decided_by(decision: Decision) -> list[torch.fx.Node]:
    """The graph values that a decision depends on."""
    return [leaf.payload for leaf in decision.sym.leaves() if leaf.is_of_graph]

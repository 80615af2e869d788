"""Trace: the result of one recording for all later stages. It is frozen, and holds no tensor and no object of the program.

Objects guarded by identity (functions, classes, modules) are the exception: a guard compares with the object itself.
Key types: Trace, GraphInput, GuardedTensor, Recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from magpy_core._compat.torch.tensor_guards import no_torch_function, storage_key, version_of
from magpy_core.backends.calling import UNCOUNTED
from magpy_core.findings import HERE, Finding, Unsupported
from magpy_core.guards.explain import TensorFacts
from magpy_core.opgraph.operator_graph import OperatorGraph
from magpy_core.opgraph.scalars import Sym
from magpy_core.recording.journal import Journal
from magpy_core.recording.ledger import Decision, Fresh, Ledger
from magpy_core.recording.places import Places
from magpy_core.refgraph.graph import RefGraph
from magpy_core.refgraph.lookup import MODULE_TABLES
from magpy_core.refgraph.source import Source
from magpy_core.replay.ir import Plan

_COMPLEX = "A complex result requires a gradient, which may be a conjugate view."
_VIEW = (
    "In inference mode, a view of a tensor created outside that mode leaves the region; compiled code would return an "
    "inference tensor."
)


@dataclass(frozen=True)
class GuardedTensor:
    """A tensor from outside whose metadata is guarded. ``dims`` are dynamic; ``memory`` identifies the storage."""

    source: Source
    facts: TensorFacts
    dims: frozenset[int]
    memory: int
    offset: int


@dataclass(frozen=True)
class GraphInput:
    """A placeholder of the operator graph. ``writes``: the operations that write it. ``shares_mutated``: the graph writes
    its memory. ``new_history``: the graph changes its autograd history; ``undo_error``: why that can't be
    undone."""

    node: torch.fx.Node
    source: Source
    facts: TensorFacts
    writes: tuple[torch.fx.Node, ...]
    shares_mutated: bool
    new_history: bool
    undo_error: Unsupported | None = None


@dataclass(frozen=True)
class Trace:
    """One captured run. ``numbers``: graph inputs computed in Python. ``fresh``: what each call reads anew.
    ``distinct``: groups of sources that must lead to different objects. ``doubtful``: nodes that compilers may compute
    incorrectly, with the reason."""

    refgraph: RefGraph
    graph: torch.fx.Graph
    inputs: tuple[GraphInput, ...]
    numbers: tuple[tuple[torch.fx.Node, Sym], ...]
    tensors: tuple[GuardedTensor, ...]
    decisions: tuple[Decision, ...]
    plan: Plan
    fresh: Fresh
    distinct: tuple[tuple[Source, ...], ...]
    writes: TensorWrites
    doubtful: Mapping[torch.fx.Node, str]
    dims: Mapping[str, frozenset[int]]
    places: Places
    globals_hold: Callable[[], bool]
    findings: tuple[Finding, ...]

    @property
    def draws(self) -> list[Source]:
        return self.fresh.draws

    @property
    def counts(self) -> bool:
        """Whether checking the guards looks something up in a cache, which counts that."""
        return any(read.counted for read in self.refgraph.reads)


@dataclass(frozen=True)
class TensorWrites:
    """Writes of the graph to tensors from outside. ``mutated``: the written inputs; ``written``: the sites."""

    mutated: tuple[Source, ...]
    written: tuple[tuple[Source, Any], ...]
    with_history: frozenset[str]
    drew_random: bool


@dataclass
class Recorded:
    """The result of a monitored run. ``trace`` is None if it can't become a capture; ``findings`` say why."""

    journal: Journal
    trace: Trace | None
    live: Live
    has_tensors: bool = True
    """Whether a tensor was given to the run, or made in it."""

    @property
    def findings(self) -> list[Finding]:
        return self.journal.findings

    @property
    def obstacles(self) -> list[Finding]:
        """The findings that say what keeps the run from being one graph."""
        return self.journal.obstacles

    @property
    def refused(self) -> bool:
        return self.journal.refused

    @property
    def is_refused_on_branch(self) -> bool:
        """Whether what was refused came after a branch that another call may not take."""
        return self.journal.refused and self.journal.is_on_branch and not self.journal.aborted

    @property
    def skip_reason(self) -> str:
        return self.journal.skip_reason

    def refuse(self, error: Unsupported) -> None:
        """A later stage refuses the trace."""
        self.trace = None
        self.journal.refuse_error(error)

    def refuse_sizes_from_data(self) -> None:
        """Refuse a trace in which Python reads a data-dependent size: it can only run operator by operator."""
        read = (
            [d for d in self.trace.decisions if type(d.outcome) is torch.Size and d.condition is None] if self.trace else []
        )
        for decision in read:
            text = f"{HERE} returns a data-dependent size to Python: no compiled backend supports that."
            self.journal.refuse("MP109", text, site=decision.site)
            self.trace = None


@dataclass
class Live:
    """Objects of the recorded call, as examples for compilation. They die with `Recorded`."""

    tensors: list[torch.Tensor] = field(default_factory=list)  # of Trace.tensors


def freeze(
    ledger: Ledger, journal: Journal, plan: Plan, free_dims: Callable[[Source, torch.Tensor], set[int]],
    globals_hold: Callable[[], bool],
) -> tuple[Trace, Live]:  # fmt: skip
    """The trace of a run that can be captured, and its example objects."""
    ops = ledger.ops
    live = Live()
    tensors = []
    for tensor, source in ops.inputs.guarded.values():
        at_entry = ops.entry.of(tensor)  # differs from `tensor` if its `.data` or `requires_grad` was assigned
        live.tensors.append(at_entry)
        dims = frozenset(free_dims(source, at_entry))
        offset = int(at_entry.storage_offset()) if at_entry.layout is torch.strided else 0
        tensors.append(GuardedTensor(source, TensorFacts.of(at_entry), dims, storage_key(at_entry), offset))
    mutated = {id(t): s for t, s in ops.writes.mutated.values()}
    memory = {storage_key(ops.entry.of(t)) for t, _ in ops.writes.mutated.values()}
    inputs = []
    for node, source, tensor in ops.inputs.tensors:
        at_entry = ops.entry.of(tensor)
        shares = storage_key(at_entry) in memory
        error = None
        try:
            changed = ops.entry.has_new_history(tensor)
        except Unsupported as unsupported:  # relevant only if a graph may have to be undone
            changed, error = True, unsupported
        written = tuple(ops.writes.operations.get(id(tensor), ()))
        inputs.append(GraphInput(node, source, TensorFacts.of(at_entry), written, shares, changed, error))
    _mark_uncounted_writes(ops)
    writes = TensorWrites(
        tuple(mutated.values()), tuple((source, site) for _, source, site in ledger.tensor_writes),
        frozenset(ledger.with_history), ops.writes.drew_random,
    )  # fmt: skip
    trace = Trace(
        refgraph=ledger.refgraph,
        graph=ops.graph,
        inputs=tuple(inputs),
        numbers=tuple(ops.inputs.numbers),
        tensors=tuple(tensors),
        decisions=tuple(ledger.decisions),
        plan=plan,
        fresh=ledger.fresh,
        distinct=tuple(_distinct(ledger.refgraph)),
        writes=writes,
        doubtful=_doubtful_results(ledger),
        dims={path: frozenset(dims) for path, dims in ledger.learned.dims.items()},
        places=journal.places,
        globals_hold=globals_hold,
        findings=tuple(journal.findings),
    )
    return trace, live


def _mark_uncounted_writes(ops: OperatorGraph) -> None:
    """Marks the placeholders of inputs that were written without changing their version counters: running statistics, and
    writes through ``.data``."""
    with no_torch_function():
        counted = {storage_key(t) for n, _, t in ops.inputs.tensors if version_of(t) != n.meta["magpy_version"]}
        for node, _, tensor in ops.inputs.tensors:
            known = version_of(tensor) is not None
            if known and id(tensor) in ops.writes.mutated and storage_key(tensor) not in counted:
                node.meta[UNCOUNTED] = True


def _distinct(refgraph: RefGraph) -> list[tuple[Source, ...]]:
    """Groups of objects of the same type, at least one of which the region writes, copies, compares or hashes: no two of
    them may be the same object."""
    groups: dict[type, list[Any]] = {}
    for node in refgraph.nodes.values():
        if (node.source.kind != "const" and node.kind not in (0, 1, 2)) or (node.kind == 2 and node.must_be_distinct):
            groups.setdefault(type(node.obj), []).append(node)
    found = []
    for tp, nodes in groups.items():
        if len(nodes) > 1 and any((n.snapshot is not None and tp is not tuple) or n.must_be_distinct for n in nodes):
            sources = [n.source for n in nodes if not (n.source.kind == "attr" and n.source.key in MODULE_TABLES)]
            if len(sources) > 1:
                found.append(tuple(sources))
    return found


def _doubtful_results(ledger: Ledger) -> dict[torch.fx.Node, str]:
    """Nodes that may not be results of a compiled graph, with the reason."""
    ops = ledger.ops
    with no_torch_function():
        found = {node: _COMPLEX for t, node in ops.values if t.is_complex() and t.requires_grad}
        if torch.is_inference_mode_enabled():
            outside = {storage_key(t) for _, _, t in ops.inputs.tensors if not t.is_inference()}
            found |= {n: _VIEW for t, n in ops.values if n.op != "placeholder" and storage_key(t) in outside}
    return found

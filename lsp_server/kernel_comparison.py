"""Compares the kernels of two reports: of two revisions, or for two targets. Key types: KernelComparison, GraphChange.

Kernels match by what they compute: operators and lines of the program (by their text, so that lines may move), never by the
names that a compiler gives them. Where one kernel was and several are now that compute the same, fusion has stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from lsp_server.measures import Change, Measure, changes
from magpy_core.findings import Kernel, KernelLine, TargetReport
from magpy_core.findings.kernels import most_spilled, total_bytes, total_launches, total_us

_ALIKE = 0.5  # of what two kernels compute: less is not the same kernel
_COVERED = 2 / 3  # of a kernel's operations, by those that it became

_SPILLS = Measure[Sequence[Kernel]]("spills", most_spilled, exact=True, unit="B per thread")
_BYTES = Measure[Sequence[Kernel]]("moves", total_bytes, unit="B")
_TIME = Measure[Sequence[Kernel]]("takes at least", total_us, unit="µs")
_LAUNCHES = Measure[Sequence[Kernel]]("launches", total_launches, judged=False)
_REGISTERS = Measure[Sequence[Kernel]](
    "registers", lambda of: of[0].code.registers if of[0].code is not None else None, judged=False, unit="per thread"
)


@dataclass(frozen=True)
class KernelChange:
    """A kernel that differs, as it is now."""

    kernel: Kernel
    changes: tuple[Change, ...]

    def to_json(self) -> dict[str, Any]:
        return {**_named(self.kernel), "changes": [one.to_json() for one in self.changes]}


@dataclass(frozen=True)
class Regrouped:
    """Kernels that compute together what one did (``before`` is one: no longer fused), or the reverse (``now`` is one)."""

    before: tuple[Kernel, ...]
    now: tuple[Kernel, ...]

    def to_json(self) -> dict[str, Any]:
        return {"before": [_named(kernel) for kernel in self.before], "now": [_named(kernel) for kernel in self.now]}


@dataclass
class GraphChange:
    """The differences of one graph of a region, and of its totals."""

    region: str
    graph: str
    totals: tuple[Change, ...] = ()
    appeared: list[Kernel] = field(default_factory=list)
    disappeared: list[Kernel] = field(default_factory=list)
    changed: list[KernelChange] = field(default_factory=list)
    parted: list[Regrouped] = field(default_factory=list)
    joined: list[Regrouped] = field(default_factory=list)
    judged: bool = True

    def __bool__(self) -> bool:
        return bool(self.totals or self.appeared or self.disappeared or self.changed or self.parted or self.joined)

    @property
    def worse(self) -> bool:
        """More bytes, time or spills in total; or more bytes where fusion has stopped."""
        parted = any(total_bytes(one.now) > total_bytes(one.before) for one in self.parted)
        return self.judged and (parted or any(change.worse for change in self.totals))

    def to_json(self) -> dict[str, Any]:
        return {
            "region": self.region,
            "graph": self.graph,
            "worse": self.worse,
            "totals": [one.to_json() for one in self.totals],
            "appeared": [_named(kernel) for kernel in self.appeared],
            "gone": [_named(kernel) for kernel in self.disappeared],
            "changed": [one.to_json() for one in self.changed],
            "no_longer_fused": [one.to_json() for one in self.parted],
            "fused": [one.to_json() for one in self.joined],
        }


@dataclass
class KernelComparison:
    """``graphs``: those that differ."""

    old: TargetReport
    new: TargetReport
    graphs: list[GraphChange]

    @property
    def worse(self) -> bool:
        return any(graph.worse for graph in self.graphs)

    def to_json(self) -> dict[str, Any]:
        targets = {"old_target": self.old.target, "new_target": self.new.target}
        return {**targets, "worse": self.worse, "graphs": [graph.to_json() for graph in self.graphs]}


def _named(kernel: Kernel) -> dict[str, Any]:
    return {
        "name": kernel.name, "kind": kernel.kind, "operators": list(kernel.operators),
        "lines": [{"file": at.file, "line": at.line} for at in kernel.lines], "launches": kernel.launches,
        "bytes_moved": kernel.work.bytes_moved, "us": kernel.us,
    }  # fmt: skip


def compare_kernels(old: TargetReport, new: TargetReport, regions: Mapping[str, str], threshold: float) -> KernelComparison:
    """``regions``: the ids of the new report's regions, by those of the same regions in the old one. Between two targets
    nothing gets worse, and times of single kernels don't count as changes: all differ."""
    one_target = old.target == new.target
    before = _by_graph(old.kernels, regions)
    now = _by_graph(new.kernels, {})
    graphs = []
    for region, graph in dict.fromkeys((*now, *before)):
        kernels = before.get((region, graph), []), now.get((region, graph), [])
        change = GraphChange(region, graph, judged=one_target)
        _match(change, *kernels, threshold)
        if all(kernels):
            change.totals = _figures((_LAUNCHES, _BYTES, _TIME, _SPILLS), *kernels, threshold, judged=one_target)
        if change:
            graphs.append(change)
    return KernelComparison(old, new, graphs)


def _figures(
    measures: Iterable[Measure[Sequence[Kernel]]], old: Sequence[Kernel], new: Sequence[Kernel], threshold: float,
    *, judged: bool,
) -> tuple[Change, ...]:  # fmt: skip
    found = changes(measures, old, new, threshold)
    return found if judged else tuple(Change(one.label, one.unit, one.old, one.new, worse=False) for one in found)


def _by_graph(kernels: Iterable[Kernel], regions: Mapping[str, str]) -> dict[tuple[str, str], list[Kernel]]:
    found: dict[tuple[str, str], list[Kernel]] = {}
    for kernel in kernels:
        found.setdefault((regions.get(kernel.region, kernel.region), kernel.graph), []).append(kernel)
    return found


# -- matching ------------------------------------------------------------------------------------------------------------


def _match(change: GraphChange, old: list[Kernel], new: list[Kernel], threshold: float) -> None:
    """Fills ``change``. First what is the same, then what computes the same, then what was divided or fused, then what
    computes nearly the same."""
    before, now = list(old), list(new)
    same = _take(before, now, lambda kernel: (_computes(kernel), kernel.work, kernel.launches))
    same += _take(before, now, _computes)
    for one in _divided(before, now):
        change.parted.append(Regrouped((one[0],), one[1]))
    for one in _divided(now, before):
        change.joined.append(Regrouped(one[1], (one[0],)))
    same += _nearest(before, now)
    change.parted += [Regrouped((pair[0],), (pair[1], part)) for pair, part in _split_off(same, now)]
    change.joined += [Regrouped((pair[1], part), (pair[0],)) for pair, part in _split_off([(b, a) for a, b in same], before)]
    regrouped = {id(kernel) for one in (*change.parted, *change.joined) for kernel in (*one.before, *one.now)}
    measures = (_LAUNCHES, _BYTES, *((_TIME,) if change.judged else ()), _REGISTERS, _SPILLS)
    for first, second in same:
        figures = _figures(measures, [first], [second], threshold, judged=change.judged)
        if figures and id(second) not in regrouped and id(first) not in regrouped:
            change.changed.append(KernelChange(second, figures))
    change.appeared, change.disappeared = now, before


def _take(old: list[Kernel], new: list[Kernel], key: Callable[[Kernel], Hashable]) -> list[tuple[Kernel, Kernel]]:
    """Pairs with the same key, in order, which are removed from both lists."""
    waiting: dict[Hashable, list[Kernel]] = {}
    for kernel in old:
        waiting.setdefault(key(kernel), []).append(kernel)
    pairs = []
    for kernel in list(new):
        if alike := waiting.get(key(kernel)):
            pairs.append((alike.pop(0), kernel))
            _remove(old, pairs[-1][0])
            _remove(new, kernel)
    return pairs


def _divided(wholes: list[Kernel], parts: list[Kernel]) -> list[tuple[Kernel, tuple[Kernel, ...]]]:
    """Each kernel with those that compute together what it does; all are removed from the lists."""
    found = []
    for whole in list(wholes):
        if whole.kind != "triton":
            continue
        left, chosen = set(_atoms(whole)), list[Kernel]()
        for part in parts:
            if _is_part(part, whole) and left & _atoms(part):
                chosen.append(part)
                left -= _atoms(part)
        missing = left & set(whole.operators)
        if len(chosen) > 1 and len(missing) <= (1 - _COVERED) * len(whole.operators):
            found.append((whole, tuple(chosen)))
            _remove(wholes, whole)
            for part in chosen:
                _remove(parts, part)
    return found


def _split_off(pairs: Sequence[tuple[Kernel, Kernel]], left: list[Kernel]) -> list[tuple[tuple[Kernel, Kernel], Kernel]]:
    """Kernels in ``left`` that compute what the first of a pair did, but the second does less of it: with the pair. They
    are removed from the list."""
    found = []
    for part in list(left):
        for first, second in pairs:
            shrank = second.work.flops < first.work.flops or not _atoms(first) <= _atoms(second)
            if first.kind == "triton" and _is_part(part, first) and shrank:
                found.append(((first, second), part))
                _remove(left, part)
                break
    return found


def _nearest(old: list[Kernel], new: list[Kernel]) -> list[tuple[Kernel, Kernel]]:
    """Pairs of kernels that compute nearly the same, the most similar first; they are removed from both lists."""
    likeness = [(_likeness(a, b), i, j) for i, a in enumerate(old) for j, b in enumerate(new)]
    pairs: list[tuple[Kernel, Kernel]] = []
    used: tuple[set[int], set[int]] = set(), set()
    for alike, i, j in sorted(likeness, key=lambda one: (-one[0], one[1], one[2])):
        if alike >= _ALIKE and i not in used[0] and j not in used[1]:
            used[0].add(i)
            used[1].add(j)
            pairs.append((old[i], new[j]))
    for first, second in pairs:
        _remove(old, first)
        _remove(new, second)
    return pairs


def _remove(kernels: list[Kernel], kernel: Kernel) -> None:
    """By identity: a graph may launch equal kernels."""
    del kernels[next(index for index, each in enumerate(kernels) if each is kernel)]


def _computes(kernel: Kernel) -> Hashable:
    return kernel.kind, _atoms(kernel)


def _atoms(kernel: Kernel) -> frozenset[Hashable]:
    """Operators, and lines by their text; without it, by number."""
    return frozenset((*kernel.operators, *map(_line, kernel.lines)))


def _line(at: KernelLine) -> Hashable:
    return PurePath(at.file).name, at.text or at.line


def _is_part(part: Kernel, whole: Kernel) -> bool:
    operators = set(part.operators) & set(whole.operators)
    lines = set(map(_line, part.lines)) & set(map(_line, whole.lines))
    return part.kind == whole.kind and bool(operators) and (bool(lines) or operators == set(part.operators))


def _likeness(one: Kernel, other: Kernel) -> float:
    """0: nothing in common; 1: the same."""
    if one.kind != other.kind:
        return 0.0
    first, second = _atoms(one), _atoms(other)
    return len(first & second) / max(len(first | second), 1)

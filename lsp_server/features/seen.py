"""What the last run recorded for a line: guarded values, their changes, shapes of tensors.

Key types: GuardSeen; key functions: guards_at, tensors_at.
Line numbers are those of the current text; lines changed since the run have no information.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lsp_server.features.documents import key_of
from lsp_server.features.run_findings import RunFindings
from magpy_core.findings import Recompile, RegionSummary
from magpy_core.findings.details import GuardDetail, NodeDetail

# Guards on what a name refers to, not on its value: useful in a hover, noise at the end of a line.
_STRUCTURE = frozenset({"is", "plain_module", "absent", "lookup", "present", "dict", "module", "type"})
_CHANGES = ("MP201", "MP202", "MP205")


@dataclass(frozen=True)
class GuardSeen:
    """A guarded value that a line reads, and the recompiles caused by its changes."""

    region: RegionSummary
    guard: GuardDetail
    tensor: str  # dtype and shape, of a tensor
    changes: tuple[Recompile, ...]

    @property
    def value(self) -> str:
        return self.tensor or self.guard.value

    @property
    def is_informative(self) -> bool:
        """Whether the value says more than the source text."""
        return (self.guard.check not in _STRUCTURE and not self.guard.value.startswith("<")) or bool(self.tensor)


def guards_at(runs: Iterable[RunFindings], key: str, line: int) -> Iterator[GuardSeen]:
    """Guards of the newest capture of each region on a line, one per name."""
    for run in runs:
        for region, guard in _guards(run, key):
            if _now(run, guard.file, guard.line) == line:
                yield _seen(run, region, guard)


def tensors_at(runs: Iterable[RunFindings], key: str, line: int) -> list[str]:
    """The distinct dtypes and shapes that the last operation of a line computes, newest capture first."""
    found: dict[str, None] = {}
    for run in runs:
        for detail in run.details.regions if run.details is not None else ():
            for capture in detail.captures:
                nodes = [n for n in capture.nodes if _is_at(run, n, key, line)]
                if nodes and nodes[-1].tensor:
                    found[nodes[-1].tensor] = None
    return list(found)


def lines_with_hints(runs: Iterable[RunFindings], key: str, first: int, last: int) -> list[int]:
    """Lines in ``first..last`` with a guard or an operation."""
    found: set[int] = set()
    for run in runs:
        for file, number in run.places_of(key):
            now = _now(run, file, number)
            if now is not None and first <= now <= last:
                found.add(now)
    return sorted(found)


def _guards(run: RunFindings, key: str) -> Iterator[tuple[RegionSummary, GuardDetail]]:
    for detail in run.details.regions if run.details is not None else ():
        region = run.regions.get(detail.region)
        if region is None or not detail.captures:
            continue
        names: set[tuple[str, int]] = set()
        for guard in detail.captures[0].guards:
            if guard.file and key_of(guard.file) == key and (guard.name, guard.line) not in names:
                names.add((guard.name, guard.line))
                yield region, guard


def _seen(run: RunFindings, region: RegionSummary, guard: GuardDetail) -> GuardSeen:
    detail = run.detail_of(region.id)
    nodes = detail.captures[0].nodes if detail is not None and detail.captures else ()
    tensor = next((n.tensor for n in nodes if n.kind == "placeholder" and n.label == guard.name), "")
    own = (guard.name, f"{guard.name}.shape", f"{guard.name}.stride()", f"{guard.name}.dtype")
    changes = [r for r in region.recompiles if r.name in own]
    # A recompile names one value; findings name every value that had changed by then.
    for finding in run.findings.values():
        if finding.code in _CHANGES and finding.region == region.id and finding.values and finding.values[0].name in own:
            old, _, new = finding.values[0].repr.partition(" -> ")
            if not any(r.name == finding.values[0].name for r in region.recompiles):
                changes += [Recompile(0, finding.values[0].name, old, new)] * finding.count
    return GuardSeen(region, guard, tensor, tuple(changes))


def _is_at(run: RunFindings, node: NodeDetail, key: str, line: int) -> bool:
    file, number = node.users
    if node.kind == "placeholder" or not file or key_of(file) != key:
        return False
    return _now(run, file, number) == line


def _now(run: RunFindings, file: str, line: int) -> int | None:
    tracked = run.tracker.file(file)
    return None if tracked is None else tracked.place(line - 1, line - 1)

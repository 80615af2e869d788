"""What the last run saw at a line: guarded values, how often they changed, shapes of tensors.

Key types: GuardSeen; key functions: guards_at, tensors_at.
Lines are those of the text as it is now; what stood on a line that was changed since is not shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lsp_server.features.documents import key_of
from lsp_server.features.run_findings import RunFindings
from magpy_core.findings import Recompile, RegionSummary
from magpy_core.findings.details import GuardDetail, NodeDetail

# Guards that say what a name means, not what value it has: of interest in a hover, noise at the end of a line.
_STRUCTURE = frozenset({"is", "plain_module", "absent", "lookup", "present", "dict", "module", "type"})
_CHANGES = ("MP201", "MP202", "MP205")


@dataclass(frozen=True)
class GuardSeen:
    """A value that was read at a line and is checked before a replay, and the recompiles that its changes led to."""

    region: RegionSummary
    guard: GuardDetail
    tensor: str  # dtype and shape, of a tensor
    changes: tuple[Recompile, ...]

    @property
    def value(self) -> str:
        return self.tensor or self.guard.value

    @property
    def telling(self) -> bool:
        """Whether the value says more than the text does."""
        return (self.guard.check not in _STRUCTURE and not self.guard.value.startswith("<")) or bool(self.tensor)


def guards_at(runs: Iterable[RunFindings], key: str, line: int) -> Iterator[GuardSeen]:
    """Guards of the newest capture of each region on a line, one a name."""
    for run in runs:
        for region, guard in _guards(run, key):
            if _now(run, guard.file, guard.line) == line:
                yield _seen(run, region, guard)


def tensors_at(runs: Iterable[RunFindings], key: str, line: int) -> list[str]:
    """What the last operation of a line gave, in each capture: dtypes and shapes, the newest first, each once."""
    found: dict[str, None] = {}
    for run in runs:
        for detail in run.details.regions if run.details is not None else ():
            for capture in detail.captures:
                nodes = [n for n in capture.nodes if _is_at(run, n, key, line)]
                if nodes and nodes[-1].tensor:
                    found[nodes[-1].tensor] = None
    return list(found)


def lines_with_anything(runs: Iterable[RunFindings], key: str, first: int, last: int) -> list[int]:
    """Lines in ``first..last`` that a guard or an operation is on."""
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
    # A recompile names one value; a finding tells of each that had changed by then.
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

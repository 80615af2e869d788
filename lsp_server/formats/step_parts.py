"""The parts of a training step as rows of figures, for every table and picture of them. Key types: PartRow, Split."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from magpy_core.findings import StepPart, StepReport


@dataclass(frozen=True)
class Split:
    """Milliseconds of a part in one step, by pass; None when not measured."""

    forward: float | None
    backward: float | None

    @property
    def total(self) -> float | None:
        if self.forward is None and self.backward is None:
            return None
        return (self.forward or 0.0) + (self.backward or 0.0)

    @property
    def has_both(self) -> bool:
        return bool(self.forward and self.backward)


@dataclass(frozen=True)
class PartRow:
    """``share``: percent of the plain step, or of the compiled one if only that was measured."""

    name: str
    region: str
    plain: Split
    compiled: Split
    share: float | None = None

    @property
    def speedup(self) -> float | None:
        """None if the passes that were measured differ, because their sums do not compare then."""
        plain, compiled = self.plain, self.compiled
        alike = (plain.forward is None, plain.backward is None) == (compiled.forward is None, compiled.backward is None)
        return plain.total / compiled.total if alike and plain.total and compiled.total else None


def rows(step: StepReport) -> Iterator[PartRow]:
    whole = step.plain_ms or step.compiled_ms
    for part in step.parts:
        plain, compiled = _splits(part)
        own = plain.total if step.plain_ms else compiled.total
        share = 100 * own / whole if own is not None and whole else None
        yield PartRow(part.name, part.region, plain, compiled, share)


def row_of(step: StepReport | None, region: str) -> PartRow | None:
    """The part of a region (its id)."""
    return next((row for row in rows(step) if row.region == region), None) if step is not None and region else None


def share_of(step: StepReport) -> str:
    """The step that shares are of."""
    return "plain" if step.plain_ms else "compiled"


def _splits(part: StepPart) -> tuple[Split, Split]:
    return (
        Split(part.plain_forward_ms, part.plain_backward_ms),
        Split(part.compiled_forward_ms, part.compiled_backward_ms),
    )

"""The parts of a training step as rows of figures, for all tables and pictures. Key types: PartRow, Split."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lsp_server.formats.step_text import milliseconds
from magpy_core.findings import StepPart, StepReport

NOT_MEASURED = "-"
HEAD = ("share %", "eager ms", "forward + backward", "compiled ms", "forward + backward", "speedup")


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
    def total_text(self) -> str:
        return NOT_MEASURED if self.total is None else milliseconds(self.total)

    @property
    def passes_text(self) -> str:
        """``12.1 + 20.4``; a dash for a part without a separate backward pass."""
        if not self.forward or not self.backward:
            return NOT_MEASURED
        return f"{milliseconds(self.forward)} + {milliseconds(self.backward)}"

    @property
    def note(self) -> str:
        """`` (12.1 + 20.4, forward + backward)``, after a total; empty for a part with one pass."""
        return "" if self.passes_text == NOT_MEASURED else f" ({self.passes_text}, forward + backward)"


@dataclass(frozen=True)
class PartRow:
    """One row. ``share``: percent of the eager step, or of the compiled one if only that was measured."""

    name: str
    region: str
    plain: Split
    compiled: Split
    share: float | None = None
    is_certain: bool = True
    """Whether the step's own difference is: a part of one that isn't has no speedup of its own."""

    @property
    def speedup(self) -> float | None:
        """None if it is not certain, or if different passes were measured, because their sums can't be compared."""
        if not self.is_certain:
            return None
        plain, compiled = self.plain, self.compiled
        same = (plain.forward is None, plain.backward is None) == (compiled.forward is None, compiled.backward is None)
        return plain.total / compiled.total if same and plain.total and compiled.total else None

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells after the name, in the order of HEAD."""
        share = NOT_MEASURED if self.share is None else f"{self.share:.1f}"
        speedup = NOT_MEASURED if self.speedup is None else f"{self.speedup:.2f}x"
        times = (text for split in (self.plain, self.compiled) for text in (split.total_text, split.passes_text))
        return (share, *times, speedup)


def rows(step: StepReport) -> Iterator[PartRow]:
    whole = step.plain_ms or step.compiled_ms
    for part in step.parts:
        plain, compiled = _splits(part)
        own = plain.total if step.plain_ms else compiled.total
        share = 100 * own / whole if own is not None and whole else None
        yield PartRow(part.name, part.region, plain, compiled, share, step.verdict in ("faster", "slower"))


def row_of(step: StepReport | None, region: str) -> PartRow | None:
    """The part of a region (its id)."""
    return next((row for row in rows(step) if row.region == region), None) if step is not None and region else None


def share_of(step: StepReport) -> str:
    """The step that the shares refer to."""
    return "eager" if step.plain_ms else "compiled"


def _splits(part: StepPart) -> tuple[Split, Split]:
    return (
        Split(part.plain_forward_ms, part.plain_backward_ms),
        Split(part.compiled_forward_ms, part.compiled_backward_ms),
    )

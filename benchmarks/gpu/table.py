"""A table of measurements, as it goes into the report. Key type: Table. Imports only the standard library."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Table:
    """``rows`` are text, one cell per column. ``problems``: what could not be measured or is wrong, in sentences.
    ``samples``: seconds per call of each round, by row and contender."""

    title: str
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    samples: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Table:
        return Table(**data)

    def add(self, other: Table) -> None:
        """The rows of another part of the same table."""
        self.rows += other.rows
        self.problems += other.problems
        self.samples |= other.samples

    def markdown(self) -> list[str]:
        """A heading, the table with numbers to the right, and its problems."""
        lines = [f"### {self.title}", ""]
        if self.rows:
            cells = [self.columns, ["---", *["---:"] * (len(self.columns) - 1)], *self.rows]
            lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells] + [""]
        return lines + [f"- {problem}" for problem in self.problems] + [""] * bool(self.problems)


def milliseconds(seconds: float) -> str:
    """Three digits, or as many as whole numbers have."""
    ms = 1e3 * seconds
    return f"{ms:.3f}" if ms < 1 else f"{ms:.2f}" if ms < 10 else f"{ms:.1f}" if ms < 100 else f"{ms:.0f}"

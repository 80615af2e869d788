"""One entry of the registry of finding codes. Key types: Code, Severity."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

FAMILIES = {
    "1": "graph break", "2": "guard", "3": "side effect", "4": "performance", "5": "budget", "9": "tool",
    "D1": "torch.compile: graph break", "D2": "torch.compile: recompile", "D3": "torch.compile: skipped",
}  # fmt: skip


class Severity(StrEnum):
    """LSP's four severities, most severe first."""

    ERROR = "error"
    WARNING = "warning"
    INFORMATION = "information"
    HINT = "hint"

    @property
    def rank(self) -> int:
        """0 is most severe."""
        return list(Severity).index(self)


@dataclass(frozen=True)
class Code:
    """One diagnostic code.

    ``name`` is kebab-case. ``reason`` is one sentence: why MagPy reports this. ``explanation`` consists of paragraphs
    (what happens, why, what it costs) separated by blank lines, and ``hints`` are full sentences. ``example`` shows
    the finding on the line that ends in ``# MPxxx``; ``fixed`` is the same program without it. ``has_fix``: the
    language server offers a quick fix where the source allows one.
    """

    code: str
    name: str
    title: str
    severity: Severity
    explanation: str = ""
    hints: tuple[str, ...] = ()
    example: str = ""
    has_fix: bool = False
    reason: str = ""
    fixed: str = ""
    language: str = "python"

    @property
    def family_key(self) -> str:
        """``1`` of MP102, ``D1`` of MPD101."""
        return self.code[2:-2]

    @property
    def family(self) -> str:
        return FAMILIES[self.family_key]

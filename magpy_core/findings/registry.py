"""Registry of finding codes, the source of `explain`, editors and CI formats: each is read from its page in ``codes/``.

Key types: Code, Severity. Key names: REGISTRY, lookup, matching.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

FAMILIES = {
    "1": "graph break", "2": "guard", "3": "side effect", "4": "performance", "5": "budget", "9": "tool",
    "D1": "torch.compile: graph break", "D2": "torch.compile: recompile", "D3": "torch.compile: skipped",
}  # fmt: skip

_QUICK_FIX = "Some cases have a quick fix in the editor."
#: The parts of a page in order: the name for error messages, and a regular expression.
_PARTS = {
    "the title `# CODE: ...`": r"# (?P<code>MP\w+): (?P<title>.+)\n\n",
    "the line of name, family and severity": (
        r"`(?P<name>[a-z-]+)` · .+ · default severity: (?P<severity>error|warning|information|hint)\n\n"
    ),
    "the reason in bold": r"\*\*(?P<reason>.+)\*\*\n\n",
    "`## What happened` and paragraphs": r"## What happened\n\n(?P<explanation>(?s:.+?))\n\n(?=## )",
    "`## What to do` and a list": r"## What to do\n\n(?P<hints>(?:- .+\n)+)\n",
    "`## Example` and a code block": r"## Example\n\n```(?P<language>\w+)\n(?P<example>(?s:.+?))```\n",
    "`Without the finding:` and a code block": r"(?:\nWithout the finding:\n\n```\w+\n(?P<fixed>(?s:.+?))```\n)?",
    "`## Silence it`, or the end": r"(?:\n## Silence it\n\n.+\n)?\Z",
}


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
    """One diagnostic code, and the Markdown ``page`` that the other fields are read from.

    ``name`` is kebab-case. ``reason`` is one sentence: why MagPy reports this. ``explanation`` consists of paragraphs
    (what happens, why, what it costs) separated by blank lines, and ``hints`` are full sentences. ``example`` shows
    the finding on the line that ends in ``# MPxxx``; ``fixed`` is the same program without it, or empty. ``has_fix``:
    the language server offers a quick fix where the source allows one.
    """

    code: str
    name: str
    title: str
    severity: Severity
    reason: str
    explanation: str
    hints: tuple[str, ...]
    example: str
    fixed: str
    language: str
    has_fix: bool
    page: str

    @property
    def family_key(self) -> str:
        """``1`` of MP102, ``D1`` of MPD101."""
        return self.code[2:-2]

    @property
    def family(self) -> str:
        return FAMILIES[self.family_key]


def read(file: Path) -> Code:
    """The code that ``file`` describes; raises ValueError with the line if the page is malformed."""
    page = file.read_text(encoding="utf-8")
    found: dict[str, str] = {}
    at = 0
    for part, form in _PARTS.items():
        match = re.compile(form).match(page, at)
        if match is None:
            line = page.count("\n", 0, at) + 1
            raise ValueError(f"{file}, line {line}: expected {part}")
        found |= match.groupdict(default="")
        at = match.end()
    hints = [hint.removeprefix("- ") for hint in found.pop("hints").splitlines()]
    severity = Severity(found.pop("severity"))
    advice = tuple(hint for hint in hints if hint != _QUICK_FIX)
    return Code(**found, severity=severity, hints=advice, has_fix=_QUICK_FIX in hints, page=page)


#: The folder with a page for each code: ``MP101.md``.
PAGES = Path(__file__).with_name("codes")

# Read at import: the first use may be inside a recorded call.
REGISTRY: dict[str, Code] = {file.stem: read(file) for file in sorted(PAGES.glob("*.md"))}


def lookup(code: str) -> Code:
    """The registry entry of ``code``; raises KeyError, listing the known codes, if there is none."""
    try:
        return REGISTRY[code]
    except KeyError:
        raise KeyError(f"unknown finding code {code!r}; known: {', '.join(REGISTRY)}") from None


def matching(prefix: str) -> list[Code]:
    """Every code that starts with ``prefix`` (``MP1``, ``MP102``, ``MP``)."""
    return [c for c in REGISTRY.values() if prefix and c.code.startswith(prefix)]

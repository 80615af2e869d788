"""What all text formats share: paths as people type them, positions, colours, safe text. Key type: View."""

from __future__ import annotations

import os
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path

from rich.text import Text

from lsp_server.sources import Sources
from magpy_core.findings import Finding, Location, Severity

STYLES = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.INFORMATION: "bold blue",
    Severity.HINT: "cyan",
}
PLURALS = {"information": "information", "branch": "branches"}


def clean(text: str) -> str:
    """``text`` without anything a terminal would act on: the program chose what is in it."""
    return "".join(c if c in "\t\n" or unicodedata.category(c)[0] != "C" else "\N{REPLACEMENT CHARACTER}" for c in text)


def count(number: int, noun: str) -> str:
    """``1 guard``, ``2 guards``."""
    return f"{number:,} {noun if number == 1 else PLURALS.get(noun, noun + 's')}"


@dataclass
class View:
    """How one report is shown: paths relative to ``base``, lines at most ``width`` cells where they may be cut."""

    base: Path = field(default_factory=Path.cwd)
    width: int = 120
    sources: Sources = field(default_factory=Sources)

    def path(self, file: str) -> str:
        """Relative to the base when below it, else as it is."""
        try:
            relative = os.path.relpath(file, self.base)
        except ValueError:  # another drive
            return clean(file)
        inside = os.path.isabs(file) and not relative.startswith(os.pardir)
        return clean(relative if inside else file)

    def place(self, location: Location) -> str:
        """``file:line:col``, 1-based."""
        start = location.range.start
        return f"{self.path(location.file)}:{start.line + 1}:{start.character + 1}"

    def header(self, finding: Finding, message: str | None = None) -> Text:
        """``file:line:col: MP102 [warning] message``: the line every text format has."""
        text = Text()
        text.append(self.place(finding.location), "bold")
        text.append(": ")
        text.append(finding.code, STYLES[finding.severity])
        text.append(f" [{finding.severity.value}] ")
        text.append(first_line(finding.message) if message is None else message)
        if finding.count > 1 and message is None:
            text.append(f" ({finding.count:,} times)", "dim")
        return text


def first_line(message: str) -> str:
    return clean(message).partition("\n")[0].rstrip()


def shorten(text: str, width: int) -> str:
    """``text`` in at most ``width`` characters."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"

"""Shared by all text formats: relative paths, positions, colors, safe text. Key type: View."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.text import Text

from lsp_server.formats.step_text import duration
from lsp_server.selection import Selection
from lsp_server.sources import Sources
from magpy_core.findings import Finding, Location, Report, Severity

STYLES = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.INFORMATION: "bold blue",
    Severity.HINT: "cyan",
}
PLURALS = {"information": "information", "branch": "branches"}


_COMMAND = re.compile(r"(?m)^(\s*):(?=:)|##(?=\[)")  # what GitHub's runner takes for a command in any line of output


def clean(text: str, *, lines: bool = False) -> str:
    """``text`` of the program as text of ours: on one line unless it may have ``lines``, without control characters and
    without what a terminal or the log of a CI job takes for a command."""
    text = text if lines else " ".join(text.splitlines())
    kept = "".join(c if c in "\t\n" or unicodedata.category(c)[0] != "C" else "\N{REPLACEMENT CHARACTER}" for c in text)
    return _COMMAND.sub(lambda found: f"{found[1]}: " if found[1] is not None else "# #", kept)


def count(number: int, noun: str) -> str:
    """``1 guard``, ``2 guards``."""
    return f"{number:,} {noun if number == 1 else PLURALS.get(noun, noun + 's')}"


def relative(file: str, base: Path) -> str:
    """``file`` relative to ``base`` if below it, else unchanged; with forward slashes."""
    try:
        found = os.path.relpath(file, base)
    except ValueError:  # another drive
        return file
    inside = os.path.isabs(file) and found.split(os.sep, 1)[0] != os.pardir
    return (found if inside else file).replace(os.sep, "/")


def project_root(environ: Mapping[str, str] = os.environ) -> Path:
    """The base of paths in CI formats: the checkout named by GitHub or GitLab, else the working directory."""
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        root = environ.get(name)
        if root and Path.cwd().is_relative_to(os.path.abspath(root)):
            return Path(root)
    return Path.cwd()


@dataclass
class View:
    """How to show a report: paths relative to ``base``, lines that may be shortened at most ``width`` cells wide.

    ``fail_on`` is the severity that counts as a failure, for formats that distinguish failures. ``suppressed`` and
    ``known`` are the numbers of findings hidden by comments and by the baseline. ``docs_url``: the address of the project's
    published pages of codes. ``programs``: the reports that were merged, by name. ``in_detail``: facts are shown as well.
    ``ptx``: JSON has the PTX of kernels. ``began_ns``: when the runs began, in nanoseconds since the epoch: JSON has the
    quick fixes of files that have not changed since; 0: it has none.
    """

    base: Path = field(default_factory=Path.cwd)
    width: int = 120
    sources: Sources = field(default_factory=Sources)
    fail_on: Severity = Severity.WARNING
    root: Path = field(default_factory=project_root)
    suppressed: int = 0
    known: int = 0
    docs_url: str | None = None
    programs: Sequence[tuple[str, Report]] = ()
    selection: Selection = field(default_factory=Selection)
    in_detail: bool = False
    ptx: bool = False
    began_ns: int = 0

    def shown(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings that are shown: what counts as a failure always is."""
        return [f for f in findings if self.in_detail or self.selection.shows(f) or f.severity.rank <= self.fail_on.rank]

    def path(self, file: str) -> str:
        """Relative to the base if below it, else unchanged."""
        return clean(relative(file, self.base))

    def uri_path(self, file: str) -> str:
        """Like :meth:`path`, but relative to the root of the project, as CI services require."""
        return clean(relative(file, self.root))

    def place(self, location: Location) -> str:
        """``file:line:col``, 1-based."""
        start = location.range.start
        return f"{self.path(location.file)}:{start.line + 1}:{start.character + 1}"

    def header(self, finding: Finding, message: str | None = None) -> Text:
        """``file:line:col: MP102 [warning] message``: the header line of all text formats."""
        text = Text()
        text.append(self.place(finding.location), "bold")
        text.append(": ")
        text.append(finding.code, STYLES[finding.severity])
        text.append(f" [{finding.severity.value}] ")
        text.append(first_line(finding.message) if message is None else message)
        if finding.count > 1 and message is None:
            text.append(f" ({finding.count:,} times)", "dim")
        if finding.ranks:
            text.append(f" (only {ranks(finding)})", "dim")
        return text


def ranks(finding: Finding) -> str:
    """``rank 1``, ``ranks 0, 2``: of a finding that only some processes report."""
    return f"rank{'' if len(finding.ranks) == 1 else 's'} {', '.join(map(str, finding.ranks))}"


def is_each_time(finding: Finding) -> bool:
    """Whether its cost is that of each occurrence (capturing, compiling again), not of a step."""
    return finding.code.startswith(("MP2", "MPD2"))


def cost(findings: Sequence[Finding]) -> str:
    """The measured cost of findings of one code, or what limits it: ``0.52 ms per step, 4.3% of a step of 12.1 ms``.

    Empty if neither was measured."""
    costs = [finding.cost_ms for finding in findings if finding.cost_ms is not None]
    step = max((finding.step_ms for finding in findings if finding.step_ms), default=None)
    if not costs:
        limits = [finding.at_most_ms for finding in findings if finding.at_most_ms is not None]
        if not limits:
            return ""
        return f"at most {_per_step(max(limits), step)} (what its region takes: fixing this can't save more)"
    if is_each_time(findings[0]):
        again = max(costs)
        steps = f", as long as {count(round(again / step), 'step')}" if step and again > 1.5 * step else ""
        return f"{'up to ' if len(costs) > 1 else ''}{_time(again)} each time{steps}"
    return _per_step(sum(costs), step, " between its graphs" if findings[0].code.startswith("MP1") else "")


def _per_step(ms: float, step: float | None, what: str = "") -> str:
    part = 100 * ms / step if step else 0.0
    share = f", {100 if part >= 99.5 else f'{part:.2g}'}% of a step of {_time(step)}" if step else ""
    return f"{_time(ms)} per step{what}{share}"


def _time(ms: float) -> str:
    return f"{ms:.3g} ms" if ms < 1000 else duration(ms / 1e3)


def first_line(message: str) -> str:
    return clean(message, lines=True).partition("\n")[0].rstrip()


def shorten(text: str, width: int) -> str:
    """``text`` in at most ``width`` characters."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"

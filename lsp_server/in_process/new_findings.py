"""The findings of the process itself, as they appear. Key type: NewFindings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lsp_server.budgets import Budgets, check_budgets
from lsp_server.config import Loaded
from lsp_server.formats.view import relative
from lsp_server.repeats import merged
from lsp_server.selection import Selection, apply
from lsp_server.sources import Sources
from magpy_core.findings import Finding, Severity
from magpy_core.runner.in_process import Watch
from magpy_core.runner.request import RunRequest


class NewFindings:
    """Monitors this process from now on, as `check` does, with the settings of ``[tool.magpy]``. ``module``: the name of
    what runs; ``folder``: where it does."""

    def __init__(self, loaded: Loaded, module: str, folder: Path, sources: Sources) -> None:
        settings = loaded.settings
        self.selection = Selection(tuple(settings.select), tuple(settings.ignore), settings.severity)
        self.fail_on = settings.fail_on or Severity.WARNING
        self.sources = sources
        self._budgets = settings.budgets
        self._seen: set[object] = set()
        regions, policy = list(settings.regions), dict(settings.call_policy)
        self._watch = Watch(RunRequest(module=module, steps=0, cwd=str(folder), regions=regions, call_policy=policy))

    @property
    def regions(self) -> int:
        """How many there are so far."""
        return self._watch.regions

    def all(self) -> list[Finding]:
        """Those so far, without facts and what comments suppress."""
        found = self._watch.findings()
        if self._budgets != Budgets():  # the figures of all regions take time, after each of thousands of tests
            found += check_budgets(self._watch.report(), self._budgets, compiled=False)
        chosen = apply(found, self.selection, self.sources, flag_unused=False).findings
        return [finding for finding in merged(chosen) if self.selection.shows(finding)]

    def take(self) -> list[Finding]:
        """Those since the last call."""
        if not self._watch.changed():
            return []
        new = [finding for finding in self.all() if _identity(finding) not in self._seen]
        self._seen.update(map(_identity, new))
        return new


def _identity(finding: Finding) -> object:
    """The same for a finding whose figures have changed since."""
    return finding.code, finding.location.file, finding.location.range.start.line, finding.region


def described(findings: Sequence[Finding], root: Path, sources: Sources, names: dict[str, str] | None = None) -> list[str]:
    """A paragraph of lines for each finding. ``names``: what files are called, if not by their path."""
    lines = []
    for finding in findings:
        place = finding.location
        file = (names or {}).get(place.file) or relative(place.file, root)
        at = f"{file}:{place.range.start.line + 1}:{place.range.start.character + 1}"
        lines += ["", f"{at}: {finding.code} [{finding.severity.value}] {finding.message}"]
        line = sources.line(place.file, place.range.start.line)
        lines += [f"    {line.strip()}"] if line else []
        lines += [f"  hint: {finding.advice}"] if finding.advice else []
        lines.append(f"  docs: magpy-lsp explain {finding.code}")
    return lines

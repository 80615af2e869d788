"""Filters findings by ``[tool.magpy]`` and ``# magpy: ignore`` comments. Key type: FindingFilter."""

from __future__ import annotations

from dataclasses import replace

from lsp_server.features.tracking import Tracker
from lsp_server.selection import Selection, apply
from lsp_server.sources import Sources
from lsp_server.suppress import Directive, directives
from magpy_core.findings import Finding, Report


class _TrackedSources(Sources):
    """The texts that the program loaded: comments added later do not count yet."""

    def __init__(self, tracker: Tracker) -> None:
        super().__init__()
        self._tracker = tracker

    def text(self, file: str) -> str | None:
        tracked = self._tracker.file(file)
        return super().text(file) if tracked is None else "\n".join(tracked.lines)


class FindingFilter:
    """Filters findings as they arrive and, at the end, the report, where it also flags unused comments."""

    def __init__(self, selection: Selection, tracker: Tracker) -> None:
        self._selection = selection
        self._sources = _TrackedSources(tracker)
        self._directives: dict[str, list[Directive]] = {}

    def filter_finding(self, finding: Finding) -> Finding | None:
        """The finding with the project's severity, or None if the project excludes it."""
        if not self._selection.enabled(finding.code):
            return None
        file = finding.location.file
        if file not in self._directives:
            text = self._sources.text(file)
            self._directives[file] = [] if text is None else directives(text)
        if any(directive.matches(finding) for directive in self._directives[file]):
            return None
        severity = self._selection.severity.get(finding.code)
        return finding if severity is None else replace(finding, severity_override=severity)

    def filter_report(self, report: Report, engine: str, *, flag_unused: bool) -> tuple[Report, int]:
        """The report with the selected findings of ``engine``, and the number of suppressed ones."""
        files = {region.file for region in report.regions if region.file and not region.file.startswith("<")}
        selected = apply(
            report.findings, self._selection, self._sources, files=files, flag_unused=flag_unused, engines=(engine,)
        )
        return replace(report, findings=selected.findings), selected.suppressed

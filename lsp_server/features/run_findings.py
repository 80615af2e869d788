"""The findings of one run of an entrypoint, and where they are shown. Key names: RunFindings, shown_location."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any

from lsp_server.features.documents import key_of, path_of
from lsp_server.features.settings import Settings
from lsp_server.features.tracking import Tracker
from lsp_server.formats.view import ranks
from lsp_server.selection import Selection
from lsp_server.sources import is_library
from magpy_core.findings import Finding, Location, RegionSummary, Severity, StepReport, TargetReport, WhyNot
from magpy_core.findings.details import Details, RegionDetail


def shown_location(finding: Finding) -> Location:
    """Where a finding is shown: a finding inside a library is shown at the user's call, if there is one."""
    if is_library(finding.location.file):
        for step in reversed(finding.path):
            if not is_library(step.file) and os.path.isabs(step.file):
                return step
    return finding.location


def keys_of(findings: Iterable[Finding]) -> set[str]:
    """The files that ``findings`` are shown in."""
    return {key_of(place.file) for f in findings if os.path.isabs((place := shown_location(f)).file)}


class RunFindings:
    """Findings and regions of one run, and their files. ``steps``: completed steps of the program."""

    def __init__(self, uri: str, tracker: Tracker, settings: Settings, engine: str = "magpy") -> None:
        self.uri = uri
        self.engine = engine
        self.tracker = tracker
        self.settings = settings
        self.configured_docs_url: str | None = None  # by the project's table
        self.selection = Selection()  # the project's
        self.findings: dict[Any, Finding] = {}
        self.regions: dict[str, RegionSummary] = {}
        self.details: Details | None = None  # captures in full, once the run has ended
        self.step: StepReport | None = None  # of a compiled run, once it has ended
        self.why_not: list[WhyNot] = []  # once the run has ended
        self.kernels: TargetReport | None = None  # of a run with a target, once they are made
        self.steps = 0
        self._places: dict[str, set[tuple[str, int]]] = {}
        self.complete = False  # the run has ended
        self.version = 0  # of the findings
        self.entries: tuple[Any, ...] | None = None  # the board's cached entries, after what they depend on

    @property
    def program(self) -> str:
        """Its name among others: its file with the folder, since many programs are called train.py."""
        path = PurePath(path_of(self.uri) or self.uri)
        return f"{path.parent.name}/{path.name}" if path.parent.name else path.name

    @property
    def docs_url(self) -> str | None:
        """The address of the published pages of codes; the editor's setting has precedence."""
        return self.settings.docs_url or self.configured_docs_url

    def add(self, finding: Finding) -> set[str]:
        """Add or replace a finding; returns the key of its file, if it is in one (generated code is not)."""
        self.findings[finding.key] = finding
        self.version += 1
        return keys_of([finding])

    def shown(self) -> Iterator[tuple[Finding, Severity]]:
        """Findings enabled by the settings, with their configured severity."""
        for finding in self.findings.values():
            severity = self.settings.severity_of(finding)
            if severity is None:
                continue
            # The user can't change a library's guards and notes; its graph breaks are worth showing.
            if is_library(finding.location.file) and severity.rank > Severity.WARNING.rank:
                continue
            yield finding, severity

    def diagnosed(self) -> Iterator[tuple[Finding, Severity]]:
        """The shown findings that are diagnostics. The others are facts, for hovers, the tree and the report."""
        return ((finding, severity) for finding, severity in self.shown() if self.is_diagnosed(finding, severity))

    def is_diagnosed(self, finding: Finding, severity: Severity) -> bool:
        """Whether a person would act on a shown finding, or has asked for its code."""
        asked = self.selection.shows(finding) or self.settings.names(finding.code)
        return asked or severity.rank <= Severity.WARNING.rank

    def keys(self) -> set[str]:
        return keys_of(self.findings.values())

    def files(self) -> set[str]:
        """The user's files that this run covers: changes in them make its findings outdated."""
        named = {path_of(self.uri), *(region.file for region in self.regions.values())}
        return self.keys() | {key_of(file) for file in named if file and os.path.isabs(file) and not is_library(file)}

    def edited(self) -> list[str]:
        """The files that changed since the program was loaded."""
        return sorted(key for key in self.files() if (known := self.tracker.known(key)) is not None and known.changed)

    def region_line_of(self, region: RegionSummary) -> tuple[str, int] | None:
        """The file key and the current line of a region's definition."""
        return self._line_now(region.file, region.line)

    def why_not_at(self, key: str, line: int) -> list[WhyNot]:
        """Of what is not fully compiled: regions that begin at a 0-based line of a file, or have it in their statements, and
        what is caused there."""
        found = []
        for one in self.why_not:
            region = self.regions.get(one.region)
            lines = range(region.line, max(region.line, region.last_line) + 1) if region is not None else ()
            places = [(region.file, number) for number in lines] if region is not None else []
            if one.reason and any(self._line_now(*at) == (key, line) for at in (*places, (one.file, one.line))):
                found.append(one)
        return found

    def _line_now(self, file: str, line: int) -> tuple[str, int] | None:
        tracked = self.tracker.file(file) if line else None
        now = tracked.place(line - 1, line - 1) if tracked else None
        return None if now is None else (key_of(file), now)

    def detail_of(self, region: str) -> RegionDetail | None:
        """The captures of a region, newest first."""
        details = self.details.regions if self.details is not None else ()
        return next((detail for detail in details if detail.region == region), None)

    def places_of(self, key: str) -> set[tuple[str, int]]:
        """File names and lines (1-based) with guards or operations in a file; cached."""
        if self.details is None:
            return set()
        if not self._places:
            for detail in self.details.regions:
                for capture in detail.captures:
                    lines = {(guard.file, guard.line) for guard in capture.guards}
                    lines |= {node.users for node in capture.nodes}
                    for file, line in lines:
                        if file:
                            self._places.setdefault(key_of(file), set()).add((file, line))
        return self._places.get(key, set())

    def times(self, finding: Finding) -> str:
        """How often and where, appended to a message: ``17 of 20 steps, only rank 1``; empty for a single occurrence."""
        often = f"{finding.count} times" if finding.count > 1 else ""
        if finding.steps:
            of = max(self.steps, finding.steps)
            often = f"{finding.steps} of {of} steps" if of > 1 else ""
        only = f"only {ranks(finding)}" if finding.ranks else ""
        return ", ".join(filter(None, (often, only)))

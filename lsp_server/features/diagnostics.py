"""Findings as LSP diagnostics, placed where their lines are now. Key types: RunFindings, Board.

A RunFindings holds what one entrypoint's latest run found. The Board holds them all: diagnostics of a file are the
union over entrypoints, because two scripts may run the same module.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from lsprotocol import types

from lsp_server.features.documents import Document, Documents, LineEdit, key_of, uri_of
from lsp_server.features.positions import lsp_range, split_lines
from lsp_server.features.settings import Settings
from lsp_server.features.tracking import Tracker, read_source
from magpy_core.findings import Finding, Location, RegionSummary, Severity, lookup
from magpy_core.findings.details import Details

_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFORMATION: types.DiagnosticSeverity.Information,
    Severity.HINT: types.DiagnosticSeverity.Hint,
}

# Diagnostics of one code on one range; a hover lists more.
_ALIKE = 3


def _is_library(path: str) -> bool:
    parts = path.replace("\\", "/").split("/")
    return "site-packages" in parts or "dist-packages" in parts


def home(finding: Finding) -> Location:
    """Where a finding is shown: one inside a library at the call of the user's that led there, if there was one."""
    if _is_library(finding.location.file):
        for step in reversed(finding.path):
            if not _is_library(step.file) and os.path.isabs(step.file):
                return step
    return finding.location


def _keys(findings: Iterable[Finding]) -> set[str]:
    return {key_of(place.file) for f in findings if os.path.isabs((place := home(f)).file)}


class RunFindings:
    """Findings and regions of one run, and the files they are in."""

    def __init__(self, uri: str, tracker: Tracker, settings: Settings) -> None:
        self.uri = uri
        self.tracker = tracker
        self.settings = settings
        self.findings: dict[Any, Finding] = {}
        self.regions: dict[str, RegionSummary] = {}
        self.details: Details | None = None  # captures in full, once the run has ended

    def add(self, finding: Finding) -> set[str]:
        """Add or replace a finding; returns the key of its file, if it is in one (generated code is not)."""
        self.findings[finding.key] = finding
        return _keys([finding])

    def shown(self) -> Iterator[tuple[Finding, Severity]]:
        """Findings that settings leave on, with the severity they have under them."""
        for finding in self.findings.values():
            severity = self.settings.severity_of(finding)
            if severity is None:
                continue
            # A library's guards and notes are not the user's to change; its graph breaks are worth knowing.
            if _is_library(finding.location.file) and severity.rank > Severity.WARNING.rank:
                continue
            yield finding, severity

    def keys(self) -> set[str]:
        return _keys(self.findings.values())

    def region_line_of(self, region: RegionSummary) -> tuple[str, int] | None:
        """The file key and the current line of a region's definition."""
        tracked = self.tracker.file(region.file)
        line = tracked.place(region.line - 1, region.line - 1) if tracked else None
        return None if line is None else (key_of(region.file), line)


class Board:
    """What every entrypoint's latest run found, as the client should see it."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._runs: dict[str, RunFindings] = {}
        self._following: list[RunFindings] = []
        self._published: dict[str, str] = {}
        self.encoding: str = types.PositionEncodingKind.Utf16.value
        self.related_information = True

    def follow(self, found: RunFindings) -> None:
        """Keep a run's files up to date before it has shown anything: its program is being loaded."""
        self._following.append(found)

    def unfollow(self, found: RunFindings) -> None:
        if found in self._following:
            self._following.remove(found)

    def replace(self, entrypoint: str, found: RunFindings) -> set[str]:
        """Put ``found`` in the place of what this entrypoint had; returns the files whose diagnostics changed."""
        self.unfollow(found)
        before = self._runs.pop(entrypoint, None)
        self._runs[entrypoint] = found
        return (before.keys() if before else set()) | found.keys()

    def clear(self) -> set[str]:
        changed = self.keys()
        self._runs.clear()
        return changed

    def keys(self) -> set[str]:
        return {key for run in self._runs.values() for key in run.keys()}

    def runs(self) -> Iterable[RunFindings]:
        return tuple(self._runs.values())

    def edited(self, document: Document, edits: list[LineEdit]) -> bool:
        return any([run.tracker.edited(document, edits) for run in self._all()])

    def replaced(self, document_or_key: Document | str) -> bool:
        """A file was opened (a Document) or its text on disk may have changed (a key)."""
        lines: list[str] | None
        if isinstance(document_or_key, Document):
            key, lines = document_or_key.key, document_or_key.lines
        else:
            key = document_or_key
            if not any(run.tracker.known(key) for run in self._all()):
                return False
            text = read_source(key)
            lines = None if text is None else split_lines(text)
        return any([run.tracker.replaced(key, lines) for run in self._all()])

    def _all(self) -> Iterator[RunFindings]:
        yield from self._runs.values()
        yield from self._following

    def at(self, key: str, position: types.Position) -> list[tuple[Finding, Severity, types.Range]]:
        """Findings whose current range holds ``position``."""

        def inside(r: types.Range) -> bool:
            at, start, end = ((p.line, p.character) for p in (position, r.start, r.end))
            return start <= at <= end

        return [item for item in self._placed(key) if inside(item[2])]

    def diagnostics(self, key: str) -> list[types.PublishDiagnosticsParams]:
        """All diagnostics of one file, under the URI the client knows it by (and none under one it had before)."""
        document = self._documents.of_key(key)
        seen: set[tuple[Any, ...]] = set()
        ways: set[tuple[Any, ...]] = set()
        alike: dict[tuple[Any, ...], list[types.Diagnostic]] = {}
        more: Counter[tuple[Any, ...]] = Counter()
        for finding, severity, where in self._placed(key):
            ends = (where.start.line, where.start.character, where.end.line, where.end.character)
            abroad = home(finding) != finding.location
            if (finding.code, finding.message, *ends) in seen:
                continue  # two entrypoints reach the same line the same way
            seen.add((finding.code, finding.message, *ends))
            # Dozens of one code on one range (a loop's, or a library's below one call of the user's) bury the others.
            same = (finding.code, abroad, *ends)
            shown = alike.setdefault(same, [])
            if len(shown) >= (1 if abroad else _ALIKE):
                more[same] += 1
                continue
            # Findings of one range mostly share their call path: an editor shows them together, so once will do.
            way = (*ends, finding.path)
            shown.append(self._diagnostic(finding, severity, where, with_path=way not in ways))
            ways.add(way)
        for same, number in more.items():
            alike[same][-1].message += f" (and {number} more like it)"
        items = [diagnostic for shown in alike.values() for diagnostic in shown]
        uri = document.uri if document else uri_of(key)
        out = [types.PublishDiagnosticsParams(uri, items, document.version if document else None)]
        before = self._published.get(key)
        if before is not None and before != uri:  # opened or closed through a symbolic link
            out.insert(0, types.PublishDiagnosticsParams(before, []))
        self._published[key] = uri
        return out

    def _placed(self, key: str) -> Iterator[tuple[Finding, Severity, types.Range]]:
        for run in self._runs.values():
            for finding, severity in run.shown():
                place = home(finding)
                if key_of(place.file) != key:
                    continue
                where = self._range(run.tracker, place)
                if where is not None:
                    yield finding, severity, where

    def _range(self, tracker: Tracker, location: Location) -> types.Range | None:
        tracked = tracker.file(location.file)
        placed = tracked.place_range(location.range) if tracked else None
        return None if placed is None else lsp_range(location.range, *placed, self.encoding)

    def _diagnostic(self, finding: Finding, severity: Severity, where: types.Range, *, with_path: bool) -> types.Diagnostic:
        code = lookup(finding.code)
        related = self._related(finding) if with_path and self.related_information else []
        return types.Diagnostic(
            range=where,
            severity=_SEVERITIES[severity],
            code=finding.code,
            code_description=types.CodeDescription(href=code.url),
            source="magpy",
            message=finding.message,
            related_information=related or None,
            data={
                "name": code.name,
                "hint": finding.hint or " ".join(code.hints[:1]),
                "region": finding.region,
                "count": finding.count,
                "cost_ms": finding.cost_ms,
                "values": [value.to_json() for value in finding.values],
            },
        )

    def _related(self, finding: Finding) -> list[types.DiagnosticRelatedInformation]:
        """The call path, outermost first; steps whose line has changed since are left out."""
        related = []
        for run in self._runs.values():
            if run.findings.get(finding.key) is not finding:
                continue
            inside = [] if home(finding) == finding.location else [finding.location]
            for step in finding.path:
                # The way through torch's own frames and the place of the diagnostic itself say nothing new.
                if _is_library(step.file) or step in (finding.location, home(finding)):
                    continue
                where = self._range(run.tracker, step)
                document = self._documents.of_key(key_of(step.file))
                if where is not None:
                    uri = document.uri if document else uri_of(step.file)
                    text = f"call in {step.function}" if step.function else "call"
                    related.append(types.DiagnosticRelatedInformation(types.Location(uri, where), text))
            for place in inside:
                where = self._range(run.tracker, place)
                if where is not None:
                    text = f"inside {place.function}" if place.function else "inside the library"
                    related.append(types.DiagnosticRelatedInformation(types.Location(uri_of(place.file), where), text))
        return related

"""Findings as LSP diagnostics, placed where their lines are now. Key type: Board.

The Board holds what every entrypoint's latest run found: diagnostics of a file are the union over entrypoints, because
two scripts may run the same module, and over what is wrong in its own text (a configuration file).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from lsprotocol import types

from lsp_server.features.documents import Document, Documents, LineEdit, key_of, uri_of
from lsp_server.features.notebooks import Notebook, moved
from lsp_server.features.positions import lsp_range, split_lines
from lsp_server.features.related import Place, call_path, value_changes
from lsp_server.features.run_findings import RunFindings, home
from lsp_server.features.tracking import Tracker, read_source
from magpy_core.findings import Finding, Location, Severity, lookup

_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFORMATION: types.DiagnosticSeverity.Information,
    Severity.HINT: types.DiagnosticSeverity.Hint,
}

# What does nothing is shown faded.
_TAGS = {"MP912": [types.DiagnosticTag.Unnecessary]}
# Diagnostics of one code on one range; a hover lists more.
_ALIKE = 3


class Board:
    """What every entrypoint's latest run found, as the client should see it."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._runs: dict[str, RunFindings] = {}
        self._following: list[RunFindings] = []
        self._published: dict[str, str] = {}
        self.encoding: str = types.PositionEncodingKind.Utf16.value
        self.related_information = True
        self.tags: frozenset[types.DiagnosticTag] = frozenset()
        self.notebooks: dict[str, Notebook] = {}  # by the key of the script that is run in a notebook's place
        self._own: dict[str, list[types.Diagnostic]] = {}  # of files that were checked as they are, by key

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

    def drop(self, entrypoint: str) -> set[str]:
        """Forget what one entrypoint's run found; returns the files whose diagnostics changed."""
        found = self._runs.pop(entrypoint, None)
        return set() if found is None else found.keys()

    def clear(self) -> set[str]:
        changed = self.keys()
        self._runs.clear()
        return changed

    def keys(self) -> set[str]:
        return {key for run in self._runs.values() for key in run.keys()}

    def own(self, key: str, found: list[types.Diagnostic] | None) -> bool:
        """What is wrong in a file's own text; None: it is not looked at any more. Returns whether that changed."""
        before = self._own.pop(key, None)
        if found is not None:
            self._own[key] = found
        return (before or []) != (found or [])

    def shown_for(self, entrypoint: str) -> RunFindings | None:
        """What is shown of an entrypoint: its latest run that came to its program, or None."""
        return self._runs.get(entrypoint)

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

    def replaced_with(self, key: str, lines: list[str]) -> bool:
        """The text of a file that is not open by itself is another one (a notebook's script)."""
        return any([run.tracker.replaced(key, lines) for run in self._all()])

    def _all(self) -> Iterator[RunFindings]:
        yield from self._runs.values()
        yield from self._following

    def at(self, key: str, position: types.Position) -> list[tuple[Finding, Severity, types.Range]]:
        """Findings whose current range holds ``position``."""
        return [
            (finding, severity, where) for _, finding, severity, where in self.within(key, types.Range(position, position))
        ]

    def within(self, key: str, wanted: types.Range) -> list[tuple[RunFindings, Finding, Severity, types.Range]]:
        """Findings whose current range touches ``wanted``, with the run they are of."""

        def touches(r: types.Range) -> bool:
            first, last, start, end = ((p.line, p.character) for p in (wanted.start, wanted.end, r.start, r.end))
            return start <= last and first <= end

        return [item for item in self._placed(key) if touches(item[3])]

    def diagnostics(self, key: str) -> list[types.PublishDiagnosticsParams]:
        """All diagnostics of one file, under the URI the client knows it by (and none under one it had before)."""
        document = self._documents.of_key(key)
        seen: set[tuple[Any, ...]] = set()
        ways: set[tuple[Any, ...]] = set()
        alike: dict[tuple[Any, ...], list[types.Diagnostic]] = {}
        more: Counter[tuple[Any, ...]] = Counter()
        for run, finding, severity, where in self._placed(key):
            if finding.code == "MP910" and key in self._own:
                continue  # said by the check of the file itself, which follows its text
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
            shown.append(self._diagnostic(run, finding, severity, where, with_path=way not in ways))
            ways.add(way)
        for same, number in more.items():
            alike[same][-1].message += f" (and {number} more like it)"
        items = [*self._own.get(key, ()), *(diagnostic for shown in alike.values() for diagnostic in shown)]
        if key in self.notebooks:
            notebook = self.notebooks[key]
            return notebook.shown(items, uri_of(notebook.path))
        uri = document.uri if document else uri_of(key)
        out = [types.PublishDiagnosticsParams(uri, items, document.version if document else None)]
        before = self._published.get(key)
        if before is not None and before != uri:  # opened or closed through a symbolic link
            out.insert(0, types.PublishDiagnosticsParams(before, []))
        self._published[key] = uri
        return out

    def _placed(self, key: str) -> Iterator[tuple[RunFindings, Finding, Severity, types.Range]]:
        for run in self._runs.values():
            for finding, severity in run.shown():
                place = home(finding)
                if key_of(place.file) != key:
                    continue
                where = self.range_of(run.tracker, place)
                if where is not None:
                    yield run, finding, severity, where

    def range_of(self, tracker: Tracker, location: Location) -> types.Range | None:
        """Where a place of the text that ran is now."""
        tracked = tracker.file(location.file)
        placed = tracked.place_range(location.range) if tracked else None
        return None if placed is None else lsp_range(location.range, *placed, self.encoding)

    def _diagnostic(
        self, run: RunFindings, finding: Finding, severity: Severity, where: types.Range, *, with_path: bool
    ) -> types.Diagnostic:
        code = lookup(finding.code)
        places = [*(call_path(finding) if with_path else ()), *self._changes(run, finding)]
        related = self._related(run, places) if self.related_information else []
        times = run.times(finding)
        return types.Diagnostic(
            range=where,
            severity=_SEVERITIES[severity],
            code=finding.code,
            code_description=types.CodeDescription(href=code.url),
            source="magpy",
            message=f"{finding.message} ({times})" if times else finding.message,
            tags=[tag for tag in _TAGS.get(finding.code, ()) if tag in self.tags] or None,
            related_information=related or None,
            data={
                "name": code.name,
                "hint": finding.hint or " ".join(code.hints[:1]),
                "region": finding.region,
                "count": finding.count,
                "steps": finding.steps or None,
                "cost_ms": finding.cost_ms,
                "values": [value.to_json() for value in finding.values],
            },
        )

    def _changes(self, run: RunFindings, finding: Finding) -> list[Place]:
        """Looked up once, when the run has ended: the text that ran does not change."""
        if not run.settled:
            return []
        found = run.changes.get(finding.key)
        if found is None:
            found = run.changes[finding.key] = value_changes(finding, run)
        return found

    def _related(self, run: RunFindings, places: Iterable[Place]) -> list[types.DiagnosticRelatedInformation]:
        """Places whose line has changed since are left out."""
        related = []
        for place in places:
            where = self.range_of(run.tracker, place.location)
            if where is not None:
                key = key_of(place.location.file)
                if (notebook := self.notebooks.get(key)) is not None:
                    inside = notebook.place(where.start.line)
                    if inside is None or not inside[0].uri:
                        continue
                    where = moved(where, inside[1], inside[1] + where.end.line - where.start.line)
                    related.append(types.DiagnosticRelatedInformation(types.Location(inside[0].uri, where), place.text))
                    continue
                document = self._documents.of_key(key)
                uri = document.uri if document else uri_of(place.location.file)
                related.append(types.DiagnosticRelatedInformation(types.Location(uri, where), place.text))
        return related

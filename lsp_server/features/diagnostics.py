"""Findings as LSP diagnostics at the current positions of their lines. Key type: Board.

The Board holds the latest findings of every entrypoint. The diagnostics of a file are the union over entrypoints, because
two scripts may run the same module, and the problems in the file's text (for a configuration file).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import Any

from cattrs import Converter
from lsprotocol import types
from lsprotocol.converters import get_converter

from lsp_server.features.documents import Document, Documents, LineEdit, key_of, uri_of
from lsp_server.features.notebooks import Notebook
from lsp_server.features.positions import lsp_range, split_lines
from lsp_server.features.publication import Entry, Known, Publication, entries_of, rendered, written
from lsp_server.features.run_findings import RunFindings, shown_location
from lsp_server.features.tracking import Tracker, read_source
from magpy_core.findings import Finding, Location, Severity


@cache
def _converter() -> Converter:
    return get_converter()


class Board:
    """The latest findings of every entrypoint, as shown to the client."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._runs: dict[str, RunFindings] = {}
        self._following: list[RunFindings] = []
        self._published: dict[str, str] = {}
        self.encoding: str = types.PositionEncodingKind.Utf16.value
        self.related_information = True
        self.tags: frozenset[types.DiagnosticTag] = frozenset()
        self.notebooks: dict[str, Notebook] = {}  # by the key of the script that a notebook runs as
        self._own: dict[str, list[types.Diagnostic]] = {}  # problems of a file's own text, by key

    def follow(self, found: RunFindings) -> None:
        """Tracks edits for a run whose program is still loading, and that shows no findings yet."""
        self._following.append(found)

    def unfollow(self, found: RunFindings) -> None:
        if found in self._following:
            self._following.remove(found)

    def replace(self, entrypoint: str, found: RunFindings) -> set[str]:
        """Replaces the findings of this entrypoint; returns the files whose diagnostics changed."""
        self.unfollow(found)
        before = self._runs.pop(entrypoint, None)
        self._runs[entrypoint] = found
        return (before.keys() if before else set()) | found.keys()

    def drop(self, entrypoint: str) -> set[str]:
        """Removes the findings of one entrypoint; returns the files whose diagnostics changed."""
        found = self._runs.pop(entrypoint, None)
        return set() if found is None else found.keys()

    def clear(self) -> set[str]:
        changed = self.keys()
        self._runs.clear()
        return changed

    def keys(self) -> set[str]:
        return {key for run in self._runs.values() for key in run.keys()}

    def set_own_diagnostics(self, key: str, found: list[types.Diagnostic] | None) -> bool:
        """Sets the problems of a file's own text (None: no longer checked). Returns whether they changed."""
        before = self._own.pop(key, None)
        if found is not None:
            self._own[key] = found
        return (before or []) != (found or [])

    def shown_for(self, entrypoint: str) -> RunFindings | None:
        """The latest run of an entrypoint that loaded its program, or None."""
        return self._runs.get(entrypoint)

    def runs(self) -> Iterable[RunFindings]:
        return tuple(self._runs.values())

    @property
    def docs_url(self) -> str | None:
        """The address of the published pages of codes, from the first run that sets one."""
        return next((run.docs_url for run in self.runs() if run.docs_url), None)

    def known(self) -> Iterable[RunFindings]:
        """The shown runs, and those whose program is still loading."""
        return tuple(self._all())

    def edited(self, document: Document, edits: list[LineEdit]) -> bool:
        return any([run.tracker.edited(document, edits) for run in self._all()])

    def replaced(self, document_or_key: Document | str) -> bool:
        """Updates after a file was opened (a Document) or its text on disk may have changed (a key)."""
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
        """Updates after the text of a file that is not open itself (a notebook's script) changed."""
        return any([run.tracker.replaced(key, lines) for run in self._all()])

    def _all(self) -> Iterator[RunFindings]:
        yield from self._runs.values()
        yield from self._following

    def at(self, key: str, position: types.Position) -> list[tuple[Finding, Severity, types.Range]]:
        """Findings whose current range contains ``position``."""
        return [
            (finding, severity, where) for _, finding, severity, where in self.within(key, types.Range(position, position))
        ]

    def is_diagnosed(self, finding: Finding, severity: Severity) -> bool:
        """Whether a shown finding is a diagnostic."""
        return any(run.findings.get(finding.key) is finding and run.is_diagnosed(finding, severity) for run in self.runs())

    def within(self, key: str, wanted: types.Range) -> list[tuple[RunFindings, Finding, Severity, types.Range]]:
        """Findings whose current range touches ``wanted``, with their run."""

        def touches(r: types.Range) -> bool:
            first, last, start, end = ((p.line, p.character) for p in (wanted.start, wanted.end, r.start, r.end))
            return start <= last and first <= end

        return [item for item in self._placed(key) if touches(item[3])]

    def diagnostics(self, key: str) -> list[Publication]:
        """All diagnostics of one file under its current URI (and an empty list under its previous one)."""
        document = self._documents.of_key(key)
        entries = [entry for run in self._runs.values() for entry in self._entries(run).get(key, ())]
        if key in self._own:
            # The check of the file itself reports these, for its current text.
            entries = [entry for entry in entries if entry.finding.code != "MP910"]
        items = [*written(self._own.get(key, ()), _converter().unstructure), *rendered(entries)]
        if key in self.notebooks:
            return self._in_cells(self.notebooks[key], items)
        uri = document.uri if document else uri_of(key)
        out = [Publication(uri, items, document.version if document else None)]
        before = self._published.get(key)
        if before is not None and before != uri:  # opened or closed through a symbolic link
            out.insert(0, Publication(before, []))
        self._published[key] = uri
        return out

    def _in_cells(self, notebook: Notebook, items: list[str]) -> list[Publication]:
        convert = _converter()
        found = [convert.structure(json.loads(item), types.Diagnostic) for item in items]
        shown = notebook.shown(found, uri_of(notebook.path))
        return [Publication(params.uri, written(params.diagnostics, convert.unstructure)) for params in shown]

    def _entries(self, run: RunFindings) -> dict[str, list[Entry]]:
        """The entries of a run, cached: parts that edits do not affect are built once; the stamp covers the rest."""
        around = (run.complete, self._documents.generation, self.encoding, self.tags, self.related_information)
        stamp = (run.version, run.settings, run.steps, run.docs_url)
        if run.entries is None or run.entries[0] != around:
            run.entries = around, None, {}, {}
        if run.entries[1] != stamp:
            where = self._uri_now if self.related_information else None
            known: dict[Any, Known] = run.entries[3]
            run.entries = around, stamp, entries_of(run, self.encoding, self.tags, where, known), known
        entries: dict[str, list[Entry]] = run.entries[2]
        return entries

    def _uri_now(self, file: str) -> Callable[[int], tuple[str, int] | None]:
        """Maps a line of a file to the client's URI and line: for a notebook's script, those of the cell."""
        key = key_of(file)
        if key in self.notebooks:
            return partial(self._cell_now, key)
        document = self._documents.of_key(key)
        uri = document.uri if document else uri_of(file)
        return lambda line: (uri, line)

    def _cell_now(self, key: str, line: int) -> tuple[str, int] | None:
        inside = self.notebooks[key].place(line)
        return (inside[0].uri, inside[1]) if inside is not None and inside[0].uri else None

    def _placed(self, key: str) -> Iterator[tuple[RunFindings, Finding, Severity, types.Range]]:
        for run in self._runs.values():
            for finding, severity in run.shown():
                place = shown_location(finding)
                if key_of(place.file) != key:
                    continue
                where = self.range_of(run.tracker, place)
                if where is not None:
                    yield run, finding, severity, where

    def range_of(self, tracker: Tracker, location: Location) -> types.Range | None:
        """The current range of a location in the text that ran."""
        tracked = tracker.file(location.file)
        placed = tracked.place_range(location.range) if tracked else None
        return None if placed is None else lsp_range(location.range, *placed, self.encoding)

"""The quick fixes of a run's findings as exact edits of the files on disk, in the form of JSON reports. Key type: Fixes."""

from __future__ import annotations

import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from lsp_server.features.documents import Document, key_of, uri_of
from lsp_server.features.entrypoint import is_not_imported
from lsp_server.features.fixes import fixes_for
from lsp_server.features.fixes.problem import Edit, Fix, Problem
from lsp_server.features.run_findings import RunFindings
from lsp_server.features.settings import Settings
from lsp_server.features.syntax import parse
from lsp_server.features.tracking import Tracker, read_source
from lsp_server.sources import is_library
from magpy_core.findings import Finding, Position, Range, Report


class Fixes:
    """Fixes of the findings of one report. ``started_ns``: when its run began; files that changed since have none."""

    def __init__(self, report: Report, started_ns: int | None = None) -> None:
        tracker = Tracker(time.time_ns() if started_ns is None else started_ns, ())
        self._run = RunFindings("", tracker, Settings())
        self._run.details = report.details
        self._documents: dict[str, Document | None] = {}

    def of(self, finding: Finding) -> list[dict[str, Any]]:
        """Each with its ``title`` and ``edits``; ``results_stay_the_same``: the text and the run prove it."""
        file = finding.location.file
        document = None if is_library(file) else self._document(file)
        tree = parse(tuple(document.lines)) if document is not None else None
        if document is None or tree is None:
            return []
        is_whole = partial(is_not_imported, file, document.lines)
        problem = Problem(finding, finding.location.range, document.lines, tree, key_of(file), (self._run,), is_whole)
        return [_answer(fix, file, document) for fix in fixes_for(problem)]

    def _document(self, file: str) -> Document | None:
        """The file, if it still has the text that ran."""
        if file not in self._documents:
            text = read_source(file) if self._run.tracker.file(file) is not None else None
            self._documents[file] = None if text is None else Document(uri_of(str(Path(file))), 0, text)
        return self._documents[file]


def _answer(fix: Fix, file: str, document: Document) -> dict[str, Any]:
    edits = [_edit(edit, file, document) for edit in fix.edits]
    return {"title": fix.title, "results_stay_the_same": not fix.rewrite, "edits": edits}


def _edit(edit: Edit, file: str, document: Document) -> dict[str, Any]:
    start, end = _inside(edit.range.start, document), _inside(edit.range.end, document)
    taken = document.lines[start.line : end.line + 1]
    taken[-1] = taken[-1][: end.character]
    taken[0] = taken[0][start.character :]
    return {
        "file": file,
        "range": asdict(Range(start, end)),
        "old_text": document.eol.join(taken),
        "new_text": edit.text.replace("\n", document.eol),
    }


def _inside(at: Position, document: Document) -> Position:
    if at.line >= len(document.lines):  # the end of a last line without a line end
        return Position(len(document.lines) - 1, len(document.lines[-1]))
    return at

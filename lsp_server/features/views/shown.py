"""The runs whose findings are shown, with their state. Key types: Shown, Lines; key function: shown_runs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lsp_server.features.diagnostics import Board
from lsp_server.features.documents import Documents, key_of, uri_of
from lsp_server.features.notebooks import Notebook
from lsp_server.features.run_findings import RunFindings
from lsp_server.features.tracking import Tracker
from lsp_server.server.runs import Run
from magpy_core.findings.details import CaptureDetail

Json = dict[str, Any]


class NotShown(Exception):
    """The requested item does not exist (any more). The message is for the user."""


class Lines:
    """Maps lines of the program that ran to current positions in the editor."""

    def __init__(self, tracker: Tracker, documents: Documents, notebooks: Mapping[str, Notebook] | None = None) -> None:
        self._tracker = tracker
        self._documents = documents
        self._notebooks = notebooks or {}

    def place(self, file: str, line: int, character: int = 0) -> Json | None:
        """``{uri, line, character}`` (0-based) of a 1-based line; None for generated code and changed lines."""
        tracked = self._tracker.file(file) if file and line > 0 else None
        now = None if tracked is None else tracked.place(line - 1, line - 1)
        if now is None:
            return None
        notebook = self._notebooks.get(key_of(file))
        if notebook is not None:
            return _in_notebook(notebook, now, character)
        document = self._documents.of_key(key_of(file))
        return {"uri": document.uri if document else uri_of(file), "line": now, "character": character}


def _in_notebook(notebook: Notebook, line: int, character: int) -> Json | None:
    """The cell of a line of a notebook's script, if it is open in the editor."""
    found = notebook.place(line)
    if found is None or not found[0].uri:
        return None
    return {"uri": found[0].uri, "line": found[1], "character": character}


@dataclass(frozen=True)
class Shown:
    """One run on the board. ``run`` is None if a newer run of its entrypoint is about to replace it."""

    found: RunFindings
    run: Run | None
    lines: Lines

    @property
    def key(self) -> str:
        return self.run.target.key if self.run else self.found.uri

    @property
    def label(self) -> str:
        return self.run.target.label if self.run else self.found.uri.rsplit("/", 1)[-1]

    @property
    def ended_at(self) -> int | None:
        """Milliseconds since 1970; None while it runs."""
        if self.run is None or self.run.state.active:
            return None
        return round((time.time() - time.monotonic() + self.run.ended_at) * 1000)

    def captures(self, region: str) -> list[CaptureDetail]:
        """The captures of a region, oldest first."""
        if self.found.details is None:
            raise NotShown(f"The captures of {self.label} are available when its run has ended: start Check, or wait.")
        detail = self.found.detail_of(region)
        if detail is None:
            raise NotShown(f"{region} is not a region of the last run of {self.label}.")
        return detail.captures[::-1]

    def capture(self, region: str, number: int | None = None) -> tuple[int, CaptureDetail]:
        """A capture by its number from 1, or the newest."""
        captures = self.captures(region)
        if not captures:
            raise NotShown(f"{region} has no capture: its findings say why.")
        number = len(captures) if number is None else number
        if not 1 <= number <= len(captures):
            raise NotShown(f"{region} has no capture {number} in the last run of {self.label}.")
        return number, captures[number - 1]


def shown_runs(board: Board, runs: Iterable[Run], documents: Documents) -> Iterator[Shown]:
    by_found = {id(run.found): run for run in runs}
    for found in board.runs():
        yield Shown(found, by_found.get(id(found)), Lines(found.tracker, documents, board.notebooks))

"""Maps lines of the files that ran to their current positions. Key types: TrackedFile, Tracker.

A finding refers to the text that the program loaded. A TrackedFile stores that text and the current position of each of its
lines (None: changed). So edits move findings or remove them, but never leave them on a wrong line, even for findings that
arrive while the user is typing.
"""

from __future__ import annotations

import io
import os
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher

from lsp_server.features.documents import Document, LineEdit, key_of
from lsp_server.features.positions import split_lines
from magpy_core.findings import Range

# SequenceMatcher is quadratic at worst; a longer changed block counts as changed completely.
_MATCH_LIMIT = 4_000


def read_source(path: str) -> str | None:
    """The text of a Python file in its declared encoding; None if it can't be read or decoded."""
    try:
        with open(path, "rb") as stream:
            data = stream.read()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding)
    except (OSError, SyntaxError, UnicodeDecodeError, LookupError):
        return None


def match_lines(old: Sequence[str], new: Sequence[str]) -> list[int | None]:
    """For each old line the index of the same line in ``new``, or None."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    moved: list[int | None] = [None] * len(old)
    moved[:head] = range(head)
    shift = len(new) - len(old)
    for index in range(len(old) - tail, len(old)):
        moved[index] = index + shift
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    if middle_old and middle_new and len(middle_old) + len(middle_new) <= _MATCH_LIMIT:
        matcher = SequenceMatcher(None, middle_old, middle_new, autojunk=False)
        for block in matcher.get_matching_blocks():
            for offset in range(block.size):
                moved[head + block.a + offset] = head + block.b + offset
    return moved


class TrackedFile:
    """The lines of one file as the program loaded them, and their current positions."""

    def __init__(self, text: str, now: Sequence[str] | None = None) -> None:
        self.lines = split_lines(text)
        self._map: list[int | None] = list(range(len(self.lines)))
        self.length = len(self.lines)  # of the current text
        if now is not None:
            self.resync(now)

    def resync(self, now: Sequence[str]) -> None:
        """Compares with a new text (opened, closed, changed on disk, undone)."""
        self._map = match_lines(self.lines, now)
        self.length = len(now)

    def apply(self, edit: LineEdit, now: Sequence[str]) -> None:
        """Applies one edit; ``now`` is the text after it."""
        self.length += len(edit.new) - len(edit.old)
        if len(now) == len(self.lines) and list(now) == self.lines:
            self._map = list(range(len(self.lines)))  # undone: every line is at its original position
            return
        local = match_lines(edit.old, edit.new)
        after, shift = edit.first + len(edit.old), len(edit.new) - len(edit.old)

        def moved(line: int | None) -> int | None:
            if line is None or line < edit.first:
                return line
            if line >= after:
                return line + shift
            inside = local[line - edit.first]
            return None if inside is None else edit.first + inside

        self._map = [moved(line) for line in self._map]
        self._find_again(edit.first, edit.first + len(edit.new), now)

    def _find_again(self, first: int, last: int, now: Sequence[str]) -> None:
        """Lines that an earlier edit has changed and this one has restored, in lines ``first..last`` of the text ``now``."""
        old = 0
        while old < len(self._map):
            if self._map[old] is not None:
                old += 1
                continue
            end = next((i for i in range(old, len(self._map)) if self._map[i] is not None), len(self._map))
            below = self._map[old - 1] if old else -1
            above = self._map[end] if end < len(self._map) else len(now)
            assert below is not None and above is not None, "the lines around are known"
            if below < last and first < above:
                for offset, line in enumerate(match_lines(self.lines[old:end], now[below + 1 : above])):
                    self._map[old + offset] = None if line is None else below + 1 + line
            old = end

    @property
    def changed(self) -> bool:
        """Whether the text differs from what the program loaded."""
        return self.length != len(self.lines) or any(now != line for line, now in enumerate(self._map))

    def place(self, first: int, last: int) -> int | None:
        """The line where lines ``first..last`` now begin; None if any changed or they are no longer adjacent."""
        if not 0 <= first <= last < len(self.lines):
            return None
        start = self._map[first]
        if start is None or any(self._map[i] != start + i - first for i in range(first, last + 1)):
            return None
        return start

    def place_range(self, found: Range) -> tuple[int, Sequence[str]] | None:
        """The current first line of ``found`` and its lines' texts."""
        start = self.place(found.start.line, found.end.line)
        return None if start is None else (start, self.lines[found.start.line : found.end.line + 1])


class Tracker:
    """The files of one run. Open files are read when the run starts, others on first use."""

    def __init__(self, started_ns: int, documents: Iterable[Document]) -> None:
        self._started_ns = started_ns
        self._files: dict[str, TrackedFile | None] = {}
        for document in documents:
            if document.path is not None:
                text = read_source(document.path)
                self._files[document.key] = None if text is None else TrackedFile(text, document.lines)

    @staticmethod
    def of_texts(texts: Mapping[str, Sequence[str]], documents: Iterable[Document]) -> Tracker:
        """Of an earlier run, whose files had these lines: those on disk, or in an editor, may have changed since."""
        tracker, now = Tracker(0, ()), {document.key: document.lines for document in documents}
        for key, lines in texts.items():
            text = None if key in now else read_source(key)
            current = now.get(key, split_lines(text) if text is not None else [])
            tracker._files[key] = TrackedFile("\n".join(lines), current)
        return tracker

    def texts(self, keys: Iterable[str]) -> dict[str, list[str]]:
        """The lines that ran of the files of these keys, as far as they are known."""
        return {key: found.lines for key in keys if (found := self.file(key)) is not None}

    def file(self, path: str) -> TrackedFile | None:
        """The tracked file, or None if the text that the program loaded is unknown."""
        key = key_of(path)
        if key not in self._files:
            self._files[key] = self._read(key)
        return self._files[key]

    def _read(self, path: str) -> TrackedFile | None:
        try:
            changed = os.stat(path).st_mtime_ns > self._started_ns
        except OSError:
            return None
        text = None if changed else read_source(path)
        return None if text is None else TrackedFile(text)

    def lines(self, path: str) -> list[str] | None:
        """The text of a file that the program loaded."""
        tracked = self.file(path)
        return None if tracked is None else tracked.lines

    def known(self, key: str) -> TrackedFile | None:
        """The tracked file if this run already uses it; reads nothing."""
        return self._files.get(key)

    def edited(self, document: Document, edits: Sequence[LineEdit]) -> bool:
        """Applies edits of an open document; True if it is one of this run's files."""
        tracked = self._files.get(document.key)
        if tracked is None:
            return False
        if len(edits) == 1:
            tracked.apply(edits[0], document.lines)
        else:
            self._apply_all(tracked, document, edits)
        return True

    @staticmethod
    def _apply_all(tracked: TrackedFile, document: Document, edits: Sequence[LineEdit]) -> None:
        # Only the text after the last edit is known, so only there can an undo be detected.
        for edit in edits[:-1]:
            tracked.apply(edit, ())
        if edits:
            tracked.apply(edits[-1], document.lines)

    def replaced(self, key: str, now: Sequence[str] | None) -> bool:
        """Updates after the file's whole text was replaced; None: the file was deleted."""
        tracked = self._files.get(key)
        if tracked is None:
            return False
        tracked.resync(now if now is not None else ())
        return True

"""Open documents and the edits made to them. Key types: Document, Documents, LineEdit.

The server keeps its own text instead of pygls's because a finding moves by *lines*: every change is
turned into one LineEdit, "these old lines became those new lines", which trackers follow.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath

from lsprotocol import types
from pygls import uris

from lsp_server.features.positions import EOL, from_units, split_lines


@dataclass(frozen=True)
class LineEdit:
    """Lines ``first .. first + len(old)`` were ``old`` and became ``new``."""

    first: int
    old: tuple[str, ...]
    new: tuple[str, ...]


def path_of(uri: str) -> str | None:
    """The path of ``uri``, or None if it names no file (``untitled:`` and the like, a relative path, a null character)."""
    path = uris.to_fs_path(uri) if uri.startswith("file:") else None
    return path if path is not None and os.path.isabs(path) and "\0" not in path else None


def uri_of(path: str) -> str:
    """The URI of an absolute path, also of one that is not valid text (a lone surrogate)."""
    return PurePath(path).as_uri()


@lru_cache(maxsize=4096)  # called for every finding at every publication
def key_of(path: str) -> str:
    """One name per file: a worker may report a path through a symbolic link that the editor opened without it."""
    return os.path.realpath(path)


class Document:
    """The text of one open file, as the editor has it."""

    def __init__(self, uri: str, version: int, text: str) -> None:
        self.uri = uri
        self.version = version
        self.lines = split_lines(text)
        first = EOL.search(text)
        self.eol = first[0] if first else "\n"  # for inserted text
        path = path_of(uri)
        self.path = path
        self.key = key_of(path) if path else uri

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def apply(self, change: types.TextDocumentContentChangeEvent, encoding: str) -> LineEdit:
        """Applies a change to the text; returns the change as lines."""
        if isinstance(change, types.TextDocumentContentChangeWholeDocument):
            edit = LineEdit(0, tuple(self.lines), tuple(split_lines(change.text)))
        else:
            start, start_column = self._locate(change.range.start, encoding)
            end, end_column = self._locate(change.range.end, encoding)
            if (end, end_column) < (start, start_column):
                start, start_column, end, end_column = end, end_column, start, start_column
            old = tuple(self.lines[start : end + 1])
            new = tuple(split_lines(old[0][:start_column] + change.text + old[-1][end_column:]))
            edit = LineEdit(start, old, new)
        self.lines[edit.first : edit.first + len(edit.old)] = edit.new
        return edit

    def _locate(self, position: types.Position, encoding: str) -> tuple[int, int]:
        if position.line >= len(self.lines):
            return len(self.lines) - 1, len(self.lines[-1])
        return position.line, from_units(self.lines[position.line], position.character, encoding)


class Documents:
    """All open documents, found by URI or by file."""

    def __init__(self) -> None:
        self._by_uri: dict[str, Document] = {}
        self.generation = 0  # changes when a document is opened or closed
        self._recent = ""

    def open(self, item: types.TextDocumentItem) -> Document:
        document = Document(item.uri, item.version, item.text)
        self._by_uri[item.uri] = document
        self._recent = item.uri
        self.generation += 1
        return document

    def change(
        self,
        identifier: types.VersionedTextDocumentIdentifier,
        changes: Iterable[types.TextDocumentContentChangeEvent],
        encoding: str,
    ) -> tuple[Document, list[LineEdit]] | None:
        """Applies ``changes`` in order; None if the document is not open."""
        document = self._by_uri.get(identifier.uri)
        if document is None:
            return None
        self._recent = identifier.uri
        edits = [document.apply(change, encoding) for change in changes]
        document.version = identifier.version
        return document, edits

    def close(self, uri: str) -> Document | None:
        self.generation += 1
        return self._by_uri.pop(uri, None)

    def get(self, uri: str) -> Document | None:
        """The document that a request of the client is about."""
        self._recent = uri
        return self._by_uri.get(uri)

    @property
    def recent(self) -> Document | None:
        """The open document that the client has mentioned last: most likely, the user is there."""
        return self._by_uri.get(self._recent)

    def of_key(self, key: str) -> Document | None:
        return next((d for d in self._by_uri.values() if d.key == key), None)

    def __iter__(self) -> Iterator[Document]:
        return iter(tuple(self._by_uri.values()))

"""Applying a workspace edit to a text as a client does. Key function: applied."""

from __future__ import annotations

from typing import Any

_UNITS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def applied(text: str, edit: dict[str, Any], uri: str, encoding: str = "utf-16") -> str:
    """``text`` after the edits of ``uri``, which must not overlap. ``encoding``: what positions count."""
    codec, size = _UNITS[encoding]
    (change,) = (c for c in edit["documentChanges"] if c["textDocument"]["uri"] == uri)
    raw = text.encode(codec)
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode(codec)))

    def offset(p: dict[str, int]) -> int:
        return starts[p["line"]] + size * p["character"]

    edits = sorted(change["edits"], key=lambda e: offset(e["range"]["start"]), reverse=True)
    behind = len(raw)
    for one in edits:
        start, end = offset(one["range"]["start"]), offset(one["range"]["end"])
        assert start <= end <= behind, "edits overlap"
        raw = raw[:start] + one["newText"].encode(codec) + raw[end:]
        behind = start
    return raw.decode(codec)

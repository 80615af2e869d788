"""Applying a workspace edit to a text as a client does, in UTF-16. Key function: applied."""

from __future__ import annotations

from typing import Any


def applied(text: str, edit: dict[str, Any], uri: str) -> str:
    """``text`` after the edits of ``uri``, which must not overlap."""
    (change,) = (c for c in edit["documentChanges"] if c["textDocument"]["uri"] == uri)
    raw = text.encode("utf-16-le")
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode("utf-16-le")))

    def offset(p: dict[str, int]) -> int:
        return starts[p["line"]] + 2 * p["character"]

    edits = sorted(change["edits"], key=lambda e: offset(e["range"]["start"]), reverse=True)
    behind = len(raw)
    for one in edits:
        start, end = offset(one["range"]["start"]), offset(one["range"]["end"])
        assert start <= end <= behind, "edits overlap"
        raw = raw[:start] + one["newText"].encode("utf-16-le") + raw[end:]
        behind = start
    return raw.decode("utf-16-le")

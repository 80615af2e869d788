"""Inlay hints at the ends of lines: guarded values, dtypes and shapes of tensors. Key function: hints."""

from __future__ import annotations

from collections.abc import Sequence

from lsprotocol import types

from lsp_server.features.documents import Document
from lsp_server.features.positions import to_units
from lsp_server.features.run_findings import RunFindings
from lsp_server.features.seen import guards_at, lines_with_hints, tensors_at

_SHOWN = 3
_LONGEST = 40


def hints(document: Document, where: types.Range, runs: Sequence[RunFindings], encoding: str) -> list[types.InlayHint]:
    """At most two hints per line: the tensors it computes, and its guarded values."""
    found: list[types.InlayHint] = []
    last = min(where.end.line, len(document.lines) - 1)
    for number in lines_with_hints(runs, document.key, where.start.line, last):
        line = document.lines[number].rstrip()
        at = types.Position(number, to_units(line, len(line), encoding))
        tensors = tensors_at(runs, document.key, number)
        if tensors:
            label = " | ".join(tensors[:_SHOWN]) + (" | …" if len(tensors) > _SHOWN else "")
            found.append(
                types.InlayHint(
                    at, label, types.InlayHintKind.Type, tooltip="Result of this line in the last run", padding_left=True
                )
            )
        guards = {g.guard.name: g for g in guards_at(runs, document.key, number) if g.is_informative}
        if guards:
            parts = [f"{name} is {_short(g.value)}" for name, g in list(guards.items())[:_SHOWN]]
            label = ", ".join(parts) + (", …" if len(guards) > _SHOWN else "")
            regions = ", ".join(dict.fromkeys(g.region.name for g in guards.values()))
            tooltip = f"Captures of {regions} are valid while this value stays the same"
            found.append(types.InlayHint(at, label, tooltip=tooltip, padding_left=True))
    return found


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"

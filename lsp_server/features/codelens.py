"""Code lenses: "Check" and "Run compiled" on an entrypoint, a summary on each region.

Key functions: entry_lenses, region_lenses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lsprotocol import types

from lsp_server.features.documents import Document
from lsp_server.features.entrypoint import entrypoint_line
from lsp_server.features.run_findings import RunFindings
from lsp_server.features.summary import region_line

CHECK, RUN_COMPILED, CANCEL, CLEAR = "magpy.check", "magpy.runCompiled", "magpy.cancel", "magpy.clear"


def _lens(line: int, title: str, command: str, argument: dict[str, Any] | None = None) -> types.CodeLens:
    at = types.Position(line, 0)
    arguments = [argument] if argument is not None else None
    return types.CodeLens(types.Range(at, at), types.Command(title=title, command=command, arguments=arguments))


def entry_lenses(document: Document, running: str | None) -> list[types.CodeLens]:
    """Lenses to start the file, or to stop it: ``running`` says what is being done now."""
    line = entrypoint_line(document.lines)
    if line is None:
        return []
    if running is not None:
        return [_lens(line, f"{running} (click to cancel)", CANCEL, {"uri": document.uri})]
    # A lens must not keep the client waiting for the whole run; progress and status tell how it goes.
    argument = {"uri": document.uri, "wait": False}
    return [_lens(line, "Check", CHECK, argument), _lens(line, "Run compiled", RUN_COMPILED, argument)]


def region_lenses(document: Document, runs: Iterable[RunFindings]) -> list[types.CodeLens]:
    """One lens a region at its definition; without a command, as nothing happens on a click."""
    lenses = []
    for run in runs:
        for region in run.regions.values():
            place = run.region_line_of(region)
            if place is not None and place[0] == document.key:
                lenses.append(_lens(place[1], f"{region.name}: {region_line(region)}", ""))
    return lenses

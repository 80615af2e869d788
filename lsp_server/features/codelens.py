"""Code lenses: "Check" and "Run compiled" on an entrypoint, a summary on each region, kernels on each function.

Key functions: entry_lenses, region_lenses, kernel_lenses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lsprotocol import types

from lsp_server.features.documents import Document
from lsp_server.features.entrypoint import entrypoint_line
from lsp_server.features.kernels import of_functions, of_regions, short_line
from lsp_server.features.run_findings import RunFindings
from lsp_server.features.summary import region_line, total_line

SHOW_GRAPH, SHOW_TRITON, SHOW_RUN = "magpy.showOperatorGraph", "magpy.showTriton", "magpy.showRunView"
CHECK, RUN_COMPILED, CANCEL, CLEAR = "magpy.check", "magpy.runCompiled", "magpy.cancel", "magpy.clear"
COMPARE = "magpy.compare"


def _lens(line: int, title: str, command: str, argument: dict[str, Any] | None = None) -> types.CodeLens:
    at = types.Position(line, 0)
    arguments = [argument] if argument is not None else None
    return types.CodeLens(types.Range(at, at), types.Command(title=title, command=command, arguments=arguments))


def entry_lenses(
    document: Document,
    running: str | None,
    last: RunFindings | None = None,
    names: Sequence[str] = (),
    *,
    is_live: bool = False,
) -> list[types.CodeLens]:
    """Lenses to start the file, or to stop it: ``running`` describes the current run, ``last`` is the last one's result.

    ``names``: configured entrypoints that run this file. ``is_live``: the client shows how the current run is going.
    """
    line = entrypoint_line(document.lines)
    if line is None:
        return []
    if running is not None:
        cancel = _lens(line, f"{running} (click to cancel)", CANCEL, {"uri": document.uri})
        return [cancel, _lens(line, "Show run view", SHOW_RUN, {"uri": document.uri})] if is_live else [cancel]
    # The client must not wait for the whole run; progress and status notifications report on it.
    argument = {"uri": document.uri, "wait": False}
    lenses = [_lens(line, "Check", CHECK, argument), _lens(line, "Run compiled", RUN_COMPILED, argument)]
    lenses += [_lens(line, f"Check {name}", CHECK, {**argument, "name": name}) for name in names]
    if last is not None and last.regions:
        lenses.append(_lens(line, total_line(last.regions.values(), last.step), ""))
    return lenses


def region_lenses(document: Document, runs: Iterable[RunFindings], *, own: bool, running: bool) -> list[types.CodeLens]:
    """A region's summary at its definition, and lenses to start its program.

    If several programs run the region, its summary names them: once if it is the same in all of them. The lenses start the
    program that ran last. ``own``: the client is our extension, where a click on the summary opens the operator graph.
    """
    lenses = []
    started: dict[int, str] = {}
    programs: dict[int, set[str]] = {}
    summaries: dict[tuple[int, str], list[tuple[RunFindings, str]]] = {}
    for run in runs:
        for region in run.regions.values():
            place = run.region_line_of(region)
            if place is not None and place[0] == document.key:
                title, line = f"{region.name}: {region_line(region)}", place[1]
                summaries.setdefault((line, title), []).append((run, region.id))
                started[line] = run.uri
                programs.setdefault(line, set()).add(run.program)
    for (line, title), of in summaries.items():
        if len(programs[line]) > 1:
            title = f"{' and '.join(dict.fromkeys(run.program for run, _ in of))} · {title}"
        if own:
            at = types.Position(line, 0)
            lenses.append(types.CodeLens(types.Range(at, at), types.Command(title, SHOW_GRAPH, arguments=[of[-1][1]])))
        else:
            lenses.append(_lens(line, title, ""))
    if not running and entrypoint_line(document.lines) is None:
        # The program is another file; an entrypoint has these lenses itself.
        names = {run.uri: run.program for of in summaries.values() for run, _ in of}
        for line, uri in started.items():
            argument = {"uri": uri, "wait": False}
            name = f" {names[uri]}" if len(programs[line]) > 1 else ""
            check = _lens(line, f"Check{name}", CHECK, argument)
            lenses += [check, _lens(line, f"Run{name} compiled", RUN_COMPILED, argument)]
    return lenses


def kernel_lenses(document: Document, runs: Iterable[RunFindings], *, own: bool) -> list[types.CodeLens]:
    """What a call of each region launches on the target, at its definition; for each other function, what its lines
    launch. ``own``: the client is our extension, where a click opens the kernels' code."""
    lenses = []
    for run in runs:
        if run.kernels is None:
            continue
        of_region = of_regions(document, run, run.kernels)
        taken = {line for line, *_ in of_region}
        wholes = [(line, line, region, kernels) for line, region, kernels in of_region]
        parts = [(first, last, "", kernels) for first, last, kernels in of_functions(document, run, run.kernels, taken)]
        for first, last, region, kernels in (*wholes, *parts):
            title = short_line(run.kernels.device, kernels)
            argument = {"uri": document.uri, "first": first, "last": last, "region": region}
            lenses.append(_lens(first, title, SHOW_TRITON if own else "", argument if own else None))
    return lenses

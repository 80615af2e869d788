"""The custom requests of the views. Key function: register.

A request names a run by its ``run`` key from ``magpy/runs``; the default is the latest run with the requested item.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygls.exceptions import JsonRpcInvalidParams

from lsp_server.config import ConfigError, load_for
from lsp_server.features import why_not
from lsp_server.features.documents import key_of, path_of
from lsp_server.features.views import graphs, texts
from lsp_server.features.views.kernels import kernels_of
from lsp_server.features.views.shown import Json, NotShown, Shown, shown_runs
from lsp_server.features.views.tree import entrypoint_tree
from lsp_server.formats.why_not import by_weight
from lsp_server.repeats import merged
from magpy_core.findings import Report

if TYPE_CHECKING:
    from lsp_server.server.app import MagpyServer

RUNS, GRAPH, TEXT, NODES, KERNELS, PAGE, ENTRYPOINTS, WHY_NOT = (
    "magpy/runs", "magpy/graph", "magpy/text", "magpy/nodes", "magpy/kernels", "magpy/page", "magpy/entrypoints",
    "magpy/whyNot",
)  # fmt: skip


def register(server: MagpyServer) -> None:
    """Registers the handlers with ``server``."""

    def runs() -> list[Shown]:
        """The shown runs, latest last."""
        return list(shown_runs(server.board, server.runs.latest(), server.documents))

    def respond(method: str, respond_to: Callable[[Mapping[str, Any]], Any]) -> None:
        @server.feature(method)
        def handler(params: Any) -> Any:
            try:
                return respond_to(_mapping(params))
            except NotShown as error:
                raise JsonRpcInvalidParams(str(error)) from None

    respond(RUNS, lambda _: [entrypoint_tree(shown) for shown in runs()])
    respond(GRAPH, lambda params: _graph(runs(), params))
    respond(TEXT, lambda params: _text(runs(), params))
    respond(NODES, lambda params: _nodes(runs(), params))
    respond(KERNELS, lambda params: kernels_of(runs(), params))
    respond(PAGE, lambda params: {"html": _page(_wanted(runs(), params))})
    respond(ENTRYPOINTS, _entrypoints)
    respond(WHY_NOT, lambda params: _why_not(runs(), params))


def _mapping(params: Any) -> Mapping[str, Any]:
    """The params as a mapping: pygls converts those of unknown methods to objects, and Lua may send an empty list."""
    if params is None or isinstance(params, list):
        return {}
    if isinstance(params, Mapping):
        return params
    return dict(params._asdict()) if hasattr(params, "_asdict") else dict(vars(params))


def _wanted(runs: list[Shown], params: Mapping[str, Any]) -> Shown:
    key = params.get("run")
    chosen = [shown for shown in runs if key is None or shown.key == key]
    ended = [shown for shown in chosen if shown.found.details is not None]
    if not chosen:
        raise NotShown(
            "There is no run yet: run Check first."
            if key is None
            else f"{key} was not checked, or its findings were cleared."
        )
    return (ended or chosen)[-1]


def _region(shown: Shown, params: Mapping[str, Any]) -> tuple[str, str]:
    """The id and the name of the requested region, else of the first captured one."""
    wanted = params.get("region")
    if isinstance(wanted, str):
        region = shown.found.regions.get(wanted)
        return wanted, region.name if region is not None else wanted
    regions = list(shown.found.regions.values())
    for region in regions:
        if region.captures:
            return region.id, region.name
    if regions:
        return regions[0].id, regions[0].name
    raise NotShown(f"No region was monitored in the last run of {shown.label}.")


def _capture(runs: list[Shown], params: Mapping[str, Any]) -> tuple[Shown, Json, Any]:
    shown = _wanted(runs, params)
    region, name = _region(shown, params)
    captures = shown.captures(region)
    wanted = params.get("capture")
    number = wanted if isinstance(wanted, int) else None
    if number is None and params.get("kind") == "generatedCode":  # a capture that was never replayed has none
        number = next((n for n in range(len(captures), 0, -1) if captures[n - 1].generated_code), None)
    number, capture = shown.capture(region, number)
    of = len(captures)
    head = {
        "run": shown.key,
        "region": region,
        "capture": number,
        "of": of,
        "title": f"{name} · capture {number} of {of} · {shown.label}",
    }
    return shown, head, capture


def _graph(runs: list[Shown], params: Mapping[str, Any]) -> Json:
    shown, head, capture = _capture(runs, params)
    kind = params.get("kind", "operators")
    draw = graphs.reference_graph if kind == "references" else graphs.operator_graph
    return {**head, "kind": kind, **draw(capture, shown.lines)}


def _text(runs: list[Shown], params: Mapping[str, Any]) -> Json:
    shown, head, capture = _capture(runs, params)
    return {**head, **texts.text_of(str(params.get("kind")), capture, head["title"], shown.lines)}


def _nodes(runs: list[Shown], params: Mapping[str, Any]) -> list[Json]:
    path, line = path_of(str(params.get("uri"))), params.get("line")
    if path is None or not isinstance(line, int):
        raise NotShown("The request needs a line of a file on disk.")
    return graphs.nodes_of_line(runs, key_of(path), line)


def _why_not(runs: list[Shown], params: Mapping[str, Any]) -> Json:
    """Of one region, by its id; without it, of everything in the run."""
    if params.get("region") is None:
        shown = _wanted(runs, params)
        return {"name": shown.label, "page": why_not.page(by_weight(shown.found.why_not))}
    region = str(params["region"])
    found = why_not.find(region, [shown.found for shown in runs])
    if found is None:
        raise NotShown(f"{region or 'The training step'} is compiled, or was not run: use Run compiled first.")
    return {"name": found.name, "page": why_not.page([found])}


def _page(shown: Shown) -> str:
    # Imported on first use, so that the server starts faster.
    from lsp_server.formats.html import page
    from lsp_server.formats.view import View

    found = shown.found
    findings = merged(finding for finding, _ in found.shown())
    entrypoint = shown.run.target.entrypoint if shown.run else shown.label
    steps = shown.run.step if shown.run else 0
    report = Report(
        entrypoint,
        list(found.regions.values()),
        findings,
        steps=steps,
        details=found.details,
        kernels=found.kernels,
        why_not=found.why_not,
    )
    own = path_of(found.uri)
    base = Path(own).parent if own else Path.cwd()
    return page.text(report, View(base=base, docs_url=found.docs_url, selection=found.selection))


def _entrypoints(params: Mapping[str, Any]) -> list[Json]:
    """The ``[[tool.magpy.entrypoints]]`` that apply to a file or folder."""
    path = path_of(str(params.get("uri")))
    if path is None:
        return []
    start = Path(path) if Path(path).is_dir() else Path(path).parent
    try:
        loaded = load_for(start)
    except ConfigError as error:
        raise NotShown(f"{error.problems[0].file.name}:{error.problems[0].line}: {error.problems[0].sentence}") from None
    folder = str(loaded.file.parent) if loaded.file else str(start)
    return [
        {
            "name": e.name, "program": e.program, "module": e.module, "args": list(e.args), "env": dict(e.env),
            "cwd": e.cwd, "python": e.python, "steps": e.steps, "nproc": e.nproc, "folder": folder,
        }
        for e in loaded.settings.entrypoints
    ]  # fmt: skip

"""MagPy and torch.compile side by side, per region (``check --engine both``). Key functions: compared, table, rows, data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from lsp_server.formats.run_table import ms
from lsp_server.formats.view import View, clean
from magpy_core.findings import RegionSummary, Report

NAMES = {"magpy": "MagPy", "dynamo": "torch.compile"}
HEAD = ("graphs", "breaks", "recompiles", "guards", "guards µs", "compile s", "call ms")
NOTE = (
    "graphs: operator graphs per call. call ms: median of a compiled call. MagPy and torch.compile ran in two processes, "
    "one after the other."
)
_NOT_MEASURED = "-"


@dataclass
class Pair:
    """One region of the program, and its figures for each engine."""

    region: RegionSummary
    engines: dict[str, RegionSummary] = field(default_factory=dict)

    @property
    def eager_ms(self) -> float | None:
        return next((r.eager_ms for r in self.engines.values() if r.eager_ms is not None), None)


def compared(report: Report) -> bool:
    """Whether the report has regions of more than one engine."""
    return len({region.engine for region in report.regions}) > 1


def pairs(report: Report) -> list[Pair]:
    """Matches the regions of the engines; discovery gives a region the same name under each engine."""
    found: dict[tuple[str, str, str, str, int], Pair] = {}
    for region in report.regions:
        key = (region.entrypoint, region.kind, region.name, region.file, region.line)
        found.setdefault(key, Pair(region)).engines[region.engine] = region
    return list(found.values())


def rows(pair: Pair) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The name of an engine, and its figures in the order of ``HEAD``; the time of eager mode comes first."""
    if pair.eager_ms is not None:
        yield "eager mode", (*("" for _ in HEAD[:-1]), ms(pair.eager_ms))
    for engine, name in NAMES.items():
        region = pair.engines.get(engine)
        if region is None:
            yield name, tuple(_NOT_MEASURED for _ in HEAD)
            continue
        guard_us = region.guard_ms * 1e3 if region.guard_ms is not None else None
        counts = (region.graphs, region.graph_breaks, len(region.recompiles), region.guards)
        times = (_number(guard_us, 1), _number(region.compile_s, 2), ms(region.compiled_ms))
        yield name, (*map(str, counts), *times)


def table(report: Report, view: View) -> Table:
    """A table that fits 80 columns: a region has a separate line, and its engines are the lines below it."""
    shown = Table(box=box.SIMPLE_HEAD, title="MagPy and torch.compile", title_justify="left", pad_edge=False, padding=0)
    shown.add_column("region", overflow="fold", min_width=15)
    for name in ("graphs", "breaks", "recom-\npiles", "guards", "guards\nµs", "compile\ns", "call\nms"):
        shown.add_column(name, justify="right", no_wrap=True)
    for pair in pairs(report):
        region = pair.region
        program = f" in {clean(region.entrypoint)}" if region.entrypoint else ""
        where = f"{view.path(region.file)}:{region.line}" if region.file and region.line else ""
        shown.add_row(Text.assemble((clean(region.name), "bold"), f" {where}".rstrip() + program))
        figures = list(rows(pair))
        for n, (name, cells) in enumerate(figures):
            shown.add_row(f"  {name}", *cells, end_section=n + 1 == len(figures))
    return shown


def data(report: Report) -> list[dict[str, Any]]:
    """For the JSON format."""
    return [
        {
            "kind": pair.region.kind,
            "name": pair.region.name,
            "file": pair.region.file,
            "line": pair.region.line,
            "entrypoint": pair.region.entrypoint,
            "eager_ms": pair.eager_ms,
            "engines": {engine: _figures(region) for engine, region in pair.engines.items()},
        }
        for pair in pairs(report)
    ]


def _figures(region: RegionSummary) -> dict[str, Any]:
    return {
        "region": region.id,
        "calls": region.calls,
        "graphs": region.graphs,
        "graph_breaks": region.graph_breaks,
        "recompiles": len(region.recompiles),
        "guards": region.guards,
        "guard_ms": region.guard_ms,
        "compile_s": region.compile_s,
        "compiled_ms": region.compiled_ms,
    }


def _number(value: float | None, digits: int) -> str:
    return _NOT_MEASURED if value is None else f"{value:,.{digits}f}"

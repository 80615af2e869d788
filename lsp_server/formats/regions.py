"""One summary line per region, and the lines of totals. Key functions: lines, totals, stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from rich.text import Text

from lsp_server.formats.kernels import of_region
from lsp_server.formats.view import STYLES, View, clean, count
from magpy_core.findings import RegionSummary, Report, Severity

_NOT_RECORDED = ("costly", "budget")  # in so short a run


def lines(report: Report, view: View) -> Iterator[Text]:
    yield from each(report, view, _line)


def each(report: Report, view: View, line: Callable[[RegionSummary, View], Text]) -> Iterator[Text]:
    """``line`` of each region, and what it launches on a target."""
    if not report.regions:
        yield Text("No region was monitored.")
    for region in report.regions:
        yield line(region, view)
        if report.kernels is not None:
            yield from of_region(region, report.kernels)


def _line(region: RegionSummary, view: View) -> Text:
    state = ("complete graph", "green") if region.complete else ("incomplete graph", "yellow")
    if not region.captures:
        state = ("no graph", "yellow")
    text = Text.assemble("Region ", (clean(region.name), "bold"), f" ({clean(region.kind)})")
    if region.file:
        text.append(f" at {view.path(region.file)}" + (f":{region.line}" if region.line else ""))
    text.append(f" in {clean(region.entrypoint)}" if region.entrypoint else "")
    captures = f"{count(region.captures, 'capture')}, "
    if region.engine == "dynamo":
        recompiles = f", {count(len(region.recompiles), 'recompile')}" if region.recompiles else ""
        captures = f"torch.compile traced {count(region.captures, 'graph')}{recompiles}, "
    text.append(f": {count(region.calls, 'call')}, {captures}")
    text.append(*state)
    time = f" ({region.guard_ms * 1e3:,.0f} µs)" if region.guard_ms is not None else ""
    text.append(f", {count(region.graph_breaks, 'graph break')}, {count(region.guards, 'guard')}{time}")
    if region.engine == "magpy":
        text.append(f", {count(region.side_effects, 'side effect')}")
    return text


def stopped(steps: int) -> str:
    """What a report says of a program that was stopped after ``steps``."""
    return f"The program was stopped after {count(steps, 'step')} (`--steps`; 0 runs it to its end)."


def totals(report: Report, view: View) -> Iterator[Text]:
    """``Found 3 findings (1 warning, 2 hints) in 2 files; 1 suppressed, 4 in the baseline.``, and where the facts are."""
    shown = view.shown(report.findings)
    if not shown:
        text = Text("No new findings" if view.known else "No findings", "green")
    else:
        by_severity = Counter(f.severity for f in shown)
        worst = min(by_severity, key=lambda s: s.rank)
        parts = ", ".join(count(by_severity[s], s.value) for s in Severity if by_severity[s])
        files = len({f.location.file for f in shown})
        text = Text("Found ")
        text.append(count(len(shown), "finding"), STYLES[worst])
        text.append(f" ({parts}) in {count(files, 'file')}")
    hidden = [f"{view.suppressed} suppressed"] if view.suppressed else []
    hidden += [f"{view.known} in the baseline"] if view.known else []
    text.append(f"; {', '.join(hidden)}." if hidden else ".", "default")
    yield text
    if names := [clean(region.name) for region in report.regions if not region.captures and region.unused in _NOT_RECORDED]:
        what = f"{names[0]} and {len(names) - 1} more were" if len(names) > 1 else f"{names[0]} was"
        yield Text(f"{what} not recorded, so the run looked for no findings there: `magpy-lsp check` does.")
    if report.stopped_after is not None:
        yield Text(stopped(report.stopped_after))
    if facts := len(report.findings) - len(shown):
        need, them = ("needs", "it") if facts == 1 else ("need", "them")
        yield Text(f"{count(facts, 'fact')} that {need} no action: `--details` shows {them}.", "dim")

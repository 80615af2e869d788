"""The table of ``magpy-lsp run``: for each region eager and compiled times, captures, and causes of recompiles.

Key functions: table, recompiles, total.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.table import Table
from rich.text import Text

from lsp_server.formats.view import View, clean, count, first_line, shorten
from magpy_core.findings import Report

_SHOWN = 8
_NOT_MEASURED = "-"


def table(report: Report, view: View) -> Table:
    shown = Table(
        box=box.SIMPLE_HEAD,
        title="Regions: eager and compiled",
        title_justify="left",
        pad_edge=False,
        padding=0,
    )
    shown.add_column("region", overflow="fold", min_width=12)
    # headings have two lines, so that the table fits in 80 columns
    for name in ("calls", "eager\nms", "compiled\nms", "guards\nms", "speedup", "captures", "recompiles", "after\nstep 3"):
        shown.add_column(name, justify="right", no_wrap=True)
    for region in report.regions:
        program = f" in {clean(region.entrypoint)}" if region.entrypoint else ""
        where = f"{view.path(region.file)}:{region.line}" if region.file and region.line else ""
        shown.add_row(
            Text.assemble((clean(region.name), "bold"), f" {where}".rstrip() + program),
            f"{region.calls:,}",
            ms(region.eager_ms),
            ms(region.compiled_ms),
            ms(region.guard_ms),
            _speedup(region.shown_speedup),
            str(region.captures),
            str(len(region.recompiles)),
            Text(str(region.captures_after_step_3), "yellow" if region.captures_after_step_3 else ""),
        )
    return shown


def recompiles(report: Report, view: View) -> Iterator[Text]:
    """Why each region was captured again: the access path of the value, its old and its new value."""
    for region in report.regions:
        if not region.recompiles:
            continue
        yield Text(f"Recompiles of {clean(region.name)}:", "bold")
        for one in region.recompiles[:_SHOWN]:
            text = Text(f"  call {one.call}: ")
            text.append(first_line(one.name), "bold")
            text.append(f" {shorten(first_line(one.old), 60)} -> {shorten(first_line(one.new), 60)}")
            if one.file:
                text.append(f" (read at {view.path(one.file)}" + (f":{one.line})" if one.line else ")"), "dim")
            yield text
        if len(region.recompiles) > _SHOWN:
            yield Text(f"  and {len(region.recompiles) - _SHOWN} more")


def total(report: Report) -> Text:
    """Total times over the regions with a certain difference, if no step was measured, and whether a steady state was
    reached."""
    text = Text("Total: ", "bold")
    text.append(f"{count(len(report.regions), 'region')}, {count(sum(r.calls for r in report.regions), 'call')}", "default")
    if report.step is None or report.step.verdict == "unmeasured":  # otherwise the line of the step says it
        measured = [
            (r.calls * r.eager_ms, r.calls * r.compiled_ms)
            for r in report.regions
            if r.shown_speedup is not None and r.eager_ms is not None and r.compiled_ms is not None
        ]
        eager, compiled = (sum(times) for times in zip(*measured, strict=True)) if measured else (0.0, 0.0)
        lost = report.step is not None and (report.step.saved_s or 0.0) < 0.0
        if compiled > 0 and not lost:
            text.append(f", {eager:,.0f} ms eager / {compiled:,.0f} ms compiled = ", "default")
            text.append(_speedup(eager / compiled))
        elif not measured and any(r.speedup is not None for r in report.regions):
            text.append(", no certain difference in times", "default")
    if seconds := sum(r.compile_s or 0.0 for r in report.regions):
        text.append(f", {seconds:,.1f} s compiling", "default")
    late = sum(r.captures_after_step_3 for r in report.regions)
    text.append(f", {count(late, 'recompile') if late else 'no recompiles'} after step 3.", "default")
    return text


def ms(value: float | None) -> str:
    if value is None:
        return _NOT_MEASURED
    return f"{value:,.3f}" if value < 10 else f"{value:,.1f}"


def _speedup(value: float | None) -> Text:
    if value is None:
        return Text(_NOT_MEASURED)
    return Text(f"{value:.2f}x", "green" if value >= 1.0 else "red")

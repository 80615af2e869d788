"""Writes a report to stdout and to files, in every requested format. Key names: publish, ToolError."""

from __future__ import annotations

import io
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from lsp_server.cli.console import console, show, show_table
from lsp_server.cli.outputs import Output
from lsp_server.cli.settings import ResolvedSettings
from lsp_server.formats import (
    brief,
    concise,
    engines,
    full,
    github,
    regions,
    run_table,
    statistics,
    step_table,
    verified,
    why_not,
)
from lsp_server.formats.documents import DOCUMENTS
from lsp_server.formats.view import View
from magpy_core.findings import Report


class ToolError(click.ClickException):
    """A failure of something other than the program; the message is one sentence."""

    exit_code = 2


def publish(effective: ResolvedSettings, report: Report, view: View) -> None:
    """Writes the files first, so that they exist even if stdout fails (usually a closed pipe)."""
    for output in effective.outputs.files:
        _write_file(output, effective, report, view)
    if effective.html is not None:
        _write_page(effective.html, report, view)
    stdout = effective.outputs.stdout
    if effective.outputs.document_on_stdout:
        assert stdout is not None
        sys.stdout.write(DOCUMENTS[stdout](report, view))
        sys.stdout.flush()
        if effective.statistics:
            show(console(sys.stderr, effective.color), statistics.lines(report))
    else:
        out = console(sys.stdout, effective.color)
        if stdout is not None:
            view.width = out.width
            _findings(out, stdout, effective, report, view)
        _summary(out, effective, report, view)
    if effective.html is not None:
        click.echo(f"magpy-lsp: the page is {effective.html / 'index.html'}.", err=True)
    for output in effective.outputs.files:
        click.echo(f"magpy-lsp: the {output.format} report is in {output.path}.", err=True)


def _write_page(folder: Path, report: Report, view: View) -> None:
    import json

    from lsp_server.formats.html import page, timeline

    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "index.html").write_text(page.text(report, view), encoding="utf-8", errors="replace")
        (folder / "trace.json").write_text(json.dumps(timeline.chrome_trace(report)), encoding="utf-8")
    except OSError as error:
        raise ToolError(f"The page can't be written to {folder}: {error.strerror or error}.") from None


def _write_file(output: Output, effective: ResolvedSettings, report: Report, view: View) -> None:
    if output.format in DOCUMENTS:
        text = DOCUMENTS[output.format](report, view)
    else:
        with closing(io.StringIO()) as buffer:
            plain = console(buffer, "never")
            _findings(plain, output.format, effective, report, view)
            _summary(plain, effective, report, view)
            text = buffer.getvalue()
    try:
        output.path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise ToolError(f"The report can't be written to {output.path}: {error.strerror or error}.") from None


def _findings(out: Console, form: str, effective: ResolvedSettings, report: Report, view: View) -> None:
    shown = replace(report, findings=view.shown(report.findings))
    show(out, {"full": full, "concise": concise, "github": github}[form].lines(shown, view))


def _uncompiled(out: Console, report: Report, view: View) -> None:
    """What is not compiled, and why."""
    found = why_not.of_report(report)
    out.print()
    if why_not.by_weight(found):
        out.print(f"{why_not.TITLE} (`magpy-lsp explain-run` shows this again):", style="bold")
    show(out, why_not.lines(found, view))
    out.print()


def _summary(out: Console, effective: ResolvedSettings, report: Report, view: View) -> None:
    if engines.compared(report):
        show_table(out, engines.table(report, view))
        out.print(engines.NOTE, style="dim")
    elif effective.mode == "run" and report.regions:
        for block in step_table.blocks(report, view.programs):
            show_table(out, block)
        show_table(out, run_table.table(report, view))
        if (of_verification := verified.table(report)) is not None:
            show_table(out, of_verification)
        elif said := verified.numerics(report):
            out.print(said, style="dim")
        show(out, run_table.recompiles(report, view))
        show(out, [run_table.total(report)])
        _uncompiled(out, report, view)
    else:
        show(out, (regions if view.in_detail else brief).lines(report, view))
    show(out, regions.totals(report, view))
    if effective.statistics:
        show(out, statistics.lines(report))

"""``magpy-lsp kernels``: the kernels of a program on a device that it is compiled for.

Key functions: kernels, settings_of.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from lsp_server.cli.console import console, show, show_table
from lsp_server.cli.follow import Finished, Launch, Runs
from lsp_server.cli.next_command import next_commands
from lsp_server.cli.outputs import Outputs
from lsp_server.cli.program import INTERRUPTED, launch_run
from lsp_server.cli.settings import ResolvedSettings, resolve
from lsp_server.formats import kernel_lines, kernels_json
from lsp_server.formats import kernels as formats
from lsp_server.formats.view import View, clean
from magpy_core.findings import KernelLine, Report, TargetReport

_WITH_LINE = re.compile(r"(.+):(\d+)$")

#: The settings of `check` that don't apply.
_UNUSED: dict[str, Any] = {
    "backend": "eager", "baseline": None, "details": False, "exit_zero": True, "fail_on": None, "formats": (), "html": None,
    "ignore": None, "jobs": None, "nproc": None, "output": None, "select": None, "statistics": False,
    "update_baseline": False, "usual_target": "cuda:sm_90",
}  # fmt: skip


def kernels(args: list[str], options: Mapping[str, Any], launch: Launch = launch_run) -> int:
    """Runs the program and prints its kernels; returns the exit status."""
    effective, line = settings_of(args, options)
    as_json = options["output_format"] == "json"
    (run,) = Runs([effective], launch).follow()
    if status := _failed(run):
        return status
    report = run.outcome.report.kernels
    if report is None:
        for text in why_none(run.outcome.report):
            click.echo(f"magpy-lsp: {clean(text)}", err=True)
        return 2
    if line is not None:
        report = only(report, *line)
        if not report.kernels:
            click.echo(f"magpy-lsp: {no_kernel(run.outcome.report.kernels, *line)}", err=True)
            for problem in report.problems:
                click.echo(f"magpy-lsp: {clean(problem.region)} is not listed: {clean(problem.message)}", err=True)
            return 2
    if as_json:
        sys.stdout.write(json.dumps(kernels_json.data(report, View(), ptx=True), indent=2) + "\n")
        return 0
    _show(effective, run, report, with_source=line is not None)
    return 0 if report.kernels or not report.problems else 2


def settings_of(args: list[str], options: Mapping[str, Any]) -> tuple[ResolvedSettings, tuple[str, int] | None]:
    """The settings of the program's run, and the file and line whose kernels are wanted, if not all."""
    entrypoint, line = _split(options["entrypoint"], options["line"])
    given = {**_UNUSED, **options, "entrypoint": entrypoint, "steps": _steps(options), "target_line": line}
    settings = resolve("check", args, given)
    if len(settings) > 1:
        raise click.UsageError("Name one entrypoint: `kernels` shows one program.")
    return replace(settings[0], outputs=Outputs("json")), line  # the program's output goes to stderr


def why_none(report: Report) -> list[str]:
    """Why a report has no kernels."""
    failures = [finding.message for finding in report.findings if finding.code in ("MP901", "MP904")]
    return failures or ["The program ended before its graphs could be compiled for the target."]


def _steps(options: Mapping[str, Any]) -> int:
    """Two: enough for a capture of each region, and few, because the steps run in eager mode."""
    return 2 if options["steps"] is None else int(options["steps"])


def _split(entrypoint: str | None, line: str | None) -> tuple[str | None, tuple[str, int] | None]:
    """The entrypoint, and file and line of ``train.py:12`` or ``--line``; the file may be the end of a path."""
    if line is not None:
        if (match := _WITH_LINE.match(line)) is None:
            raise click.BadParameter(f"{line!r} is not FILE:LINE, as in model.py:36.", param_hint="--line")
        return entrypoint, (match[1], int(match[2]))
    if entrypoint is not None and not os.path.exists(entrypoint) and (match := _WITH_LINE.match(entrypoint)):
        return match[1], (os.path.abspath(match[1]), int(match[2]))
    return entrypoint, None


def _failed(run: Finished) -> int:
    """The exit status if the program or the tool failed, with the reason on stderr; else 0."""
    if run.interrupted:
        return INTERRUPTED
    if run.outcome.message and run.outcome.kind != "ok":
        click.echo(f"magpy-lsp: {clean(run.outcome.message)}", err=True)
    for sentence in next_commands([run]):
        click.echo(f"magpy-lsp: {clean(sentence)}", err=True)
    return run.outcome.cli_exit_code


def only(report: TargetReport, file: str, line: int) -> TargetReport:
    """The kernels of one line. ``file``: an absolute path or the end of one."""
    found = [kernel for kernel in report.kernels if any(at.is_at(file, line) for at in kernel.lines)]
    costs = [cost for cost in report.lines if KernelLine(cost.file, cost.line).is_at(file, line)]
    pairs = [pair for pair in report.unfused if pair.written.is_at(file, line) or pair.read.is_at(file, line)]
    return replace(report, kernels=found, graphs=[], unfused=pairs, lines=costs)  # a graph has other kernels, too


def no_kernel(report: TargetReport | None, file: str, line: int) -> str:
    """Says that a line has none, and which lines have."""
    known = report.kernels if report is not None else []
    name = os.path.basename(file)
    lines = sorted({at.line for kernel in known for at in kernel.lines if os.path.basename(at.file) == name})
    has = f"kernels compute something of lines {formats.ranges(lines)}" if lines else f"no line of {name} has one"
    return clean(f"no kernel computes anything of {name}:{line}; {has}.")


def _show(effective: ResolvedSettings, run: Finished, report: TargetReport, *, with_source: bool) -> None:
    out = console(sys.stdout, effective.color)
    view = View(width=out.width)
    regions = {region.id: region for region in run.outcome.report.regions}
    show(out, formats.heading(effective.title, report))
    for block in formats.tables(report, regions, view):
        show_table(out, block)
    if with_source:
        show(out, formats.sources(report, view, colored=out.color_system is not None))
    elif report.lines:
        show_table(out, kernel_lines.table(report, view))
    show(out, formats.notes(report, view))

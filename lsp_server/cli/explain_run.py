"""``magpy-lsp explain-run``: why parts of a run are not compiled. Key function: explain_run."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from lsp_server.cli.console import console, show
from lsp_server.cli.follow import Finished, Launch, Runs
from lsp_server.cli.last_run import find, keep
from lsp_server.cli.next_command import next_commands
from lsp_server.cli.outputs import Outputs
from lsp_server.cli.program import INTERRUPTED, launch_run
from lsp_server.cli.publish import ToolError
from lsp_server.cli.settings import resolve
from lsp_server.formats import why_not
from lsp_server.formats.view import View, clean
from magpy_core.findings import Report, WhyNot

#: The settings of `run` that don't apply.
_UNUSED: dict[str, Any] = {
    "backend": None, "baseline": None, "details": False, "exit_zero": True, "fail_on": None, "formats": (), "html": None,
    "ignore": None, "jobs": None, "nproc": None, "output": None, "select": None, "statistics": False,
    "update_baseline": False,
}  # fmt: skip
_NONE = (
    "There is no run to explain: `magpy-lsp run train.py` makes one in this folder, and `magpy-lsp explain-run train.py` "
    "runs and explains a program."
)


def explain_run(args: list[str], options: Mapping[str, Any], launch: Launch = launch_run) -> int:
    """Prints the explanation; returns the exit status."""
    entrypoint = options["entrypoint"]
    if entrypoint is None and options["module"] is None and not args:
        last = find()
        if last is None:
            raise ToolError(_NONE)
        _print([last.report], options, f"{last.command} ({last.at})")
        return 0
    if entrypoint is not None and (entrypoint == "-" or entrypoint.endswith(".json")):
        report = _read(entrypoint)
        _print([report], options, report.entrypoint)
        return 0
    return _run(args, options, launch)


def _run(args: list[str], options: Mapping[str, Any], launch: Launch) -> int:
    settings = resolve("run", args, {**_UNUSED, **options})
    if options["output_format"] == "json":  # stdout is the document's alone
        settings = [replace(one, outputs=Outputs("json")) for one in settings]
    runs = Runs(settings, launch).follow()
    for run in runs:
        _tell(run, alone=len(runs) == 1)
    for sentence in next_commands(runs):
        click.echo(f"magpy-lsp: {clean(sentence)}", err=True)
    if len(runs) == 1 and runs[0].outcome.report.regions:
        keep(settings[0], runs[0].outcome.report)
    _print([run.outcome.report for run in runs], options, ", ".join(one.title for one in settings))
    if any(run.interrupted for run in runs):
        return INTERRUPTED
    return max(run.outcome.cli_exit_code for run in runs)


def _tell(run: Finished, *, alone: bool) -> None:
    """How the run ended, if not by itself."""
    if run.outcome.kind != "ok" and run.outcome.message:
        who = "" if alone else f"{clean(run.effective.title)}: "
        click.echo(f"magpy-lsp: {who}{clean(run.outcome.message)}", err=True)


def _read(file: str) -> Report:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise ToolError(f"{file} can't be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise ToolError(f"{file} is not UTF-8 text: explain-run needs a report of `magpy-lsp run --format json`.") from None
    try:
        return Report.from_json(json.loads(text))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        message = f"{file} is not a report of this MagPy: create it with `magpy-lsp run --format json={file} train.py`."
        raise ToolError(message) from None


def _print(reports: Sequence[Report], options: Mapping[str, Any], title: str) -> None:
    found: list[WhyNot] = [one for report in reports for one in why_not.of_report(report)]
    if options["output_format"] == "json":
        sys.stdout.write(json.dumps([one.to_json() for one in found], indent=2) + "\n")
        return
    out = console(sys.stdout, options["color"])
    out.print(f"{clean(title)}:", style="bold", soft_wrap=True)
    if not found:
        out.print("No model and no optimizer was called that MagPy could compile.", soft_wrap=True)
    show(out, why_not.lines(found, View(), in_full=True))

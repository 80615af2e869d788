"""``check`` and ``run``: start the program, follow it, report, settle the exit status. Key functions: execute, exit_status.

The report goes to stdout after the program has ended, so it never stands between the program's own lines. What the
tool says about itself (progress, errors) goes to stderr.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from types import FrameType
from typing import Literal, Protocol

import click

from lsp_server.budgets import judge, unknown_regions
from lsp_server.cli import known
from lsp_server.cli.publish import publish
from lsp_server.cli.settings import Effective
from lsp_server.formats.view import View, clean
from lsp_server.selection import Selected, apply
from magpy_core.findings import Finding, Report, Severity
from magpy_core.runner.protocol import Message
from magpy_core.runner.request import Outcome, RunRequest

INTERRUPTED = 130


class Handle(Protocol):
    """A run under way: iterating gives its messages until it ends; then ``outcome`` is there."""

    def __iter__(self) -> Iterator[Message]: ...
    def interrupt(self) -> None: ...
    def cancel(self) -> None: ...
    @property
    def outcome(self) -> Outcome: ...


def _launch(request: RunRequest) -> Handle:
    from magpy_core.runner.launch import launch

    return launch(request)


def execute(effective: Effective, launch: Callable[[RunRequest], Handle] = _launch) -> int:
    """Runs the program and reports; returns the exit status."""
    baseline = known.open_baseline(effective)
    stdout: Literal["stderr", "inherit"] = "stderr" if effective.outputs.document_on_stdout else "inherit"
    outcome, interrupted = _follow(launch(effective.request(stdout=stdout)))
    outcome = _with_budgets(effective, outcome, interrupted)
    view = View(fail_on=effective.fail_on)
    selected = _select(effective, outcome, interrupted, view)
    view.suppressed = selected.suppressed
    whole = outcome.kind == "ok" and not interrupted
    findings = known.settle(effective, baseline, selected.findings, view, whole=whole)
    report = replace(outcome.report, findings=findings)
    _say_how_it_ended(effective, outcome, report, interrupted)
    if not _pointless(effective, outcome):
        publish(effective, report, view)
    return INTERRUPTED if interrupted else exit_status(outcome, findings, effective.fail_on, effective.exit_zero)


def _with_budgets(effective: Effective, outcome: Outcome, interrupted: bool) -> Outcome:
    """Adds the findings of broken budgets, before selection and comments, which count for them as for any other."""
    report, budgets = outcome.report, effective.budgets
    found = judge(report, budgets, compiled=effective.mode == "run" and not interrupted)
    if outcome.kind == "ok" and not interrupted and effective.config_file is not None:
        found += unknown_regions(report, budgets, str(effective.config_file), effective.region_lines)
    return replace(outcome, report=replace(report, findings=[*report.findings, *found]))


def _pointless(effective: Effective, outcome: Outcome) -> bool:
    """Nothing was run, so there is nothing to say beyond why. A reader of a document still gets one."""
    nothing_ran = outcome.kind in ("bad-entrypoint", "tool-error") and not outcome.report.regions
    return nothing_ran and not effective.outputs.document_on_stdout and not effective.outputs.files


def exit_status(outcome: Outcome, findings: Iterable[Finding], fail_on: Severity, exit_zero: bool) -> int:
    """0 no findings at or above ``fail_on`` / 1 findings / 2 usage or tool error / 3 the program failed / 130 interrupted.

    ``exit_zero`` is about findings only: it never hides that the tool or the program failed.
    """
    if outcome.cli_exit_code:
        return outcome.cli_exit_code
    bad = any(f.severity.rank <= fail_on.rank for f in findings)
    return 1 if bad and not exit_zero else 0


def _follow(handle: Handle) -> tuple[Outcome, bool]:
    """Waits for the end; returns the outcome and whether the user pressed Ctrl-C.

    The first Ctrl-C is passed on, so that the program ends as it would without us; the second one ends it for good.
    """
    presses = 0

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal presses
        presses += 1
        # On a thread: the handle's lock may be held by the very code this handler interrupts.
        threading.Thread(target=handle.interrupt if presses == 1 else handle.cancel, daemon=True).start()

    progress = sys.stderr.isatty()
    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        for message in handle:
            if progress and message["type"] == "progress":
                click.echo(f"magpy-lsp: {clean(message['text'])}", err=True)
        return handle.outcome, presses > 0
    finally:
        signal.signal(signal.SIGINT, before)


def _select(effective: Effective, outcome: Outcome, interrupted: bool, view: View) -> Selected:
    """Applies settings and comments. A run that was cut short says nothing about comments it did not come to."""
    files = {r.file for r in outcome.report.regions if r.file and not r.file.startswith("<")}
    if effective.script is not None:
        files.add(os.path.abspath(os.path.join(effective.cwd or "", effective.script)))
    whole = outcome.kind == "ok" and not interrupted
    return apply(outcome.report.findings, effective.selection, view.sources, files=files, flag_unused=whole)


def _say_how_it_ended(effective: Effective, outcome: Outcome, report: Report, interrupted: bool) -> None:
    """On stderr, unless the report that follows on stdout says it as a finding."""
    if interrupted:
        click.echo("magpy-lsp: interrupted; what was found until then follows.", err=True)
        return
    to_stdout = effective.outputs.stdout in ("full", "concise")
    shown = to_stdout and not _pointless(effective, outcome)
    if outcome.message and not (shown and any(f.message == outcome.message for f in report.findings)):
        click.echo(f"magpy-lsp: {clean(outcome.message)}", err=True)

"""``magpy-lsp verify``: a program's compiled run beside eager ones. Key function: verify."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from lsp_server.cli.console import console, show
from lsp_server.cli.outputs import folder
from lsp_server.cli.program import INTERRUPTED
from lsp_server.cli.settings import ResolvedSettings, resolve
from lsp_server.formats import run_verdict
from lsp_server.formats.view import clean
from magpy_core.runner.paired_runs import RUNS, JudgeFailed, PairedRuns
from magpy_core.runner.request import Outcome, RunRequest

#: The settings of `run` that don't apply.
_UNUSED: dict[str, Any] = {
    "backend": None, "baseline": None, "compile": "foreground", "details": False, "exit_zero": True, "fail_on": None,
    "formats": (), "html": None, "ignore": None, "jobs": None, "nproc": None, "output": None, "select": None,
    "statistics": False, "update_baseline": False, "live": False,
}  # fmt: skip
_STATUS = {"equal": 0, "rounding": 0, "differs": 1}


def launch_run(request: RunRequest) -> Any:
    from magpy_core.runner.launch import launch

    return launch(request)


def verify(args: list[str], options: Mapping[str, Any], launch: Callable[[RunRequest], Any] = launch_run) -> int:
    """Makes the runs and prints the verdict; returns the exit status."""
    settings = resolve("run", args, {**_UNUSED, **options})
    if len(settings) > 1:
        raise click.UsageError("Name one entrypoint: `verify` runs one program.")
    effective = settings[0]
    if effective.nproc:
        raise click.UsageError("`verify` compares programs of one process.")
    kept = folder(options["keep"], "--keep")
    base = Path(tempfile.mkdtemp(prefix="magpy-verify-"))
    try:
        request = effective.request(stdin="null")
        seconds = options["origin_seconds"]
        runs = PairedRuns(request, base, launch, copy=not options["in_place"], origin_seconds=seconds)
        status = _print(runs, effective, as_json=options["output_format"] == "json")
        if kept is not None:
            shutil.copytree(base, kept, dirs_exist_ok=True, ignore=shutil.ignore_patterns("before", "work"))
            click.echo(f"magpy-lsp: what the runs have left is in {kept}.", err=True)
        return status
    except KeyboardInterrupt:
        click.echo("magpy-lsp: interrupted; there is no verdict.", err=True)
        return INTERRUPTED
    finally:
        shutil.rmtree(base, ignore_errors=True)


class NoVerdict(Exception):
    """The program could not be run, or its runs not be compared; the message says why."""


def compare(runs: PairedRuns, title: str, tell: Callable[[str], None]) -> dict[str, Any]:
    """Makes the runs, as many as the verdict needs, and gives it as JSON has it. ``tell`` gets which run begins. Raises
    NoVerdict."""
    verdict: dict[str, Any] = {"kind": "nothing", "need": "", "why": ""}
    for kind in ("compiled", "eager"):
        outcome = _made(runs, kind, tell)
        if outcome.kind in ("bad-entrypoint", "tool-error", "cancelled"):
            raise NoVerdict(outcome.message)
    try:
        failed = _failure(runs)
        verdict = {**verdict, "why": failed} if failed else runs.judge()
        while verdict["need"]:
            outcome = _made(runs, verdict["need"], tell)
            if outcome.kind != "ok" and verdict["need"] == "origin":
                break  # the verdict needs no more than the other runs
            if outcome.kind != "ok":
                verdict = {**verdict, "kind": "nothing", "why": f"The run {RUNS[verdict['need']]} failed: {outcome.message}"}
                break
            verdict = runs.judge()
    except JudgeFailed as error:
        raise NoVerdict(str(error)) from None
    return run_verdict.data(title, verdict, runs.outcomes["compiled"].report, runs.why_no_files)


def _print(runs: PairedRuns, effective: ResolvedSettings, *, as_json: bool) -> int:
    try:
        document = compare(runs, effective.title, lambda text: click.echo(f"magpy-lsp: {text} ...", err=True))
    except NoVerdict as error:
        click.echo(f"magpy-lsp: {clean(str(error))}", err=True)
        return 2
    if as_json:
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        show(console(sys.stdout, effective.color), run_verdict.lines(document))
    return max(_STATUS.get(document["verdict"], 2), 1 if document["dropped_code"] else 0)


def _made(runs: PairedRuns, kind: str, tell: Callable[[str], None]) -> Outcome:
    tell(f"run {len(runs.outcomes) + 1}: {RUNS[kind]}")
    return runs.run(kind)


def _failure(runs: PairedRuns) -> str:
    """Which run failed, and how."""
    compiled, eager = runs.outcomes["compiled"], runs.outcomes["eager"]
    if eager.kind != "ok":
        return f"The program failed in eager mode: {eager.message}"
    if compiled.kind != "ok":
        return f"The compiled run failed, and the one in eager mode did not: {compiled.message}"
    return ""

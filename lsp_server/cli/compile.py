"""``magpy-lsp compile``: compiles a program's code ahead of time, for a later ``run``. Key function: compile_ahead."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping
from typing import Any

import click

from lsp_server.cli.follow import Finished, Handle, Launch, Runs
from lsp_server.cli.live import is_possible
from lsp_server.cli.next_command import next_commands
from lsp_server.cli.program import INTERRUPTED, launch_run
from lsp_server.cli.settings import ResolvedSettings, resolve
from lsp_server.formats.view import clean, count
from magpy_core.findings import Report
from magpy_core.runner import compiled_code
from magpy_core.runner.protocol import Message
from magpy_core.runner.request import Outcome, RunRequest

_STEPS = 24  # as many as it takes until regions that are cut, or take several paths, have settled
_NOT_KEPT = "MP405"
_NOT_COMPILED = ("MP902", "MP915", "MP916")

#: The settings of `run` that don't apply.
_UNUSED: dict[str, Any] = {
    "backend": None, "baseline": None, "compile": "ahead", "details": False, "exit_zero": True, "fail_on": None,
    "formats": (), "html": None, "ignore": None, "jobs": None, "nproc": None, "output": None, "select": None,
    "statistics": False, "update_baseline": False,
}  # fmt: skip


def compile_ahead(args: list[str], options: Mapping[str, Any], launch: Launch = launch_run) -> int:
    """Runs the program's first steps, compiling all that a run would compile; returns the exit status."""
    steps = _STEPS if options["steps"] is None else options["steps"]
    settings = resolve("run", args, {**_UNUSED, **options, "steps": steps})
    if len(settings) > 1:
        raise click.UsageError("Name one entrypoint: `compile` runs one program.")
    if settings[0].backend != "inductor" or settings[0].compile_mode == "quick":
        what = "mode quick" if settings[0].compile_mode == "quick" else f"backend {settings[0].backend}"
        raise click.UsageError(f"There is nothing to compile ahead of time: a run with {what} compiles nothing.")
    followed = _Followed(launch, says=not is_possible(settings[0]))
    (run,) = Runs(settings, followed.launch).follow()
    if run.interrupted:
        click.echo("magpy-lsp: interrupted; what was compiled before is stored.", err=True)
        return INTERRUPTED
    report, status = run.outcome.report, run.outcome.cli_exit_code
    failures = _messages(report, *_NOT_COMPILED)
    compiled = max(followed.graphs - len(failures), 0)
    for text in [*failures, *([run.outcome.message] if status else []), *next_commands([run])]:
        click.echo(f"magpy-lsp: {clean(text)}", err=True)
    if status:
        if compiled:
            click.echo(f"magpy-lsp: {count(compiled, 'graph')} had been compiled by then, and can be used.", err=True)
        return status
    if lost := _messages(report, _NOT_KEPT):
        click.echo(f"magpy-lsp: {clean(lost[0])}", err=True)
        return 2
    again = _command("run", settings[0], options, args)
    if not compiled and not any(region.hits for region in report.regions):
        click.echo(f"magpy-lsp: {_why_nothing(report)}", err=True)
        click.echo(f"magpy-lsp: `{_command('check', settings[0], options, args)}` says more.", err=True)
        return 2
    for line in (_done(run, compiled, followed.seconds), f"Next: {again}    # loads the compiled code"):
        click.echo(line)
    return 0


class _Followed:
    """Runs with another ``launch``, and notes what is compiled. ``says``: says it on stderr, because no panel does."""

    def __init__(self, launch: Launch, *, says: bool) -> None:
        self._launch, self._says = launch, says
        self._since: float | None = None
        self.graphs, self.seconds = 0, 0.0

    def launch(self, request: RunRequest, nproc: int) -> Handle:
        return _Noting(self._launch(request, nproc), self)

    def take(self, message: Message) -> None:
        if message["type"] != "compiling":
            return
        now, running = time.monotonic(), message["running"]
        if self._since is not None:
            self.seconds, self._since = self.seconds + now - self._since, None
        if running:
            self.graphs, self._since = self.graphs + 1, now
            if self._says:
                click.echo(f"magpy-lsp: compiling {clean(', '.join(map(str, running)))} ...", err=True)


class _Noting:
    """A handle whose messages are noted."""

    def __init__(self, handle: Handle, notes: _Followed) -> None:
        self._handle, self._notes = handle, notes

    def __iter__(self) -> Iterator[Message]:
        for message in self._handle:
            self._notes.take(message)
            yield message

    def interrupt(self) -> None:
        self._handle.interrupt()

    def cancel(self) -> None:
        self._handle.cancel()

    def suspend(self) -> None:
        self._handle.suspend()

    def resume(self) -> None:
        self._handle.resume()

    def resized(self) -> None:
        self._handle.resized()

    @property
    def outcome(self) -> Outcome:
        return self._handle.outcome


def _messages(report: Report, *codes: str) -> list[str]:
    return [finding.message for finding in report.findings if finding.code in codes]


def _done(run: Finished, compiled: int, seconds: float) -> str:
    report, folder = run.outcome.report, compiled_code.folder_in_use()
    steps = count(report.steps, "step")
    ended = f"in {steps}" if report.stopped_after is not None else f"in {steps}, after which the program ended"
    if not compiled:
        return f"Nothing was left to compile {ended}: the code is in {folder} already."
    return f"Compiled {count(compiled, 'graph')} in {seconds:.1f} s, {ended}. The code is in {folder}."


def _why_nothing(report: Report) -> str:
    if not report.regions:
        return "nothing was compiled: the program calls no module and no optimizer of torch more than once."
    if not report.steps:
        return "nothing was compiled: the program ended before its first training step."
    return f"nothing was compiled in {count(report.steps, 'step')}: no call of a module or an optimizer can be."


def _command(name: str, settings: ResolvedSettings, options: Mapping[str, Any], args: list[str]) -> str:
    """The command that does ``name`` with the same program."""
    given = [("--python", options["python"]), ("--cwd", options["cwd"]), ("-m", options["module"])]
    if name == "run" and options["mode"] is not None:
        given.insert(0, ("--mode", options["mode"]))
    words = [word for option, value in given if value is not None for word in (option, str(value))]
    program = [] if options["entrypoint"] is None else [str(options["entrypoint"])]
    return shlex.join(["magpy-lsp", name, *words, *program, *args])

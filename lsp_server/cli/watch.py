"""``--watch``: run, report, wait for a change of the program's files, run again, until Ctrl-C. Key function: watch.

What is watched: Python files and ``pyproject.toml`` below the folders of the scripts, of the configuration and of every
file that the last report names, without installed packages and hidden folders. A change during a run ends that run: its
findings would be those of the text before.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click
from watchfiles import Change, DefaultFilter
from watchfiles import watch as changes_of

from lsp_server.cli.console import console
from lsp_server.cli.follow import Launch, Runs
from lsp_server.cli.program import INTERRUPTED, launch_run, report_on
from lsp_server.cli.settings import Effective
from lsp_server.formats.view import count, relative

_POLL = 0.2
_LIBRARIES = {"site-packages", "dist-packages"}
_SETTLED_MS = 400  # editors write a file in several steps


class _Filter(DefaultFilter):
    """Python files and the configuration; not what our own reports or the interpreter write."""

    def __call__(self, change: Change, path: str) -> bool:
        name = os.path.basename(path)
        wanted = name.endswith((".py", ".pyi")) or name == "pyproject.toml"
        return wanted and not _LIBRARIES & set(Path(path).parts) and super().__call__(change, path)


class Changes:
    """Changed files, as they come, below ``folders``. A context manager: its thread ends with it."""

    def __init__(self, folders: Sequence[str]) -> None:
        self.folders = folders
        self._found: queue.Queue[set[str]] = queue.Queue()
        self._listening: list[tuple[threading.Thread, threading.Event]] = []

    def _listen(self, folders: Sequence[str], stop: threading.Event) -> None:
        for changes in changes_of(
            *folders,
            watch_filter=_Filter(),
            debounce=_SETTLED_MS,
            stop_event=stop,
            raise_interrupt=False,
            rust_timeout=500,
            yield_on_timeout=False,
        ):
            self._found.put({path for _, path in changes})

    def __enter__(self) -> Changes:
        self._start(self.folders)
        return self

    def _start(self, folders: Sequence[str]) -> None:
        stop = threading.Event()
        thread = threading.Thread(target=self._listen, args=(folders, stop), daemon=True, name="magpy-watch")
        thread.start()
        self._listening.append((thread, stop))

    def follow(self, folders: Sequence[str]) -> None:
        """Watch other folders from now on. New ones are listened to before the old ones are let go, so nothing is lost."""
        if folders != self.folders:
            before, self._listening, self.folders = self._listening, [], folders
            self._start(folders)
            _end(before)

    def __exit__(self, *_: object) -> None:
        _end(self._listening)

    def get(self) -> set[str]:
        """Waits for a change; Ctrl-C raises KeyboardInterrupt."""
        while True:
            try:
                return self._found.get(timeout=_POLL)
            except queue.Empty:
                continue

    def wait_while(self, running: Callable[[], bool]) -> set[str]:
        """Files that changed while ``running``; empty when it ended first."""
        while running():
            try:
                return self._found.get(timeout=_POLL)
            except queue.Empty:
                continue
        return set()


def _end(listening: list[tuple[threading.Thread, threading.Event]]) -> None:
    for _, stop in listening:
        stop.set()
    for thread, _ in listening:
        thread.join(5.0)


def watch(resolve: Callable[[], list[Effective]], launch: Launch = launch_run) -> int:
    """Until Ctrl-C, which is exit status 130; settings are read anew for each run."""
    effectives = resolve()  # a mistake in the options is a mistake, and nothing to wait for
    if effectives[0].outputs.document_on_stdout:
        raise click.UsageError("--watch prints a report after each run: give a document a file, as in `--format json=FILE`.")
    more: set[str] = set()
    changes = Changes(_folders(effectives, more))
    try:
        with changes:
            while True:
                changed, more = _round(effectives, launch, changes, more)
                changes.follow(_folders(effectives, more))
                if not changed:
                    click.echo(f"magpy-lsp: watching {_named(changes.folders)}; Ctrl-C ends.", err=True)
                    changed = changes.get()
                effectives = _again(resolve, changed, effectives)
    except KeyboardInterrupt:
        click.echo("", err=True)
        return INTERRUPTED


def _round(effectives: list[Effective], launch: Launch, changes: Changes, more: set[str]) -> tuple[set[str], set[str]]:
    """One run and its report. Returns what changed meanwhile (then there is no report) and the folders of its files."""
    runs = Runs(effectives, launch)
    done = threading.Event()
    changed: set[str] = set()

    def supersede() -> None:
        if found := changes.wait_while(lambda: not done.is_set()):
            changed.update(found)
            runs.cancel()

    watcher = threading.Thread(target=supersede, daemon=True, name="magpy-supersede")
    watcher.start()
    try:
        finished = runs.follow()
    finally:
        done.set()
        watcher.join()
    if changed:
        return changed, more
    if runs.presses:
        raise KeyboardInterrupt
    report_on(finished)
    files = {r.file for run in finished for r in run.outcome.report.regions}
    files |= {f.location.file for run in finished for f in run.outcome.report.findings}
    return set(), {os.path.dirname(f) for f in files if os.path.isabs(f) and not _LIBRARIES & set(Path(f).parts)}


def _again(resolve: Callable[[], list[Effective]], changed: set[str], before: list[Effective]) -> list[Effective]:
    """The settings for the next run; those of the last one where they are broken just now (it is said why)."""
    if console(sys.stdout, "auto").is_terminal:
        click.clear()
    names = sorted(relative(path, Path.cwd()) for path in changed)
    shown = ", ".join(names[:3]) + (f" and {count(len(names) - 3, 'more file')}" if len(names) > 3 else "")
    click.echo(f"magpy-lsp: {shown} changed.", err=True)
    try:
        return resolve()
    except SystemExit:
        pass  # a mistake in [tool.magpy]: its lines are on stderr
    except click.ClickException as error:
        error.show()
    click.echo("magpy-lsp: the settings can't be used; those of the last run still hold.", err=True)
    return before


def _folders(effectives: Iterable[Effective], more: set[str]) -> list[str]:
    """Without those that are below another one of them."""
    found = set(more)
    for effective in effectives:
        found.add(os.path.abspath(effective.cwd or os.curdir))
        if effective.script is not None:
            found.add(os.path.dirname(os.path.abspath(os.path.join(effective.cwd or "", effective.script))))
        if effective.config_file is not None:
            found.add(str(effective.config_file.parent))
    there = sorted(f for f in found if os.path.isdir(f))
    return [f for f in there if not any(f != other and Path(f).is_relative_to(other) for other in there)]


def _named(folders: Sequence[str]) -> str:
    return folders[0] if len(folders) == 1 else f"{folders[0]} and {count(len(folders) - 1, 'more folder')}"

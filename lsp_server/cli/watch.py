"""``--watch``: run, report, wait for a change of the program's files, run again, until Ctrl-C. Key function: watch.

Watched files: Python files and ``pyproject.toml`` below the folders of the scripts, of the configuration and of every
file in the last report, except installed packages and hidden folders. A change during a run ends that run, since its
findings would be out of date.
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
from lsp_server.cli.settings import ResolvedSettings
from lsp_server.formats.view import count, relative

_POLL = 0.2
_LIBRARIES = {"site-packages", "dist-packages"}
_DEBOUNCE_MS = 400  # editors write a file in several steps


class _Filter(DefaultFilter):
    """Accepts Python files and the configuration, but not our reports or installed packages."""

    def __call__(self, change: Change, path: str) -> bool:
        name = os.path.basename(path)
        wanted = name.endswith((".py", ".pyi")) or name == "pyproject.toml"
        return wanted and not _LIBRARIES & set(Path(path).parts) and super().__call__(change, path)


class Changes:
    """Watches ``folders`` for changed files. A context manager: its thread ends with it."""

    def __init__(self, folders: Sequence[str]) -> None:
        self.folders = folders
        self._found: queue.Queue[set[str]] = queue.Queue()
        self._listening: list[tuple[threading.Thread, threading.Event]] = []

    def _listen(self, folders: Sequence[str], stop: threading.Event) -> None:
        for changes in changes_of(
            *folders,
            watch_filter=_Filter(),
            debounce=_DEBOUNCE_MS,
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
        """Watches other folders from now on. The new watch starts before the old one ends, so no change is lost."""
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
        """Files that changed while ``running``; empty if it ended first."""
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


def watch(resolve: Callable[[], list[ResolvedSettings]], launch: Launch = launch_run) -> int:
    """Runs until Ctrl-C (exit status 130); reads the settings again for each run."""
    effectives = resolve()  # invalid options are an error at once
    if effectives[0].outputs.document_on_stdout:
        raise click.UsageError(
            "--watch prints a report after each run: write a document to a file, as in `--format json=FILE`."
        )
    more: set[str] = set()
    changes = Changes(_folders(effectives, more))
    try:
        with changes:
            while True:
                changed, more = _run_once(effectives, launch, changes, more)
                changes.follow(_folders(effectives, more))
                if not changed:
                    click.echo(f"magpy-lsp: watching {_folder_names(changes.folders)}; press Ctrl-C to stop.", err=True)
                    changed = changes.get()
                effectives = _updated_settings(resolve, changed, effectives)
    except KeyboardInterrupt:
        click.echo("", err=True)
        return INTERRUPTED


def _run_once(
    effectives: list[ResolvedSettings], launch: Launch, changes: Changes, more: set[str]
) -> tuple[set[str], set[str]]:
    """One run and its report. Returns the files that changed meanwhile (then there is no report) and the files' folders."""
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
    if runs.interrupt_count:
        raise KeyboardInterrupt
    report_on(finished)
    files = {r.file for run in finished for r in run.outcome.report.regions}
    files |= {f.location.file for run in finished for f in run.outcome.report.findings}
    return set(), {os.path.dirname(f) for f in files if os.path.isabs(f) and not _LIBRARIES & set(Path(f).parts)}


def _updated_settings(
    resolve: Callable[[], list[ResolvedSettings]], changed: set[str], before: list[ResolvedSettings]
) -> list[ResolvedSettings]:
    """The settings for the next run; those of the last one if the current ones are invalid (with a message)."""
    if console(sys.stdout, "auto").is_terminal:
        click.clear()
    names = sorted(relative(path, Path.cwd()) for path in changed)
    shown = ", ".join(names[:3]) + (f" and {count(len(names) - 3, 'more file')}" if len(names) > 3 else "")
    click.echo(f"magpy-lsp: {shown} changed.", err=True)
    try:
        return resolve()
    except SystemExit:
        pass  # an error in [tool.magpy], already printed to stderr
    except click.ClickException as error:
        error.show()
    click.echo("magpy-lsp: the settings are invalid; using those of the last run.", err=True)
    return before


def _folders(effectives: Iterable[ResolvedSettings], more: set[str]) -> list[str]:
    """The folders to watch, without those below another one of them."""
    found = set(more)
    for effective in effectives:
        found.add(os.path.abspath(effective.cwd or os.curdir))
        if effective.script is not None:
            found.add(os.path.dirname(os.path.abspath(os.path.join(effective.cwd or "", effective.script))))
        if effective.config_file is not None:
            found.add(str(effective.config_file.parent))
    there = sorted(f for f in found if os.path.isdir(f))
    return [f for f in there if not any(f != other and Path(f).is_relative_to(other) for other in there)]


def _folder_names(folders: Sequence[str]) -> str:
    return folders[0] if len(folders) == 1 else f"{folders[0]} and {count(len(folders) - 1, 'more folder')}"

"""Following runs to their end: one with the terminal its own, or several beside each other. Key types: Runs, Finished.

The first Ctrl-C is passed on to the programs, so that they end as they would without us; the second one ends them for good.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from types import FrameType
from typing import Protocol

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from lsp_server.cli.settings import Effective
from lsp_server.formats.view import clean, count
from magpy_core.runner.protocol import Message
from magpy_core.runner.request import Outcome, RunRequest

_OUTPUT_KEPT = 64 * 1024
_OUTPUT_LINES = 40


class Handle(Protocol):
    """A run under way: iterating gives its messages until it ends; then ``outcome`` is there."""

    def __iter__(self) -> Iterator[Message]: ...
    def interrupt(self) -> None: ...
    def cancel(self) -> None: ...
    @property
    def outcome(self) -> Outcome: ...


Launch = Callable[[RunRequest, int], Handle]
"""From a request and a number of processes."""


@dataclass
class Finished:
    """One program's run, as it ended. ``output`` is the end of what it wrote, where that was not shown."""

    effective: Effective
    outcome: Outcome
    interrupted: bool
    output: bytes = b""

    @property
    def whole(self) -> bool:
        return self.outcome.kind == "ok" and not self.interrupted


class Runs:
    """The runs of one command. ``interrupt`` and ``cancel`` reach all of them, from any thread, and those still to come."""

    def __init__(self, effectives: Sequence[Effective], launch: Launch) -> None:
        self._effectives = effectives
        self._launch = launch
        self._lock = threading.Lock()
        self._handles: list[Handle] = []
        self.presses = 0
        self.stopped: str = ""  # "", "interrupt" or "cancel"

    def follow(self) -> list[Finished]:
        """Runs all and waits for their end, in the order of the entrypoints; main thread only."""
        before = signal.signal(signal.SIGINT, self._on_interrupt)
        try:
            if len(self._effectives) == 1:
                return [self._alone(self._effectives[0])]
            return self._beside_each_other()
        finally:
            signal.signal(signal.SIGINT, before)

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        self.presses += 1
        # On a thread: a handle's lock may be held by the very code this handler interrupts.
        threading.Thread(target=self.interrupt if self.presses == 1 else self.cancel, daemon=True).start()

    def interrupt(self) -> None:
        self._stop("interrupt")

    def cancel(self) -> None:
        self._stop("cancel")

    def _stop(self, how: str) -> None:
        with self._lock:
            self.stopped = how
            handles = list(self._handles)
        for handle in handles:
            handle.interrupt() if how == "interrupt" else handle.cancel()

    def _start(self, effective: Effective, **streams: object) -> Handle | None:
        """None once the runs are being stopped."""
        with self._lock:
            if self.stopped:
                return None
            handle = self._launch(effective.request(**streams), effective.nproc)
            self._handles.append(handle)
            return handle

    # -- one

    def _alone(self, effective: Effective) -> Finished:
        handle = self._start(effective, stdout="stderr" if effective.outputs.document_on_stdout else "inherit")
        if handle is None:
            return _never_ran(effective)
        progress = sys.stderr.isatty()
        for message in handle:
            if progress and message["type"] == "progress":
                click.echo(f"magpy-lsp: {clean(message['text'])}", err=True)
        return Finished(effective, handle.outcome, bool(self.stopped))

    # -- several

    def _beside_each_other(self) -> list[Finished]:
        jobs = jobs_for(self._effectives)
        shown = _Bars() if sys.stderr.isatty() else _Lines()
        with shown, ThreadPoolExecutor(jobs) as pool:
            futures = [pool.submit(self._one_of_many, e, shown) for e in self._effectives]
            waiting: set[Future[Finished]] = set(futures)
            while waiting:  # in pieces, so that this thread gets to handle Ctrl-C
                _, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
            return [future.result() for future in futures]

    def _one_of_many(self, effective: Effective, shown: _Shown) -> Finished:
        output = _Tail()
        handle = self._start(effective, stdin="null", stdout=output, stderr=output)
        if handle is None:
            return _never_ran(effective)
        start = time.monotonic()
        shown.began(effective)
        for message in handle:
            if message["type"] == "step":
                shown.stepped(effective, message["n"])
        finished = Finished(effective, handle.outcome, bool(self.stopped), output.bytes())
        shown.ended(finished, time.monotonic() - start)
        return finished


def jobs_for(effectives: Sequence[Effective]) -> int:
    """``-j``; without it a check uses every processor, and a run one, for its times would be of programs that compete."""
    if any(effective.compared for effective in effectives):
        return 1  # so that the two engines' times can be compared
    wished = effectives[0].jobs
    if wished is None:
        wished = 1 if effectives[0].mode == "run" else len(os.sched_getaffinity(0))
    return max(1, min(wished, len(effectives)))


def _never_ran(effective: Effective) -> Finished:
    from magpy_core.findings import Report

    return Finished(effective, Outcome("cancelled", None, None, "It was not started.", Report(effective.title)), True)


class _Tail:
    """The end of what a program writes, both streams in one."""

    def __init__(self) -> None:
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._lock = threading.Lock()

    def __call__(self, data: bytes) -> None:
        with self._lock:
            self._chunks.append(data)
            self._size += len(data)
            while self._size - len(self._chunks[0]) > _OUTPUT_KEPT:
                self._size -= len(self._chunks.popleft())

    def bytes(self) -> bytes:
        with self._lock:
            return b"".join(self._chunks)[-_OUTPUT_KEPT:]


def show_output(finished: Finished) -> None:
    """On stderr, the last lines a program wrote before it failed."""
    lines = finished.output.decode("utf-8", "replace").splitlines()[-_OUTPUT_LINES:]
    if lines:
        click.echo(f"magpy-lsp: the last {count(len(lines), 'line')} of {finished.effective.title}:", err=True)
    for line in lines:
        click.echo(f"    {clean(line)}", err=True)


class _Shown(Protocol):
    """How far several runs are."""

    def began(self, effective: Effective) -> None: ...
    def stepped(self, effective: Effective, n: int) -> None: ...
    def ended(self, finished: Finished, seconds: float) -> None: ...


def _verdict(finished: Finished) -> str:
    if finished.interrupted:
        return "interrupted"
    return "done" if finished.outcome.kind == "ok" else finished.outcome.kind.replace("-", " ")


class _Lines:
    """Where nobody watches: a line when a program has ended."""

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *_: object) -> None: ...
    def began(self, effective: Effective) -> None: ...
    def stepped(self, effective: Effective, n: int) -> None: ...

    def ended(self, finished: Finished, seconds: float) -> None:
        steps = count(finished.outcome.report.steps, "step")
        click.echo(f"magpy-lsp: {finished.effective.title}: {_verdict(finished)}, {steps}, {seconds:.1f} s", err=True)


class _Bars:
    """In a terminal: a progress bar for each program."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                   TextColumn("{task.fields[verdict]}"))  # fmt: skip
        self._progress = Progress(*columns, console=Console(stderr=True))
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> _Bars:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def began(self, effective: Effective) -> None:
        total = effective.steps or None
        self._tasks[effective.title] = self._progress.add_task(clean(effective.title), total=total, verdict="")

    def stepped(self, effective: Effective, n: int) -> None:
        self._progress.update(self._tasks[effective.title], completed=n)

    def ended(self, finished: Finished, seconds: float) -> None:
        task = self._tasks[finished.effective.title]
        self._progress.update(task, verdict=_verdict(finished))
        self._progress.stop_task(task)

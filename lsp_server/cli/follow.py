"""Follows runs to their end: one that owns the terminal, or several in parallel. Key types: Runs, Finished.

The first Ctrl-C is passed on to the programs, so that they end as they would without MagPy; the second one kills them. Where
a program has ended and its run only looks for the cause of a difference, the first one ends that search.
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

from lsp_server.cli.deferred_signals import DeferredSignals, leave_by
from lsp_server.cli.events import EventFile
from lsp_server.cli.live import LiveDisplay, is_possible
from lsp_server.cli.settings import ResolvedSettings
from lsp_server.formats.compiling import CompileProgress
from lsp_server.formats.view import clean, count
from magpy_core.runner.protocol import Message, TracingMessage
from magpy_core.runner.request import Outcome, RunRequest

_OUTPUT_KEPT = 64 * 1024
_OUTPUT_LINES = 40


class Handle(Protocol):
    """A run in progress: iterating yields its messages until it ends; then ``outcome`` is set."""

    def __iter__(self) -> Iterator[Message]: ...
    def interrupt(self) -> None: ...
    def cancel(self) -> None: ...
    def suspend(self) -> None: ...
    def resume(self) -> None: ...
    def resized(self) -> None: ...
    @property
    def outcome(self) -> Outcome: ...


Launch = Callable[[RunRequest, int], Handle]
"""Starts a run from a request and a number of processes."""


@dataclass
class Finished:
    """The result of one program's run. ``output``: the end of its output, if that was not shown. ``began_ns``: when the
    commands' runs began, in nanoseconds since the epoch; 0: it was not started."""

    effective: ResolvedSettings
    outcome: Outcome
    interrupted: bool
    output: bytes = b""
    began_ns: int = 0

    @property
    def completed(self) -> bool:
        return self.outcome.kind == "ok" and not self.interrupted


class Runs:
    """The runs of one command. ``interrupt`` and ``cancel`` stop them all, started or not, from any thread."""

    def __init__(self, effectives: Sequence[ResolvedSettings], launch: Launch) -> None:
        self._effectives = effectives
        self._launch = launch
        self._began_ns = time.time_ns()
        self._events = EventFile(effectives[0].events)
        self._lock = threading.Lock()
        self._handles: list[Handle] = []
        self._searches = False  # the program's code has ended
        self.interrupt_count = 0
        self.stopped: str = ""  # "", "interrupt" or "cancel"

    def follow(self) -> list[Finished]:
        """Runs all programs and waits for their end; results in the order of the entrypoints. Main thread only."""
        before = signal.signal(signal.SIGINT, self._on_interrupt)
        stops = DeferredSignals(self._on_stop)
        stops.install([signal.SIGTSTP])
        try:
            if len(self._effectives) == 1:
                return [self._run_one(self._effectives[0])]
            return self._run_in_parallel()
        finally:
            stops.remove()
            signal.signal(signal.SIGINT, before)
            self._events.close()

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._searches:
            self._searches = False
            threading.Thread(target=self._end_search, daemon=True).start()  # as below
            return
        self.interrupt_count += 1
        # On another thread: the code that this handler interrupts may hold a handle's lock.
        threading.Thread(target=self.interrupt if self.interrupt_count == 1 else self.cancel, daemon=True).start()

    def _on_stop(self, number: signal.Signals) -> None:
        """Ctrl-Z reaches us alone. The programs stop and go on with us: else they would read what is typed for the shell."""
        handles = list(self._handles)  # without the lock, which the code that the signal interrupts may hold
        for handle in handles:
            handle.suspend()
        leave_by(number)
        for handle in handles:
            handle.resume()

    def interrupt(self) -> None:
        self._stop("interrupt")

    def cancel(self) -> None:
        self._stop("cancel")

    def _end_search(self) -> None:
        for handle in list(self._handles):
            handle.interrupt()

    def _stop(self, how: str) -> None:
        with self._lock:
            self.stopped = how
            handles = list(self._handles)
        for handle in handles:
            handle.interrupt() if how == "interrupt" else handle.cancel()

    def _start(self, effective: ResolvedSettings, **streams: object) -> Handle | None:
        """None if the runs are being stopped."""
        with self._lock:
            if self.stopped:
                return None
            self._events.begin(effective)
            handle = self._launch(effective.request(**streams), effective.nproc)
            self._handles.append(handle)
            return handle

    def _ended(self, effective: ResolvedSettings, handle: Handle, output: bytes = b"") -> Finished:
        self._events.end(effective, handle.outcome)
        return Finished(effective, handle.outcome, bool(self.stopped), output, self._began_ns)

    # -- one program

    def _run_one(self, effective: ResolvedSettings) -> Finished:
        if is_possible(effective):
            return self._run_live(effective)
        handle = self._start(effective, stdout="stderr" if effective.outputs.document_on_stdout else "inherit")
        if handle is None:
            return _not_started(effective)
        for message in self._events.follow(effective, handle):  # until it ends
            self._note(message, lambda text: click.echo(text, err=True))
        return self._ended(effective, handle)

    def _run_live(self, effective: ResolvedSettings) -> Finished:
        with LiveDisplay(effective, self._on_stop) as shown:
            handle = self._start(effective, stdout=shown.fd, stderr=shown.fd)
            shown.started(handle.resized if handle is not None else None)
            if handle is None:
                return _not_started(effective)
            for message in self._events.follow(effective, handle):
                shown.take(message)
                self._note(message, shown.say)
        return self._ended(effective, handle)

    def _note(self, message: Message, say: Callable[[str], object]) -> None:
        """What the only program does when its code has ended."""
        if message["type"] == "tracing":
            self._searches = True  # before it is said
            say(_traces(message))
        elif message["type"] in ("captured", "lowering", "done"):
            self._searches = False

    # -- several programs

    def _run_in_parallel(self) -> list[Finished]:
        jobs = jobs_for(self._effectives)
        shown = _ProgressBars() if sys.stderr.isatty() else _ProgressLines()
        with shown, ThreadPoolExecutor(jobs) as pool:
            futures = [pool.submit(self._run_in_pool, e, shown) for e in self._effectives]
            waiting: set[Future[Finished]] = set(futures)
            while waiting:  # with a timeout, so that this thread can handle Ctrl-C
                _, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
            return [future.result() for future in futures]

    def _run_in_pool(self, effective: ResolvedSettings, shown: _ProgressDisplay) -> Finished:
        output = Tail()
        handle = self._start(effective, stdin="null", stdout=output, stderr=output)
        if handle is None:
            return _not_started(effective)
        start = time.monotonic()
        shown.on_start(effective)
        compiling = CompileProgress()
        for message in self._events.follow(effective, handle):
            if message["type"] == "step":
                shown.on_step(effective, message["n"], compiling.text())
            elif message["type"] == "compiling":
                compiling.take(message)
        finished = self._ended(effective, handle, output.bytes())
        shown.on_end(finished, time.monotonic() - start)
        return finished


def jobs_for(effectives: Sequence[ResolvedSettings]) -> int:
    """``-j``; by default a check uses every processor and a run one, since competing programs would distort its timings."""
    if any(effective.compared for effective in effectives):
        return 1  # so that the timings of the two engines are comparable
    jobs = effectives[0].jobs
    if jobs is None:
        jobs = 1 if effectives[0].mode == "run" else len(os.sched_getaffinity(0))
    return max(1, min(jobs, len(effectives)))


def _traces(message: TracingMessage) -> str:
    """That the program has ended, and why there is no report yet."""
    lines = [clean(str(one)) for one in message["where"]]
    where = f" in {lines[0]}{f' and {len(lines) - 1} more' if lines[1:] else ''}" if lines else ""
    return (
        f"magpy-lsp: the program has ended. Compiled code differs from eager mode{where}, and is not used: looking for the "
        f"operation at fault, for at most {message['seconds']:g} s. Ctrl-C ends only this search; the report follows."
    )


def _not_started(effective: ResolvedSettings) -> Finished:
    from magpy_core.findings import Report

    return Finished(effective, Outcome("cancelled", None, None, "It was not started.", Report(effective.title)), True)


class Tail:
    """Keeps the end of a program's output, both streams in one."""

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


def last_lines(finished: Finished) -> list[str]:
    """The end of a program's output, if that was not shown."""
    return [clean(line) for line in finished.output.decode("utf-8", "replace").splitlines()[-_OUTPUT_LINES:]]


def show_output(finished: Finished) -> None:
    """Prints the last lines of a program's output to stderr."""
    lines = last_lines(finished)
    if lines:
        click.echo(f"magpy-lsp: the last {count(len(lines), 'line')} of {finished.effective.title}:", err=True)
    for line in lines:
        click.echo(f"    {line}", err=True)


class _ProgressDisplay(Protocol):
    """Shows the progress of several runs."""

    def on_start(self, effective: ResolvedSettings) -> None: ...
    def on_step(self, effective: ResolvedSettings, n: int, doing: str) -> None: ...
    def on_end(self, finished: Finished, seconds: float) -> None: ...


def _end_state(finished: Finished) -> str:
    if finished.interrupted:
        return "interrupted"
    return "done" if finished.outcome.kind == "ok" else finished.outcome.kind.replace("-", " ")


class _ProgressLines:
    """Without a terminal: one line when a program has ended."""

    def __enter__(self) -> _ProgressLines:
        return self

    def __exit__(self, *_: object) -> None: ...
    def on_start(self, effective: ResolvedSettings) -> None: ...
    def on_step(self, effective: ResolvedSettings, n: int, doing: str) -> None: ...

    def on_end(self, finished: Finished, seconds: float) -> None:
        steps = count(finished.outcome.report.steps, "step")
        click.echo(f"magpy-lsp: {finished.effective.title}: {_end_state(finished)}, {steps}, {seconds:.1f} s", err=True)


class _ProgressBars:
    """In a terminal: one progress bar per program."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                   TextColumn("{task.fields[verdict]}"))  # fmt: skip
        self._progress = Progress(*columns, console=Console(stderr=True))
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> _ProgressBars:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def on_start(self, effective: ResolvedSettings) -> None:
        total = effective.steps or None
        self._tasks[effective.title] = self._progress.add_task(clean(effective.title), total=total, verdict="")

    def on_step(self, effective: ResolvedSettings, n: int, doing: str) -> None:
        self._progress.update(self._tasks[effective.title], completed=n, verdict=doing)

    def on_end(self, finished: Finished, seconds: float) -> None:
        task = self._tasks[finished.effective.title]
        self._progress.update(task, verdict=_end_state(finished))
        self._progress.stop_task(task)

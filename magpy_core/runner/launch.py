"""Starts a run and receives its messages. Key names: launch, launch_async, RunHandle. Imports no torch.

    handle = launch(RunRequest(script="train.py"))
    for message in handle:
        ...
    print(handle.outcome.kind)

The process tree of a run ends when its handle is closed and when this process ends or is killed: the supervisor (see
``supervise``) watches a pipe that only this process holds open.
"""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from types import TracebackType

import magpy_core
from magpy_core.runner import bootstrap
from magpy_core.runner.protocol import Decoder, Failed, Message
from magpy_core.runner.request import Outcome, RunRequest, Sink
from magpy_core.runner.supervise import WHERE, end_tree
from magpy_core.runner.verdict import Collector, Ended

__all__ = ["AsyncRunHandle", "Message", "Outcome", "RunHandle", "RunRequest", "launch", "launch_async"]

_END_WITHIN = 1.8
"""Seconds after which this process kills a run that should have ended. The supervisor needs at most 1.5."""
_STACKS_WITHIN = 0.3


def launch(request: RunRequest) -> RunHandle:
    """Starts ``request``. Always returns a handle; if the run can't be started, its outcome says why."""
    if (request.script is None) == (request.module is None):
        raise ValueError("a RunRequest names either a script or a module")
    return RunHandle(request)


def launch_async(request: RunRequest) -> AsyncRunHandle:
    """Like ``launch``, for a running event loop: ``async for message in launch_async(request)``."""
    return AsyncRunHandle(launch(request))


class RunBase(ABC):
    """The base of all run handles: messages to iterate once, then the outcome."""

    _stream: Iterator[Message]
    _outcome: Outcome | None = None

    def __iter__(self) -> Iterator[Message]:
        return self._stream

    @property
    def outcome(self) -> Outcome:
        """Waits for the end of the run and returns its outcome."""
        for _ in self._stream:
            pass
        if self._outcome is None:
            raise RuntimeError("the run was closed before its end")
        return self._outcome

    @abstractmethod
    def cancel(self, *, wait: bool = True) -> None:
        """Ends every process of the run; ``wait`` for their end, or return at once."""

    @abstractmethod
    def interrupt(self) -> None:
        """Interrupts the program, like Ctrl-C."""


class RunHandle(RunBase):
    """A run. Iterate once for its messages; ``cancel`` and ``interrupt`` are thread-safe."""

    def __init__(self, request: RunRequest) -> None:
        self.request = request
        self._collector = Collector(request)
        self._decoder = Decoder()
        self._lock = threading.Lock()
        self._ended: Ended = "itself"
        self._outcome: Outcome | None = None
        self._commands: int | None = None
        self._messages: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._pumps: list[threading.Thread] = []
        self._t0 = time.monotonic()
        self._t_hello: float | None = None
        refusal = self._start()
        self._stream = self._refused(refusal) if refusal is not None else self._run()

    # -- starting

    def _start(self) -> str | None:
        """Starts the process; returns an error message if that fails."""
        request = self.request
        python = request.python or sys.executable
        if request.cwd is not None and not os.path.isdir(request.cwd):
            return f"The working directory {request.cwd} does not exist: choose another."
        if os.name != "posix":
            return "MagPy runs programs only on Linux and macOS: use one of them, or WSL."
        commands_read, commands_write = os.pipe()
        messages_read, messages_write = os.pipe()
        try:
            self._process = subprocess.Popen(
                bootstrap.command(python, commands_read, messages_write),
                stdin=subprocess.DEVNULL if request.stdin == "null" else None,
                stdout=output_target(request.stdout),
                stderr=output_target(request.stderr),
                cwd=request.cwd,
                env=request.env,
                pass_fds=(commands_read, messages_write),
                start_new_session=True,
            )
        except OSError as exc:
            for fd in (commands_write, messages_read):
                os.close(fd)
            return _cannot_start(python, exc)
        finally:
            os.close(commands_read)
            os.close(messages_write)
        self._commands, self._messages = commands_write, messages_read
        for stream, sink in ((self._process.stdout, request.stdout), (self._process.stderr, request.stderr)):
            if stream is not None and callable(sink):
                pump = threading.Thread(target=pump_output, args=(stream.fileno(), sink), daemon=True, name="magpy-output")
                pump.start()
                self._pumps.append(pump)
        self._send_request(python)
        return None

    def _send_request(self, python: str) -> None:
        import json

        root = os.path.dirname(os.path.abspath(magpy_core.__file__))
        wanted = {
            **self.request.to_child(),
            "version": magpy_core.__version__,
            "root": root if _is_this_interpreter(python) else None,
            "python_versions": bootstrap.SUPPORTED_PYTHON,
            "torch_versions": bootstrap.SUPPORTED_TORCH,
        }
        data = json.dumps(wanted).encode("ascii") + b"\n"
        assert self._commands is not None
        os.set_blocking(self._commands, False)
        # An interpreter that never reads would block us on a request larger than the pipe: stop when it has exited.
        while data:
            try:
                data = data[os.write(self._commands, data) :]
            except BlockingIOError:
                assert self._process is not None
                if self._process.poll() is not None:
                    return
                select.select([], [self._commands], [], 0.1)
            except BrokenPipeError:
                return

    # -- receiving

    def _refused(self, why: str) -> Iterator[Message]:
        message: Failed = {
            "type": "failed", "code": "MP903", "message": why, "traceback": "", "exit_code": 2, "place": None,
        }  # fmt: skip
        self._collector.take(message)
        yield message
        yield from self._finish()

    def _run(self) -> Iterator[Message]:
        try:
            for message in self._received():
                if message["type"] == "hello" and self._t_hello is None:
                    self._t_hello = time.monotonic()
                passed_on = self._collector.take(message)
                if passed_on is not None:
                    yield passed_on
            yield from self._finish()
        finally:
            self.close()

    def _received(self) -> Iterator[Message]:
        """Yields messages until the last process that can send one has ended."""
        fd, process = self._messages, self._process
        assert fd is not None and process is not None
        timeout = self.request.timeout
        deadline = None if timeout is None else self._t0 + timeout
        ended = False
        while True:
            wait = 0.5 if deadline is None else min(0.5, max(deadline - time.monotonic(), 0.0))
            ready, _, _ = select.select([fd], [], [], 0.0 if ended else wait)
            if ready:
                data = os.read(fd, 1 << 16)
                yield from self._decoder.feed(data)
                if not data:
                    break
            elif ended:
                break  # a process escaped and still holds the pipe: don't wait for it
            ended = process.poll() is not None
            if deadline is not None and time.monotonic() >= deadline and not ended:
                deadline = self._on_deadline()
        yield from self._decoder.close()
        process.wait()
        for pump in self._pumps:
            pump.join(1.0)

    def _on_deadline(self) -> float | None:
        """At the deadline requests the stacks, shortly afterwards ends the run. Returns the next deadline."""
        if self._ended != "itself":
            self._end(self._ended)
            return None
        with self._lock:
            self._ended = "timeout"
            try:
                if self._commands is not None:
                    os.write(self._commands, WHERE)
            except OSError:
                pass  # it has just ended
        return time.monotonic() + _STACKS_WITHIN

    def _finish(self) -> Iterator[Message]:
        timings = {"total": round(time.monotonic() - self._t0, 6)}
        if self._t_hello is not None:
            timings["python_start"] = round(self._t_hello - self._t0, 6)
        owed, self._outcome = self._collector.finish(self._ended, timings, self._decoder.noise)
        yield from owed

    # -- ending

    def cancel(self, *, wait: bool = True) -> None:
        """Ends the run's process tree within two seconds: SIGTERM, then SIGKILL. Waits for the end if ``wait``."""
        self._end("cancelled")
        if wait and self._process is not None:
            self._process.wait()

    def _end(self, why: Ended) -> None:
        with self._lock:
            process = self._process
            if process is None or process.poll() is not None:
                return
            if self._ended == "itself":
                self._ended = why
            if self._commands is None:
                return  # ending already
            self._hang_up()
        killer = threading.Thread(target=_ensure_ended, args=(process,), daemon=True, name="magpy-cancel")
        killer.start()

    def _hang_up(self) -> None:
        if self._commands is not None:
            os.close(self._commands)
            self._commands = None

    def interrupt(self) -> None:
        """Like Ctrl-C in a terminal: SIGINT to the program's process group."""
        pid = self._collector.pid
        if pid is None:
            self.cancel(wait=False)
            return
        try:
            os.killpg(pid, signal.SIGINT)
        except (ProcessLookupError, PermissionError):
            return  # it has ended

    def close(self) -> None:
        """Ends the run if necessary and releases all resources. Keeps an existing ``outcome``."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            self.cancel()
        with self._lock:
            self._hang_up()
            if self._messages is not None:
                os.close(self._messages)
                self._messages = None
        for pump in self._pumps:
            pump.join(1.0)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()

    def __enter__(self) -> RunHandle:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_commands", None) is not None:
            self._hang_up()


class AsyncRunHandle:
    """A RunHandle for asyncio, fed by a thread. ``async for`` it once, or ``await wait()``."""

    def __init__(self, handle: RunBase) -> None:
        self.handle = handle
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Message | BaseException | None] = asyncio.Queue()
        self._done = asyncio.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True, name="magpy-run")
        self._thread.start()

    def _listen(self) -> None:
        last: BaseException | None = None
        try:
            for message in self.handle:
                self._post(message)
        except BaseException as exc:
            last = exc
        self._post(last)

    def _post(self, item: Message | BaseException | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._put, item)
        except RuntimeError:
            self.handle.cancel(wait=False)  # the loop is closed

    def _put(self, item: Message | BaseException | None) -> None:
        self._queue.put_nowait(item)
        if item is None or isinstance(item, BaseException):
            self._done.set()

    async def __aiter__(self) -> AsyncIterator[Message]:
        while True:
            item = await self._queue.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item

    async def wait(self) -> Outcome:
        """Waits for the end of the run and returns its outcome."""
        await self._done.wait()
        return self.handle.outcome

    def cancel(self) -> None:
        """Ends the run without waiting; the iteration ends within two seconds."""
        self.handle.cancel(wait=False)

    def interrupt(self) -> None:
        self.handle.interrupt()

    async def aclose(self) -> None:
        """Ends the run if necessary and waits for its end."""
        self.cancel()
        await self._done.wait()


def output_target(sink: Sink) -> int | None:
    if callable(sink):
        return subprocess.PIPE
    return {"inherit": None, "stderr": 2, "null": subprocess.DEVNULL}[sink]


def pump_output(fd: int, sink: Sink) -> None:
    """Passes a stream to ``sink`` until its end. If the sink raises, discards the rest of the stream."""
    assert callable(sink)
    broken = False
    while True:
        try:
            data = os.read(fd, 1 << 16)
        except OSError:
            return
        if not data:
            return
        if not broken:
            try:
                sink(data)
            except Exception as exc:
                broken = True
                print(f"magpy: the program's output can't be passed on: {exc!r}", file=sys.stderr)


def _ensure_ended(process: subprocess.Popen[bytes]) -> None:
    """Ends the tree from this process if the supervisor is stuck."""
    try:
        process.wait(_END_WITHIN)
    except subprocess.TimeoutExpired:
        end_tree(process.pid, term_grace=0.0)
        process.kill()
        process.wait()


def _is_this_interpreter(python: str) -> bool:
    found = shutil.which(python) or python
    return os.path.abspath(found) == os.path.abspath(sys.executable)


def _cannot_start(python: str, exc: OSError) -> str:
    if isinstance(exc, FileNotFoundError):
        return f"{python} is not a Python interpreter: choose another with --python."
    return f"{python} can't be started ({exc.strerror or exc}): choose a Python interpreter with --python."

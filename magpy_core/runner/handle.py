"""The process tree of one run: its messages, its end and its outcome. Key types: RunHandle, AsyncRunHandle. No torch.

The process tree of a run ends when its handle is closed and when this process ends or is killed: the supervisor (see
``supervise``) watches a pipe that only this process holds open.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress

import magpy_core
from magpy_core.distribution import DISTRIBUTION
from magpy_core.runner import bootstrap
from magpy_core.runner.protocol import Decoder, Message, error_message
from magpy_core.runner.request import Outcome, RunRequest, Sink
from magpy_core.runner.supervise import WHERE, end_tree
from magpy_core.runner.verdict import Collector, Ended

_END_WITHIN = 1.8
"""Seconds after which this process kills a run that should have ended. The supervisor needs at most 1.5."""
_STACKS_WITHIN = 0.3
_BEGINS_WITHIN = 2.0
"""Seconds within which a program that runs should have been heard of."""


class Program:
    """Our ends of the pipes to one program, and what it has sent."""

    def __init__(self, request: RunRequest, commands: int, messages: int) -> None:
        self.request = request
        self.collector = Collector(request)
        self.messages = messages
        self._commands: int | None = commands
        self._open = True
        self._decoder = Decoder()
        self._t_hello: float | None = None
        self.has_begun = threading.Event()
        os.set_blocking(commands, False)

    def send_request(self, process: subprocess.Popen[bytes]) -> None:
        import json

        wanted = {
            **self.request.to_child(),
            "version": magpy_core.__version__,
            "distribution": DISTRIBUTION,
            "root": os.path.dirname(os.path.abspath(magpy_core.__file__)),
            "python_versions": bootstrap.SUPPORTED_PYTHON,
            "torch_versions": bootstrap.SUPPORTED_TORCH,
        }
        data = json.dumps(wanted).encode("ascii") + b"\n"
        assert self._commands is not None
        # An interpreter that never reads would block us on a request larger than the pipe: stop when it has exited.
        while data:
            try:
                data = data[os.write(self._commands, data) :]
            except BlockingIOError:
                if process.poll() is not None:
                    return
                select.select([], [self._commands], [], 0.1)
            except BrokenPipeError:
                return

    def request_stacks(self) -> None:
        if self._commands is not None:
            with suppress(OSError):  # it has just ended
                os.write(self._commands, WHERE)

    def receive(self) -> tuple[bool, list[Message]]:
        """What can be read now: whether that was the end, and the messages that the caller should get."""
        data = os.read(self.messages, 1 << 16)
        messages = self._decoder.feed(data) if data else self._decoder.close()
        if self._t_hello is None and any(m["type"] == "hello" for m in messages):
            self._t_hello = time.monotonic()
        taken = [m for m in messages if self.collector.take(m) is not None]
        if not data or self._t_hello is not None:
            self.has_begun.set()
        return not data, taken

    def finish(self, start: float) -> tuple[list[Message], Outcome]:
        """The remaining messages, and how the program ended."""
        for message in self._decoder.close():
            self.collector.take(message)
        timings = {"total": round(time.monotonic() - start, 6)}
        if self._t_hello is not None:
            timings["python_start"] = round(self._t_hello - start, 6)
        return self.collector.finish(timings, self._decoder.noise, self._decoder.left_out)

    def hang_up(self) -> bool:
        """Requests that the supervisor end the program; False if this was requested before."""
        if self._commands is None:
            return False
        os.close(self._commands)
        self._commands = None
        return True

    def close(self) -> None:
        self.hang_up()
        if self._open:
            os.close(self.messages)
        self._open = False


class RunHandle:
    """A run. Iterate once for its messages; ``cancel`` and ``interrupt`` are thread-safe."""

    def __init__(self, request: RunRequest) -> None:
        self.request = request
        self._lock = threading.Lock()
        self._ended: Ended = "itself"
        self._outcome: Outcome | None = None
        self._programs: list[Program] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._pumps: list[threading.Thread] = []
        self._t0 = time.monotonic()
        self._suspended_s, self._suspended_at = 0.0, 0.0
        self._refusal = self._start()
        self._stream = self._run()

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

    # -- starting

    def _start(self) -> str | None:
        """Starts the process; returns an error message if that fails."""
        request = self.request
        python = request.python or sys.executable
        command, theirs = self._connect(python)
        try:
            if request.cwd is not None and not os.path.isdir(request.cwd):
                return f"The working directory {request.cwd} does not exist: choose another."
            if sys.platform != "linux":
                return "MagPy runs programs only on Linux: use it, or WSL."
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL if request.stdin == "null" else None,
                stdout=_output_target(request.stdout),
                stderr=_output_target(request.stderr),
                cwd=request.cwd,
                env=request.env,
                pass_fds=theirs,
                start_new_session=True,
            )
        except FileNotFoundError:
            return f"{python} is not a Python interpreter: choose another with --python."
        except OSError as exc:
            return f"{python} can't be started ({exc.strerror or exc}): choose a Python interpreter with --python."
        except ValueError as exc:
            return f"{python} can't be started ({exc}): correct the interpreter's path or the environment variables."
        finally:
            for fd in theirs:
                os.close(fd)
        for stream, sink in ((self._process.stdout, request.stdout), (self._process.stderr, request.stderr)):
            if stream is not None and callable(sink):
                pump = threading.Thread(target=_pump, args=(stream.fileno(), sink), daemon=True, name="magpy-output")
                pump.start()
                self._pumps.append(pump)
        for program in self._programs:
            program.send_request(self._process)
        return None

    def _connect(self, python: str) -> tuple[list[str], tuple[int, ...]]:
        """Makes the pipes. Returns the command line that runs the program, and the descriptors that it inherits."""
        commands, ours = os.pipe()
        messages, out = os.pipe()
        self._programs.append(Program(self.request, ours, messages))
        return bootstrap.command(python, str(commands), str(out)), (commands, out)

    # -- receiving

    def _run(self) -> Iterator[Message]:
        try:
            if self._refusal is None:
                yield from self._received()
            else:
                failed = error_message("MP903", self._refusal)
                self._programs[0].collector.take(failed)
                yield failed
            yield from self._finish()
        finally:
            self.close()

    def _received(self) -> Iterator[Message]:
        """Yields messages until the last process that can send one has ended."""
        process, listening = self._process, {program.messages: program for program in self._programs}
        assert process is not None
        timeout = self.request.timeout
        deadline = None if timeout is None else self._t0 + timeout
        ended, extra = False, 0.0
        while listening:
            wait = 0.5 if deadline is None else min(0.5, max(deadline + extra - self._now(), 0.0))
            ready, _, _ = select.select(list(listening), [], [], 0.0 if ended else wait)
            for fd in ready:
                closed, messages = listening[fd].receive()
                for message in messages:
                    if self._passes_on(listening[fd], message):
                        yield message
                if closed:
                    del listening[fd]
            if ended and not ready:
                break  # a process escaped and still holds the pipe: don't wait for it
            ended = process.poll() is not None
            extra = max(program.collector.extra for program in self._programs) if self._ended == "itself" else 0.0
            if any(program.collector.lowering for program in self._programs):
                deadline = None  # the limit is the program's, whose code has ended; each compilation has its own
            if deadline is not None and self._now() >= deadline + extra and not ended:
                deadline = self._on_deadline()
        process.wait()
        for pump in self._pumps:
            pump.join(1.0)

    def _passes_on(self, program: Program, message: Message) -> bool:
        return True

    def _on_deadline(self) -> float | None:
        """Requests the stacks at the deadline, and ends the run shortly afterwards. Returns the next deadline."""
        if self._ended != "itself":
            self._end(self._ended)
            return None
        with self._lock:
            self._ended = "timeout"
            for program in self._programs:
                program.collector.ending("timeout")
                program.request_stacks()
        return self._now() + _STACKS_WITHIN

    def _now(self) -> float:
        """The time, without that for which the run was suspended."""
        return time.monotonic() - self._suspended_s

    def _finish(self) -> Iterator[Message]:
        """The last messages; sets the outcome."""
        owed, self._outcome = self._programs[0].finish(self._t0)
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
            for program in self._programs:
                program.collector.ending(why)
            if not any([program.hang_up() for program in self._programs]):
                return  # ending already
        threading.Thread(target=_ensure_ended, args=(process,), daemon=True, name="magpy-cancel").start()

    def interrupt(self) -> None:
        """Like Ctrl-C in a terminal: SIGINT to the program's process group. The program may run, and have printed something,
        before whoever reads its messages has learned of it: waits for that a moment."""
        self._programs[0].has_begun.wait(_BEGINS_WITHIN)
        pid = self._programs[0].collector.pid
        if pid is None:
            self.cancel(wait=False)
            return
        self._programs[0].collector.interrupted = True
        with suppress(ProcessLookupError, PermissionError):  # it has ended
            os.killpg(pid, signal.SIGINT)

    def suspend(self) -> None:
        """Stops the program, as Ctrl-Z in a terminal does, until ``resume``. The limit of its time does not pass."""
        self._suspended_at = time.monotonic()
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)
        self._suspended_s += time.monotonic() - self._suspended_at

    def resized(self) -> None:
        """The program's terminal has another size."""
        self._signal(signal.SIGWINCH)

    def _signal(self, number: signal.Signals) -> None:
        """To the process group of each program. Uses no lock: the caller may handle a signal itself."""
        if self._process is None or self._process.poll() is not None:
            return  # its group may be another's by now
        for program in self._programs:
            if program.collector.pid is not None:
                with suppress(ProcessLookupError, PermissionError):  # it has ended
                    os.killpg(program.collector.pid, number)

    def close(self) -> None:
        """Ends the run if necessary and releases all resources. Keeps an existing ``outcome``."""
        if self._process is not None and self._process.poll() is None:
            self.cancel()
        with self._lock:
            for program in self._programs:
                program.close()
        for pump in self._pumps:
            pump.join(1.0)
        for stream in (self._process.stdout, self._process.stderr) if self._process is not None else ():
            if stream is not None:
                stream.close()

    def __enter__(self) -> RunHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        for program in getattr(self, "_programs", ()):
            program.close()


class AsyncRunHandle:
    """A RunHandle for asyncio, fed by a thread. ``async for`` it once, or ``await wait()``."""

    def __init__(self, handle: RunHandle) -> None:
        self.handle = handle
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Message | None] = asyncio.Queue()
        self._done = asyncio.Event()
        threading.Thread(target=self._listen, daemon=True, name="magpy-run").start()

    def _listen(self) -> None:
        try:
            for message in self.handle:
                self._post(message)
        finally:
            self._post(None)

    def _post(self, item: Message | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._put, item)
        except RuntimeError:
            self.handle.cancel(wait=False)  # the loop is closed

    def _put(self, item: Message | None) -> None:
        self._queue.put_nowait(item)
        if item is None:
            self._done.set()

    async def __aiter__(self) -> AsyncIterator[Message]:
        while (message := await self._queue.get()) is not None:
            yield message

    async def wait(self) -> Outcome:
        """Waits for the end of the run and returns its outcome."""
        await self._done.wait()
        return self.handle.outcome

    def cancel(self) -> None:
        """Ends the run without waiting; the iteration ends within two seconds."""
        self.handle.cancel(wait=False)

    async def aclose(self) -> None:
        """Ends the run if necessary and waits for its end."""
        self.cancel()
        await self._done.wait()


def _output_target(sink: Sink) -> int | None:
    if callable(sink):
        return subprocess.PIPE
    if isinstance(sink, int):
        return sink
    return {"inherit": None, "stderr": 2, "null": subprocess.DEVNULL}[sink]


def _pump(fd: int, sink: Callable[[bytes], None]) -> None:
    """Passes a stream to ``sink`` until its end. If the sink raises, discards the rest of the stream."""
    broken = False
    with suppress(OSError):
        while data := os.read(fd, 1 << 16):
            try:
                if not broken:
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

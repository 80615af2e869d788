"""The program's process: from the request to the last message. Key function: main (called by ``bootstrap.SOURCE``).

Imports little before the user's code begins, nothing from torch, and nothing from the program's folder: all that is needed
up to the program's first line is imported before its ``sys.path`` is set up.
"""

from __future__ import annotations

import atexit
import faulthandler
import importlib.util
import os
import re
import sys
import threading
from contextlib import suppress
from typing import Any, NoReturn

from magpy_core._compat.cpython.command_source import forget_command_source
from magpy_core.distribution import DISTRIBUTION
from magpy_core.runner import supervise, tracebacks
from magpy_core.runner.channel import Channel
from magpy_core.runner.discovery import Discovery
from magpy_core.runner.entrypoint import Entrypoint, Refused
from magpy_core.runner.import_hook import ImportHook
from magpy_core.runner.loop_progress import LoopProgress
from magpy_core.runner.loops import Loops
from magpy_core.runner.monitoring import Monitoring
from magpy_core.runner.named import NamedRegions
from magpy_core.runner.protocol import error_message
from magpy_core.runner.recorder import Recorder
from magpy_core.runner.request import SESSIONS
from magpy_core.runner.sources import Sources
from magpy_core.runner.steps import StepClock, StopAfterSteps


def main(request: dict[str, Any], commands: int, out: int, path: list[str], at_start: list[str]) -> None:
    """Runs the request. Exits by SystemExit or KeyboardInterrupt, like the program; never in the supervisor.

    ``path``: the program's ``sys.path``, without its own folder; ``at_start``: the modules that Python itself imported.
    """
    forget_command_source()
    supervisor = supervise.start(commands, out)
    channel = Channel(out, supervisor)
    try:
        program = _Program(request, channel, path, at_start)
    except Refused as exc:
        _refuse(channel, exc.code, str(exc))
    except Exception as exc:
        _refuse(channel, "MP901", f"MagPy failed before the program began: {exc!r}; please report it.")
    program.run()


def _refuse(channel: Channel, code: str, message: str) -> NoReturn:
    """Exits before any user code has run."""
    channel.send(error_message(code, message))
    os._exit(2)


class _Program:
    def __init__(self, request: dict[str, Any], channel: Channel, path: list[str], at_start: list[str]) -> None:
        self._request = request
        self._channel = channel
        self._failed = False
        self._recorder: Recorder | None = None
        self.entry = Entrypoint(request["script"], request["module"], request["args"])
        self.clock = StepClock(request["steps"], self._stopping, self._end_now, request["stop_grace"])
        stem = self.entry.stem
        aliases = [stem, stem.removesuffix(".__main__")]
        self._named = NamedRegions(request["regions"], lambda *defined: self._discovery.wrap(*defined), aliases)
        wanted = os.environ.get("MAGPY_TRAINING_LOOPS") != "0"
        cuts = wanted and request.get("session_factory") == SESSIONS["magpy"]
        self._progress = LoopProgress(lambda what, exc: self.monitoring.failed(what, exc))
        self._loops = Loops(lambda: self._discovery, self._progress) if cuts else None
        self._sources = Sources(self._named, self._loops)
        self.entry.prepare(self._sources.compile, path, at_start)
        _check_torch(request)
        _check_triton(request)
        if request["line_buffered"]:
            # The output goes through a pipe to a watching user: line by line, as in a terminal.
            sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        channel.send({"type": "hello", "pid": os.getpid()})

    # -- running

    def _stopping(self) -> None:
        """The steps are done; the program is about to be interrupted."""
        if self._recorder is not None:
            self._recorder.ended(itself=False)
        self._channel.send({"type": "stopping"})

    def _stepped(self, n: int) -> None:
        self.monitoring.stepped(n)
        if (left := self._progress.left_if_due()) is not None:
            self.monitoring.expect(left)

    def run(self) -> None:
        self._install()
        self._channel.send({"type": "started"})
        self.clock.marks.restart()
        ended: BaseException | None = None
        try:
            self.entry.run()
        except BaseException as exc:
            ended = exc
        if self._recorder is not None:
            self._recorder.ended(itself=not self.clock.stopped)
        if ended is None or self.clock.stopped or isinstance(ended, SystemExit):
            self.monitoring.await_causes()
            self.monitoring.compile_for_target()
        # Outside the `except`: the program's excepthook must not see an exception being handled.
        if ended is not None:
            self._ended_by(ended)

    def _ended_by(self, exc: BaseException) -> NoReturn:
        """Exits like the interpreter, also in a process that the program forked, where sending does nothing."""
        is_of_cleaning_up = _is_of_cleaning_up(exc)
        tracebacks.strip(exc)
        match exc:
            case Refused():
                self._channel.send(error_message(exc.code, str(exc)))
                sys.exit(2)
            case SystemExit() | KeyboardInterrupt() if self.clock.stopped:
                sys.exit(0)  # the program's reaction to our interrupt
            case Exception() if self.clock.stopped and not is_of_cleaning_up:
                sys.exit(0)  # it has gone on, without what the steps that were not run would have made
            case SystemExit():
                self._exited(exc)
            case KeyboardInterrupt():
                self._interrupted(exc)
        self._send_failure(exc)
        tracebacks.display(exc)
        sys.exit(1)

    def _install(self) -> None:
        self.monitoring = Monitoring(self._request, self._channel, self.clock)
        self._sources.report_to(self.monitoring.add)
        self.clock.on_step = self._stepped
        self._discovery = Discovery(self.monitoring)
        self._recorder = Recorder(self._request["record"]) if self._request.get("record") else None
        if self._recorder is not None:
            self._recorder.watch(self.clock, self._discovery)
        atexit.register(self._ended)  # registered first, so called last: the program's own atexit functions count
        os.register_at_fork(after_in_child=self._forked)
        # On the supervisor's signal, writes every thread's stack to the parent, even while C code hangs.
        faulthandler.register(supervise.where_signal(), file=self._channel.fd, all_threads=True)
        self._plain_thread_hook = threading.excepthook
        threading.excepthook = self._thread_failed
        self._sources.install()
        ImportHook(self._torch_imported).install()

    def _torch_imported(self) -> None:
        self._discovery.install()
        if self._recorder is not None:
            self._recorder.torch_was_imported()
        if self._loops is not None:
            self._discovery.find_or_none(self._loops.torch_was_imported)

    def _forked(self) -> None:
        self.clock.limit = 0
        self.clock.before_call = self._recorder = None
        self.monitoring.abandon()

    def _thread_failed(self, args: Any) -> None:
        """Shows an exception that ends a thread of the program, without our frames."""
        if isinstance(args.exc_value, StopAfterSteps):
            return
        if args.exc_value is not None:
            tracebacks.strip(args.exc_value)
            args = threading.ExceptHookArgs((args.exc_type, args.exc_value, args.exc_value.__traceback__, args.thread))
        self._plain_thread_hook(args)

    # -- ending

    def _interrupted(self, exc: KeyboardInterrupt) -> NoReturn:
        """A real Ctrl-C: shows it, then raises it again, so that the interpreter exits by SIGINT."""
        self._send_failure(exc)
        tracebacks.display(exc)
        hook = sys.excepthook

        def shown_already(*_: object) -> None:
            sys.excepthook = hook

        sys.excepthook = shown_already
        raise exc

    def _exited(self, exc: SystemExit) -> NoReturn:
        code = exc.code
        number = 0 if code is None else code if isinstance(code, int) else 1
        if number & 0xFF:
            said = "" if isinstance(code, int) else f" ({tracebacks.text_of(code, 200)})"
            what = f"The program exited with code {number & 0xFF}{said}"
            message = f"{what}: fix the error that it reports, and run again."
            self._channel.send(error_message("MP905", message, tracebacks.place_of(exc)))
        raise exc

    def _send_failure(self, exc: BaseException) -> None:
        self._failed = True
        place = tracebacks.place_of(exc)
        text = tracebacks.text_of(exc, 300)
        what = f"{type(exc).__name__}: {text}" if text else type(exc).__name__
        if self.entry.bad_source is not None:
            problem = f"has a syntax error ({text})" if isinstance(exc, SyntaxError) else f"can't be compiled ({what})"
            message = f"{self.entry.script} {problem}: fix it and run again."
        else:
            when = f"in step {self.clock.count + 1}" if self.clock.count else "before its first step ended"
            where = f" at {os.path.relpath(place['file'])}:{place['line']}" if place else ""
            message = f"The program raised {what}{where}, {when}: fix it and run again."
        self._channel.send(error_message("MP905", message, place))

    def _close(self) -> None:
        if not self._channel.open:
            return
        spec = getattr(sys.modules.get("__main__"), "__spec__", None)
        file = self.entry.file or getattr(spec, "origin", None)
        if isinstance(file, str) and file.endswith(".pyc"):
            text = f"{os.path.basename(file)} has no source file, so findings can't be shown on its lines."
            self.monitoring.add("MP911", text, file=file, hint="Run the source.")
        for name in () if self._failed else self._named.missing():
            text = f"[tool.magpy] regions names {name}, but the program defines no such function: check the name."
            self.monitoring.add("MP910", text)
        self.monitoring.close(self._request["entrypoint"])

    def _ended(self) -> None:
        """The interpreter ends: nothing of ours may keep the program's objects alive."""
        try:
            self._close()
        finally:  # whether or not anyone reads the report
            self.monitoring.release()
            self._discovery.release()
            self._progress.release()

    def _end_now(self) -> None:
        """The program continues after the interrupt: flushes its output and ends the process."""
        self._close()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # closed by the program, or by its reader
                stream.flush()
        os._exit(0)


def _check_triton(request: dict[str, Any]) -> None:
    """Raises Refused if the request has a target and the compiler for it is not installed."""
    if request.get("target") and importlib.util.find_spec("triton") is None:
        here = sys.executable
        install = f"run `{here} -m pip install triton` (or MagPy's extra: {DISTRIBUTION}[triton])"
        text = f"Triton, which compiles for {request['target']}, isn't installed for {here}: {install}."
        raise Refused(text, "MP903")


def _check_torch(request: dict[str, Any]) -> None:
    """Raises Refused if the torch that the program would import is not supported; does not import it."""
    spec = importlib.util.find_spec("torch")
    here = sys.executable
    low, high = request["torch_versions"]
    if spec is None:
        install = f"run `{here} -m pip install 'torch>={low[0]}.{low[1]},<{high[0]}.{high[1]}'`"
        raise Refused(f"{here} has no torch: {install}, or choose another interpreter with --python.", "MP903")
    folder = os.path.dirname(spec.origin or "")
    try:
        with open(os.path.join(folder, "version.py"), encoding="utf-8") as f:
            found = re.search(r"__version__\s*=\s*['\"]([^'\"]+)['\"]", f.read())
    except OSError:
        return
    if found is not None and not low <= [int(n) for n in re.findall(r"\d+", found[1])[:2]] < high:
        last = f"{high[0]}.{high[1] - 1}"
        raise Refused(
            f"torch {found[1]} is not supported: MagPy works with torch {low[0]}.{low[1]} to {last}; "
            f"install one of those for {here}, or choose another interpreter with --python.",
            "MP903",
        )


def _is_of_cleaning_up(exc: BaseException) -> bool:
    """Whether it was raised while our interrupt was on its way."""
    context, seen = exc.__context__, {id(exc)}
    while context is not None and id(context) not in seen:  # a program can make a circle of them
        if isinstance(context, StopAfterSteps):
            return True
        seen.add(id(context))
        context = context.__context__
    return False

"""Runs a program for a tool, with progress, until its end or until the client cancels. Key types: Program, Runner.

A cancelled call ends the program's process tree. One program runs at a time, so that timings don't disturb each other.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import anyio
import click

from lsp_server.cli.follow import Finished, Tail
from lsp_server.cli.known_findings import open_baseline
from lsp_server.cli.settings import ResolvedSettings, resolve
from lsp_server.cli.targets import config_start
from lsp_server.cli.verify import NoVerdict, compare
from lsp_server.config import ConfigError, load_for
from lsp_server.formats.compiling import CompileProgress
from lsp_server.formats.view import count
from magpy_core.runner.launch import launch, launch_async
from magpy_core.runner.paired_runs import PairedRuns
from magpy_core.runner.protocol import Message
from magpy_core.runner.request import RunRequest

T = TypeVar("T")
Tell = Callable[[float, str], Awaitable[None]]
"""Reports progress: seconds since the start, and what happens now. Does nothing if the client did not ask."""

_TELL_EVERY = 1.0

#: The options of `check` and `run` that no tool has.
_UNUSED: dict[str, Any] = {
    "backend": None, "baseline": None, "color": "never", "details": False, "exit_zero": True, "fail_on": None,
    "formats": (), "html": None, "ignore": None, "jobs": None, "live": False, "nproc": None, "output": None,
    "select": None, "statistics": False, "update_baseline": False,
}  # fmt: skip


class NotPossible(Exception):
    """The call can't be done as it was made; the message says what to change."""


@dataclass(frozen=True)
class Program:
    """What a tool was asked to run. ``script``: a path relative to ``cwd``, a name in ``[tool.magpy]``, or ``-m MODULE``."""

    script: str | None
    args: list[str]
    cwd: str | None
    python: str | None
    steps: int | None
    timeout: float | None

    def options(self) -> dict[str, Any]:
        """As the command line has them."""
        folder = os.path.abspath(self.cwd or os.curdir)
        if not os.path.isdir(folder):
            raise NotPossible(f"cwd: {folder} is not a folder.")
        script, module = self.script, None
        if script is not None and script.startswith("-m "):
            module, script = script.removeprefix("-m ").strip(), None
        elif script is not None and os.path.exists(os.path.join(folder, script)):
            script = os.path.join(folder, script)
        return {
            "entrypoint": script, "module": module, "cwd": self.cwd and folder, "python": self.python,
            "steps": self.steps, "timeout": self.timeout,
        }  # fmt: skip


def settings_of(mode: str, program: Program, more: Mapping[str, Any]) -> ResolvedSettings:
    """The settings of one run of the program, with those of its project."""

    def one() -> ResolvedSettings:
        found = resolve(mode, program.args, {**_UNUSED, **program.options(), **more})
        if len(found) > 1:
            names = ", ".join(settings.title for settings in found)
            raise NotPossible(f"script: name one of the configured entrypoints: {names}.")
        open_baseline(found[0])
        return found[0]

    return checked(program, one)


def checked(program: Program, resolved: Callable[[], T]) -> T:
    """The result of ``resolved``; errors of the command line, which it raises, are the tool's."""
    options = program.options()
    try:
        load_for(config_start(options["entrypoint"], options["cwd"] or os.getcwd()))
        return resolved()
    except ConfigError as error:
        raise NotPossible(" ".join(str(problem) for problem in error.problems)) from None
    except click.ClickException as error:
        raise NotPossible(error.format_message()) from None


@dataclass
class Runner:
    """Runs programs, one at a time."""

    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self, settings: ResolvedSettings, tell: Tell, *, details: bool = False) -> Finished:
        """``details``: its report has what fixes are made of."""
        now = _Now(settings.steps)
        async with _told(now, tell), self._turn:
            now.start()
            began = time.time_ns()
            stdout, stderr = Tail(), Tail()  # apart, since they would mix within lines
            request = settings.request(stdin="null", stdout=stdout, stderr=stderr)
            handle = launch_async(replace(request, details=details), settings.nproc)
            try:
                async for message in handle:
                    now.take(message)
                outcome = await handle.wait()
            finally:
                with anyio.CancelScope(shield=True):
                    await handle.aclose()
            parts = [part.rstrip(b"\n") for part in (stdout.bytes(), stderr.bytes())]
            return Finished(settings, outcome, False, b"\n".join(filter(None, parts)), began)

    async def compare(self, settings: ResolvedSettings, tell: Tell) -> dict[str, Any]:
        """The verdict of whole runs, compiled and in eager mode, as ``magpy-lsp verify`` has it. Raises NoVerdict."""
        now = _Now(settings.steps)
        async with _told(now, tell), self._turn:
            now.start()
            runs = _Pair(settings)
            working = asyncio.ensure_future(asyncio.to_thread(runs.compare, now.says))
            try:
                return await asyncio.shield(working)
            except asyncio.CancelledError:
                runs.cancel()
                with anyio.CancelScope(shield=True), suppress(NoVerdict):
                    await working
                raise


class _Pair:
    """Runs of one program, one after the other in a thread."""

    def __init__(self, settings: ResolvedSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._handle: Any = None
        self._is_cancelled = False

    def compare(self, says: Callable[[str], None]) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="magpy-verify-") as base:
            runs = PairedRuns(self._settings.request(stdin="null"), Path(base), self._launch)
            return compare(runs, self._settings.title, says)

    def _launch(self, request: RunRequest) -> Any:
        with self._lock:
            if self._is_cancelled:
                raise NoVerdict("It was cancelled.")
            self._handle = launch(request)
            return self._handle

    def cancel(self) -> None:
        with self._lock:
            self._is_cancelled = True
            if self._handle is not None:
                self._handle.cancel()


class _Now:
    """What a run does now, in a few words."""

    def __init__(self, steps: int) -> None:
        self._of = f" of {steps:,}" if steps else ""
        self._compiling = CompileProgress()
        self._doing = "waiting for the end of another program"

    def start(self) -> None:
        self._doing = "starting Python"

    def says(self, doing: str) -> None:
        self._doing = doing

    def take(self, message: Message) -> None:
        if message["type"] == "started":
            self._doing = "running the program"
        elif message["type"] == "step":
            self._doing = f"step {message['n']:,}{self._of}" if self._of else count(message["n"], "step")
        elif message["type"] == "compiling":
            self._compiling.take(message)
        elif message["type"] == "lowering":
            self._doing = f"{message['done']} of {count(message['of'], 'graph')} compiled for the device"

    def text(self) -> str:
        return "; ".join(filter(None, (self._doing, self._compiling.text())))


@asynccontextmanager
async def _told(now: _Now, tell: Tell) -> AsyncIterator[None]:
    """Tells again and again what happens: clients end a call that is silent for long."""
    started = time.monotonic()

    async def follow() -> None:
        while True:
            await tell(round(time.monotonic() - started, 3), now.text())
            await asyncio.sleep(_TELL_EVERY)

    telling = asyncio.ensure_future(follow())
    try:
        yield
    finally:
        telling.cancel()
        with suppress(asyncio.CancelledError, Exception):  # the client has left: the call ends by itself
            await telling

"""Runs the worker process from the event loop. Key types: RunOptions, Worker."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from lsp_server.config import ConfigError, Loaded, load_for
from lsp_server.features.settings import Settings
from lsp_server.interpreters import find_interpreter, of_project
from lsp_server.selection import Selection
from magpy_core.findings import Finding
from magpy_core.runner.launch import AsyncRunHandle, launch_async
from magpy_core.runner.protocol import Message
from magpy_core.runner.request import SESSIONS, Outcome, RunRequest

_CHECK_STEPS = 3
_CHUNKS_IN_FLIGHT = 16
_ROOM_TIMEOUT = 1.0
_IN_EDITOR = {
    " with --python": " in the setting magpy.interpreter",
    "raise --timeout": "raise the setting magpy.timeout",
    "lower --steps": "lower the setting magpy.steps",
}
_WAITS = re.compile(r"`--compile\s+foreground`")  # in a table's text, on two lines


class Refused(Exception):
    """The run can't be started; ``findings`` point at the reason."""

    def __init__(self, message: str, findings: list[Finding]) -> None:
        super().__init__(message)
        self.findings = findings


@dataclass(frozen=True)
class RunOptions:
    """The options of a command; None: use the editor's setting, ``[tool.magpy]`` or the default, in this order."""

    mode: Literal["check", "run"]
    script: str | None
    module: str | None
    cwd: str
    config_start: Path
    args: tuple[str, ...] | None = None
    steps: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    engine: str = "magpy"
    python: str | None = None
    timeout: float | None = None
    nproc: int = 0
    device: str | None = None  # that kernels are made for; empty: none


class Worker:
    """One worker process. ``output`` is called on the event loop; a program that writes too fast has to wait."""

    def __init__(self, options: RunOptions, settings: Settings, output: Callable[[str, bytes], None]) -> None:
        self.loaded = loaded = _configuration(options)
        self._nproc = options.nproc
        self._output = output
        self._loop = asyncio.get_running_loop()
        self._room = threading.Semaphore(_CHUNKS_IN_FLIGHT)
        self._handle: AsyncRunHandle | None = None
        self.selection = selection_of(loaded)
        self.request = self._request(options, settings, loaded)

    def _request(self, options: RunOptions, settings: Settings, loaded: Loaded) -> RunRequest:
        config = loaded.settings
        # torch.compile's findings do not depend on the backend, so a check uses the fastest one to compile.
        untimed = options.engine == "dynamo" and options.mode == "check"
        timeouts = (options.timeout, settings.timeout, config.timeout)
        timeout = next((t for t in timeouts if t is not None), None)
        steps = _steps(options, settings, config.steps)
        return RunRequest(
            mode="run" if untimed else options.mode,
            script=options.script,
            module=options.module,
            args=list(options.args if options.args is not None else settings.args),
            python=_interpreter(options, settings),
            cwd=options.cwd,
            env={**os.environ, **settings.env, **options.env},
            steps=steps,
            # a few steps are run to see what compiled code does
            compile="foreground" if steps or settings.compile == "foreground" else "background",
            timeout=timeout or None,
            backend="eager" if untimed else settings.backend or config.backend or "inductor",
            session_factory=SESSIONS[options.engine],
            regions=list(config.regions),
            call_policy=dict(config.call_policy),
            stdin="null",
            stdout=partial(self._chunk, "stdout"),
            stderr=partial(self._chunk, "stderr"),
            target=_device(options, settings, config.target),
            details=True,  # guards, graphs and code for hovers, hints and views
        )

    def start(self) -> AsyncIterator[Message]:
        """Starts the process and yields its messages until it ends."""
        self._handle = launch_async(self.request, self._nproc)
        return aiter(self._handle)

    async def wait(self) -> Outcome:
        """Waits for the outcome."""
        assert self._handle is not None, "started first"
        return await self._handle.wait()

    async def close(self) -> None:
        """Kills the process tree if it still exists and waits for its end, even if the task is cancelled repeatedly."""
        if self._handle is None:
            return
        closing = asyncio.ensure_future(self._handle.aclose())
        cancelled = False
        while not closing.done():
            try:
                await asyncio.shield(closing)
            except asyncio.CancelledError:
                cancelled = True  # a shutdown cancels all tasks, some of which cancel this one again
        if cancelled:
            raise asyncio.CancelledError
        closing.result()

    def _chunk(self, stream: str, data: bytes) -> None:
        # On a thread of the runner. The bound keeps excess output in the program's pipe, not in our memory.
        while not self._room.acquire(timeout=_ROOM_TIMEOUT):
            if self._loop.is_closed():
                return
        try:
            self._loop.call_soon_threadsafe(self._arrived, stream, data)
        except RuntimeError:
            self._room.release()  # the loop is closed

    def _arrived(self, stream: str, data: bytes) -> None:
        self._room.release()
        self._output(stream, data)


def _interpreter(options: RunOptions, settings: Settings) -> str | None:
    """An entrypoint's own Python (a file, a name on PATH, the folder of a virtual environment), else the editor's, else its
    project's."""
    if options.python is None:
        return settings.interpreter or of_project(options.config_start, {**os.environ, **settings.env})
    return find_interpreter(options.python) or options.python  # starting it reports the error


def _steps(options: RunOptions, settings: Settings, configured: int | None) -> int:
    if options.steps is not None:
        return options.steps
    if options.mode == "run":
        return 0
    chosen = settings.steps if settings.steps is not None else configured
    return _CHECK_STEPS if chosen is None else chosen


def _device(options: RunOptions, settings: Settings, configured: str | None) -> str:
    """The device that a check compiles its captures for after the program's end; empty: none."""
    if options.mode != "check" or options.engine != "magpy":
        return ""
    return next((name for name in (options.device, settings.target, configured) if name is not None), "")


def _configuration(options: RunOptions) -> Loaded:
    try:
        return load_for(options.config_start)
    except ConfigError as error:
        first = error.problems[0]
        message = f"{first.file.name}:{first.line}: {first.sentence}"
        raise Refused(message, [problem.finding() for problem in error.problems]) from None


def selection_of(loaded: Loaded) -> Selection:
    """The project's selection and severities of findings."""
    return Selection(loaded.settings.select, loaded.settings.ignore, loaded.settings.severity)


def options_to_settings(message: str) -> str:
    """Replaces the command line's options in a message with the editor's settings."""
    for option, words in _IN_EDITOR.items():
        message = message.replace(option, words)
    return _WAITS.sub("the setting magpy.compile (foreground)", message)

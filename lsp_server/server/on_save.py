"""Checks again when a file is saved, if ``magpy.runOnSave`` is on. Key type: RunOnSave.

Our own extension does this itself, since it knows the selected entrypoint; this is for other clients. A save runs only
programs that the user has checked before, if the saved file belongs to them or is in their folder.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine
from typing import Any, Protocol

from lsp_server.features.documents import key_of, path_of
from lsp_server.features.settings import Settings
from lsp_server.server.runs import Run, RunManager, Untrusted

log = logging.getLogger(__name__)


class Runner(Protocol):
    """The server, as far as it runs programs."""

    runs: RunManager

    @property
    def handles_status(self) -> bool: ...
    async def settings_for(self, uri: str) -> Settings: ...
    def show_progress(self, run: Run) -> None: ...
    def spawn(self, work: Coroutine[Any, Any, None]) -> None: ...


class RunOnSave:
    """One timer per entrypoint: the last of several saves in a row starts the run."""

    def __init__(self, server: Runner) -> None:
        self._server = server
        self._waiting: dict[str, asyncio.TimerHandle] = {}

    async def saved(self, uri: str) -> None:
        """Schedules runs after a file was saved."""
        path = path_of(uri)
        if path is None or not path.endswith(".py") or self._server.handles_status:
            return
        settings = await self._server.settings_for(uri)
        if not settings.run_on_save:
            return
        key = key_of(path)
        for run in self._server.runs.latest():
            folder = os.path.dirname(key_of(run.target.path))
            in_folder = os.path.commonpath([key, folder]) == folder
            if run.mode == "check" and (in_folder or key in run.found.files()):
                self._schedule(run, settings.run_on_save_delay)

    def _schedule(self, run: Run, delay: float) -> None:
        before = self._waiting.pop(run.target.key, None)
        if before is not None:
            before.cancel()
        loop = asyncio.get_running_loop()
        self._waiting[run.target.key] = loop.call_later(delay, lambda: self._server.spawn(self._start(run)))

    async def _start(self, run: Run) -> None:
        self._waiting.pop(run.target.key, None)
        settings = await self._server.settings_for(run.target.uri)
        try:
            await self._server.runs.start(run.target, "check", settings, self._server.show_progress)
        except Untrusted as error:
            log.info("not run on save: %s", error)

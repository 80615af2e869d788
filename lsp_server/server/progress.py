"""Work-done progress of a run, if the client supports it. Key function: report_progress."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from lsp_server.server.runs import Run

log = logging.getLogger(__name__)
_INTERVAL = 0.1


class RunProgress:
    """The progress bar of one run, with a unique token."""

    def __init__(self, server: LanguageServer, run: Run, cancel: Callable[[], None]) -> None:
        self._server = server
        self._run = run
        self._cancel = cancel
        self._token = f"magpy-{uuid.uuid4()}"
        self._shown = False
        self._ended = False
        self._last = 0.0
        self._pending_report: asyncio.TimerHandle | None = None

    async def show(self) -> None:
        """Requests a progress bar from the client. The run does not wait for the response."""
        progress = self._server.work_done_progress
        try:
            await progress.create_async(self._token)
        except (JsonRpcException, asyncio.CancelledError) as error:
            log.info("the client does not show progress: %r", error)
            return
        if self._ended:
            return
        percentage = None if self._run.percentage is None else 0  # without a number of steps, progress is indeterminate
        message = self._run.summary()
        begin = types.WorkDoneProgressBegin("MagPy", cancellable=True, message=message, percentage=percentage)
        progress.begin(self._token, begin)
        self._shown = True
        progress.tokens[self._token].add_done_callback(lambda future: self._cancel() if future.cancelled() else None)

    def update(self) -> None:
        """Updates the bar after the run progressed or ended."""
        if self._ended:
            return
        progress = self._server.work_done_progress
        if not self._run.state.active:
            self._ended = True
            if self._shown:
                progress.end(self._token, types.WorkDoneProgressEnd(message=self._run.summary()))
            progress.tokens.pop(self._token, None)
            if self._pending_report is not None:
                self._pending_report.cancel()
        elif self._shown and self._pending_report is None:
            wait = self._last + _INTERVAL - time.monotonic()
            if wait > 0:
                # The last of many updates must be shown too: the next one may be minutes later.
                self._pending_report = asyncio.get_running_loop().call_later(wait, self._report)
            else:
                self._report()

    def _report(self) -> None:
        self._pending_report = None
        if not self._ended:
            self._last = time.monotonic()
            report = types.WorkDoneProgressReport(message=self._run.summary(), percentage=self._run.percentage)
            self._server.work_done_progress.report(self._token, report)


def report_progress(server: LanguageServer, run: Run, cancel: Callable[[], None]) -> RunProgress | None:
    """A progress bar for ``run``, or None if the client has none. Call ``update`` when the run changes."""
    window = server.client_capabilities.window
    return RunProgress(server, run, cancel) if window is not None and window.work_done_progress else None

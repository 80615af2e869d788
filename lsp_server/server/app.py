"""The server object: the client's capabilities, documents, runs and board. Key types: MagpyServer, MagpyProtocol."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.language_server import lsp_method

from lsp_server.features.diagnostics import Board
from lsp_server.features.documents import Documents, path_of
from lsp_server.features.entrypoint import entrypoint_line
from lsp_server.features.settings import SECTION, Settings, parse_settings
from lsp_server.features.tables import table_diagnostics
from lsp_server.server.comparing import Comparison
from lsp_server.server.live import LiveFeed
from lsp_server.server.notebook_sync import SYNC, Notebooks
from lsp_server.server.on_save import RunOnSave
from lsp_server.server.output import OutputPump
from lsp_server.server.progress import report_progress
from lsp_server.server.runs import Mode, Run, RunManager, Untrusted
from lsp_server.server.targets import Target, target_of
from magpy_core import __version__
from magpy_core.findings import Finding, Severity

log = logging.getLogger(__name__)

STATUS, OUTPUT, LIVE, CODES, TRUST = "magpy/status", "magpy/output", "magpy/live", "magpy/codes", "magpy/trust"
_PUBLISH_DELAY = 0.05
_SETTINGS_TIMEOUT = 5.0


class MagpyProtocol(LanguageServerProtocol):
    """pygls's protocol, with fixes for requests that get no response and runs that would not end.

    pygls runs a command in a second future behind the request's, so ``$/cancelRequest`` would not stop it. It never responds
    to a request that it can't parse, or to one of our requests without params.
    """

    def structure_message(self, data: dict[str, Any]) -> Any:
        if "jsonrpc" in data and "method" in data and self.get_message_type(data["method"]) is None:
            data.setdefault("params", None)
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                self._send_response(data["id"], error=error.to_response_error())
            raise

    def notify_text(self, method: str, params: str) -> None:
        """Like ``notify``, for params that are already ASCII JSON."""
        body = f'{{"jsonrpc":"2.0","method":"{method}","params":{params}}}'.encode("ascii")
        if self.writer is not None:
            self.writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)  # stdio's writer, which writes at once

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(self, params: types.ExecuteCommandParams) -> Any:  # type: ignore[override]
        handler = self.fm.commands.get(params.command)
        if handler is None:
            raise JsonRpcInvalidParams(f"unknown command {params.command!r}; known: {', '.join(self.fm.commands)}")
        return await handler(list(params.arguments or ()))


class MagpyServer(LanguageServer):
    """State shared by all handlers, and all messages to the client."""

    def __init__(self) -> None:
        super().__init__("magpy", __version__, notebook_document_sync=SYNC, protocol_cls=MagpyProtocol)
        self.documents = Documents()
        self.board = Board(self.documents)
        self.runs = RunManager(self, self.documents, self.board)
        self.saves = RunOnSave(self)
        self.notebooks = Notebooks(self)
        self.shutdown_requested = False
        self.closing = False
        self.background: set[asyncio.Task[Any]] = set()
        self._pushed: Settings = Settings()
        self._dirty: set[str] = set()
        self._publish_timer: asyncio.TimerHandle | None = None
        self._pumps: dict[int, OutputPump] = {}
        self._shown_problems: set[str] = set()
        self._settings_lock = asyncio.Lock()
        self._stale: dict[int, bool] = {}

    # Client capabilities

    @property
    def encoding(self) -> str:
        chosen = self.server_capabilities.position_encoding
        return str(getattr(chosen, "value", chosen) or types.PositionEncodingKind.Utf16.value)

    @property
    def hover_markdown(self) -> bool:
        text = self.client_capabilities.text_document
        formats = text.hover.content_format if text and text.hover else None
        return types.MarkupKind.Markdown in (formats or ())

    @property
    def handles_status(self) -> bool:
        """Whether the client is our extension, which shows failures from ``magpy/status``, and diagnostics above a hover.

        Other clients get failures as messages, and the findings' messages in the hover text.
        """
        return self.announces("magpyStatus")

    @property
    def shows_documents(self) -> bool:
        window = self.client_capabilities.window
        return bool(window and window.show_document and window.show_document.support)

    @property
    def has_lenses(self) -> bool:
        text = self.client_capabilities.text_document
        return bool(text and text.code_lens)

    def announces(self, capability: str) -> bool:
        """Whether the client has an experimental capability of ours."""
        experimental = self.client_capabilities.experimental
        return isinstance(experimental, Mapping) and bool(experimental.get(capability))

    def shows_message(self, finding: Finding, severity: Severity) -> bool:
        """Whether the client shows the finding's message above a hover."""
        return self.handles_status and self.board.is_diagnosed(finding, severity)

    # Settings

    def push_settings(self, raw: object) -> None:
        self._pushed, problems = parse_settings(raw)
        self._show_problems(problems)

    async def settings_for(self, uri: str) -> Settings:
        """The settings for a file, requested from the client if it supports that."""
        workspace = self.client_capabilities.workspace
        if workspace is None or not workspace.configuration:
            return self._pushed
        item = types.ConfigurationItem(scope_uri=uri, section=SECTION)
        try:
            request = self.workspace_configuration_async(types.ConfigurationParams([item]))
            response = await asyncio.wait_for(request, _SETTINGS_TIMEOUT)
        except (TimeoutError, JsonRpcException) as error:
            log.warning("the client did not return its settings: %r", error)
            return self._pushed
        if not response or response[0] is None:  # it has none for us, but perhaps had some at its start
            return self._pushed
        settings, problems = parse_settings(response[0])
        self._show_problems(problems)
        return settings

    def _show_problems(self, problems: list[str]) -> None:
        for problem in problems:
            if problem not in self._shown_problems:  # settings are requested before every run; one message is enough
                self._shown_problems.add(problem)
                self.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"MagPy: {problem}."))

    async def settings_changed(self) -> None:
        """Applies the new severities to shown findings and to running programs."""
        async with self._settings_lock:  # the response to an older request must not come last
            for found in self.board.known():
                found.settings = await self.settings_for(found.uri)
        self.changed(self.board.keys())
        for run in self.runs.latest():
            if not run.state.active:
                self._notify(STATUS, run.result())  # its counts have changed
        self.lenses_changed()

    # Commands

    async def execute(self, mode: Mode, arguments: list[Any]) -> dict[str, Any]:
        """Starts a run; returns at its end, or at once with ``wait: false``. Cancelling the request stops the run."""
        target, settings, wait = await self._run_arguments(
            "magpy.check" if mode == "check" else "magpy.runCompiled", arguments
        )
        run = await self._start(target, mode, settings)
        if wait:
            await self.runs.wait(run)
        return run.result()

    async def compare(self, arguments: list[Any]) -> dict[str, Any]:
        """Runs the program under MagPy, then torch.compile; returns at the end of both, or at once with ``wait: false``."""
        target, settings, wait = await self._run_arguments("magpy.compare", arguments)
        comparison = Comparison(target, lambda one: self._start(one, "compiled", settings), self.runs.wait, self.output)
        if wait:
            return await comparison.run()
        first = await comparison.begin()
        self.spawn(comparison.finish())
        return first.result()

    async def _run_arguments(self, command: str, arguments: list[Any]) -> tuple[Target, Settings, bool]:
        """The target of a run command, its settings, and whether to wait for the end of the run."""
        argument = arguments[0] if len(arguments) == 1 else None
        if not arguments:
            argument = self._usual_argument(command)
        uri = argument.get("uri") if isinstance(argument, Mapping) else None
        settings = await self.settings_for(uri) if isinstance(uri, str) else self._pushed
        target = target_of(command, argument, settings, self.folder_of)
        try:
            target = self.notebooks.target(target)
        except ValueError as error:
            raise JsonRpcInvalidParams(f"{command}: {error}") from None
        return target, settings, not (isinstance(argument, Mapping) and argument.get("wait") is False)

    def _usual_argument(self, command: str) -> dict[str, Any]:
        """For a command without arguments, from a client's list of commands: the program that the user is in, else the last
        one. A message says if there is none, since such a client may show no response."""
        recent, last = self.documents.recent, self.runs.latest()
        if recent is not None and recent.path is not None and entrypoint_line(recent.lines) is not None:
            return {"uri": recent.uri, "wait": False}
        if last:
            run = last[-1].target
            named = {"name": run.name} if run.name else {}
            return {"uri": run.uri, "module": run.module, "wait": False, **named}
        problem = f"{command} needs a program: open one, or check it from its first line"
        self.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"MagPy: {problem}."))
        raise JsonRpcInvalidParams(f"{problem}; arguments: {{uri, name?, module?, args?, steps?, cwd?, env?}}")

    async def _start(self, target: Target, mode: Mode, settings: Settings) -> Run:
        try:
            return await self.runs.start(target, mode, settings, self.show_progress)
        except Untrusted as error:
            raise JsonRpcException(str(error), code=types.LSPErrorCodes.RequestFailed.value) from None

    def show_progress(self, run: Run) -> None:
        """Shows how the run is going from its first change on: in its progress bar, and in the client's own view."""
        run.on_change.remove(self.show_progress)
        progress = report_progress(self, run, lambda: self.spawn(self.runs.stop(run)))
        if progress is not None:
            run.on_change.append(lambda _: progress.update())
            self.spawn(progress.show())
        if run.mode == "compiled" and self.announces("magpyLive"):
            self.spawn(LiveFeed(lambda params: self._notify(LIVE, params)).follow(run))

    def folder_of(self, path: str) -> str:
        """The working directory of a program: its workspace folder, as in the editor's terminal, else its own folder."""
        holding = [folder for folder in self.folders() if os.path.commonpath([folder, path]) == folder]
        return max(holding, key=len, default=os.path.dirname(path))

    def folders(self) -> list[str]:
        """The workspace's folders on disk."""
        uris = [folder.uri for folder in self.workspace.folders.values()] or [self.workspace.root_uri or ""]
        return [path for uri in uris if (path := path_of(uri))]

    def check_table(self, key: str) -> None:
        """Publishes the problems of a pyproject.toml, from its open text, else from the file on disk."""
        document = self.documents.of_key(key)
        try:
            text = document.text if document is not None else Path(key).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            text = ""  # deleted, or not text: no diagnostics
        if self.board.set_own_diagnostics(key, table_diagnostics(key, text, self.encoding)):
            self.changed({key})

    # Notifications of runs (runs.Client)

    def status(self, run: Run) -> None:
        if not run.state.active:
            pump = self._pumps.pop(run.id, None)
            if pump is not None:
                pump.close()
            if run.failure and not self.closing and not self.handles_status:
                self.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"MagPy: {run.summary()}"))
        self._notify(STATUS, run.result())

    def output(self, run: Run, stream: str, data: bytes) -> None:
        pump = self._pumps.get(run.id)
        if pump is None:
            head = {"entrypoint": run.target.entrypoint, "uri": run.target.uri, "runId": run.id, "mode": run.mode}
            pump = OutputPump(lambda name, text: self._notify(OUTPUT, {**head, "channel": name, "text": text}))
            self._pumps[run.id] = pump
        pump.feed(stream, data)

    def changed(self, keys: set[str], *, typed: bool = False) -> None:
        """Schedules publishing the diagnostics of these files; at once if the user is editing (``typed``)."""
        self._dirty |= keys
        if typed and self._publish_timer is not None:
            self._publish_timer.cancel()
            self._publish_timer = None
        if self._dirty and self._publish_timer is None and not self.closing:
            delay = 0.0 if typed else _PUBLISH_DELAY
            self._publish_timer = asyncio.get_running_loop().call_later(delay, self.publish)

    def publish(self) -> None:
        if self._publish_timer is not None:
            self._publish_timer.cancel()
            self._publish_timer = None
        dirty, self._dirty = self._dirty, set()
        for key in sorted(dirty):
            for publication in self.board.diagnostics(key):
                if not self.closing:
                    self._send_text(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, publication.params())

    def text_changed(self) -> None:
        """Notifies the client of runs that became outdated by an edit, or up to date again by an undo."""
        for run in self.runs.latest():
            if not run.state.active and self._stale.get(run.id, False) != run.stale:
                self._stale = {known.id: known.stale for known in self.runs.latest()}
                self._notify(STATUS, run.result())

    def lenses_changed(self) -> None:
        workspace = self.client_capabilities.workspace
        if workspace and workspace.code_lens and workspace.code_lens.refresh_support and not self.closing:
            self.spawn(self._refresh_lenses())
        if workspace and workspace.inlay_hint and workspace.inlay_hint.refresh_support and not self.closing:
            self.spawn(self._refresh_hints())

    async def _refresh_lenses(self) -> None:
        try:
            await self.workspace_code_lens_refresh_async(None)
        except JsonRpcException as error:
            log.info("the client did not refresh its code lenses: %s", error)

    async def _refresh_hints(self) -> None:
        try:
            await self.workspace_inlay_hint_refresh_async(None)
        except JsonRpcException as error:
            log.info("the client did not refresh its inlay hints: %s", error)

    def _send_text(self, method: str, params: str) -> None:
        """Sends a notification whose params are already JSON."""
        assert isinstance(self.protocol, MagpyProtocol)
        try:
            self.protocol.notify_text(method, params)
        except BrokenPipeError:
            self.closing = True

    def _notify(self, method: str, params: object) -> None:
        if self.closing:
            return
        try:
            self.protocol.notify(method, params)
        except BrokenPipeError:
            self.closing = True  # the client has exited; the end of stdin ends the server

    # Lifetime

    def spawn(self, work: Any) -> None:
        """Runs a coroutine in the background and logs its failure."""
        task = asyncio.ensure_future(work)
        self.background.add(task)
        task.add_done_callback(self._spawned)

    def _spawned(self, task: asyncio.Task[Any]) -> None:
        self.background.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("background task failed", exc_info=task.exception())

    async def end(self, code: int) -> None:
        """Stops every run and exits, even if the reader of stdin is blocked."""
        self.closing = True
        await self.runs.close()
        self.notebooks.close()
        logging.shutdown()
        os._exit(code)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Logs the error; the default shows a message box for every failed notification."""
        log.error("%s: %s", getattr(source, "__name__", source), error, exc_info=error)

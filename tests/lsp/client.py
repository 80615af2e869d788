"""A small LSP client for tests: stdio, everything received is kept, waits are on conditions. Key type: Client."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.lsp.spare import Spare

PATIENCE = 30.0
RUN_PATIENCE = 240.0  # for a program's whole run, which may compile
ROOT = Path(__file__).resolve().parents[2]
VSCODE = json.loads((Path(__file__).parent / "vscode_capabilities.json").read_text())

Json = dict[str, Any]
SERVER = (sys.executable, "-P", "-m", "lsp_server.server.main")
OMIT = object()  # as params: send none at all


class ServerError(Exception):
    """An error response."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: int = error["code"]


class Client:
    """Speaks LSP with one server process."""

    def __init__(self, process: asyncio.subprocess.Process | Spare) -> None:
        self.process = process
        self.received: list[Json] = []
        self.requested: list[Json] = []
        self.settings: Json = {}
        self.folder_settings: dict[str, Json] = {}  # by the beginning of a file's URI
        self.config: Json | None = None  # for a client that looks up a section in one document
        self.answer_progress = True
        self.replies: Json = {}  # to the server's requests, by method
        self.stderr = b""
        self._news = asyncio.Condition()
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._id = 0
        self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._complaints())]

    @classmethod
    async def start(cls, env: Mapping[str, str] | None = None, command: Sequence[str] = SERVER) -> Client:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
            limit=1 << 26,
        )
        return cls(process)

    async def initialize(
        self,
        capabilities: Json = VSCODE,
        *,
        folder: Path | None = None,
        process_id: int | None = None,
        options: Json | None = None,
        more_folders: Sequence[Path] = (),
    ) -> Json:
        chosen = [*([folder] if folder is not None else []), *more_folders]
        folders = [{"uri": path.as_uri(), "name": path.name} for path in chosen] or None
        result = await self.request(
            "initialize",
            {
                "processId": process_id,
                "rootUri": folders[0]["uri"] if folders else None,
                "capabilities": capabilities,
                "workspaceFolders": folders,
                "initializationOptions": options,
            },
        )
        self.notify("initialized", {})
        assert isinstance(result, dict)
        return result

    # Sending

    def _send(self, message: Json) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def notify(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def begin(self, method: str, params: Any) -> tuple[int, asyncio.Future[Any]]:
        """Send a request; its id and the answer to come."""
        self._id += 1
        self._answers[self._id] = asyncio.get_running_loop().create_future()
        self._send(
            {"id": self._id, "method": method} if params is OMIT else {"id": self._id, "method": method, "params": params}
        )
        return self._id, self._answers[self._id]

    async def request(self, method: str, params: Any, patience: float = PATIENCE) -> Any:
        return await asyncio.wait_for(self.begin(method, params)[1], patience)

    async def command(self, command: str, *arguments: Any) -> Any:
        patience = RUN_PATIENCE if command in ("magpy.check", "magpy.compare") else PATIENCE
        params = {"command": command, "arguments": list(arguments)}
        return await self.request("workspace/executeCommand", params, patience)

    def begin_command(self, command: str, *arguments: Any) -> tuple[int, asyncio.Future[Any]]:
        return self.begin("workspace/executeCommand", {"command": command, "arguments": list(arguments)})

    def open(self, path: Path, text: str | None = None, version: int = 1) -> str:
        uri = path.as_uri()
        source = path.read_text(encoding="utf-8") if text is None else text
        item = {"uri": uri, "languageId": "python", "version": version, "text": source}
        self.notify("textDocument/didOpen", {"textDocument": item})
        return uri

    def change(self, uri: str, version: int, *changes: tuple[int, int, int, int, str]) -> None:
        """Incremental changes: (start line, start character, end line, end character, new text), in UTF-16 units."""
        events = [
            {"range": {"start": {"line": a, "character": b}, "end": {"line": c, "character": d}}, "text": text}
            for a, b, c, d, text in changes
        ]
        self.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": events})

    async def sync(self) -> None:
        """Everything sent so far was handled when this returns."""
        await self.request(
            "textDocument/hover", {"textDocument": {"uri": "file:///none"}, "position": {"line": 0, "character": 0}}
        )

    # Receiving

    async def _listen(self) -> None:
        out = self.process.stdout
        assert out is not None
        while True:
            try:
                header = await out.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            # Anything else on the wire is a corrupted wire: the test that owns this client must fail.
            assert header.startswith(b"Content-Length: "), header
            length = int(header.split(b"\r\n")[0].split(b":")[1])
            await self._receive(json.loads(await out.readexactly(length)))
        for future in self._answers.values():
            if not future.done():
                future.set_exception(ConnectionError("the server is gone"))
        async with self._news:
            self._news.notify_all()

    async def _complaints(self) -> None:
        assert self.process.stderr is not None
        while data := await self.process.stderr.read(1 << 16):
            self.stderr += data

    async def _receive(self, message: Json) -> None:
        if "method" not in message:
            future = self._answers[message["id"]]
            if not future.done():
                if "error" in message:
                    future.set_exception(ServerError(message["error"]))
                else:
                    future.set_result(message.get("result"))
            return
        if "id" in message:
            self.requested.append(message)
            self._reply(message)
        async with self._news:
            self.received.append(message)
            self._news.notify_all()

    def _reply(self, message: Json) -> None:
        if message["method"] == "workspace/configuration":
            answer = [self._settings_of(item) for item in message["params"]["items"]]
            self._send({"id": message["id"], "result": answer})
        elif message["method"] != "window/workDoneProgress/create" or self.answer_progress:
            self._send({"id": message["id"], "result": self.replies.get(message["method"])})

    def _settings_of(self, item: Json) -> Json | None:
        if self.config is not None:
            return self.config.get(item["section"])
        uri = item.get("scopeUri", "")
        own = (settings for start, settings in self.folder_settings.items() if uri.startswith(start))
        return next(own, self.settings)

    def all(self, method: str) -> list[Any]:
        return [m["params"] for m in self.received if m["method"] == method]

    async def until(self, found: Callable[[], Any], what: str) -> Any:
        """Wait until ``found()`` is truthy; returns it."""

        async def wait() -> Any:
            async with self._news:
                while not (value := found()):
                    if self.process.returncode is not None:
                        raise ConnectionError(f"the server is gone: {self.stderr.decode()}")
                    await self._news.wait()
                return value

        try:
            return await asyncio.wait_for(wait(), PATIENCE)
        except TimeoutError:
            raise AssertionError(f"never came: {what}; stderr: {self.stderr.decode()[-2000:]}") from None

    async def status(self, **wanted: Any) -> Json:
        """Wait for a status with these fields."""
        return await self.until(  # type: ignore[no-any-return,unused-ignore]
            lambda: next((s for s in self.all("magpy/status") if wanted.items() <= s.items()), None), f"status {wanted}"
        )

    def diagnostics(self, uri: str) -> list[Json]:
        """The latest published."""
        latest = [p["diagnostics"] for p in self.all("textDocument/publishDiagnostics") if p["uri"] == uri]
        return latest[-1] if latest else []

    async def diagnostics_where(self, uri: str, good: Callable[[list[Json]], Any], what: str) -> list[Json]:
        await self.until(lambda: good(self.diagnostics(uri)), f"diagnostics: {what}")
        return self.diagnostics(uri)

    def output(self, channel: str) -> str:
        return "".join(o["text"] for o in self.all("magpy/output") if o["channel"] == channel)

    # Ending

    async def stop(self) -> None:
        if self.process.returncode is None:
            try:
                await self.request("shutdown", None)
                self.notify("exit", None)
                await asyncio.wait_for(self.process.wait(), PATIENCE)
            except (ConnectionError, TimeoutError):
                self.process.kill()
                await self.process.wait()
                raise
        await asyncio.gather(*self._tasks)

"""LSP methods and commands, each a few lines onto the server object. Key function: register."""

from __future__ import annotations

import logging
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from lsp_server.features import codelens
from lsp_server.features.documents import key_of, path_of
from lsp_server.features.hover import hover_text
from lsp_server.features.settings import SECTION
from lsp_server.features.views import requests as views
from lsp_server.server.app import CODES, MagpyServer
from lsp_server.server.lifetime import on_signal, watch_process
from magpy_core.findings import REGISTRY

log = logging.getLogger(__name__)


def register(server: MagpyServer) -> None:
    """Attach every handler to ``server``."""
    _register_life(server)
    _register_documents(server)
    _register_features(server)
    _register_commands(server)
    views.register(server)


def _register_life(server: MagpyServer) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        options = params.initialization_options
        if isinstance(options, dict):
            server.push_settings(options.get("settings"))
        text = params.capabilities.text_document
        related = text.publish_diagnostics.related_information if text and text.publish_diagnostics else False
        server.board.related_information = bool(related)
        tags = text.publish_diagnostics.tag_support if text and text.publish_diagnostics else None
        server.board.tags = frozenset(tags.value_set if tags else ())
        on_signal(lambda: server.spawn(server.end(1)))
        if params.process_id is not None:
            watch_process(params.process_id, lambda: server.spawn(server.end(1)))

    @server.feature(types.INITIALIZED)
    async def initialized(params: types.InitializedParams) -> None:
        server.board.encoding = server.encoding
        workspace = server.client_capabilities.workspace
        registrations = []
        if workspace and (changes := workspace.did_change_configuration) and changes.dynamic_registration:
            options: Any = types.DidChangeConfigurationRegistrationOptions(section=SECTION)
            registrations.append(types.Registration("magpy-config", types.WORKSPACE_DID_CHANGE_CONFIGURATION, options))
        if workspace and (watched := workspace.did_change_watched_files) and watched.dynamic_registration:
            options = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher("**/*.py")])
            registrations.append(types.Registration("magpy-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options))
        if registrations:
            try:
                await server.client_register_capability_async(types.RegistrationParams(registrations))
            except JsonRpcException as error:
                log.warning("the client registers no change notifications: %s", error)

    @server.feature(types.SHUTDOWN)
    async def shutdown(_params: None) -> None:
        server.shutdown_requested = True
        await server.runs.close()

    @server.feature(types.EXIT)
    def leave(_params: None) -> None:
        # pygls closes the wire next; runs that are still there end with the event loop.
        server.closing = True

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def configuration(params: types.DidChangeConfigurationParams) -> None:
        if isinstance(params.settings, dict) and SECTION in params.settings:
            server.push_settings(params.settings[SECTION])
        await server.settings_changed()


def _register_documents(server: MagpyServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        document = server.documents.open(params.text_document)
        if server.board.replaced(document):
            server.changed({document.key})
            server.text_changed()

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        applied = server.documents.change(params.text_document, params.content_changes, server.encoding)
        if applied is None:
            log.warning("a change of %s, which was never opened", params.text_document.uri)
            return
        document, edits = applied
        if server.board.edited(document, edits):
            server.changed({document.key})
            server.text_changed()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        document = server.documents.close(params.text_document.uri)
        if document is not None and server.board.replaced(document.key):
            server.changed({document.key})
            server.text_changed()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def on_disk(params: types.DidChangeWatchedFilesParams) -> None:
        for event in params.changes:
            path = path_of(event.uri)
            key = key_of(path) if path else None
            # An open file is what the editor says it is, not what is on disk.
            if key and server.documents.of_key(key) is None and server.board.replaced(key):
                server.changed({key})
                server.text_changed()


def _register_features(server: MagpyServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return None
        found = server.board.at(document.key, params.position)
        if not found:
            return None
        markdown = server.hover_markdown
        kind = types.MarkupKind.Markdown if markdown else types.MarkupKind.PlainText
        rated = [(finding, severity) for finding, severity, _ in found]
        text = hover_text(rated, markdown=markdown, messages=not server.handles_status)
        narrowest = min((where for *_, where in found), key=lambda r: (r.end.line - r.start.line, r.end.character))
        return types.Hover(types.MarkupContent(kind, text), narrowest)

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        document = server.documents.get(params.text_document.uri)
        if document is None or document.path is None:
            return []
        if not (await server.settings_for(document.uri)).code_lens:
            return []
        run = server.runs.of_uri(document.uri)
        running = None if run is None else f"{run.verb}…"
        return codelens.entry_lenses(document, running) + codelens.region_lenses(document, server.board.runs())

    @server.feature(CODES)
    def codes(_params: Any) -> list[dict[str, str]]:
        """Every finding code with its page, for clients that show them."""
        from magpy_core.findings.docs import markdown

        return [
            {"code": c.code, "name": c.name, "title": c.title, "url": c.url, "page": markdown(c)} for c in REGISTRY.values()
        ]


def _register_commands(server: MagpyServer) -> None:
    @server.command(codelens.CHECK)
    async def check(arguments: list[Any]) -> dict[str, Any]:
        return await server.execute("check", arguments)

    @server.command(codelens.RUN_COMPILED)
    async def run_compiled(arguments: list[Any]) -> dict[str, Any]:
        return await server.execute("compiled", arguments)

    @server.command(codelens.CANCEL)
    async def cancel(arguments: list[Any]) -> dict[str, int]:
        """One entrypoint's run with ``{uri}``, every run without."""
        argument = arguments[0] if arguments else {}
        uri = argument.get("uri") if isinstance(argument, dict) else None
        if not isinstance(uri, (str, type(None))):
            raise JsonRpcInvalidParams("magpy.cancel: uri must be a string")
        return {"cancelled": await server.runs.stop_uri(uri)}

    @server.command(codelens.CLEAR)
    async def clear(_arguments: list[Any]) -> None:
        """Forget all findings."""
        server.changed(server.board.clear())
        server.lenses_changed()

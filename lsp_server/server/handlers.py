"""Handlers of LSP methods and commands, which delegate to the server object. Key function: register."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from lsp_server.features import codelens, inlay, why_not
from lsp_server.features.code_actions import OPEN_REPRODUCER, SHOW_DOCUMENTATION, ActionRequest, actions_for, starting
from lsp_server.features.documents import Document, key_of, path_of, uri_of
from lsp_server.features.hover import hover_text
from lsp_server.features.kernels import kernel_text
from lsp_server.features.positions import from_units, lsp_range
from lsp_server.features.region_hover import guard_text, region_text
from lsp_server.features.settings import SECTION, Settings
from lsp_server.features.tables import FILE, is_table_file
from lsp_server.features.views import requests as views
from lsp_server.links import in_editor, web
from lsp_server.server.app import CODES, TRUST, MagpyServer
from lsp_server.server.kept_runs import KeptRuns
from lsp_server.server.lifetime import on_signal, watch_process
from lsp_server.server.targets import names_for
from magpy_core.findings import REGISTRY, Position

log = logging.getLogger(__name__)


def register(server: MagpyServer) -> None:
    """Registers every handler with ``server``."""
    _register_lifecycle(server)
    _register_documents(server)
    _register_features(server)
    _register_commands(server)
    views.register(server)


def _register_lifecycle(server: MagpyServer) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        options = params.initialization_options
        if isinstance(options, dict):
            # As `settings`, as for `workspace/configuration`, or as they are: a client's own form gives the user no choice.
            server.push_settings(options.get("settings", options.get(SECTION, options)))
            server.runs.trusted = options.get("trusted", True) is True
            storage = options.get("storage")
            if isinstance(storage, str) and os.path.isabs(storage):
                server.runs.kept = KeptRuns(Path(storage) / "runs")
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
            patterns = [types.FileSystemWatcher(pattern) for pattern in ("**/*.py", f"**/{FILE}")]
            options = types.DidChangeWatchedFilesRegistrationOptions(patterns)
            registrations.append(types.Registration("magpy-files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options))
        if registrations:
            try:
                await server.client_register_capability_async(types.RegistrationParams(registrations))
            except JsonRpcException as error:
                log.warning("the client did not register change notifications: %s", error)
        for folder in server.folders():
            server.check_table(os.path.join(folder, FILE))
        for kept in server.runs.kept.read():
            server.runs.restore(kept, await server.settings_for(kept.target.uri))

    @server.feature(TRUST)
    def trust(params: Any) -> None:
        """Updates whether the user trusts the workspace; ends running programs if not."""
        server.runs.trusted = getattr(params, "trusted", False) is True
        if not server.runs.trusted:
            server.spawn(server.runs.stop_uri(None))

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def folders_changed(params: types.DidChangeWorkspaceFoldersParams) -> None:
        for folder in params.event.removed:
            if (path := path_of(folder.uri)) is not None:
                await server.runs.forget(os.path.abspath(path))
        for folder in params.event.added:
            if (path := path_of(folder.uri)) is not None:
                server.check_table(os.path.join(path, FILE))
        await server.settings_changed()

    @server.feature(types.SHUTDOWN)
    async def shutdown(_params: None) -> None:
        server.shutdown_requested = True
        await server.runs.close()

    @server.feature(types.EXIT)
    def leave(_params: None) -> None:
        # pygls closes the connection next; remaining runs end with the event loop.
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
        if is_table_file(document.path):
            server.check_table(document.key)
        if server.board.replaced(document):
            server.changed({document.key})
            server.text_changed()

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        applied = server.documents.change(params.text_document, params.content_changes, server.encoding)
        if applied is None:
            log.warning("the client changed %s, which it never opened", params.text_document.uri)
            return
        document, edits = applied
        if is_table_file(document.path):
            server.check_table(document.key)
        if server.board.edited(document, edits):
            server.changed({document.key}, typed=True)
            server.text_changed()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        document = server.documents.close(params.text_document.uri)
        if document is not None and is_table_file(document.path):
            server.check_table(document.key)
        if document is not None and server.board.replaced(document.key):
            server.changed({document.key})
            server.text_changed()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def on_disk(params: types.DidChangeWatchedFilesParams) -> None:
        for event in params.changes:
            path = path_of(event.uri)
            key = key_of(path) if path else None
            if key and is_table_file(path):
                server.runs.on_config_saved()
                if server.documents.of_key(key) is None:
                    server.check_table(key)
            # The editor's text of an open file takes precedence over the file on disk.
            if key and server.documents.of_key(key) is None and server.board.replaced(key):
                server.changed({key})
                server.text_changed()

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def notebook_opened(params: types.DidOpenNotebookDocumentParams) -> None:
        server.notebooks.opened(params)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def notebook_changed(params: types.DidChangeNotebookDocumentParams) -> None:
        server.notebooks.changed(params)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def notebook_closed(params: types.DidCloseNotebookDocumentParams) -> None:
        server.notebooks.closed(params)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        if is_table_file(path_of(params.text_document.uri)):
            server.runs.on_config_saved()  # also for a client that watches no files
        await server.saves.saved(params.text_document.uri)


def _register_features(server: MagpyServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return None
        if document.path is None:
            return _hover_in_cell(server, document, params.position)
        found = server.board.at(document.key, params.position)
        if not found:
            return _other_hover(server, document, params.position)
        markdown = server.hover_markdown
        kind = types.MarkupKind.Markdown if markdown else types.MarkupKind.PlainText
        rated = [(finding, severity) for finding, severity, _ in found]
        text = hover_text(rated, markdown=markdown, is_above=server.shows_message, docs_url=server.board.docs_url)
        narrowest = min((where for *_, where in found), key=lambda r: (r.end.line - r.start.line, r.end.character))
        other = _other_hover(server, document, params.position)
        if other is not None and isinstance(other.contents, types.MarkupContent):
            text = f"{text}\n\n---\n\n{other.contents.value}" if markdown else f"{text}\n\n{other.contents.value}"
        return types.Hover(types.MarkupContent(kind, text), narrowest)

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        document = server.documents.get(params.text_document.uri)
        if document is None or document.path is None:
            return []
        settings = await server.settings_for(document.uri)
        return lenses_of(document, settings) if settings.code_lens else []

    def lenses_of(document: Document, settings: Settings) -> list[types.CodeLens]:
        assert document.path is not None
        run = server.runs.of_uri(document.uri)
        running = None if run is None else f"{run.verb.removesuffix(' of')}…"
        runs = list(server.board.runs())
        last = next((found for found in reversed(runs) if found.uri == document.uri and found.engine == "magpy"), None)
        names = names_for(document.path, settings, server.folder_of(document.path))
        is_live = run is not None and run.mode == "compiled" and server.announces("magpyLive")
        entry = codelens.entry_lenses(document, running, last, names, is_live=is_live)
        own = server.handles_status
        shown = entry + codelens.region_lenses(document, runs, own=own, running=running is not None)
        return shown + codelens.kernel_lenses(document, runs, own=own)

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    async def inlay_hints(params: types.InlayHintParams) -> list[types.InlayHint]:
        document = server.documents.get(params.text_document.uri)
        if document is None or not (await server.settings_for(document.uri)).inlay_hints:
            return []
        return inlay.hints(document, params.range, list(server.board.runs()), server.encoding)

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(
            [types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite, types.CodeActionKind.Source]
        ),
    )
    async def code_actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return []
        only = [str(getattr(kind, "value", kind)) for kind in params.context.only or ()]
        diagnostics, encoding = params.context.diagnostics, server.encoding
        request = ActionRequest(diagnostics, only, encoding, server.handles_status, server.shows_documents)
        starts: list[types.CodeAction] = []
        if not server.has_lenses and document.path is not None:
            lenses = lenses_of(document, await server.settings_for(document.uri))
            titles = {codelens.CHECK: "", codelens.RUN_COMPILED: "", codelens.CANCEL: "Cancel"}
            starts = starting(lenses, params.range, request, titles)
        found = [(run, finding, where) for run, finding, _, where in server.board.within(document.key, params.range)]
        runs, lines = list(server.board.runs()), range(params.range.start.line, params.range.end.line + 1)
        reasons = why_not.actions(document, lines, runs, only, own=server.handles_status)
        return actions_for(document, found, runs, request) + reasons + starts

    @server.feature(CODES)
    def codes(_params: Any) -> list[dict[str, str | None]]:
        """Every finding code with its page, for clients that show pages."""
        url = server.board.docs_url
        return [
            {"code": c.code, "name": c.name, "title": c.title, "url": web(c, url), "page": c.page} for c in REGISTRY.values()
        ]


def _hover_in_cell(server: MagpyServer, document: Document, at: types.Position) -> types.Hover | None:
    """The hover over findings in a notebook's cell, which belong to its script."""
    for key, notebook in server.board.notebooks.items():
        line = notebook.line_of(document.uri, at.line)
        found = server.board.at(key, types.Position(line, at.character)) if line is not None else []
        if found:
            markdown = server.hover_markdown
            kind = types.MarkupKind.Markdown if markdown else types.MarkupKind.PlainText
            rated = [(finding, severity) for finding, severity, _ in found]
            text = hover_text(rated, markdown=markdown, is_above=server.shows_message, docs_url=server.board.docs_url)
            return types.Hover(types.MarkupContent(kind, text))
    return None


def _other_hover(server: MagpyServer, document: Document, at: types.Position) -> types.Hover | None:
    """The hover over a guarded value or a region's definition, and over a line with kernels."""
    runs = list(server.board.runs())
    kind = types.MarkupKind.Markdown if server.hover_markdown else types.MarkupKind.PlainText
    if at.line >= len(document.lines):
        return None
    column = from_units(document.lines[at.line], at.character, server.encoding)
    guarded = guard_text(document, Position(at.line, column), runs)
    kernels = kernel_text(document, at.line, runs, links=server.handles_status and server.hover_markdown)
    if guarded is not None:
        text, where = guarded
        lines = document.lines[where.start.line : where.end.line + 1]
        content = types.MarkupContent(kind, "\n\n".join(filter(None, (text, kernels))))
        return types.Hover(content, lsp_range(where, where.start.line, lines, server.encoding))
    about = "\n\n".join(filter(None, (region_text(document, at.line, runs), kernels)))
    return types.Hover(types.MarkupContent(kind, about)) if about else None


def _register_commands(server: MagpyServer) -> None:
    @server.command(codelens.CHECK)
    async def check(arguments: list[Any]) -> dict[str, Any]:
        return await server.execute("check", arguments)

    @server.command(codelens.RUN_COMPILED)
    async def run_compiled(arguments: list[Any]) -> dict[str, Any]:
        return await server.execute("compiled", arguments)

    @server.command(codelens.COMPARE)
    async def compare(arguments: list[Any]) -> dict[str, Any]:
        return await server.compare(arguments)

    @server.command(codelens.CANCEL)
    async def cancel(arguments: list[Any]) -> dict[str, int]:
        """Cancels one entrypoint's run with ``{uri}``, every run without."""
        argument = arguments[0] if arguments else {}
        uri = argument.get("uri") if isinstance(argument, dict) else None
        if not isinstance(uri, (str, type(None))):
            raise JsonRpcInvalidParams("magpy.cancel: uri must be a string")
        return {"cancelled": await server.runs.stop_uri(uri)}

    @server.command(SHOW_DOCUMENTATION)
    async def documentation(arguments: list[Any]) -> bool:
        """Opens a code's page, in a browser if it is on the web, for clients that can't show pages."""
        code = REGISTRY.get(str(arguments[0])) if arguments else None
        if code is None:
            raise JsonRpcInvalidParams(f"{SHOW_DOCUMENTATION}: the argument must be a finding code")
        page = in_editor(code, server.board.docs_url)
        external = not page.startswith("file:")
        shown = await server.window_show_document_async(types.ShowDocumentParams(page, external=external))
        return bool(shown.success)

    @server.command(OPEN_REPRODUCER)
    async def reproducer(arguments: list[Any]) -> bool:
        """Opens the file that shows a finding without the program. Only what a finding names is opened."""
        path = str(arguments[0]) if arguments else ""
        if not path or all(f.reproducer != path for run in server.board.known() for f in run.findings.values()):
            raise JsonRpcInvalidParams(f"{OPEN_REPRODUCER}: the argument must be the reproducer of a finding")
        shown = await server.window_show_document_async(types.ShowDocumentParams(uri_of(path), take_focus=True))
        return bool(shown.success)

    @server.command(why_not.TELL_WHY_NOT)
    async def tell_why_not(arguments: list[Any]) -> bool:
        """Says why a region is not compiled, for clients that can't show a page."""
        found = why_not.find(str(arguments[0]) if arguments else "", server.board.runs())
        if found is None:
            raise JsonRpcInvalidParams(f"{why_not.TELL_WHY_NOT}: the argument must be a region that is not compiled")
        server.window_show_message(types.ShowMessageParams(types.MessageType.Info, why_not.message(found)))
        return True

    @server.command(codelens.CLEAR)
    async def clear(_arguments: list[Any]) -> None:
        """Clears all findings."""
        server.runs.clear()
        server.lenses_changed()

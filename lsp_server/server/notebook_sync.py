"""Synchronization of notebooks: the client's cells, and the scripts that run instead. Key type: Notebooks."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from typing import Protocol

from lsprotocol import types

from lsp_server.features.diagnostics import Board
from lsp_server.features.documents import Documents, key_of, path_of
from lsp_server.features.notebooks import SUFFIX, Cell, Notebook, read_cells
from lsp_server.server.targets import Target

SYNC = types.NotebookDocumentSyncOptions(
    notebook_selector=[
        types.NotebookDocumentFilterWithNotebook(
            notebook=types.NotebookDocumentFilterNotebookType(notebook_type="jupyter-notebook", scheme="file"),
            cells=[types.NotebookCellLanguage(language="python")],
        )
    ]
)


class Files(Protocol):
    """The server, as far as it holds files and their findings."""

    documents: Documents
    board: Board

    @property
    def encoding(self) -> str: ...
    def folder_of(self, path: str) -> str: ...
    def changed(self, keys: set[str]) -> None: ...
    def text_changed(self) -> None: ...


class Notebooks:
    """Open notebooks by URI, with the URIs of their code cells in order, and notebooks that ran, by script."""

    def __init__(self, server: Files) -> None:
        self._server = server
        self._open: dict[str, list[types.NotebookCell]] = {}
        self._folder = ""

    # Running

    def target(self, target: Target) -> Target:
        """For a notebook its script, else the target unchanged. Raises ValueError for an invalid notebook."""
        if not target.path.endswith(SUFFIX) or target.module is not None:
            return target
        path = os.path.abspath(target.path)
        cells = read_cells(path)
        uris = [cell.document for cell in self._open.get(target.uri, ()) if cell.kind is types.NotebookCellKind.Code]
        named = [replace(cell, uri=uri) for cell, uri in zip(cells, uris, strict=False)] + cells[len(uris) :]
        notebook = Notebook(path, self._script(path), named)
        with open(notebook.script, "w", encoding="utf-8") as stream:
            stream.write("\n".join(notebook.lines()))
        self._server.board.notebooks[key_of(notebook.script)] = notebook
        folder = os.path.dirname(path)
        # The script is in another folder, but imports are relative to the notebook's folder, as in Jupyter.
        paths = [folder, *filter(None, [target.env.get("PYTHONPATH") or os.environ.get("PYTHONPATH")])]
        env = {**target.env, "PYTHONPATH": os.pathsep.join(paths)}
        name = target.name or os.path.basename(path)
        cwd = folder if target.cwd == self._server.folder_of(target.path) else target.cwd
        return replace(target, path=notebook.script, env=env, cwd=cwd, name=name, notebook=path)

    def _script(self, path: str) -> str:
        if not self._folder:
            self._folder = tempfile.mkdtemp(prefix="magpy-notebooks-")
        own = os.path.join(self._folder, f"{abs(hash(path)):x}")
        os.makedirs(own, exist_ok=True)
        return os.path.join(own, f"{os.path.basename(path).removesuffix(SUFFIX)}.py")

    def close(self) -> None:
        """Removes the scripts."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = ""

    # Changes in the editor

    def opened(self, params: types.DidOpenNotebookDocumentParams) -> None:
        self._open[params.notebook_document.uri] = list(params.notebook_document.cells)
        for item in params.cell_text_documents:
            self._server.documents.open(item)
        self._refresh(params.notebook_document.uri)

    def changed(self, params: types.DidChangeNotebookDocumentParams) -> None:
        uri, cells = params.notebook_document.uri, params.change.cells
        if cells is None or uri not in self._open:
            return
        if cells.structure is not None:
            array = cells.structure.array
            self._open[uri][array.start : array.start + array.delete_count] = array.cells or []
            for item in cells.structure.did_open or ():
                self._server.documents.open(item)
            for closed in cells.structure.did_close or ():
                self._server.documents.close(closed.uri)
        for content in cells.text_content or ():
            self._server.documents.change(content.document, content.changes, self._server.encoding)
        self._refresh(uri)

    def closed(self, params: types.DidCloseNotebookDocumentParams) -> None:
        self._open.pop(params.notebook_document.uri, None)
        for item in params.cell_text_documents:
            self._server.documents.close(item.uri)
        self._refresh(params.notebook_document.uri)

    def _refresh(self, uri: str) -> None:
        """Updates the cells after a change: findings move with their lines, as in any file."""
        path = path_of(uri)
        for key, notebook in self._server.board.notebooks.items():
            if path is None or key_of(notebook.path) != key_of(path):
                continue
            notebook.cells = self._cells(uri, notebook)
            if self._server.board.replaced_with(key, notebook.lines()):
                self._server.changed({key})
                self._server.text_changed()

    def _cells(self, uri: str, notebook: Notebook) -> list[Cell]:
        if uri not in self._open:
            try:
                return read_cells(notebook.path)
            except ValueError:
                return []  # deleted
        code = [cell.document for cell in self._open[uri] if cell.kind is types.NotebookCellKind.Code]
        documents = [self._server.documents.get(name) for name in code]
        return [Cell(tuple(d.lines), d.uri) for d in documents if d is not None]

"""A notebook as an entrypoint: its cells run as one script, findings are in the cells, or in the file's lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lsp_server.features.notebooks import Notebook, read_cells
from tests.lsp.client import Client, ServerError
from tests.lsp.conftest import Lab

CELLS = [
    ("markdown", ["# Title\n", "x.item()"]),
    ("code", ["%matplotlib inline\n", "import torch\n", "if True:\n", "    !ls\n", "s = '漢 🙂'"]),
    ("code", ["%%bash\n", "echo x.item()"]),
    ("code", []),
    ("code", ["x = torch.ones(3)\n", "s = '漢 🙂'; y = x.sum().item()"]),
]
# Line 0 is a comment, the first cell is in 1..5, the second in 7..8, the empty one in 10, the last in 12..13.
LAST = 13


def _write(path: Path) -> None:
    cells = [{"cell_type": kind, "metadata": {}, "source": source} for kind, source in CELLS]
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1))


def test_the_script_has_a_line_for_each_line(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    _write(path)
    notebook = Notebook(str(path), "", read_cells(str(path)))
    lines = notebook.lines()
    assert lines[LAST] == "s = '漢 🙂'; y = x.sum().item()" and lines[1] == "pass  # %matplotlib inline"
    assert lines[4] == "    pass  # !ls" and lines[7:9] == ["# %%bash", "# echo x.item()"]
    compile("\n".join(lines), "a.py", "exec")
    for number, line in enumerate(lines):
        place = notebook.place(number)
        assert (place is None) == line.startswith("# %% cell") or number == len(lines) - 1


@pytest.mark.parametrize("text", ["", "[]", '{"cells": 3}', '{"cells": [{"cell_type": "code"}]}'])
def test_what_is_no_notebook(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"a\.ipynb is not a readable notebook"):
        read_cells(str(path))


SCENARIO = f"""
    note("script", open(request["script"], encoding="utf-8").read())
    note("where", json.dumps([os.getcwd(), os.environ["PYTHONPATH"]]))
    hello()
    finding("MP102", {LAST}, 15, 29, "read", path=[(2, 0, 6)])
    finding("MP904", 0, 0, 0, "about all of it")
    end()
"""


def _cell(folder: Path, number: int) -> str:
    return f"vscode-notebook-cell:{folder}/train.ipynb#C{number}"


def _open(client: Client, path: Path) -> str:
    uri = path.as_uri()
    cells = [{"kind": 2 if kind == "code" else 1, "document": _cell(path.parent, n)} for n, (kind, _) in enumerate(CELLS)]
    texts = [
        {"uri": _cell(path.parent, n), "languageId": "python", "version": 1, "text": "".join(source)}
        for n, (kind, source) in enumerate(CELLS)
        if kind == "code"
    ]
    notebook = {"uri": uri, "notebookType": "jupyter-notebook", "version": 1, "cells": cells}
    client.notify("notebookDocument/didOpen", {"notebookDocument": notebook, "cellTextDocuments": texts})
    return uri


def _changed(client: Client, uri: str, cells: dict[str, Any]) -> None:
    notebook = {"uri": uri, "version": 2}
    client.notify("notebookDocument/didChange", {"notebookDocument": notebook, "change": {"cells": cells}})


@pytest.mark.asyncio
async def test_findings_are_in_the_cells(client: Client, lab: Lab) -> None:
    path = lab.folder / "sub" / "train.ipynb"
    path.parent.mkdir()
    _write(path)
    lab.scenario(SCENARIO)
    uri = _open(client, path)
    result = await client.command("magpy.check", {"uri": uri})
    assert result["state"] == "done" and result["uri"] == uri and result["name"] == "train.ipynb"
    assert (lab.noted("script") or "").split("\n")[LAST] == "s = '漢 🙂'; y = x.sum().item()"
    cwd, paths = json.loads(lab.noted("where") or "")
    assert cwd == str(path.parent) and paths.split(":")[0] == str(path.parent)
    last = _cell(path.parent, 4)
    (found,) = await client.diagnostics_where(last, lambda d: d, "the finding in its cell")
    assert found["range"] == {"start": {"line": 1, "character": 16}, "end": {"line": 1, "character": 30}}
    await client.diagnostics_where(_cell(path.parent, 1), lambda d: [x["code"] for x in d] == ["MP904"], "in the first one")
    (related,) = found["relatedInformation"]
    assert related["location"]["uri"] == _cell(path.parent, 1) and related["location"]["range"]["start"]["line"] == 1
    position = {"textDocument": {"uri": last}, "position": {"line": 1, "character": 20}}
    assert "MP102" in (await client.request("textDocument/hover", position))["contents"]["value"]
    # A line put in above it in the cell, then a cell above it taken away, then the line changed.
    insert = {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}, "text": "# 漢\n"}
    _changed(client, uri, {"textContent": [{"document": {"uri": last, "version": 2}, "changes": [insert]}]})
    await client.diagnostics_where(last, lambda d: d and d[0]["range"]["start"]["line"] == 2, "moved down")
    closed = [{"uri": _cell(path.parent, 1)}]
    _changed(client, uri, {"structure": {"array": {"start": 1, "deleteCount": 1, "cells": []}, "didClose": closed}})
    await client.diagnostics_where(last, lambda d: d and "relatedInformation" not in d[0], "the call is gone")
    assert client.diagnostics(last)[0]["range"]["start"]["line"] == 2
    assert (await client.status(stale=True))["uri"] == uri
    change = {"range": {"start": {"line": 2, "character": 0}, "end": {"line": 2, "character": 0}}, "text": " "}
    _changed(client, uri, {"textContent": [{"document": {"uri": last, "version": 3}, "changes": [change]}]})
    await client.diagnostics_where(last, lambda d: d == [], "changed")


@pytest.mark.asyncio
async def test_without_cells_findings_are_in_the_lines_of_the_file(client: Client, lab: Lab) -> None:
    path = lab.folder / "train.ipynb"
    _write(path)
    lab.scenario(SCENARIO)
    uri = path.as_uri()
    await client.command("magpy.check", {"uri": uri})
    both = await client.diagnostics_where(uri, lambda d: len(d) == 2, "the finding, and what is about all of it")
    (found,) = (d for d in both if d["code"] == "MP102")
    row = path.read_text().split("\n")[found["range"]["start"]["line"]]
    assert "y = x.sum().item()" in row
    await client.command("magpy.clear")
    await client.diagnostics_where(uri, lambda d: d == [], "cleared")
    with pytest.raises(ServerError, match="not a readable notebook"):
        path.write_text("{")
        await client.command("magpy.check", {"uri": uri})


@pytest.mark.asyncio
async def test_the_scripts_are_gone_with_the_server(lab: Lab) -> None:
    path = lab.folder / "train.ipynb"
    _write(path)
    lab.scenario(SCENARIO)
    for leave in ("shutdown", "kill"):
        server = await Client.start()
        server.settings = {"interpreter": str(lab.python)}
        await server.initialize(folder=lab.folder)
        await server.command("magpy.check", {"uri": path.as_uri()})
        script = Path(lab.request["script"])
        assert script.exists() and script.name == "train.py"
        if leave == "shutdown":
            await server.stop()
        else:
            server.process.terminate()
            await server.process.wait()
        assert not script.exists(), leave

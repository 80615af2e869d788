"""Settings over stdio: the project's table while it is written, entrypoints, budgets, folders, trust, check on save."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.client import VSCODE, Client, ServerError
from tests.lsp.conftest import Lab

pytestmark = pytest.mark.asyncio

OK = 'hello()\nfinding("MP102", 5, 29, 43, "found")\nend()'
TABLE = """\
[project]
name = "x"

[tool.magpy]
stepz = 3
timeout = "long"  # 漢 🙂
"select" = ["MP1", "XY"]

[tool.magpy.severity]
"MP102" = "loud"

[tool.magpy.budgets]
"漢" = 1; 

[[tool.magpy.entrypoints]]
name = "train"
program = "train.py"
args = { a = 1 }
"""


def _marked(found: list[Any], text: str) -> dict[str, str]:
    """The text that each diagnostic marks, by the first word of its message."""
    lines = text.split("\n")
    out = {}
    for d in found:
        start, end = d["range"]["start"], d["range"]["end"]
        assert start["line"] == end["line"] and d["code"] == "MP910" and d["severity"] == 1
        raw = lines[start["line"]].encode("utf-16-le")
        out[d["message"].split("`")[1]] = raw[2 * start["character"] : 2 * end["character"]].decode("utf-16-le")
    return out


async def test_mistakes_in_the_table_are_marked_while_it_is_written(client: Client, lab: Lab) -> None:
    table = lab.folder / "pyproject.toml"
    text = TABLE.replace('"漢" = 1; \n', '"漢" = 1\n')
    table.write_text(text, encoding="utf-8")
    uri = client.open(table)
    found = await client.diagnostics_where(uri, lambda d: len(d) == 6, "every mistake")
    assert _marked(found, text) == {
        "tool.magpy.stepz": "stepz", "tool.magpy.timeout": '"long"', "tool.magpy.select": '["MP1", "XY"]',
        "tool.magpy.severity.MP102": '"loud"', "tool.magpy.budgets.漢": '"漢"',
        "tool.magpy.entrypoints.0.args": "{ a = 1 }",
    }  # fmt: skip
    assert found[0]["codeDescription"]["href"].endswith("/MP910.md") and "did you mean `steps`?" in found[0]["message"]
    client.change(uri, 2, (4, 4, 4, 5, "s"))
    await client.diagnostics_where(uri, lambda d: len(d) == 5, "one less")
    client.change(uri, 3, (4, 0, 4, 5, "steps = ["))
    (broken,) = await client.diagnostics_where(uri, lambda d: len(d) == 1, "no TOML at the moment")
    assert "not valid TOML" in broken["message"]
    client.change(uri, 4, (3, 0, 19, 0, ""))
    await client.diagnostics_where(uri, lambda d: d == [], "not about us any more")
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    await client.diagnostics_where(uri, lambda d: len(d) == 6, "as on disk")
    table.write_text("[tool.magpy]\nsteps = 3\n")
    client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": 2}]})
    await client.diagnostics_where(uri, lambda d: d == [], "mended on disk")


async def test_a_run_does_not_tell_twice(server: Client, lab: Lab) -> None:
    table = lab.folder / "pyproject.toml"
    table.write_text('[tool.magpy]\nsteps = "many"\n')
    server.settings = {"interpreter": str(lab.python)}
    await server.initialize(folder=lab.folder)
    await server.diagnostics_where(table.as_uri(), lambda d: d, "at the start, without being opened")
    result = await server.command("magpy.check", {"uri": server.open(lab.program)})
    assert result["state"] == "failed" and "pyproject.toml:2" in result["failure"]
    await server.sync()
    assert len(server.diagnostics(table.as_uri())) == 1


async def test_configured_entrypoints_run_by_name(client: Client, lab: Lab) -> None:
    other = lab.folder / "src" / "other.py"
    other.parent.mkdir()
    other.write_text("import torch\n")
    (lab.folder / "pyproject.toml").write_text(
        '[[tool.magpy.entrypoints]]\nname = "project"\nprogram = "src/other.py"\nargs = ["--a"]\nenv = { K = "v" }\n'
        'steps = 7\ntimeout = 60\ncwd = "src"\n[[tool.magpy.entrypoints]]\nname = "both"\nmodule = "pkg.train"\n'
    )
    folder_python = str(lab.python)
    client.settings = {
        "interpreter": "/nowhere/python",
        "entrypoints": [
            {"name": "editor", "program": "train.py", "args": ["${workspaceFolder}/data"], "python": folder_python},
            {"name": "both", "program": "train.py", "python": folder_python},
            {"name": "spare", "program": "train.py"},
        ],
    }
    lab.scenario('note("cwd", os.getcwd())\nnote("K", os.environ.get("K", ""))\nhello()\nend()')
    uri = client.open(lab.program)
    result = await client.command("magpy.check", {"uri": uri, "name": "editor"})
    assert result["state"] == "done" and result["name"] == "editor", result
    assert lab.request["args"] == [f"{lab.folder}/data"] and lab.noted("cwd") == str(lab.folder)
    result = await client.command("magpy.check", {"uri": uri, "name": "project", "python": folder_python})
    assert result["state"] == "done" and lab.request["script"] == str(other), result
    assert (lab.request["steps"], lab.request["args"], lab.noted("K")) == (7, ["--a"], "v")
    assert lab.noted("cwd") == str(other.parent)
    result = await client.command("magpy.check", {"uri": uri, "name": "both", "args": ["--mine"]})
    assert lab.request["script"] == str(lab.program) and lab.request["args"] == ["--mine"], "the editor's goes first"
    with pytest.raises(ServerError, match=r"unknown entrypoint 'nope' \(known: project, both, editor, spare\)"):
        await client.command("magpy.check", {"uri": uri, "name": "nope"})
    lenses = await client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    assert {"Check editor", "Check both", "Check spare"} <= {lens["command"]["title"] for lens in lenses}
    assert "Check project" not in {lens["command"]["title"] for lens in lenses}


async def test_wrong_entrypoints_are_told(client: Client, lab: Lab) -> None:
    client.settings = {"interpreter": str(lab.python), "entrypoints": [{"name": "a", "program": "x.py", "module": "x"}]}
    lab.scenario(OK)
    assert (await client.command("magpy.check", {"uri": client.open(lab.program)}))["state"] == "done"
    (told,) = client.all("window/showMessage")
    assert "magpy.entrypoints.0" in told["message"] and "program" in told["message"]


async def test_budgets_reach_the_editor(client: Client, lab: Lab) -> None:
    (lab.folder / "pyproject.toml").write_text(
        "[tool.magpy.budgets]\nguards = 10\nside-effects = 2\n[tool.magpy.budgets.regions.decoder]\nguards = 1\n"
    )
    lab.scenario("hello()\nregion(5, guards=14)\nend()")
    uri = client.open(lab.program)
    result = await client.command("magpy.check", {"uri": uri})
    assert result["state"] == "done" and result["findings"]["error"] == 1
    (found,) = await client.diagnostics_where(uri, lambda d: d, "the broken budget")
    assert found["code"] == "MP503" and found["range"]["start"]["line"] == 4
    table = (lab.folder / "pyproject.toml").as_uri()
    (unknown,) = await client.diagnostics_where(table, lambda d: d, "a budget of nothing")
    assert unknown["code"] == "MP507" and unknown["range"]["start"]["line"] == 3


async def test_each_folder_has_its_own_settings(server: Client, lab: Lab, tmp_path_factory: Any) -> None:
    second: Path = tmp_path_factory.mktemp("second")
    (second / "other.py").write_text("import torch\nx = 1\n")
    server.settings = {"interpreter": str(lab.python), "steps": 4}
    server.folder_settings[second.as_uri()] = {"interpreter": str(lab.python), "steps": 9, "severity": {"MP102": "error"}}
    await server.initialize(folder=lab.folder, more_folders=[second])
    lab.scenario('note("cwd", os.getcwd())\nhello()\nfinding("MP102", 0, 0, 5, "found")\nend()')
    first, other = server.open(lab.program), server.open(second / "other.py")
    await server.command("magpy.check", {"uri": first})
    assert lab.request["steps"] == 4 and lab.noted("cwd") == str(lab.folder)
    await server.command("magpy.check", {"uri": other})
    assert lab.request["steps"] == 9 and lab.noted("cwd") == str(second)
    await server.diagnostics_where(first, lambda d: [x["severity"] for x in d] == [2], "a warning here")
    await server.diagnostics_where(other, lambda d: [x["severity"] for x in d] == [1], "an error there")
    removed = {"event": {"added": [], "removed": [{"uri": second.as_uri(), "name": "second"}]}}
    server.notify("workspace/didChangeWorkspaceFolders", removed)
    await server.diagnostics_where(other, lambda d: d == [], "the folder is gone, and what was found in it")
    assert len(server.diagnostics(first)) == 1


async def test_settings_that_change_while_a_program_is_loaded(client: Client, lab: Lab) -> None:
    """An editor may read a folder's settings after the first check of one of its files."""
    lab.gate("loaded")
    lab.scenario('note("starting", "yes")\ngate("loaded")\nhello()\nfinding("MP102", 5, 29, 43, "found")\nend()')
    uri = client.open(lab.program)
    _, answer = client.begin_command("magpy.check", {"uri": uri})
    await client.status(state="starting")
    before = _questions(client)
    client.settings = {**client.settings, "severity": {"MP102": "error"}}
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    await client.until(lambda: _questions(client) > before, "the server asks anew")
    await client.sync()
    await asyncio.to_thread(lab.open_gate, "loaded")
    assert (await answer)["findings"]["error"] == 1
    await client.diagnostics_where(uri, lambda d: [x["severity"] for x in d] == [1], "as they are now")


@pytest.mark.parametrize("trusted", [False, "false", "true", 1, None])
async def test_nothing_runs_in_an_untrusted_workspace(server: Client, lab: Lab, trusted: Any) -> None:
    """Only `true` is trust."""
    lab.scenario(OK)
    await server.initialize(folder=lab.folder, options={"trusted": trusted, "settings": {"interpreter": str(lab.python)}})
    server.settings = {"interpreter": str(lab.python)}
    uri = server.open(lab.program)
    for command in ("magpy.check", "magpy.runCompiled"):
        with pytest.raises(ServerError, match="only in trusted workspaces") as error:
            await server.command(command, {"uri": uri})
        assert error.value.code == -32803
    assert lab.noted("request.json") is None and server.all("magpy/status") == []
    if trusted is not False:
        return
    server.notify("magpy/trust", {"trusted": "yes"})
    with pytest.raises(ServerError, match="only in trusted workspaces"):
        await server.command("magpy.check", {"uri": uri})
    server.notify("magpy/trust", {"trusted": True})
    assert (await server.command("magpy.check", {"uri": uri}))["state"] == "done"
    lab.gate("go")
    lab.scenario('hello()\ngate("go")\nend()')
    _, answer = server.begin_command("magpy.check", {"uri": uri})
    await server.status(state="running", runId=server.all("magpy/status")[-1]["runId"] + 1)
    server.notify("magpy/trust", {"trusted": False})
    assert (await answer)["state"] == "cancelled"
    assert lab.processes() == []


def _questions(client: Client) -> int:
    return len(client.all("workspace/configuration"))


def _saved(client: Client, uri: str) -> None:
    client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})


async def _runs(client: Client, uri: str) -> int:
    """How many runs there were, after two more by command: one that a save began before them has its number by then."""
    for _ in range(2):
        await client.command("magpy.check", {"uri": uri})
    return int(client.all("magpy/status")[-1]["runId"])


async def test_checks_on_save_are_asked_for_and_debounced(server: Client, lab: Lab) -> None:
    capabilities = {k: v for k, v in VSCODE.items() if k != "experimental"}
    server.settings = {"interpreter": str(lab.python), "runOnSaveDelay": 0, "runOnSave": True}
    result = await server.initialize(capabilities, folder=lab.folder)
    assert result["capabilities"]["textDocumentSync"]["save"]
    lab.scenario(OK)
    uri = server.open(lab.program)
    _saved(server, uri)
    assert await _runs(server, uri) == 2, "what the user never started is not started by a save"
    server.settings = {**server.settings, "runOnSaveDelay": 200}
    for _ in range(5):
        _saved(server, uri)
        _saved(server, (lab.folder / "helper.py").as_uri())
    await server.status(runId=3, state="done")
    assert await _runs(server, uri) == 5, "one run for ten saves"
    server.settings = {**server.settings, "runOnSave": False, "runOnSaveDelay": 0}
    _saved(server, uri)
    assert await _runs(server, uri) == 7, "none when it is off"


async def test_our_own_extension_checks_on_save_itself(client: Client, lab: Lab) -> None:
    client.settings = {"interpreter": str(lab.python), "runOnSave": True, "runOnSaveDelay": 0}
    lab.scenario(OK)
    uri = client.open(lab.program)
    await client.command("magpy.check", {"uri": uri})
    _saved(client, uri)
    assert await _runs(client, uri) == 3


async def test_a_change_of_the_projects_table_holds_at_once_for_what_is_shown(client: Client, lab: Lab) -> None:
    table = lab.folder / "pyproject.toml"
    table.write_text("[tool.magpy]\nsteps = 3\n")
    lab.scenario('hello()\nfinding("MP102", 5, 29, 43, "read")\nfinding("MP103", 6, 8, 14, "clock")\nregion(5)\nend()')
    uri = client.open(lab.program)
    await client.command("magpy.check", {"uri": uri})
    await client.diagnostics_where(uri, lambda d: [x["severity"] for x in d] == [2, 2], "as they come")
    started = lab.noted("request.json")

    async def written(text: str, good: Any, what: str) -> None:
        table.write_text(text)
        client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": table.as_uri(), "type": 2}]})
        await client.diagnostics_where(uri, good, what)

    def shown(found: list[Any]) -> list[tuple[str, int]]:
        return sorted((d["code"], d["severity"]) for d in found)

    head = "[tool.magpy]\n"
    errors = f'{head}[tool.magpy.severity]\nMP102 = "error"\n'
    await written(errors, lambda d: shown(d) == [("MP102", 1), ("MP103", 2)], "an error")
    await client.until(lambda: client.all("magpy/status")[-1]["findings"]["error"] == 1, "counted in the status")
    await written(f'{head}ignore = ["MP102"]\n', lambda d: shown(d) == [("MP103", 2)], "not wanted")
    budget = f"{head}[tool.magpy.budgets]\nguards = 3\n"
    await written(budget, lambda d: shown(d) == [("MP102", 2), ("MP103", 2), ("MP503", 1)], "a budget")
    await written(
        f"{head}severity = 3\n", lambda d: shown(d) == [("MP102", 2), ("MP103", 2), ("MP503", 1)], "the last right one"
    )
    await written("", lambda d: shown(d) == [("MP102", 2), ("MP103", 2)], "no table any more")
    table.write_text(errors)
    client.notify("textDocument/didSave", {"textDocument": {"uri": table.as_uri()}})  # a client that watches no files
    await client.diagnostics_where(uri, lambda d: shown(d) == [("MP102", 1), ("MP103", 2)], "an error again")
    assert lab.noted("request.json") == started, "nothing was run for it"


async def test_the_projects_table_holds_while_the_program_runs(client: Client, lab: Lab) -> None:
    lab.gate("go")
    lab.scenario('hello()\nfinding("MP102", 5, 29, 43, "read")\ngate("go")\nfinding("MP102", 6, 8, 14, "more")\nend()')
    uri = client.open(lab.program)
    _, answer = client.begin_command("magpy.check", {"uri": uri})
    await client.diagnostics_where(uri, lambda d: [x["severity"] for x in d] == [2], "while it runs")
    table = lab.folder / "pyproject.toml"
    table.write_text('[tool.magpy.severity]\nMP102 = "hint"\n')
    client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": table.as_uri(), "type": 1}]})
    await client.diagnostics_where(uri, lambda d: [x["severity"] for x in d] == [4], "at once")
    lab.open_gate("go")
    assert (await answer)["state"] == "done"
    await client.diagnostics_where(uri, lambda d: [x["severity"] for x in d] == [4, 4], "to the end")


async def test_a_compiled_run_waits_for_the_compiler_if_asked_to(client: Client, lab: Lab) -> None:
    lab.scenario(OK)
    uri = client.open(lab.program)
    for setting, wanted in ((None, "background"), ("foreground", "foreground"), ("loudly", "background")):
        client.settings = {"interpreter": str(lab.python), "compile": setting}
        client.notify("workspace/didChangeConfiguration", {"settings": {}})
        await client.command("magpy.runCompiled", {"uri": uri})
        assert lab.request["compile"] == wanted, setting

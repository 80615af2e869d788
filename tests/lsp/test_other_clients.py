"""What users of Helix, Zed and JetBrains IDEs get: the server as those clients speak with it (see ``other_clients``)."""

from __future__ import annotations

import asyncio
import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.client import Client, ServerError
from tests.lsp.conftest import Lab
from tests.lsp.edits import applied
from tests.lsp.other_clients import HELIX, LSP4IJ, ZED

pytestmark = pytest.mark.asyncio

EDITORS = Path(__file__).parents[2] / "docs" / "how-to" / "editors.md"
READ = "x.sum().item()"
CHECKED = f"""
    hello()
    send(type="step", n=1)
    finding("MP102", 5, 29, 43, "`{READ}` is read by Python", values=[("x.sum()", "3.0")])
    region(5)
    gate("go")
    done(nodes=[("call", "sum", "float32[]", 6)])
    end()
"""
ENDLESS = """
    hello()
    send(type="step", n=1)
    gate("never")
"""


def helix_config() -> dict[str, Any]:
    """What docs/how-to/editors.md tells users of Helix to write."""
    (languages,) = re.findall(r"```toml\n(.*?)```", EDITORS.read_text(encoding="utf-8"), re.DOTALL)
    server = tomllib.loads(languages)["language-server"]["magpy"]
    assert server["command"] == "magpy-lsp" and server["args"] == ["server"]
    config = server["config"]
    assert isinstance(config, dict)
    return config


def with_interpreter(config: dict[str, Any], lab: Lab) -> dict[str, Any]:
    return {"magpy": {**config["magpy"], "interpreter": str(lab.python)}}


async def helix(client: Client, lab: Lab, config: dict[str, Any]) -> dict[str, Any]:
    """A server started by Helix, which sends its configuration in three ways; the server's capabilities."""
    client.config = config
    params = {
        "processId": os.getpid(),
        "rootPath": str(lab.folder),
        "rootUri": lab.folder.as_uri(),
        "workspaceFolders": [{"uri": lab.folder.as_uri(), "name": lab.folder.name}],
        "initializationOptions": config,
        "capabilities": HELIX,
        "clientInfo": {"name": "helix", "version": "25.07"},
    }
    result = await client.request("initialize", params)
    client.notify("initialized", {})
    client.notify("workspace/didChangeConfiguration", {"settings": config})
    assert isinstance(result, dict)
    return dict(result["capabilities"])


async def actions(client: Client, uri: str, line: int, character: int, diagnostics: list[Any]) -> dict[str, Any]:
    at = {"line": line, "character": character}
    context = {"diagnostics": diagnostics, "triggerKind": 1}
    params = {"textDocument": {"uri": uri}, "range": {"start": at, "end": at}, "context": context}
    return {action["title"]: action for action in await client.request("textDocument/codeAction", params)}


async def execute(client: Client, command: dict[str, Any]) -> Any:
    assert command["command"] in ("magpy.check", "magpy.runCompiled", "magpy.cancel", "magpy.showDocumentation")
    return await client.command(command["command"], *command.get("arguments", []))


def text_at(text: str, where: dict[str, Any], encoding: str) -> str:
    """The text of a range in one line."""
    codec, size = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}[encoding]
    line = text.split("\n")[where["start"]["line"]].encode(codec)
    return line[where["start"]["character"] * size : where["end"]["character"] * size].decode(codec)


async def test_helix_from_the_check_to_the_fix(server: Client, lab: Lab) -> None:
    lab.scenario(CHECKED)
    lab.gate("go")
    assert helix_config()["magpy"]["steps"] == 5
    capabilities = await helix(server, lab, with_interpreter({"magpy": {"steps": 5, "inlayHints": True}}, lab))
    encoding = capabilities["positionEncoding"]
    assert encoding == "utf-8", "the first that Helix names"
    assert {"magpy.check", "magpy.cancel"} <= set(capabilities["executeCommandProvider"]["commands"])
    text = lab.program.read_text(encoding="utf-8")
    uri = server.open(lab.program, version=0)
    main = text.split("\n").index('if __name__ == "__main__":')
    offered = await actions(server, uri, main, 0, [])
    assert list(offered) == ["MagPy: Check", "MagPy: Run compiled"], "Helix has no code lenses"
    assert (await actions(server, uri, 0, 0, [])) == {}
    started = await execute(server, offered["MagPy: Check"]["command"])
    assert started["state"] == "starting", "Helix gives up a request after 20 seconds"
    found = await server.diagnostics_where(uri, bool, "a finding while the program runs")
    assert text_at(text, found[0]["range"], encoding) == READ and "relatedInformation" not in found[0]
    assert list(await actions(server, uri, main, 0, [])) == ["MagPy: Cancel"]
    await asyncio.to_thread(lab.open_gate, "go")
    await server.status(state="done")
    assert lab.request["steps"] == 5
    await server.until(lambda: server.all("$/progress")[-1]["value"]["kind"] == "end", "the end of the progress")
    shown = [p["value"] for p in server.all("$/progress")]
    assert shown[0]["kind"] == "begin" and "1 warning" in shown[-1]["message"]
    published = [p for p in server.all("textDocument/publishDiagnostics") if p["uri"] == uri]
    assert {p["version"] for p in published} == {0}, "Helix drops what is for another version"

    at = {"textDocument": {"uri": uri}, "position": found[0]["range"]["start"]}
    hover = await server.request("textDocument/hover", at)
    assert hover["contents"]["kind"] == "markdown" and READ in hover["contents"]["value"]
    lines = {"start": {"line": 0, "character": 0}, "end": {"line": len(text.split("\n")) - 1, "character": 0}}
    hints = await server.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": lines})
    assert [hint["label"] for hint in hints] == ["float32[]"]

    start = found[0]["range"]["start"]
    offered = await actions(server, uri, start["line"], start["character"], found)
    assert list(offered) == ["Ignore MP102 here", "Ignore MP102 in this file", "Show documentation of MP102"]
    assert all("edit" in action or "command" in action for action in offered.values()), "nothing to resolve"
    here = offered["Ignore MP102 here"]
    assert here["diagnostics"] == found and here["edit"]["documentChanges"][0]["textDocument"]["version"] == 0
    fixed = applied(text, here["edit"], uri, encoding)
    assert f"{READ}  # magpy: ignore[MP102]\n" in fixed
    server.replies["window/showDocument"] = {"success": True}
    assert await execute(server, offered["Show documentation of MP102"]["command"])
    (asked,) = [m["params"] for m in server.requested if m["method"] == "window/showDocument"]
    assert asked["uri"].endswith("/MP102.md") and not asked["external"]

    server.change(uri, 1, (start["line"], 0, start["line"], 0, "# 🙂\n"))
    moved = await server.diagnostics_where(
        uri, lambda d: d[0]["range"]["start"]["line"] == start["line"] + 1, "a line below"
    )
    assert moved[0]["range"]["start"]["character"] == start["character"]
    assert [p for p in server.all("textDocument/publishDiagnostics") if p["uri"] == uri][-1]["version"] == 1


async def test_helix_registers_only_what_it_offers(server: Client, lab: Lab) -> None:
    await helix(server, lab, helix_config())
    await server.until(lambda: server.requested, "a request of the server")
    await server.sync()
    assert {request["method"] for request in server.requested} == {"client/registerCapability"}, "no refresh that it lacks"
    (asked,) = server.requested
    assert [r["method"] for r in asked["params"]["registrations"]] == ["workspace/didChangeWatchedFiles"]


async def test_commands_of_a_list_need_no_arguments(server: Client, lab: Lab) -> None:
    """``:lsp-workspace-command`` of Helix sends none, shows no response, and logs errors where nobody looks."""
    await helix(server, lab, with_interpreter(helix_config(), lab))
    module = lab.folder / "model.py"
    module.write_text("import torch\n\n\ndef double(x):\n    return x * 2\n", encoding="utf-8")
    other = server.open(module)
    with pytest.raises(ServerError, match="needs a program"):
        await server.command("magpy.check")
    (message,) = server.all("window/showMessage")
    assert message["type"] == 1 and "open one, or check it from its first line" in message["message"]
    lab.scenario(ENDLESS)
    lab.gate("never")
    uri = server.open(lab.program)
    started = await server.command("magpy.check")
    assert (started["state"], started["uri"]) == ("starting", uri)
    assert await server.command("magpy.cancel") == {"cancelled": 1}
    await server.request("textDocument/hover", {"textDocument": {"uri": other}, "position": {"line": 0, "character": 0}})
    again = await server.command("magpy.runCompiled")
    assert again["uri"] == uri, "the program that ran last, since the user is in no program"
    assert await server.command("magpy.cancel") == {"cancelled": 1}


@pytest.mark.parametrize(
    ("options", "config"),
    [
        ({"settings": {"steps": 7}}, {}),
        ({"magpy": {"steps": 7}}, {}),
        ({"steps": 7}, {}),
        ({"steps": 9}, {"magpy": {"steps": 7}}),
    ],
    ids=["settings", "section", "bare", "asked for later"],
)
async def test_settings_come_from_wherever_a_client_has_them(
    options: dict[str, Any], config: dict[str, Any], server: Client, lab: Lab
) -> None:
    own = {"interpreter": str(lab.python)}
    inner = options.get("settings", options.get("magpy", options))
    inner.update(own)
    for section in config.values():
        section.update(own)
    server.config = config
    await server.initialize(HELIX, folder=lab.folder, options=options)
    lab.scenario("hello()\nend()")
    uri = server.open(lab.program)
    assert (await server.command("magpy.check", {"uri": uri}))["state"] == "done"
    assert lab.request["steps"] == 7


async def test_zed_gets_actions_that_it_can_carry_out(server: Client, lab: Lab) -> None:
    lab.scenario(CHECKED.replace('gate("go")', ""))
    server.config = {"magpy": {"interpreter": str(lab.python)}}
    await server.initialize(ZED, folder=lab.folder)
    text = lab.program.read_text(encoding="utf-8")
    uri = server.open(lab.program)
    main = text.split("\n").index('if __name__ == "__main__":')
    await execute(server, (await actions(server, uri, main, 0, []))["MagPy: Check"]["command"])
    (found,) = await server.diagnostics_where(uri, bool, "the finding")
    await server.status(state="done")
    assert text_at(text, found["range"], "utf-16") == READ
    start = found["range"]["start"]
    offered = await actions(server, uri, start["line"], start["character"], [found])
    assert list(offered) == ["Ignore MP102 here", "Ignore MP102 in this file"], "it shows no documents for a server"
    requested = {request["method"] for request in server.requested}
    assert "window/showDocument" not in requested and "workspace/codeLens/refresh" not in requested
    assert "workspace/inlayHint/refresh" in requested


async def test_jetbrains_ides_start_programs_from_lenses(server: Client, lab: Lab) -> None:
    (written,) = re.findall(r"```json\n(.*?)```", EDITORS.read_text(encoding="utf-8"), re.DOTALL)
    config = json.loads(written)
    assert config["magpy"]["steps"] == 5
    server.config = with_interpreter(config, lab)
    lab.scenario(CHECKED.replace('gate("go")', ""))
    await server.initialize(LSP4IJ, folder=lab.folder)
    uri = server.open(lab.program)
    lenses = await server.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    commands = {lens["command"]["title"]: lens["command"] for lens in lenses}
    await execute(server, commands["Check"])
    (found,) = await server.diagnostics_where(uri, bool, "the finding")
    await server.status(state="done")
    assert lab.request["steps"] == 5
    start = found["range"]["start"]
    offered = await actions(server, uri, start["line"], start["character"], [found])
    assert list(offered) == ["Ignore MP102 here", "Ignore MP102 in this file", "Show documentation of MP102"]
    main = lenses[0]["range"]["start"]["line"]
    assert await actions(server, uri, main, 0, []) == {}, "its lenses are enough"
    lenses = await server.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    known = {"", "magpy.check", "magpy.runCompiled"}
    assert {lens["command"]["command"] for lens in lenses} <= known, "no command that only our extension has"

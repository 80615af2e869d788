"""Code actions over stdio: ignore comments, documentation, graph; kinds, versions, encodings, line ends."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lsp.client import VSCODE, Client, ServerError
from tests.lsp.conftest import Lab
from tests.lsp.edits import applied

pytestmark = pytest.mark.asyncio

TEXT = """\
#!/usr/bin/env python
# -*- coding: utf-8 -*-
import torch

s = "漢 🙂"; y = torch.ones(3).sum().item()
t = torch.ones(
    3).sum().item()
u = f('''
text''', torch.ones(3).item())
v = torch.ones(3).item()  # magpy: ignore[MP3]
w = 1  # a note
"""
FOUND = """
    hello()
    region(4, id="net: Net")
    places = [(4, 14, 39, 4), (5, 4, 19, 6), (7, 4, 29, 8), (9, 4, 24, 9), (10, 0, 1, 10)]
    for n, (line, start, stop, last) in enumerate(places):
        finding("MP102", line, start, stop, f"read {n}", region="net: Net", last=last)
    end()
"""


def _reads(found: list[dict[str, Any]]) -> set[str]:
    return {d["message"] for d in found if d["code"] == "MP102"}


async def _ready(client: Client, lab: Lab, text: str = TEXT) -> str:
    lab.program.write_bytes(text.encode("utf-8"))
    lab.scenario(FOUND)
    uri = client.open(lab.program, text)
    await client.command("magpy.check", {"uri": uri})
    await client.diagnostics_where(uri, lambda d: len(_reads(d)) == 5 and len(d) == 6, "all")
    return uri


async def _actions(client: Client, uri: str, message: str, only: list[str] | None = None) -> dict[str, dict[str, Any]]:
    (found,) = (d for d in client.diagnostics(uri) if d["message"] == message)
    context: dict[str, Any] = {"diagnostics": [found], **({"only": only} if only is not None else {})}
    params = {"textDocument": {"uri": uri}, "range": found["range"], "context": context}
    return {a["title"]: a for a in await client.request("textDocument/codeAction", params)}


async def test_ignore_comments_go_where_they_count(client: Client, lab: Lab) -> None:
    uri = await _ready(client, lab)
    actions = await _actions(client, uri, "read 0")
    here = actions["Ignore MP102 here"]
    assert here["kind"] == "quickfix" and here["diagnostics"][0]["message"] == "read 0" and "isPreferred" not in here
    assert here["edit"]["documentChanges"][0]["textDocument"] == {"uri": uri, "version": 1}
    line = 's = "漢 🙂"; y = torch.ones(3).sum().item()'
    assert applied(TEXT, here["edit"], uri) == TEXT.replace(line, f"{line}  # magpy: ignore[MP102]")
    whole = applied(TEXT, actions["Ignore MP102 in this file"]["edit"], uri)
    assert whole == TEXT.replace("import torch\n", "# magpy: ignore-file[MP102]\nimport torch\n"), (
        "below what must be on top"
    )

    async def ignored(message: str) -> str:
        edit = (await _actions(client, uri, message))["Ignore MP102 here"]["edit"]
        after = applied(TEXT, edit, uri)
        changed = [b for a, b in zip(TEXT.split("\n"), after.split("\n"), strict=True) if a != b]
        assert len(changed) == 1
        return changed[0]

    assert await ignored("read 1") == "    3).sum().item()  # magpy: ignore[MP102]"
    assert await ignored("read 2") == "text''', torch.ones(3).item())  # magpy: ignore[MP102]"
    assert await ignored("read 3") == "v = torch.ones(3).item()  # magpy: ignore[MP3, MP102]"
    assert await ignored("read 4") == "w = 1  # a note  # magpy: ignore[MP102]"


async def test_an_ignored_finding_is_gone_in_the_next_run(client: Client, lab: Lab) -> None:
    uri = await _ready(client, lab)
    edit = (await _actions(client, uri, "read 2"))["Ignore MP102 here"]["edit"]
    after = applied(TEXT, edit, uri)
    lab.program.write_text(after, encoding="utf-8")
    client.notify(
        "textDocument/didChange", {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": after}]}
    )
    await client.command("magpy.check", {"uri": uri})
    left = {"read 0", "read 1", "read 3", "read 4"}
    await client.diagnostics_where(uri, lambda d: _reads(d) == left, "gone")


async def test_documentation_and_graph(client: Client, lab: Lab) -> None:
    uri = await _ready(client, lab)
    actions = await _actions(client, uri, "read 0")
    assert actions["Show documentation of MP102"]["command"]["command"] == "magpy.explainCode"
    assert actions["Show documentation of MP102"]["command"]["arguments"] == ["MP102"]
    graph = actions["Open the operator graph of net: Net"]["command"]
    assert (graph["command"], graph["arguments"]) == ("magpy.showOperatorGraph", ["net: Net"])
    assert await _actions(client, uri, "read 0", only=["source.organizeImports"]) == {}
    assert "Ignore MP102 here" in await _actions(client, uri, "read 0", only=["quickfix"])


async def test_only_what_can_be_done_is_offered(client: Client, lab: Lab) -> None:
    """A region without a graph has none to open, and ignoring an exception of the program does not make it run."""
    lab.program.write_text(TEXT, encoding="utf-8")
    lab.scenario("""
        hello()
        region(4, id="net: Net", captures=0, complete=False)
        finding("MP102", 4, 14, 39, "read 0", region="net: Net")
        finding("MP905", 5, 4, 5, "raised")
        end()
    """)
    uri = client.open(lab.program)
    await client.command("magpy.check", {"uri": uri})
    await client.diagnostics_where(uri, lambda d: {"read 0", "raised"} <= {x["message"] for x in d}, "both")
    assert not any("graph" in title for title in await _actions(client, uri, "read 0"))
    assert list(await _actions(client, uri, "raised")) == ["Show documentation of MP905"]


async def test_other_clients_are_shown_the_page(server: Client, lab: Lab) -> None:
    capabilities = {k: v for k, v in VSCODE.items() if k != "experimental"}
    server.settings = {"interpreter": str(lab.python)}
    await server.initialize(capabilities, folder=lab.folder)
    uri = await _ready(server, lab)
    actions = await _actions(server, uri, "read 0")
    command = actions["Show documentation of MP102"]["command"]
    assert command["command"] == "magpy.showDocumentation" and not any("graph" in title for title in actions)
    server.replies["window/showDocument"] = {"success": True}
    assert await server.command(command["command"], *command["arguments"]) is True
    (asked,) = [m["params"] for m in server.requested if m["method"] == "window/showDocument"]
    assert asked["uri"].endswith("/MP102.md") and asked["external"] is False
    with pytest.raises(ServerError, match="finding code"):
        await server.command("magpy.showDocumentation", "MP000")


async def test_the_file_that_shows_a_difference_is_opened(client: Client, lab: Lab) -> None:
    file = lab.folder / "difference 1.py"
    lab.scenario(f"""
        hello()
        finding("MP914", 5, 4, 19, "Compiled code gives another value.", values=[("operations", "aten.tanh.default"),
            ("reproducer", {str(file)!r})], last=6)
        end()
    """)
    lab.program.write_text(TEXT, encoding="utf-8")
    uri = client.open(lab.program, TEXT)
    await client.command("magpy.runCompiled", {"uri": uri})
    found = await client.diagnostics_where(uri, lambda d: any(one["code"] == "MP914" for one in d), "the difference")
    (difference,) = (one for one in found if one["code"] == "MP914")
    assert (difference["range"]["start"]["line"], difference["severity"]) == (5, 2)
    title = "Open reproducer"
    assert title not in await _actions(client, uri, difference["message"]), "there is no such file"
    file.write_text("print('they differ')")
    action = (await _actions(client, uri, difference["message"]))[title]
    assert action["kind"] == "quickfix" and action["diagnostics"][0]["code"] == "MP914"
    command = action["command"]
    assert (command["command"], command["arguments"]) == ("magpy.openReproducer", [str(file)])
    client.replies["window/showDocument"] = {"success": True}
    assert await client.command(command["command"], *command["arguments"]) is True
    (asked,) = [m["params"] for m in client.requested if m["method"] == "window/showDocument"]
    assert asked["uri"] == file.as_uri() and asked["takeFocus"] is True
    with pytest.raises(ServerError, match="reproducer of a finding"):
        await client.command("magpy.openReproducer", "/etc/passwd")


async def test_line_ends_stay_what_they_are(client: Client, lab: Lab) -> None:
    text = TEXT.replace("\n", "\r\n")
    uri = await _ready(client, lab, text)
    after = applied(text, (await _actions(client, uri, "read 0"))["Ignore MP102 in this file"]["edit"], uri)
    assert after.count("\n") == after.count("\r\n") == text.count("\r\n") + 1


async def test_a_half_written_file_has_no_fixes_and_no_errors(client: Client, lab: Lab) -> None:
    uri = await _ready(client, lab)
    client.change(uri, 2, (11, 0, 11, 0, "def f(:\n"))
    await client.until(
        lambda: any(p.get("version") == 2 for p in client.all("textDocument/publishDiagnostics")), "version 2"
    )
    assert set(await _actions(client, uri, "read 0")) == {
        "Ignore MP102 in this file", "Show documentation of MP102", "Open the operator graph of net: Net",
    }  # fmt: skip

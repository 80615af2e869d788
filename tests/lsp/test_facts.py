"""Facts that need no action are no diagnostics: hovers, the tree and the report have them."""

from __future__ import annotations

import pytest

from tests.lsp.client import VSCODE, Client
from tests.lsp.conftest import Lab
from tests.lsp.test_server_editing import _hover

pytestmark = pytest.mark.asyncio
SCENARIO = """
    hello()
    region(5)
    finding("MP102", 5, 29, 43, "read")
    finding("MP301", 5, 29, 43, "written", severity="information", hint="No action needed if intended.")
    finding("MP204", 5, 29, 43, "guarded", severity="hint", hint="No action needed.")
    done()
    end()
"""


async def _codes(client: Client, uri: str, codes: set[str]) -> None:
    await client.diagnostics_where(uri, lambda d: {x["code"] for x in d} == codes, f"{codes} alone")


async def test_facts_are_in_the_hover_and_in_the_tree_alone(client: Client, lab: Lab) -> None:
    lab.scenario(SCENARIO)
    uri = client.open(lab.program)
    result = await client.command("magpy.check", {"uri": uri})
    await _codes(client, uri, {"MP102"})
    assert result["findings"] == {"error": 0, "warning": 1, "information": 0, "hint": 0}
    assert "· 1 warning ·" in result["summary"]
    text = (await _hover(client, uri, 5, 31))["contents"]["value"]
    assert "**MP301**" in text and "No action needed if intended." in text and "**MP204**" in text
    (tree,) = await client.request("magpy/runs", {})
    (region,) = tree["regions"]
    assert [f["code"] for f in region["sideEffects"]] == ["MP301"]
    at = {"start": {"line": 5, "character": 30}, "end": {"line": 5, "character": 30}}
    params = {"textDocument": {"uri": uri}, "range": at, "context": {"diagnostics": []}}
    titles = [action["title"] for action in await client.request("textDocument/codeAction", params)]
    assert any("MP102" in title for title in titles) and not any("MP301" in title for title in titles)


async def test_the_hover_has_the_message_that_no_diagnostic_shows(server: Client, lab: Lab) -> None:
    lab.scenario(SCENARIO)
    server.settings = {"interpreter": str(lab.python)}
    await server.initialize({**VSCODE, "experimental": {"magpyStatus": True}}, folder=lab.folder)
    uri = server.open(lab.program)
    await server.command("magpy.check", {"uri": uri})
    await _codes(server, uri, {"MP102"})
    text = (await _hover(server, uri, 5, 31))["contents"]["value"]
    assert "written" in text and "guarded" in text, "the editor does not show them"
    assert "\n\nread\n\n" not in text, "the editor shows it above the hover"


@pytest.mark.parametrize("by", ["settings", "table"])
async def test_who_names_a_code_sees_its_facts(client: Client, lab: Lab, by: str) -> None:
    lab.scenario(SCENARIO)
    if by == "table":
        (lab.folder / "pyproject.toml").write_text('[tool.magpy.severity]\nMP301 = "hint"\n', encoding="utf-8")
    else:
        client.settings = {**client.settings, "severity": {"MP301": "hint"}}
        client.notify("workspace/didChangeConfiguration", {"settings": None})
    uri = client.open(lab.program)
    await client.command("magpy.check", {"uri": uri})
    await _codes(client, uri, {"MP102", "MP301"})

"""Why something is not compiled: the hover of a region, and the code action, in our extension and in other clients."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lsp.client import VSCODE, Client
from tests.lsp.conftest import Lab

pytestmark = pytest.mark.asyncio

PROGRAM = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        y = x * 2
        print(y.sum().item())
        return y


net = Net()
for step in range(3):
    net(torch.ones(3))
"""
RAN = """
    hello()
    region(5, id="net: Net", name="net: Net", calls=20, hits=0, captures=0, complete=False, unused="refused",
           step_share=61.5)
    region(12, id="loop", name="loop", kind="step", calls=20, hits=19)
    finding("MP102", 6, 14, 28, "`y.sum().item()` reads a value", values=[("y", "6.0")], region="net: Net")
    done(step={"count": 20, "plain": 20})
    end()
"""


async def _ran(client: Client, lab: Lab) -> str:
    lab.program.write_text(PROGRAM, encoding="utf-8")
    lab.scenario(RAN)
    uri = client.open(lab.program)
    result = await client.command("magpy.runCompiled", {"uri": uri})
    assert result["state"] == "done", result
    return uri


async def _actions(client: Client, uri: str, line: int, only: list[str] | None = None) -> list[dict[str, Any]]:
    at = {"line": line, "character": 0}
    context: dict[str, Any] = {"diagnostics": []} | ({"only": only} if only else {})
    params = {"textDocument": {"uri": uri}, "range": {"start": at, "end": at}, "context": context}
    return [one for one in await client.request("textDocument/codeAction", params) if "not compiled" in one["title"]]


async def test_the_hover_on_a_region_says_why(client: Client, lab: Lab) -> None:
    uri = await _ran(client, lab)
    params = {"textDocument": {"uri": uri}, "position": {"line": 4, "character": 8}}
    text = (await client.request("textDocument/hover", params))["contents"]["value"]
    assert "eager mode, 62% of a step: `net: Net` can't be compiled. MP102 at `train.py:7`. `y = 6.0`." in text.replace(
        lab.program.name, "train.py"
    )
    assert text.count("Do it outside.") == 1


async def test_the_action_is_at_the_definition_and_at_the_cause(client: Client, lab: Lab) -> None:
    uri = await _ran(client, lab)
    for line in (4, 6):
        (action,) = await _actions(client, uri, line)
        assert action["title"] == "Why is this not compiled?" and action["kind"] == "quickfix"
        assert action["command"]["command"] == "magpy.showWhyNot" and action["command"]["arguments"] == ["net: Net"]
    assert await _actions(client, uri, 11) == [], "it is compiled"
    assert await _actions(client, uri, 4, only=["source.organizeImports"]) == []


async def test_the_page(client: Client, lab: Lab) -> None:
    await _ran(client, lab)
    answer = await client.request("magpy/whyNot", {"region": "net: Net"})
    assert answer["name"] == "net: Net" and answer["page"].startswith(
        "# Why is this not compiled?\n\n**net Net**: eager mode, 62%"
    )
    assert "*Value:* `y = 6.0`" in answer["page"] and "*Rewrite:* Do it outside." in answer["page"]
    assert (await client.request("magpy/whyNot", {}))["page"] == answer["page"]
    with pytest.raises(Exception, match="is compiled"):
        await client.request("magpy/whyNot", {"region": "loop"})


async def test_other_clients_get_a_message(server: Client, lab: Lab) -> None:
    server.settings = {"interpreter": str(lab.python)}
    await server.initialize({k: v for k, v in VSCODE.items() if k != "experimental"}, folder=lab.folder)
    uri = await _ran(server, lab)
    (action,) = await _actions(server, uri, 4)
    assert action["command"]["command"] == "magpy.whyNotCompiled"
    assert await server.request(
        "workspace/executeCommand", {"command": "magpy.whyNotCompiled", "arguments": action["command"]["arguments"]}
    )
    with pytest.raises(Exception, match="not compiled"):
        await server.request("workspace/executeCommand", {"command": "magpy.whyNotCompiled", "arguments": ["loop"]})

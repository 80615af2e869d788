"""What a diagnostic carries beyond its range: steps, tags, what changed a value; runs that are older than the text."""

from __future__ import annotations

import asyncio

import pytest

from tests.lsp.client import VSCODE, Client
from tests.lsp.conftest import Lab

pytestmark = pytest.mark.asyncio

VARYING = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 1.0

    def forward(self, x, t):
        return x * self.scale * t


net = Net()
for step in range(20):
    net.scale = 1.0 / (step + 1)
    net(torch.ones(3), "漢" and step * 0.5)
"""


def _related(found: list[dict[str, object]], code: str) -> list[tuple[str, int, int]]:
    (one,) = (d for d in found if d["code"] == code)
    places = one.get("relatedInformation", [])
    assert isinstance(places, list)
    return [
        (p["message"], p["location"]["range"]["start"]["line"], p["location"]["range"]["start"]["character"]) for p in places
    ]


async def test_steps_are_counted_in_the_message(client: Client, lab: Lab) -> None:
    lab.scenario("""
        hello()
        for n in range(1, 21):
            if n != 4:
                finding("MP102", 5, 29, 43, "read", steps=n - (n > 4))
                finding("MP301", 5, 8, 13, "each time told", severity="information", count=n)
            send(type="step", n=n)
        finding("MP205", 5, 8, 13, "once", severity="information")
        end()
    """)
    uri = client.open(lab.program)
    await client.command("magpy.check", {"uri": uri, "steps": 20})
    found = await client.diagnostics_where(uri, lambda d: len(d) == 3, "all")
    assert {d["message"] for d in found} == {"read (19 of 20 steps)", "each time told (20 times)", "once"}
    assert {d["data"]["steps"] for d in found} == {19, None}


async def test_what_does_nothing_is_faded(client: Client, lab: Lab) -> None:
    lab.program.write_text("import torch\na = 1  # magpy: ignore[MP102]\n")
    lab.scenario("hello()\nregion(1)\nend()")
    uri = client.open(lab.program)
    await client.command("magpy.check", {"uri": uri})
    (found,) = await client.diagnostics_where(uri, lambda d: d, "the unused comment")
    assert found["code"] == "MP912" and found["tags"] == [1]


async def test_no_tags_for_a_client_that_knows_none(server: Client, lab: Lab) -> None:
    text = {**VSCODE["textDocument"], "publishDiagnostics": {"relatedInformation": True}}
    server.settings = {"interpreter": str(lab.python)}
    await server.initialize({**VSCODE, "textDocument": text}, folder=lab.folder)
    lab.program.write_text("import torch\na = 1  # magpy: ignore[MP102]\n")
    lab.scenario("hello()\nregion(1)\nend()")
    uri = server.open(lab.program)
    await server.command("magpy.check", {"uri": uri})
    (found,) = await server.diagnostics_where(uri, lambda d: d, "the unused comment")
    assert "tags" not in found


async def test_a_changed_value_names_the_place_that_changed_it(client: Client, lab: Lab) -> None:
    lab.program.write_text(VARYING, encoding="utf-8")
    lab.scenario("""
        hello()
        finding("MP201", 9, 19, 29, "changed", values=[("self.scale", "1.0 -> 0.5")])
        finding("MP205", 9, 8, 14, "another shape", values=[("x.shape", "(3,) -> (4,)")], severity="information")
        finding("MP202", 8, 4, 15, "t changed", values=[("t", "0.0 -> 0.5")], severity="information")
        finding("MP101", 9, 15, 16, "a way in", path=[(15, 4, 42)])
        region(9)
        end()
    """)
    uri = client.open(lab.program)
    await client.command("magpy.check", {"uri": uri})
    found = await client.diagnostics_where(
        uri, lambda d: len(d) == 4 and sum("relatedInformation" in x for x in d) == 4, "all"
    )
    assert _related(found, "MP201") == [("`net.scale` is assigned here", 14, 4)], "not the beginning in __init__"
    assert _related(found, "MP202") == [("`t` is passed here", 15, 23)]
    assert _related(found, "MP205") == [("`x` is passed here", 15, 8)]
    client.change(uri, 2, (14, 4, 14, 4, "\n    "))
    await client.until(
        lambda: _related(client.diagnostics(uri), "MP201") == [("`net.scale` is assigned here", 15, 4)], "moved"
    )


async def test_a_value_that_the_region_changes_itself(client: Client, lab: Lab) -> None:
    lab.scenario("""
        hello()
        finding("MP201", 5, 29, 30, "changed", values=[("self.calls", "0 -> 1")])
        finding("MP301", 6, 8, 16, "written", values=[("changed", "self.calls")], severity="information")
        region(5)
        end()
    """)
    uri = client.open(lab.program)
    await client.command("magpy.check", {"uri": uri})
    found = await client.diagnostics_where(uri, lambda d: len(d) == 2 and any("relatedInformation" in x for x in d), "both")
    assert _related(found, "MP201") == [("the region changes `self.calls` here", 6, 8)]


async def test_findings_of_an_older_text_are_marked(client: Client, lab: Lab) -> None:
    lab.scenario('hello()\nfinding("MP102", 5, 29, 43, "found")\nend()')
    uri = client.open(lab.program)
    result = await client.command("magpy.check", {"uri": uri})
    assert result["stale"] is False and result["edited"] == []
    client.change(uri, 2, (0, 0, 0, 0, "# new\n"))
    status = await client.status(stale=True)
    assert status["edited"] == [uri] and status["state"] == "done"
    before = len(client.all("magpy/status"))
    client.change(uri, 3, (0, 0, 0, 0, "# more\n"))
    await client.sync()
    assert len(client.all("magpy/status")) == before, "told once"
    client.change(uri, 4, (0, 0, 2, 0, ""))
    await client.until(lambda: len(client.all("magpy/status")) > before, "undone")
    assert client.all("magpy/status")[-1]["stale"] is False
    client.change(uri, 5, (12, 0, 12, 0, "# at the end\n"))
    await client.until(lambda: client.all("magpy/status")[-1]["stale"], "lines after the last one count, too")


async def test_findings_of_the_run_before_are_marked(client: Client, lab: Lab) -> None:
    lab.scenario('hello()\nfinding("MP102", 5, 29, 43, "found")\nend()')
    uri = client.open(lab.program)
    await client.command("magpy.check", {"uri": uri})
    lab.gate("go")
    lab.scenario('gate("go")\nhello()\nend()')
    _, answer = client.begin_command("magpy.check", {"uri": uri})
    status = await client.status(state="starting", runId=client.all("magpy/status")[-1]["runId"] + 1)
    assert status["stale"] is True
    await client.diagnostics_where(uri, lambda found: [d["message"] for d in found] == ["found"], "those of the run before")
    await asyncio.to_thread(lab.open_gate, "go")
    assert (await answer)["stale"] is False
    await client.diagnostics_where(uri, lambda d: not d, "none of the new run")

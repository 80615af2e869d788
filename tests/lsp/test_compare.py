"""A program under both engines: what torch.compile breaks at is on the lines too, and a table ends the output."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.lsp.client import Client, ServerError
from tests.lsp.conftest import Lab
from tests.lsp.test_server_editing import _hover

pytestmark = pytest.mark.asyncio

BOTH = """
    hello()
    if "dynamo" in request["session_factory"]:
        finding("MPD101", 5, 29, 43, "torch.compile breaks the graph here")
        times = {"eager_ms": 2.0, "compiled_ms": 1.5, "speedup_low": 1.3, "speedup_high": 1.4}
        region(5, engine="dynamo", graphs=2, graph_breaks=1, **times)
    else:
        finding("MP102", 5, 29, 43, "a tensor's value is read here")
        region(5, graphs=1, eager_ms=2.0, compiled_ms=1.0, speedup_low=1.9, speedup_high=2.1)
    end()
"""


def _codes(client: Client, uri: str) -> list[str]:
    return sorted(d["code"] for d in client.diagnostics(uri))


async def test_both_engines_findings_are_on_the_lines(client: Client, lab: Lab) -> None:
    lab.program.write_text(lab.program.read_text(encoding="utf-8").replace("return y", "return y  # magpy: ignore[MP305]"))
    lab.scenario(BOTH)
    client.settings = {**client.settings, "backend": "aot_eager", "steps": 2}
    uri = client.open(lab.program)
    result = await client.command("magpy.compare", {"uri": uri})
    assert (result["state"], result["engine"], result["mode"]) == ("done", "dynamo", "compiled")
    assert [lab.request[key] for key in ("steps", "backend", "mode")] == [24, "aot_eager", "run"]
    found = await client.diagnostics_where(
        uri, lambda d: len(d) == 3, "of both, and a comment that hides nothing of MagPy's"
    )
    assert {d["code"]: d["severity"] for d in found} == {"MP102": 2, "MPD101": 2, "MP912": 4}
    (mpd,) = (d for d in found if d["code"] == "MPD101")
    assert mpd["source"] == "magpy" and mpd["codeDescription"]["href"].endswith("/MPD101.md")
    assert mpd["range"] == {"start": {"line": 5, "character": 30}, "end": {"line": 5, "character": 44}}  # UTF-16
    await client.until(lambda: "torch.compile ran in two" in client.output("report"), "the table's note")
    lines = [line.split() for line in client.output("report").splitlines()]
    assert ["MagPy", "1", "0", "0", "14", "-", "-", "1.000"] in lines
    assert ["torch.compile", "2", "1", "0", "14", "-", "-", "1.500"] in lines
    lenses = await client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    titles = [lens["command"]["title"] for lens in lenses]
    assert "Net: torch.compile · 2 graphs · 1 break · 0 recompiles · 14 guards · 2.00 → 1.50 ms · 1.33x" in titles
    assert len([title for title in titles if title == "Check"]) == 1
    # The lines move and go as those of any finding.
    client.change(uri, 2, (0, 0, 0, 0, "\n"))
    await client.diagnostics_where(uri, lambda d: {x["range"]["start"]["line"] for x in d} == {6, 7}, "moved")


async def test_the_next_run_and_clear_end_what_torch_compile_found(client: Client, lab: Lab) -> None:
    lab.scenario(BOTH)
    uri = client.open(lab.program)
    await client.command("magpy.compare", {"uri": uri})
    await client.diagnostics_where(uri, lambda _: _codes(client, uri) == ["MP102", "MPD101"], "of both")
    await client.command("magpy.check", {"uri": uri})
    await client.diagnostics_where(uri, lambda _: _codes(client, uri) == ["MP102"], "of the next run")
    await client.command("magpy.compare", {"uri": uri})
    await client.diagnostics_where(uri, lambda _: _codes(client, uri) == ["MP102", "MPD101"], "of both again")
    await client.command("magpy.clear")
    await client.diagnostics_where(uri, lambda d: d == [], "nothing")


async def test_a_comparison_ends_with_the_run_that_is_cancelled_or_superseded(client: Client, lab: Lab) -> None:
    lab.gate("go")
    lab.scenario('hello()\nregion(5)\ngate("go")\nend()')
    uri = client.open(lab.program)
    _, answer = client.begin_command("magpy.compare", {"uri": uri})
    await client.status(state="running")
    await client.command("magpy.cancel", {"uri": uri})
    assert ((result := await answer)["state"], result["engine"]) == ("cancelled", "magpy")
    (lab.machine / "request.json").unlink()
    first = await client.command("magpy.compare", {"uri": uri, "wait": False})
    assert first["state"] == "starting"
    await client.status(state="running", runId=first["runId"])
    _, check = client.begin_command("magpy.check", {"uri": uri})  # the program runs once at a time
    await client.status(state="superseded", runId=first["runId"])
    await client.status(state="running", runId=first["runId"] + 1, mode="check")
    lab.open_gate("go")
    assert (await check)["state"] == "done"
    assert "dynamo" not in lab.request["session_factory"] and not lab.processes()


async def test_what_cannot_be_compared(client: Client, lab: Lab) -> None:
    uri = client.open(lab.program)
    with pytest.raises(ServerError, match=r"magpy\.compare: engine must be"):
        await client.command("magpy.compare", {"uri": uri, "engine": "dynamo"})
    client.notify("magpy/trust", {"trusted": False})
    with pytest.raises(ServerError, match="trusted workspaces"):
        await client.command("magpy.compare", {"uri": uri})
    assert lab.noted("request.json") is None


@pytest.mark.slow
async def test_a_real_program_under_both(server: Client, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(
        "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        y = x * 2\n"
        "        print(y.sum().item())\n        return y + 1\n\n\nnet = Net()\nfor _ in range(30):\n    net(torch.ones(3))\n"
    )
    server.settings = {"interpreter": sys.executable, "backend": "eager", "env": {"OMP_NUM_THREADS": "1"}}
    await server.initialize(folder=tmp_path)
    uri = server.open(path)
    result = await server.command("magpy.compare", {"uri": uri})
    assert result["state"] == "done", (result["failure"], server.output("stderr")[-1500:])
    found = await server.diagnostics_where(uri, lambda d: any(x["code"].startswith("MPD") for x in d), "torch.compile's")
    assert {d["range"]["start"]["line"] for d in found if d["code"] == "MPD101"} == {6}
    assert not any(d["code"] == "MP305" for d in found), "a fact"
    assert "MP305" in (await _hover(server, uri, 6, 10))["contents"]["value"]
    await server.until(lambda: "torch.compile ran in two" in server.output("report"), "the table")

"""How a compiled run is going, told to clients that show it: figures, bars, loss, what is compiled, the gain at the end."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

import pytest

from tests.golden.test_formats import faster
from tests.lsp.client import VSCODE, Client
from tests.lsp.conftest import Lab

pytestmark = pytest.mark.asyncio

STEP = json.dumps(faster().to_json())
SCENARIO = f"""
    import json
    STEP = json.loads('''{STEP}''')
    hello()
    send(type="step", n=7)
    print("loss: 0.25", flush=True)
    send(type="compiling", running=["model: Net"], waiting=[], ready=[])
    send(type="progress", rate=23.9, compiled=1.0, step=STEP)
    send(type="progress", rate=3.0, compiled=1.0, step={{"plain_ms": "fast"}})
    gate("end")
    region(5, verified=11, wrong=1)
    done(step=STEP)
    end()
"""


def live(client: Client) -> list[dict[str, Any]]:
    return client.all("magpy/live")


async def test_a_compiled_run_says_how_it_is_going_and_what_it_has_gained(client: Client, lab: Lab) -> None:
    lab.gate("end")
    lab.scenario(SCENARIO)
    uri = client.open(lab.program)
    _, answer = client.begin_command("magpy.runCompiled", {"uri": uri})
    await client.until(lambda: any(m["bars"] and "loss" in m["head"] for m in live(client)), "figures and the loss")
    found = live(client)[-1]
    assert (found["state"], found["uri"], found["label"], found["head"]) == ("running", uri, "train.py", "step 7, loss 0.25")
    assert found["lines"][:3] == [
        "now 23.9 steps/s, compiled",
        "24.3 steps/s compiled, 15.9 eager: 1.53x",
        "saved 41.0 s so far, broke even at step 210",
    ]
    assert found["lines"][3].startswith("compiling model: Net for ")
    assert [(bar["name"], bar["percent"], bar["figures"]) for bar in found["bars"]] == [
        ("Net", 70.3, "70%  1.74x"),
        ("the rest", 15.4, "15%  0.92x"),
        ("AdamW", 14.3, "14%  1.73x"),
    ]
    assert found["barsOf"] == "eager"
    lenses = await client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    assert {"title": "Show run view", "command": "magpy.showRunView", "arguments": [{"uri": uri}]} in [
        lens["command"] for lens in lenses
    ]
    await asyncio.to_thread(lab.open_gate, "end")
    result = await answer
    assert result["state"] == "done" and result["gain"] == "1.53x, saved 41.0 s of 310 s"
    assert result["verified"] == "verified 11 of 12 graphs" and " · verified 11 of 12 graphs · " in result["summary"]
    await client.until(lambda: live(client)[-1]["state"] == "done", "the end")
    assert live(client)[-1]["lines"] == [
        "24.3 steps/s compiled, 15.9 eager: 1.53x",
        "saved 41.0 s of 310 s, broke even at step 210",
    ]


async def test_what_has_not_changed_is_not_told_again(client: Client, lab: Lab) -> None:
    lab.gate("end")
    lab.scenario('hello()\nsend(type="step", n=1)\ngate("end")\nend()')
    uri = client.open(lab.program)
    _, answer = client.begin_command("magpy.runCompiled", {"uri": uri})
    await client.until(lambda: any(m["head"] == "step 1" for m in live(client)), "the step")
    await asyncio.to_thread(lab.open_gate, "end")
    await answer
    await client.until(lambda: live(client)[-1]["state"] == "done", "the end")
    told = live(client)
    assert all(one != other for one, other in itertools.pairwise(told))


@pytest.mark.parametrize(("command", "announced"), [("magpy.check", True), ("magpy.runCompiled", False)])
async def test_checks_and_other_clients_get_none_of_it(command: str, announced: bool, server: Client, lab: Lab) -> None:
    lab.scenario(SCENARIO.replace('gate("end")', ""))
    server.settings = {"interpreter": str(lab.python)}
    await server.initialize({**VSCODE, "experimental": {"magpyStatus": True, "magpyLive": announced}}, folder=lab.folder)
    result = await server.command(command, {"uri": server.open(lab.program)})
    assert result["state"] == "done", result
    # what was sent before the answer has arrived
    await server.request("textDocument/codeLens", {"textDocument": {"uri": result["uri"]}})
    assert live(server) == []

"""``magpy-lsp mcp`` over its protocol: the tools, the programs that they run, and how calls end."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from click.testing import CliRunner

from lsp_server.cli.main import cli
from tests.agents.connect import COMMAND, apply, call, connected, environment, refused

BROKEN = """\
import os
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x)
        if (y > 0.1).any():
            y = y * 3 - 1
        else:
            y = -y + 0.5
        return y

torch.manual_seed(0)
net = Net()
print('{"jsonrpc": "2.0", "id": 1, "result": {}}', flush=True)
os.write(1, b"not a message\\n")
for step in range(STEPS):
    net(torch.ones(2, 4)).sum().backward()
""".replace("STEPS", "40")
SMALL = BROKEN.replace("if (y > 0.1).any():", "if True:")
SLEEPS = """\
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open("pids.part", "w").write(f"{os.getpid()} {child.pid}")
os.rename("pids.part", "pids")
time.sleep(600)
"""


async def _until(what: Callable[[], bool], seconds: float = 60) -> None:
    with anyio.fail_after(seconds):
        while not what():
            await asyncio.sleep(0.02)


@pytest.mark.asyncio
async def test_the_tools_say_what_they_do_and_take(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"check", "explain", "run", "kernels", "verify"}
        for name, tool in tools.items():
            hints = tool.annotations
            assert hints is not None and tool.description and tool.output_schema
            executes = name != "explain"
            assert (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint) == (
                not executes,
                executes,
                executes,
            )
            assert ("EXECUTES" in tool.description) == executes and "\n" not in tool.description
            assert all("description" in taken for taken in tool.input_schema["properties"].values())
        assert tools["explain"].input_schema["required"] == ["code"]
        assert "EXECUTES" in str(client.instructions)

        assert (await call(client, "explain", code="MP102"))["result"].startswith("# MP102")
        assert (await call(client, "explain", code="host-read"))["result"].startswith("# MP102")
        assert "- MP502 (`budget-recompiles`)" in (await call(client, "explain", code="MP5"))["result"]
        assert "MP1O2" in await refused(client, "explain", code="MP1O2")
        assert "No program to run" in await refused(client, "check")
        assert "is not a folder" in await refused(client, "check", script="train.py", cwd=str(tmp_path / "none"))
        assert "no Python interpreter" in await refused(client, "check", script="train.py", python="none")
        assert "steps" in await refused(client, "run", script="train.py", steps=-1)
        (tmp_path / "pyproject.toml").write_text("[tool.magpy]\nstep = 3\n")
        assert "pyproject.toml" in await refused(client, "check", script="train.py")


@pytest.mark.asyncio
async def test_a_fix_is_exact_edits_whatever_the_script_prints(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(BROKEN)
    async with connected(tmp_path, mode="legacy") as client:
        answer = await call(client, "check", script="train.py")
        assert answer["outcome"] == "ok" and answer["steps"] == 3 and "output" not in answer
        (finding,) = answer["findings"]
        assert (finding["code"], finding["severity"], finding["line"]) == ("MP101", "warning", 11)
        assert finding["file"] == str(script) and "torch.where" in finding["hint"]
        assert any("net Net (train.py:9): 2 graphs, cut at 1 place" in line for line in answer["summary"])
        (fix,) = finding["fixes"]
        assert fix["results_stay_the_same"]
        apply(fix)
    assert "        y = torch.where((y > 0.1).any(), y * 3 - 1, -y + 0.5)\n        return y\n" in script.read_text()


@pytest.mark.slow
@pytest.mark.asyncio
async def test_the_fixed_script_checks_clean_and_compiled_code_agrees(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    script = tmp_path / "sub" / "train.py"
    script.write_text(BROKEN)
    async with connected(tmp_path) as client:
        before = await call(client, "check", script="train.py", cwd=str(script.parent), python=sys.prefix)
        apply(before["findings"][0]["fixes"][0])
        after = await call(client, "check", script="sub/train.py")
        assert after["findings"] == [] and "one graph" in after["summary"][0]

        ran = await call(client, "run", script="sub/train.py", steps=30)
        assert ran["outcome"] == "ok" and ran["steps"] == 30 and ran["compiled_steps"] > 5
        assert ran["speed"].startswith("Step: ") and "compiled code ran in" in ran["summary"][0]
        verified = await call(client, "verify", script="sub/train.py", steps=30, every=2)
        assert verified["verdict"] == "agrees" and verified["compared"] > 3 and verified["differ"] == 0
        assert sum(region.get("compared", 0) for region in verified["regions"]) == verified["compared"]
        whole = await call(client, "verify", script="sub/train.py", steps=12, whole=True)
        assert whole["verdict"] == "agrees" and whole["summary"][0].startswith("Equal"), whole
        assert "differences" not in whole and whole["steps"] == 12


@pytest.mark.slow
@pytest.mark.asyncio
async def test_kernels_of_a_script_and_of_a_line(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    (tmp_path / "train.py").write_text(SMALL)
    async with connected(tmp_path) as client:
        answer = await call(client, "kernels", script="train.py", limit=2)
        assert answer["device"] == "H100 SXM (cuda:sm_90)" and len(answer["kernels"]) == 2
        assert answer["kernels_left_out"] > 0 and not any("triton" in kernel for kernel in answer["kernels"])
        assert any("train.py:" in line for line in answer["summary"])
        of_line = await call(client, "kernels", script="train.py:12", target="cuda:sm_80")
        assert of_line["kernels"] and all("12" in kernel["lines"] for kernel in of_line["kernels"])
        assert any("@triton.jit" in kernel.get("triton", "") for kernel in of_line["kernels"])
        none = await call(client, "kernels", script="train.py", line="train.py:1")
        assert "no kernel computes anything of train.py:1" in none["problem"]
        assert "cuda:sm_1" in await refused(client, "kernels", script="train.py", target="cuda:sm_1")


def _are_gone(pids: Path) -> bool:
    return not any(psutil.pid_exists(int(pid)) for pid in pids.read_text().split())


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("tool", "more", "doing"),
    [("check", {}, ("starting Python", "running the program")), ("verify", {"whole": True}, ("run 1: compiled",))],
)
async def test_a_cancelled_call_ends_the_programs_processes(
    tool: str, more: dict[str, Any], doing: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(f"import os; os.chdir({str(tmp_path)!r})\n{SLEEPS}")
    pids, heard = tmp_path / "pids", list[tuple[float, str]]()

    async def hear(seconds: float, total: float | None, what: str | None) -> None:
        heard.append((seconds, str(what)))

    async with connected(tmp_path) as client, anyio.create_task_group() as calls:

        async def checks() -> None:
            await client.call_tool(tool, {"script": "train.py", **more}, progress_callback=hear)

        calls.start_soon(checks)
        await _until(pids.exists)
        await _until(lambda: len(heard) > 1)
        calls.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await _until(lambda: _are_gone(pids))
    assert [seconds for seconds, _ in heard] == sorted({seconds for seconds, _ in heard})
    assert heard[0][1] in ("starting Python", *doing) and heard[-1][1] in doing


@pytest.mark.slow
@pytest.mark.asyncio
async def test_calls_wait_for_each_other_and_have_a_time_limit(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SLEEPS)
    pids, heard = tmp_path / "pids", list[str]()

    async def hear(seconds: float, total: float | None, what: str | None) -> None:
        heard.append(str(what))

    async with connected(tmp_path) as client, anyio.create_task_group() as calls:

        async def checks() -> None:
            late = await call(client, "check", script="train.py", timeout=3)
            assert late["outcome"] == "timeout" and "3 s" in late["problem"] and _are_gone(pids)

        calls.start_soon(checks)
        await _until(pids.exists)
        answer = await client.call_tool("check", {"script": "none.py"}, progress_callback=hear)
        assert answer.structured_content is not None and answer.structured_content["outcome"] == "bad-entrypoint"
    assert heard[0] == "waiting for the end of another program"


@pytest.mark.slow
@pytest.mark.parametrize("signals", [False, True])
def test_a_client_that_leaves_ends_the_program_and_the_server(tmp_path: Path, signals: bool) -> None:
    (tmp_path / "train.py").write_text("print('not a message', flush=True)\n" + SLEEPS)
    pids = tmp_path / "pids"
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    sent = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "check", "arguments": {"script": "train.py"}},
        },
    ]
    server = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path, env=environment())
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write("".join(json.dumps(message) + "\n" for message in sent).encode())
    server.stdin.flush()
    while not pids.exists():
        assert server.poll() is None
        time.sleep(0.02)
    server.send_signal(signal.SIGINT) if signals else server.stdin.close()
    lines = server.stdout.read().splitlines()
    assert server.wait(30) == (130 if signals else 0)
    while not _are_gone(pids):  # the test's time limit ends it
        time.sleep(0.02)
    server.stdin.close()
    assert [json.loads(line)["jsonrpc"] for line in lines]


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_script_that_fails_shows_its_output(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nprint('reading data')\nraise SystemExit('no data there')\n")
    async with connected(tmp_path) as client:
        answer = await call(client, "check", script="train.py")
        assert answer["outcome"] == "failed" and answer["output"] == ["reading data", "no data there"]


def test_without_the_package_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "lsp_server.agents.serving", raising=False)
    for name in [name for name in sys.modules if name.partition(".")[0] == "mcp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    result = CliRunner().invoke(cli, ["mcp"])
    assert result.exit_code == 2 and result.stdout == ""
    assert "pip install 'magpy-lsp[mcp]'" in result.stderr

    skill = CliRunner().invoke(cli, ["mcp", "--skill"])
    assert skill.exit_code == 0 and skill.stdout.startswith("---\nname: magpy\ndescription: ")


@pytest.mark.slow
@pytest.mark.asyncio
async def test_whole_runs_of_a_program_without_a_seed_are_not_compared(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SMALL.replace("torch.manual_seed(0)\n", ""))
    async with connected(tmp_path) as client:
        answer = await call(client, "verify", script="train.py", steps=0, whole=True)
        assert answer["verdict"] == "nothing compared" and "other random numbers" in answer["summary"][0], answer
        assert "does not exist" in await refused(client, "verify", script="no.py", whole=True)

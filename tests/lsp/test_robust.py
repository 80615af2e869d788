"""What may go wrong around a run: cancelled at any stage, endless output, odd files, hundreds of runs in a row."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.lsp.client import Client
from tests.lsp.conftest import PROGRAM, Lab
from tests.lsp.test_server_runs import SIMPLE

pytestmark = pytest.mark.asyncio

STUCK = 'signal.signal(signal.SIGTERM, signal.SIG_IGN)\nnote("stuck", "")\nwhile True: signal.pause()'
STAGES = {
    "python starts": STUCK,
    "imports": f'send(type="hello", pid=os.getpid())\n{STUCK}',
    "runs": f"hello()\n{STUCK}",
    "in a step": f'hello()\nsend(type="step", n=1)\nregion(5)\n{STUCK}',
    "ends": f'hello()\nsend(type="step", n=3)\nsend(type="stopping", steps=3)\n{STUCK}',
    "after its report": f"hello()\nregion(5)\ndone()\n{STUCK}",
}


@pytest.mark.slow
async def test_a_run_is_cancelled_at_any_stage(client: Client, lab: Lab) -> None:
    uri = client.open(lab.program)
    for stage, scenario in STAGES.items():
        (lab.machine / "stuck").unlink(missing_ok=True)
        lab.scenario(scenario)
        _, answer = client.begin_command("magpy.check", {"uri": uri})
        while lab.noted("stuck") is None:  # a file of another process: there is nothing else to wait on
            await asyncio.sleep(0.01)
        started = time.monotonic()
        assert await client.command("magpy.cancel", {"uri": uri}) == {"cancelled": 1}, stage
        assert (await answer)["state"] == "cancelled", stage
        assert lab.processes() == [], stage
        assert time.monotonic() - started <= 4.0, stage  # two seconds, and as much for a busy machine
    lab.scenario(SIMPLE)
    _, answer = client.begin_command("magpy.check", {"uri": uri})
    await client.command("magpy.cancel", {"uri": uri})  # at once: before there is a process, or just as it starts
    assert (await answer)["state"] in ("cancelled", "done")
    assert (await client.command("magpy.check", {"uri": uri}))["state"] == "done"
    assert lab.processes() == []


async def test_endless_output_can_be_cancelled(client: Client, lab: Lab) -> None:
    lab.scenario('hello()\nwhile True: os.write(1, b"x" * 65536)')
    uri = client.open(lab.program)
    _, answer = client.begin_command("magpy.check", {"uri": uri})
    await client.until(lambda: len(client.output("stdout")) > 1_000_000, "a lot of output")
    memory = psutil.Process(client.process.pid).memory_info().rss
    await client.until(lambda: len(client.output("stdout")) > 4_000_000, "more of it")
    assert psutil.Process(client.process.pid).memory_info().rss < memory + 30_000_000
    await client.command("magpy.cancel", {"uri": uri})
    assert (await answer)["state"] == "cancelled"
    assert lab.processes() == []


async def test_a_program_killed_for_memory_says_so(client: Client, lab: Lab) -> None:
    lab.scenario('hello()\nfinding("MP102", 5, 29, 43, "before")\nend(code=None, number=9)')
    uri = client.open(lab.program)
    result = await client.command("magpy.check", {"uri": uri})
    assert result["state"] == "failed" and "memory" in result["failure"].lower(), result["failure"]
    found = await client.diagnostics_where(uri, lambda d: len(d) == 2, "what was found until then, and why it ended")
    assert {d["code"] for d in found} == {"MP102", "MP906"}


async def test_lines_that_end_in_crlf(client: Client, lab: Lab) -> None:
    text = PROGRAM.replace("\n", "\r\n")
    lab.program.write_bytes(text.encode("utf-8"))
    lab.scenario(SIMPLE)
    uri = client.open(lab.program, text)
    await client.command("magpy.check", {"uri": uri})
    (found,) = await client.diagnostics_where(uri, lambda d: d, "the finding")
    assert found["range"] == {"start": {"line": 5, "character": 30}, "end": {"line": 5, "character": 44}}
    client.change(uri, 2, (0, 0, 0, 0, "# 漢\r\n"))
    await client.diagnostics_where(uri, lambda d: d and d[0]["range"]["start"]["line"] == 6, "moved")
    client.change(uri, 3, (6, 44, 6, 44, " "))
    await client.diagnostics_where(uri, lambda d: d == [], "changed")


async def test_a_file_outside_of_the_workspace(client: Client, lab: Lab, tmp_path_factory: Any) -> None:
    elsewhere: Path = tmp_path_factory.mktemp("else where é")
    program = elsewhere / "train.py"
    program.write_text(PROGRAM, encoding="utf-8")
    lab.scenario('note("cwd", os.getcwd())\n' + "\n".join(line.strip() for line in SIMPLE.strip().split("\n")))
    uri = client.open(program)
    assert (await client.command("magpy.check", {"uri": uri}))["state"] == "done"
    assert lab.noted("cwd") == str(elsewhere), "where the file is, for no folder of the workspace holds it"
    assert len(await client.diagnostics_where(uri, lambda d: d, "the finding")) == 1


async def test_a_workspace_behind_a_link(server: Client, lab: Lab) -> None:
    link = lab.folder.parent / f"{lab.folder.name}-link"
    link.symlink_to(lab.folder, target_is_directory=True)
    server.settings = {"interpreter": str(lab.python)}
    await server.initialize(folder=link)
    lab.scenario(SIMPLE.replace("path=", f"file={str(lab.program)!r}, path="))  # Python may tell the real path
    uri = server.open(link / "train.py")
    result = await server.command("magpy.check", {"uri": uri})
    assert result["state"] == "done" and result["uri"] == uri
    assert len(await server.diagnostics_where(uri, lambda d: d, "under the name the editor has")) == 1
    assert server.diagnostics(lab.program.as_uri()) == []


async def test_a_file_that_is_half_written(client: Client, lab: Lab) -> None:
    """Every request is answered for texts that are no Python, and findings stay on the lines that are as they were."""
    lab.scenario(SIMPLE)
    uri = client.open(lab.program)
    await client.command("magpy.check", {"uri": uri})
    await client.diagnostics_where(uri, lambda d: d, "the finding")
    where = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
    client.settings = {**client.settings, "inlayHints": True}
    for version, text in enumerate(("def f(:\n", "'''\n", "\0", "(" * 300, "\ud800"), start=2):
        client.change(uri, version, (8, 0, 9, 0, f"{text}\n"))
        for method, extra in (
            ("textDocument/codeLens", {}), ("textDocument/inlayHint", {"range": where}),
            ("textDocument/codeAction", {"range": where, "context": {"diagnostics": []}}),
            ("textDocument/hover", {"position": {"line": 5, "character": 31}}),
        ):  # fmt: skip
            await client.request(method, {"textDocument": {"uri": uri}, **extra})
        assert [d["range"]["start"]["line"] for d in client.diagnostics(uri)] == [5]


@pytest.mark.slow
async def test_hundreds_of_checks_leave_memory_and_files_as_they_were(client: Client, lab: Lab) -> None:
    nodes = [("call", "mul", "float32[3]", 6)] * 500
    guards = [("self.scale", "eq", "1.0", 6)] * 500
    lab.scenario(f"hello()\nfor n in range(50): finding('MP102', 5, 29, 43, f'read {{n}}')\nregion(5)\n"
                 f"print('x' * 10000)\ndone({guards!r}, {nodes!r})\nend()")  # fmt: skip
    uri = client.open(lab.program)
    process = psutil.Process(client.process.pid)
    seen: list[tuple[int, int, int]] = []
    for _ in range(300):
        assert (await client.command("magpy.check", {"uri": uri}))["state"] == "done"
        client.received.clear()
        seen.append((process.memory_info().rss, process.num_fds(), process.num_threads()))
    # The allocator takes a hundred checks and more to find its size (measured: 62 MB at 20, 67 to 72 MB from 140 on and
    # the same at 400), and single readings are up to 2 MB below their neighbours; what is kept shows after that, and 180
    # checks that keep 20 KB each are seen.
    memory = [rss for rss, _, _ in seen]
    assert min(memory[-20:]) <= max(memory[60:100]) + 3_500_000, memory[19::20]
    assert seen[-1][1] <= seen[99][1] + 1
    # the main thread, the reader of stdin, and a pool that fills up to its size by chance
    assert seen[-1][2] <= 2 + ThreadPoolExecutor()._max_workers, seen[19::20]
    assert seen[-1][0] <= 110_000_000, "the server is small"
    assert lab.processes() == []

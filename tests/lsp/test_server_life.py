"""The server's own life: start, capabilities, what it loads, and how it ends."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator

import psutil
import pytest
import pytest_asyncio

from tests.lsp.client import PATIENCE, Client
from tests.lsp.conftest import Lab
from tests.lsp.test_server_runs import HANG

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Client]:
    """Started as an editor starts it, for these tests are about its own start and end."""
    client = await Client.start()
    try:
        yield client
    finally:
        await client.stop()


async def test_capabilities(server: Client, lab: Lab) -> None:
    capabilities = (await server.initialize(folder=lab.folder))["capabilities"]
    assert capabilities["hoverProvider"] and capabilities["codeLensProvider"] is not None
    assert capabilities["textDocumentSync"]["change"] == 2
    assert set(capabilities["executeCommandProvider"]["commands"]) == {
        "magpy.check", "magpy.runCompiled", "magpy.compare", "magpy.cancel", "magpy.clear", "magpy.showDocumentation",
        "magpy.openReproducer", "magpy.whyNotCompiled",
    }  # fmt: skip
    registration = await server.until(
        lambda: [m for m in server.requested if m["method"] == "client/registerCapability"], "registrations"
    )
    methods = {r["method"] for r in registration[0]["params"]["registrations"]}
    assert methods == {"workspace/didChangeConfiguration", "workspace/didChangeWatchedFiles"}


@pytest.mark.slow
async def test_start_is_quick() -> None:
    """Processor time against that of the libraries alone, the best of five: the machine's speed must not decide."""
    libraries = [sys.executable, "-P", "-c", "import pygls.lsp.server; print(sum(__import__('os').times()[:2]))"]
    alone = best = PATIENCE
    for _ in range(5):
        imported = await asyncio.to_thread(subprocess.run, libraries, check=True, capture_output=True, text=True)
        alone = min(alone, float(imported.stdout))
        client = await Client.start()
        await client.initialize()
        await client.sync()
        times = psutil.Process(client.process.pid).cpu_times()
        best = min(best, times.user + times.system)
        await client.stop()
    assert best <= 2 * alone, (best, alone)  # 2 * 0.35 s on a calm machine


async def test_the_command_says_how_the_client_left() -> None:
    """Exit code 1 for a client that went without asking; the ``--stdio`` that many clients append is accepted."""
    command = [sys.executable, "-m", "lsp_server.cli", "server", "--stdio"]
    ended = await asyncio.to_thread(subprocess.run, command, input=b"", capture_output=True)
    assert (ended.returncode, ended.stdout) == (1, b""), ended.stderr


async def test_no_torch_in_the_server() -> None:
    code = (
        "import sys, lsp_server.server.main, lsp_server.server.worker, lsp_server.features.summary;"
        "import lsp_server.formats.run_table, lsp_server.cli.explain;"
        "assert not [m for m in sys.modules if m.split('.')[0] == 'torch']"
    )
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code], check=True)


async def test_a_stray_print_does_not_touch_the_wire(lab: Lab) -> None:
    hooks = lab.folder / "hooks"
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text(
        "import asyncio\n_run = asyncio.run\n"
        "def run(main, **kw):\n    print('stray')\n    import os; os.write(1, b'stray')\n    return _run(main, **kw)\n"
        "asyncio.run = run\n"
    )
    from tests.lsp.client import ROOT

    client = await Client.start({"PYTHONPATH": f"{ROOT}:{hooks}"})
    await client.initialize(folder=lab.folder)
    await client.sync()
    await client.stop()
    assert b"stray" in client.stderr


async def _hang(client: Client, lab: Lab) -> None:
    client.settings = {"interpreter": str(lab.python)}
    lab.scenario(HANG)
    uri = client.open(lab.program)
    _, answer = client.begin_command("magpy.check", {"uri": uri})
    answer.add_done_callback(lambda f: f.cancelled() or f.exception())  # it may break off with the server
    await client.diagnostics_where(uri, lambda d: d, "it hangs")
    assert len(lab.processes()) == 2


async def test_shutdown_stops_runs(server: Client, lab: Lab) -> None:
    await server.initialize(folder=lab.folder)
    await _hang(server, lab)
    await server.request("shutdown", None)
    assert lab.processes() == []
    server.notify("exit", None)
    assert await asyncio.wait_for(server.process.wait(), PATIENCE) == 0


async def test_exit_without_shutdown_stops_runs(server: Client, lab: Lab) -> None:
    await server.initialize(folder=lab.folder)
    await _hang(server, lab)
    server.notify("exit", None)
    assert await asyncio.wait_for(server.process.wait(), PATIENCE) == 1
    assert lab.processes() == []


async def test_end_of_input_stops_runs(server: Client, lab: Lab) -> None:
    await server.initialize(folder=lab.folder)
    await _hang(server, lab)
    assert server.process.stdin is not None
    server.process.stdin.close()
    await asyncio.wait_for(server.process.wait(), PATIENCE)
    assert lab.processes() == []


async def test_the_editors_death_stops_runs_though_input_stays_open(server: Client, lab: Lab) -> None:
    editor = subprocess.Popen(["sleep", "600"])
    try:
        await server.initialize(folder=lab.folder, process_id=editor.pid)
        await _hang(server, lab)
    finally:
        editor.kill()
        editor.wait()
    assert await asyncio.wait_for(server.process.wait(), PATIENCE) == 1
    assert lab.processes() == []


async def test_sigterm_stops_runs(server: Client, lab: Lab) -> None:
    await server.initialize(folder=lab.folder)
    await _hang(server, lab)
    server.process.send_signal(signal.SIGTERM)
    await asyncio.wait_for(server.process.wait(), PATIENCE)
    assert lab.processes() == []


async def test_an_editor_in_another_container_is_no_dead_editor(server: Client, lab: Lab) -> None:
    await server.initialize(folder=lab.folder, process_id=2**22 - 1)
    await server.sync()
    assert server.process.returncode is None

"""The language server's latency in an editor: first and last finding, edits, memory, cancelling.

Key functions: one for each benchmark.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from benchmarks.result import Result, Row
from benchmarks.timing import Samples, interleave_commands, user_environment
from tests.lsp.client import Client
from tests.lsp.conftest import Lab

CHAR_GPT = Path(__file__).resolve().parents[1] / "examples" / "char_gpt" / "train.py"
LINES, FINDINGS = 5000, 1000


def _with_server(work: Callable[[Client], Coroutine[Any, Any, Result]]) -> Result:
    async def run() -> Result:
        client = await Client.start(user_environment())
        try:
            return await work(client)
        finally:
            await client.stop()

    return asyncio.run(run())


def _all_after(line: int) -> Callable[[list[Any]], bool]:
    return lambda found: bool(found[0]["range"]["start"]["line"] > line)


def _is_running(client: Client, known: int) -> bool:
    return any(status["state"] == "running" for status in client.all("magpy/status")[known:])


def lsp_squiggles() -> Result:
    """From the command "Check" on char_gpt, three steps, to the first and to the last published finding."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--device", "cpu", "--checkpoint", str(Path(folder) / "checkpoint.pt"), "--steps"]
        plain = interleave_commands({"one step": [sys.executable, str(CHAR_GPT), *arguments, "1"]}, rounds=3, cwd=folder)
        start_up = min(plain["one step"].wall)

        async def work(client: Client) -> Result:
            # Nothing in this program needs action: its facts are shown, which are found as any finding is.
            shown = {"severity": {"MP2": "hint", "MP3": "hint"}}
            client.settings = {"interpreter": sys.executable, "args": [*arguments, "3"], "steps": 0, **shown}
            await client.initialize(folder=CHAR_GPT.parent)
            uri = client.open(CHAR_GPT)
            await client.sync()
            start = time.perf_counter()
            _, answer = client.begin_command("magpy.check", {"uri": uri})
            first = last = 0.0
            seen = 0
            while not answer.done():
                await asyncio.wait([answer], timeout=0.005)
                published = [p["diagnostics"] for p in client.all("textDocument/publishDiagnostics")]
                if len(published) > seen:
                    seen, last = len(published), time.perf_counter() - start
                    first = first or (last if any(published) else 0.0)
            if (await answer)["state"] != "done" or not first:
                raise RuntimeError(f"the check came to nothing: {await answer}")
            detail = f"wall; the plain script with one step takes {start_up:.1f} s (minimum of 3)"
            rows = [
                Row("Check of char_gpt to the first squiggle", first, "s", start_up + 1.0, detail),
                Row("Check of char_gpt to the last squiggle", last, "s", None, "three steps"),
            ]
            return Result(rows, {key: value.to_json() for key, value in plain.items()})

        return _with_server(work)


def _long_program(lab: Lab) -> None:
    lab.program.write_text("".join(f"value_{i} = {i}\n" for i in range(LINES)), encoding="utf-8")
    each = LINES // FINDINGS
    found = f"for i in range(1, {LINES}, {each}):\n    finding('MP102', i, 0, 7, f'found {{i}}')\n"
    lab.scenario(f"hello()\n{found}end()")


def lsp_edits() -> Result:
    """From an edit in the first of 5,000 lines to 1,000 findings on their new lines, and the server's memory."""
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(Path(folder))
        _long_program(lab)

        async def work(client: Client) -> Result:
            client.settings = {"interpreter": str(lab.python)}
            await client.initialize(folder=lab.folder)
            uri = client.open(lab.program)
            await client.command("magpy.check", {"uri": uri})
            await client.diagnostics_where(uri, lambda found: len(found) == FINDINGS, "all of them")
            samples = Samples()
            for edit in range(1, 16):
                before = client.diagnostics(uri)[0]["range"]["start"]["line"]
                start = time.perf_counter()
                client.change(uri, edit + 1, (0, 0, 0, 0, "# new\n"))
                await client.diagnostics_where(uri, _all_after(before), "moved")
                samples.wall.append(time.perf_counter() - start)
            memory = psutil.Process(client.process.pid).memory_info().rss / 2**20
            took = 1e3 * median(samples.wall)
            detail = f"wall, median of 15, both processes' JSON included; min {1e3 * min(samples.wall):.0f} ms"
            rows = [
                Row("edit to 1,000 findings moved, 5,000 lines", took, "ms", 20.0, detail),
                Row("server memory with them", memory, "MB", 80.0, "resident"),
            ]
            return Result(rows, {"edit": samples.to_json()})

        return _with_server(work)


def lsp_cancel() -> Result:
    """From "Cancel" while char_gpt runs to the end of all its processes."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--device", "cpu", "--checkpoint", str(Path(folder) / "checkpoint.pt"), "--steps", "100000"]

        async def work(client: Client) -> Result:
            client.settings = {"interpreter": sys.executable, "args": arguments, "steps": 0}
            await client.initialize(folder=CHAR_GPT.parent)
            uri = client.open(CHAR_GPT)
            samples = Samples()
            for _ in range(3):
                known = len(client.all("magpy/status"))
                _, answer = client.begin_command("magpy.check", {"uri": uri})
                await client.until(partial(_is_running, client, known), "it runs")
                children = psutil.Process(client.process.pid).children(recursive=True)
                start = time.perf_counter()
                await client.command("magpy.cancel")
                psutil.wait_procs(children, timeout=30)
                samples.wall.append(time.perf_counter() - start)
                await answer
            detail = f"wall, the longest of 3; {len(children)} processes; median {median(samples.wall):.2f} s"
            return Result(
                [Row("cancel to all processes gone", max(samples.wall), "s", 2.0, detail)], {"cancel": samples.to_json()}
            )

        return _with_server(work)

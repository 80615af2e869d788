"""The last runs of programs return with the editor's next start; two programs of one model are told apart."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.lsp.client import Client
from tests.lsp.conftest import Lab
from tests.lsp.spare import Nursery

pytestmark = pytest.mark.asyncio

CHECKED = """
    hello()
    finding("MP102", 5, 29, 43, "`x.sum().item()` is read")
    region(4)
    done(guards=[("self.training", "is", "True", 5)])
    end()
"""
Restart = Callable[[], Awaitable[Client]]


@pytest.fixture
def storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("storage")


@pytest_asyncio.fixture
async def restart(nursery: Nursery, lab: Lab, storage: Path) -> AsyncIterator[Restart]:
    """Starts an editor's server, after the end of the one before, with the same folder for what it keeps."""
    running: list[Client] = []

    async def start() -> Client:
        if running:
            await running.pop().stop()
        client = Client(await nursery.server())
        running.append(client)
        client.settings = {"interpreter": str(lab.python)}
        await client.initialize(folder=lab.folder, options={"trusted": True, "storage": str(storage)})
        return client

    yield start
    for client in running:
        await client.stop()


async def checked(restart: Restart, lab: Lab) -> tuple[Client, str]:
    lab.scenario(CHECKED)
    client = await restart()
    uri = client.open(lab.program)
    await client.command("magpy.check", {"uri": uri})
    await client.diagnostics_where(uri, lambda d: len(d) == 1, "the finding")
    return client, uri


def statuses(client: Client) -> list[Any]:
    return client.all("magpy/status")


async def test_findings_status_and_lenses_return(restart: Restart, lab: Lab) -> None:
    client, uri = await checked(restart, lab)
    before = statuses(client)[-1]
    client = await restart()
    client.open(lab.program)
    (found,) = await client.diagnostics_where(uri, lambda d: len(d) == 1, "the finding of the last session")
    assert found["code"] == "MP102" and found["range"]["start"] == {"line": 5, "character": 30}
    (after,) = statuses(client)
    assert after["state"] == "done" and after["endedMs"] == before["endedMs"] and not after["stale"]
    assert after["summary"] == before["summary"] and after["findings"] == before["findings"]
    lenses = await client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    assert any("14 guards" in lens["command"]["title"] for lens in lenses)


async def test_changes_since_the_last_session_move_or_remove_them(restart: Restart, lab: Lab) -> None:
    _, uri = await checked(restart, lab)
    text = lab.program.read_text(encoding="utf-8")
    lab.program.write_text(f"# more\n\n{text}", encoding="utf-8")
    client = await restart()
    (found,) = await client.diagnostics_where(uri, lambda d: len(d) == 1, "the finding, below")
    assert found["range"]["start"]["line"] == 7 and statuses(client)[-1]["stale"]
    unsaved = text.replace("x.sum().item()", "x.sum()")
    client.open(lab.program, unsaved)
    await client.diagnostics_where(uri, lambda d: d == [], "no finding: its line has changed")
    client = await restart()
    lab.program.write_text(unsaved, encoding="utf-8")
    client = await restart()
    client.open(lab.program)
    await client.until(lambda: statuses(client), "the run's status")
    assert not client.diagnostics(uri), "its line is gone from the file on disk"


async def test_what_the_user_has_cleared_stays_away(restart: Restart, lab: Lab) -> None:
    client, _ = await checked(restart, lab)
    await client.command("magpy.clear", None)
    client = await restart()
    client.open(lab.program)
    await client.sync()
    assert statuses(client) == []


async def test_damaged_files_and_those_of_another_version_are_not_read(restart: Restart, lab: Lab, storage: Path) -> None:
    await checked(restart, lab)
    (kept,) = storage.glob("runs/*.json")
    data = json.loads(kept.read_text(encoding="utf-8"))
    for text in ('{"version": ', json.dumps({**data, "version": "0.0"}), json.dumps({**data, "target": {}}), "[]"):
        kept.write_text(text, encoding="utf-8")
        client = await restart()
        client.open(lab.program)
        await client.sync()
        assert statuses(client) == []


async def test_two_programs_of_one_model_are_named(client: Client, lab: Lab) -> None:
    """Each lens and each part of the hover says whose it is; what is the same is there once."""
    model = lab.folder / "model.py"
    model.write_text("class Net:\n    def forward(self, x):\n        return x\n", encoding="utf-8")
    uri = client.open(model)
    for name, guards in (("train.py", 14), ("eval.py", 14), ("export.py", 9)):
        program = lab.folder / name
        program.write_text(lab.program.read_text(encoding="utf-8"), encoding="utf-8")
        lab.scenario(f"hello()\nregion(2, file={str(model)!r}, guards={guards})\nend()\n")
        await client.command("magpy.check", {"uri": client.open(program)})
    folder = lab.folder.name
    lenses = await client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    titles = [lens["command"]["title"] for lens in lenses]
    assert titles == [
        f"{folder}/train.py and {folder}/eval.py · Net: 1 graph · 0 breaks · 14 guards · 2 side effects",
        f"{folder}/export.py · Net: 1 graph · 0 breaks · 9 guards · 2 side effects",
        f"Check {folder}/export.py",
        f"Run {folder}/export.py compiled",
    ]
    hover = await client.request(
        "textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": 1, "character": 8}}
    )
    text = hover["contents"]["value"]
    assert text.count("Region `Net`") == 2 and f"In `{folder}/train.py` and `{folder}/eval.py`: Region" in text
    assert f"In `{folder}/export.py`: Region" in text

"""``--events FILE``: what happens in a run, one JSON object per line."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from lsp_server.cli import events, program
from lsp_server.cli.events import EventFile
from lsp_server.cli.settings import resolve
from magpy_core.findings import Report
from magpy_core.runner.protocol import Message
from magpy_core.runner.request import Outcome, RunRequest
from tests.unit.cli.test_program import FakeHandle, Tool, tool
from tests.unit.cli.test_real import tool as real_tool

__all__ = ["tool"]

MESSAGES: list[Message] = [
    {"type": "hello", "pid": 1},
    {"type": "started"},
    {"type": "step", "n": 1},
    {"type": "compiling", "running": ["model: Net"], "waiting": [], "ready": []},
    {"type": "done", "report": Report("train.py").to_json()},
]


def launch(request: RunRequest, nproc: int = 1) -> FakeHandle:
    return FakeHandle(Outcome("failed", 3, None, "It raised.", Report(request.entrypoint)), MESSAGES)


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_messages_between_begin_and_end(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program.execute, "__defaults__", (launch,))
    assert tool("run", "--events", "events.jsonl", "train.py").exit_code == 3
    found = lines(tool.folder / "events.jsonl")
    assert [event["type"] for event in found] == ["begin", "started", "step", "compiling", "done", "end"]
    assert found[0]["version"] == events.VERSION and found[0]["mode"] == "run"
    assert found[2]["n"] == 1 and found[3]["running"] == ["model: Net"] and found[4]["report"]["entrypoint"] == "train.py"
    assert found[-1]["kind"] == "failed" and found[-1]["exit_code"] == 3 and found[-1]["message"] == "It raised."
    assert {event["program"] for event in found} == {"train.py"}
    assert sorted(event["seconds"] for event in found) == [event["seconds"] for event in found]


def test_of_several_programs(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program.execute, "__defaults__", (launch,))
    (tool.folder / "other.py").write_text("x = 1\n")
    tool.pyproject('[[tool.magpy.entrypoints]]\nname = "a"\nprogram = "train.py"\n'
                   '[[tool.magpy.entrypoints]]\nname = "b"\nprogram = "other.py"\n')  # fmt: skip
    tool("check", "--events", "events.jsonl")
    found = lines(tool.folder / "events.jsonl")
    for name in "ab":
        assert [e["type"] for e in found if e["program"] == name][:2] == ["begin", "started"]
        assert [e["type"] for e in found if e["program"] == name][-1] == "end"


def test_a_file_that_can_not_be_written_is_told_before_anything_runs(tool: Tool) -> None:
    done = tool("check", "--events", "no/such/folder/events.jsonl", "train.py")
    assert done.exit_code == 2 and "--events" in done.output and not tool.requests


def test_a_full_disk_ends_the_file_and_not_the_run(tool: Tool) -> None:
    class Full:
        def write(self, text: str) -> int:
            raise OSError("No space left on device")

        def close(self) -> None:
            raise OSError("No space left on device")

    file = EventFile(None)
    file._stream = Full()  # type: ignore[assignment]
    options = {"entrypoint": "train.py", "module": None, "cwd": None}
    (effective,) = resolve(
        "check", [], defaultdict(lambda: None, options, formats=(), color="auto", select=None, ignore=None)
    )
    assert list(file.follow(effective, MESSAGES)) == MESSAGES
    assert file._stream is None
    file.close()


@pytest.mark.slow
def test_of_a_real_run(tmp_path: Path) -> None:
    text = "import torch\nmodel = torch.nn.Linear(3, 3)\nfor _ in range(3):\n    model(torch.ones(2, 3))\n"
    (tmp_path / "train.py").write_text(text)
    done = real_tool(tmp_path, "check", "--events", "events.jsonl", "train.py")
    assert done.returncode == 0, done.stderr
    found = lines(tmp_path / "events.jsonl")
    kinds = [event["type"] for event in found]
    assert kinds[:2] == ["begin", "started"] and kinds[-2:] == ["done", "end"] and {"step", "region"} <= set(kinds)
    assert found[-1]["kind"] == "ok"

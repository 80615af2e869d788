"""``magpy-lsp explain-run``: the last run of a folder, a stored report, or a program that is run for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lsp_server.cli import explain_run, program
from lsp_server.cli.main import cli
from magpy_core.findings import Finding, Location, Position, Range, RegionSummary, Report, StepReport, Value
from magpy_core.findings.explanation import explain
from magpy_core.runner.request import Kind, Outcome, RunRequest


class Tool:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.script = folder / "train.py"
        self.script.write_text("import torch\nx.item()\n", encoding="utf-8")
        self.requests: list[RunRequest] = []
        self.kind: Kind = "ok"

    @property
    def kept(self) -> Path:
        (kept,) = (self.folder.parent / "cache" / "magpy" / "reports").glob("*.json")
        return kept

    @property
    def report(self) -> Report:
        file = str(self.script)
        place = Location(file, Range(Position(1, 0), Position(1, 8)))
        finding = Finding(
            "MP102", "`x.item()` reads a value", place, "Keep it a tensor.", "model: Net", values=(Value("x", "3"),)
        )
        regions = [
            RegionSummary("model: Net", "module", "model: Net", file, 1, calls=60, unused="refused", step_share=34.2),
            RegionSummary("SGD", "optimizer", "optimizer: SGD", file, 2, calls=60, captures=1, complete=True, hits=58),
        ]
        made = Report("train.py", regions, [finding], {"total": float("nan")}, step=StepReport(count=60, plain=60))
        made.why_not = explain(made)
        return made

    def launch(self, request: RunRequest, nproc: int = 0) -> Any:
        self.requests.append(request)
        outcome = Outcome(self.kind, 0, None, "" if self.kind == "ok" else "It failed.", self.report)

        class Handle:
            def __init__(self) -> None:
                self.outcome = outcome

            def __iter__(self) -> Iterator[Any]:
                return iter(())

            def interrupt(self) -> None: ...
            def cancel(self) -> None: ...

        return Handle()

    def __call__(self, *args: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(cli, args, input=stdin, prog_name="magpy-lsp")


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = Tool(folder)
    monkeypatch.setattr(explain_run.explain_run, "__defaults__", (made.launch,))
    monkeypatch.setattr(program.execute, "__defaults__", (made.launch,))
    monkeypatch.chdir(folder)
    return made


TEXT = """\
model Net: eager mode, 34% of a step
    why:     `model: Net` can't be compiled.
    because: MP102 at train.py:2: `x.item()` reads a value
    value:   x = 3
    rewrite: Keep it a tensor.
optimizer SGD (train.py:2): compiled: Compiled code ran in 58 of 60 calls.
"""


def test_the_last_run_of_the_folder_is_explained(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tool("explain-run").exit_code == 2 and "There is no run to explain" in tool("explain-run").stderr
    ran = tool("run", "train.py", "--lr", "3")
    assert "Not fully compiled (`magpy-lsp explain-run` shows this again):" in ran.stdout
    assert "34% of a step" in ran.stdout and "Compiled: optimizer SGD." in ran.stdout, ran.output
    result = tool("explain-run")
    head, text = result.stdout.split("\n", 1)
    assert result.exit_code == 0 and head.startswith("train.py --lr 3 (20") and text == TEXT
    below = tool.folder / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    assert "34% of a step" in tool("explain-run").stdout
    assert tool("check", str(tool.script)).exit_code == 1, "a check is no run"
    assert tool.kept


def test_only_the_user_can_read_the_kept_report_and_clearing_the_cache_removes_it(tool: Tool) -> None:
    tool("run", "train.py")
    assert tool.kept.stat().st_mode & 0o077 == 0
    assert tool("cache", "clear").exit_code == 0 and tool("explain-run").exit_code == 2


def test_what_is_kept_by_another_version_is_no_run(tool: Tool) -> None:
    tool("run", "train.py")
    tool.kept.write_text('{"report": 3}')
    assert tool("explain-run").exit_code == 2


def test_a_stored_report_is_explained(tool: Tool) -> None:
    data = tool.report.to_json() | {"timings": {}}
    (tool.folder / "report.json").write_text(json.dumps(data))
    assert tool("explain-run", "report.json").stdout == f"train.py:\n{TEXT}"
    del data["why_not"]  # of an older version
    assert tool("explain-run", "-", stdin=json.dumps(data)).stdout == f"train.py:\n{TEXT}"
    found = json.loads(tool("explain-run", "--format", "json", "report.json").stdout)
    assert [one["reason"] for one in found] == ["refused", ""] and found[0]["share"] == 34.2
    assert not tool.requests


@pytest.mark.parametrize(("text", "message"), [("[]", "is not a report"), (None, "can't be read")])
def test_a_file_that_is_no_report(tool: Tool, text: str | None, message: str) -> None:
    if text is not None:
        (tool.folder / "other.json").write_text(text)
    result = tool("explain-run", "other.json")
    assert result.exit_code == 2 and message in result.stderr


def test_a_program_is_run_and_explained(tool: Tool) -> None:
    result = tool("explain-run", "--steps", "40", "train.py", "--lr", "3")
    assert result.exit_code == 0 and result.stdout == f"train.py:\n{TEXT}", result.output
    (request,) = tool.requests
    assert (request.mode, request.steps, request.args) == ("run", 40, ["--lr", "3"])
    assert "34% of a step" in tool("explain-run").stdout, "it is the last run now"


def test_a_program_that_fails(tool: Tool) -> None:
    tool.kind = "failed"
    result = tool("explain-run", "train.py")
    assert result.exit_code == 3 and "It failed." in result.stderr and "34% of a step" in result.stdout

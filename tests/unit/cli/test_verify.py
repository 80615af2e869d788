"""``magpy-lsp verify`` with a fake runner that leaves made-up states, as the runs of a program would."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result

from lsp_server.cli import verify
from lsp_server.cli.main import cli
from magpy_core.findings import Finding, Location, Position, Range, RegionSummary, Report
from magpy_core.runner.request import SESSIONS, Kind, Outcome, RunRequest


class Tool:
    """``changes``: what is added to the weight, by the name of the run."""

    def __init__(self, folder: Path) -> None:
        self.script = folder / "train.py"
        self.script.write_text("x = 1\n", encoding="utf-8")
        self.changes: dict[str, float] = {}
        self.kinds: dict[str, Kind] = {}
        self.origin: dict[str, Any] | None = None
        self.hits = 20
        self.findings: list[Finding] = []
        self.requests: list[RunRequest] = []

    @property
    def names(self) -> list[str]:
        return [Path(request.record.folder).name for request in self.requests if request.record is not None]

    def launch(self, request: RunRequest) -> Any:
        self.requests.append(request)
        assert request.record is not None
        folder = Path(request.record.folder)
        states = {label: f"{label}.pt" for label in ("1", "end")}
        for file in states.values():
            torch.save({"Net.weight": torch.ones(4) * 1.5 + self.changes.get(folder.name, 0.0)}, folder / file)
        index = {"states": states, "left_out": [], "error": "", "itself": False, "steps": 6}
        (folder / "index.json").write_text(json.dumps(index))
        if self.origin is not None and folder.name in ("compiled", "origin"):
            origin = {**self.origin, "where": f"{request.cwd}/{self.origin['where']}"}
            (folder / "origin.json").write_text(json.dumps({"origin": origin, "why": []}))
        kind = self.kinds.get(folder.name, "ok")
        region = RegionSummary("model: Net", "module", "model: Net", str(self.script), 1, calls=24, hits=self.hits)
        outcome = Outcome(kind, 0, None, "" if kind == "ok" else "It failed.", Report("train.py", [region], self.findings))

        class Handle:
            def __init__(self) -> None:
                self.outcome = outcome

            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: object) -> None: ...

            def __iter__(self) -> Iterator[Any]:
                return iter(())

        return Handle()

    def __call__(self, *args: str) -> Result:
        return CliRunner().invoke(cli, ["verify", *args], prog_name="magpy-lsp")


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    folder = tmp_path / "project"
    folder.mkdir()
    made = Tool(folder)
    monkeypatch.setattr(verify.verify, "__defaults__", (made.launch,))
    monkeypatch.chdir(folder)
    return made


def test_equal_runs_are_two(tool: Tool) -> None:
    result = tool("--steps", "5", "train.py", "--lr", "3")
    assert result.exit_code == 0 and "Equal: after 6 steps" in result.stdout, result.output
    compiled, eager = tool.requests
    assert (compiled.mode, compiled.compile, compiled.steps, compiled.args) == ("run", "foreground", 5, ["--lr", "3"])
    assert eager.session_factory == SESSIONS["eager"] and eager.steps == 6  # a compiled call had two steps in it
    assert compiled.record is not None and compiled.record.steps is None
    assert eager.record is not None and eager.record.steps == [1] and eager.record.noise is None
    assert compiled.cwd == eager.cwd != str(tool.script.parent)  # a copy


def test_wrong_code_that_was_not_used_fails(tool: Tool) -> None:
    place = Location(str(tool.script), Range(Position(0, 0), Position(0, 5)))
    tool.findings = [Finding("MP914", "Compiled code gives another value than eager mode for `loss`.", place)]
    result = tool("train.py")
    assert result.exit_code == 1 and "Equal: after 6 steps" in result.stdout and "MP914" in result.stdout, result.output


def test_a_difference_like_that_of_noise_is_rounding(tool: Tool) -> None:
    tool.changes = {"compiled": 1e-5, "noise-0": 1e-5}
    result = tool("train.py")
    assert result.exit_code == 0 and "Equal up to rounding: the first difference is" in result.stdout, result.output
    assert tool.names == ["compiled", "eager", "again", "noise-0"]
    assert [request.record and request.record.noise for request in tool.requests] == [None, None, None, 0]


def test_the_operation_that_differs_first_is_named(tool: Tool) -> None:
    tool.changes = {"compiled": 1e-5, "noise-0": 1e-5}
    assert "the operation that differs first is not known: all calls" in " ".join(tool("train.py").stdout.split())
    tool.origin = {"operation": "addmm", "where": "train.py:7", "apart": 2e-7, "step": 1}
    text = "".join(tool("train.py").stdout.split())  # lines are cut anywhere in a path
    assert f"from`addmm`(step1,{tool.script}:7,by2.0e-07)" in text and "notknown" not in text
    assert tool.requests[0].verify.startswith("origin:0:60:/") and tool.requests[1].verify == "first"


def test_how_long_the_operation_is_looked_for_can_be_chosen(tool: Tool) -> None:
    assert tool("--origin-seconds", "2.5", "train.py").exit_code == 0
    assert tool.requests[0].verify.startswith("origin:0:2.5:/")


def test_a_larger_difference_is_none(tool: Tool) -> None:
    tool.changes = {"compiled": 1e-2, "noise-0": 1e-6}
    result = tool("train.py")
    assert result.exit_code == 1 and "Differs: after step 1, Net.weight differs by up to 0.01" in result.stdout
    assert len(tool.requests) == 6 and "magpy-lsp bisect" in result.stdout


def test_json_has_what_the_page_says(tool: Tool) -> None:
    tool.changes = {"compiled": float("nan")}
    result = tool("--format", "json", "train.py")
    document = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(name))
    text = (Path(__file__).parents[3] / "docs/reference/json.md").read_text(encoding="utf-8")
    page = text.partition("## A run against itself")[2].partition("## Events")[0]
    assert document["verdict"] == "differs" and document["differences"][0]["largest"] is None
    assert [key for key in document if f"`{key}`" not in page] == []
    assert [key for one in document["differences"] + document["growth"] for key in one if f"`{key}`" not in page] == []


def test_a_program_without_seeds_is_told_so(tool: Tool) -> None:
    tool.changes = {"compiled": 1.0, "again": 2.0}
    result = tool("train.py")
    assert result.exit_code == 2 and "torch.manual_seed" in result.stdout and "Equal" not in result.stdout


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        ({"compiled": "failed", "eager": "failed"}, "The program failed in eager mode: It failed."),
        ({"compiled": "killed"}, "The compiled run failed, and the one in eager mode did not: It failed."),
    ],
)
def test_a_run_that_fails_leaves_nothing_to_compare(tool: Tool, kinds: dict[str, Kind], said: str) -> None:
    tool.kinds = kinds
    result = tool("train.py")
    assert result.exit_code == 2 and said in result.stdout


def test_a_run_without_compiled_code_proves_nothing(tool: Tool) -> None:
    tool.hits = 0
    result = tool("train.py")
    assert result.exit_code == 2 and "No call used compiled code" in result.stdout


def test_files_are_not_compared_in_place(tool: Tool) -> None:
    result = tool("--in-place", "train.py")
    assert tool.requests[0].cwd == str(tool.script.parent)
    assert "not compared: files: the program ran in its own folder" in result.stdout


def test_what_the_runs_have_left_is_kept_on_request(tool: Tool) -> None:
    assert tool("--keep", "kept", "train.py").exit_code == 0
    assert torch.load(tool.script.parent / "kept" / "eager" / "end.pt")["Net.weight"].tolist() == [1.5] * 4

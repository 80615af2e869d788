"""``magpy-lsp kernels`` and ``check --target``, with a fake runner."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from lsp_server.cli import kernels, program
from lsp_server.cli.main import cli
from magpy_core.findings import LineCost, Report, TargetGraph, TargetReport, Unfused
from magpy_core.findings.report import report_schema
from magpy_core.runner.request import Kind, Outcome, RunRequest
from tests.unit.formats.test_kernels import FUSED, PRODUCT, REPORT


class Tool:
    def __init__(self, folder: Path) -> None:
        self.script = folder / "train.py"
        self.script.write_text("x = 1\n", encoding="utf-8")
        self.report: TargetReport | None = REPORT
        self.kind: Kind = "ok"
        self.requests: list[RunRequest] = []

    def launch(self, request: RunRequest, nproc: int) -> Any:
        self.requests.append(request)
        message = "" if self.kind == "ok" else "It failed."
        outcome = Outcome(self.kind, 0, None, message, Report("train.py", kernels=self.report))

        class Handle:
            def __init__(self) -> None:
                self.outcome = outcome

            def __iter__(self) -> Iterator[Any]:
                return iter(())

            def interrupt(self) -> None: ...
            def cancel(self) -> None: ...

        return Handle()

    def __call__(self, *args: str) -> Result:
        return CliRunner().invoke(cli, ["kernels", *args], prog_name="magpy-lsp")


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    made = Tool(tmp_path)
    monkeypatch.setattr(kernels.kernels, "__defaults__", (made.launch,))
    monkeypatch.chdir(tmp_path)
    return made


def test_the_program_runs_two_steps_for_the_target(tool: Tool) -> None:
    result = tool("--target", "a100", "train.py", "--", "--lr", "3")
    (request,) = tool.requests
    assert (request.target, request.steps, request.mode, request.args) == ("cuda:sm_80", 2, "check", ["--lr", "3"])
    assert result.exit_code == 0 and "train.py on H100 SXM (cuda:sm_90): 2 kernels in 2 graphs" in result.output


def test_an_unknown_target_is_a_usage_error(tool: Tool) -> None:
    result = tool("--target", "tpu", "train.py")
    assert result.exit_code == 2 and "known: cuda:sm_80" in " ".join(result.output.split()) and not tool.requests


def test_a_line_selects_kernels_and_shows_their_source(tool: Tool) -> None:
    shown = tool("--line", "model.py:9", "train.py").output
    assert "@triton.jit" in shown and "mm" not in shown
    assert "@triton.jit" not in tool("train.py").output


def test_a_line_of_the_script_follows_its_name(tool: Tool) -> None:
    at = replace(FUSED.lines[0], file=str(tool.script), line=7)
    tool.report = replace(REPORT, kernels=[replace(FUSED, lines=(at,)), PRODUCT])
    result = tool("train.py:7")
    assert tool.requests[0].script == "train.py" and "1 kernel in 1 graph" in result.output


def test_a_line_without_kernels_says_which_have_some(tool: Tool) -> None:
    result = tool("--line", "model.py:5", "train.py")
    assert result.exit_code == 2 and "kernels compute something of lines 3-4,9" in result.output
    assert "other is not listed: no" in result.output


def test_only_the_kernels_of_a_line_are_compiled(tool: Tool) -> None:
    tool("--line", "model.py:9", "train.py")
    tool("train.py:7")
    tool("train.py")
    assert [request.target_line for request in tool.requests] == [("model.py", 9), (str(tool.script), 7), None]
    assert tool.requests[0].to_child()["target_line"] == ("model.py", 9)


def test_lines_follow_the_kernels_hottest_first(tool: Tool) -> None:
    costs = [LineCost("model", str(tool.script), 1, 30.0, 4), LineCost("model", "", 0, 10.0, 1)]
    tool.report = replace(REPORT, lines=costs)
    shown = tool("train.py").output
    table = [line.split() for line in shown.partition("Lines, hottest first")[2].splitlines()[3:5]]
    assert table == [["30.0", "75.0%", "4", "train.py:1", "x", "=", "1"], "10.0 25.0% 1 (no line of the program)".split()]
    assert "hottest" not in tool("--line", "model.py:9", "train.py").output


def test_a_graph_says_how_much_it_has_to_move(tool: Tool) -> None:
    tool.report = replace(REPORT, graphs=[TargetGraph("model", "forward", 9_000_000)])
    shown = " ".join(tool("train.py").output.split())
    assert "4 kernels, 0 of them memory-bound, move 22.0 MB; inputs and results alone are 9.0 MB" in shown
    assert "inputs and results" not in tool("--line", "model.py:9", "train.py").output


def test_a_line_has_a_file(tool: Tool) -> None:
    assert "is not FILE:LINE" in tool("--line", "12", "train.py").output


def test_json_has_everything(tool: Tool) -> None:
    result = tool("--format", "json", "train.py")
    data = json.loads(result.stdout)
    assert data["kernels"][0]["code"]["ptx"] == ".target sm_90a" and data["problems"][0]["region"] == "other"
    report = Report("train.py", kernels=REPORT).to_json()
    jsonschema.validate(json.loads(json.dumps(report)), report_schema())
    assert Report.from_json(json.loads(json.dumps(report))).kernels == REPORT


def test_a_check_leaves_ptx_out_unless_asked(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program.execute, "__defaults__", (tool.launch,))

    def data(*args: str) -> Any:
        result = CliRunner().invoke(cli, ["check", "--format", "json", *args, "train.py"], prog_name="magpy-lsp")
        assert result.exit_code in (0, 1), result.output
        found = json.loads(result.stdout)
        jsonschema.validate(found, report_schema())
        return found["kernels"]

    at = replace(FUSED.lines[0], file=str(tool.script), line=1)
    tool.report = replace(
        REPORT, kernels=[replace(FUSED, lines=(at,))], graphs=[TargetGraph("model", "forward", 1)],
        unfused=[Unfused("model", "forward", "k0", "k1", at, at, 1, 8, 2.0, 0.5, "", False)],
        lines=[LineCost("model", "", 0, 1.0, 1)],
    )  # fmt: skip
    without, having = data("--target", "h100"), data("--target", "h100", "--ptx")
    assert [found["kernels"][0]["code"]["ptx"] for found in (without, having)] == ["", ".target sm_90a"]
    assert without["kernels"][0]["code"]["triton"] == having["kernels"][0]["code"]["triton"] != ""
    assert without["kernels"][0]["lines"][0]["text"] == without["unfused"][0]["read"]["text"] == "x = 1"
    assert TargetReport.from_json(having) == tool.report
    result = CliRunner().invoke(cli, ["check", "--ptx", "train.py"], prog_name="magpy-lsp")
    assert result.exit_code == 2 and "use it with --target" in result.output


@pytest.mark.parametrize(("kind", "status"), [("failed", 3), ("tool-error", 2)])
def test_a_program_that_fails_has_no_kernels(tool: Tool, kind: Kind, status: int) -> None:
    tool.kind = kind
    result = tool("train.py")
    assert result.exit_code == status and "It failed." in result.output


def test_a_run_without_a_report_says_so(tool: Tool) -> None:
    tool.report = None
    result = tool("train.py")
    assert result.exit_code == 2 and "before its graphs could be compiled" in result.output


def test_a_target_needs_our_engine(tool: Tool) -> None:
    args = ["check", "--target", "h100", "--engine", "dynamo", "train.py"]
    result = CliRunner().invoke(cli, args, prog_name="magpy-lsp")
    assert result.exit_code == 2 and "--target compiles MagPy's graphs" in result.output


def test_an_interpreter_without_triton_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the program runs, which may take long."""
    import importlib.util

    from magpy_core.runner.child import _check_triton
    from magpy_core.runner.entrypoint import Refused

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    _check_triton({"target": ""})
    with pytest.raises(
        Refused,
        match=r"Triton, which compiles for cuda:sm_90, isn't installed .*: run `.* -m pip install triton` \(or .*triton\]",
    ):
        _check_triton({"target": "cuda:sm_90"})

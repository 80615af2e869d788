"""[[tool.magpy.entrypoints]]: mistakes with their line, what runs without an argument, -j, and one report of all."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from lsp_server.cli import program
from lsp_server.cli.follow import jobs_for
from lsp_server.cli.main import cli
from lsp_server.cli.settings import resolve
from lsp_server.config import load
from lsp_server.entrypoints import Entrypoint
from magpy_core.findings import Finding, Location, Position, Range, RegionSummary, Report, StepReport
from magpy_core.findings.report import report_schema
from magpy_core.runner.protocol import Message
from magpy_core.runner.request import Kind, Outcome, RunRequest
from tests.unit.cli.test_config import problems, table

TWO = """\
[[tool.magpy.entrypoints]]
name = "train"
program = "train.py"
args = ["--lr", "3"]
env = { SEED = "7" }
steps = 5
[[tool.magpy.entrypoints]]
name = "eval"
module = "package.eval"
cwd = "sub"
timeout = 9
"""


# ---------------------------------------------------------------- the table


def test_every_key(tmp_path: Path) -> None:
    body = (
        '[[tool.magpy.entrypoints]]\nname = "a"\nprogram = "a.py"\nargs = ["x"]\nenv = {A = "1"}\ncwd = "w"\n'
        'python = "py"\nsteps = 0\ntimeout = 1.5\nnproc = 2\n[[tool.magpy.entrypoints]]\nname = "b"\nmodule = "p.b"\n'
    )
    assert load(table(tmp_path, body)).settings.entrypoints == (
        Entrypoint("a", "a.py", None, ("x",), {"A": "1"}, "w", "py", 0, 1.5, 2),
        Entrypoint("b", None, "p.b"),
    )


HEAD = '[[tool.magpy.entrypoints]]\nname = "a"\nprogram = "a.py"\n[[tool.magpy.entrypoints]]\n'


@pytest.mark.parametrize(
    ("body", "line", "key", "message"),
    [
        ("entrypoints = 'train.py'", 2, "entrypoints",
         "must be tables, each under `[[tool.magpy.entrypoints]]`, not the string 'train.py'."),
        (HEAD + "name = 'b'\nmodule = 'm'\nstep = 3", 8, "entrypoints.1.step",
         "is not a setting of an entrypoint; did you mean `steps`?"),
        (HEAD + "name = 'b'\nmodule = 'm'\n\nsteps = -1", 9, "entrypoints.1.steps",
         "must be an integer, 0 or more, not -1."),
        (HEAD + "name = 'b'\nmodule = 'm'\nnproc = 0", 8, "entrypoints.1.nproc", "must be an integer, 1 or more, not 0."),
        (HEAD + "name = 'b'\nmodule = 'm'\nargs = 'x'", 8, "entrypoints.1.args",
         "must be a list of strings, not the string 'x'."),
        (HEAD + "name = 'b'\nmodule = 'm'\nenv = {A = 1}", 8, "entrypoints.1.env.A", "must be a string, not an integer."),
        (HEAD + "name = 'b'\nmodule = 'm'\nenv = {'A=B' = '1'}", 8, "entrypoints.1.env.A=B",
         "is not an environment variable: its name contains `=`."),
        (HEAD + "name = 'b'\nmodule = 'm'\nenv = {A = \"1\\u0000\"}", 8, "entrypoints.1.env.A",
         "is not an environment variable: it contains a null character."),
        (HEAD + "name = 'b'\nmodule = 'm'\ntimeout = 0", 8, "entrypoints.1.timeout",
         "must be a number of seconds above 0, not 0."),
        (HEAD + "module = 'm'", 5, "entrypoints.1", "has no `name`: add one to identify the entrypoint."),
        (HEAD + "name = 'b'", 5, "entrypoints.1",
         "has neither `program` (a file) nor `module`: set exactly one of them."),
        (HEAD + "name = 'b'\nmodule = 'm'\nprogram = 'p'", 5, "entrypoints.1",
         "has both `program` (a file) and `module`: set exactly one of them."),
        (HEAD + "name = 'a'\nmodule = 'm'", 6, "entrypoints.1.name", "is not unique: two entrypoints are named 'a'."),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_key_and_line(tmp_path: Path, body: str, line: int, key: str, message: str) -> None:
    assert problems(tmp_path, body) == [(line, f"tool.magpy.{key}", message)]


# ---------------------------------------------------------------- running them


class Handle:
    def __init__(self, outcome: Outcome, meet: threading.Barrier | None, request: RunRequest) -> None:
        self.outcome, self._meet, self._request = outcome, meet, request

    def __iter__(self) -> Iterator[Message]:
        if callable(self._request.stderr):
            self._request.stderr(b"what it wrote\n\x1b[31mlast\n")
        if self._meet is not None:
            self._meet.wait(20)  # passes only when both are under way
        yield {"type": "step", "n": 1}

    def interrupt(self) -> None: ...
    def cancel(self) -> None: ...


class Tool:
    """Two entrypoints, with a runner that gives each its own outcome."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests: list[RunRequest] = []
        self.kinds: dict[str, Kind] = {}
        self.codes: dict[str, list[str]] = {}
        self.steps: dict[str, StepReport] = {}
        self.meet: threading.Barrier | None = None
        (folder / "sub").mkdir()
        for name in ("train.py", "shared.py"):
            (folder / name).write_text("loss.item()\n")
        (folder / "pyproject.toml").write_text(TWO)

    def launch(self, request: RunRequest, nproc: int = 1) -> Handle:
        self.requests.append(request)
        name = "eval" if request.module else "train"
        shared = str(self.folder / "shared.py")
        at = Location(shared, Range(Position(0, 0), Position(0, 4)))
        found = [Finding(code, "shared", at, region="r") for code in self.codes.get(name, ())]
        regions = [RegionSummary("r", "module", "net: Net", shared, 1, calls=3, captures=1, complete=True)]
        report = Report(request.entrypoint, regions, found, {"total": 1.0}, steps=3, step=self.steps.get(name))
        kind = self.kinds.get(name, "ok")
        return Handle(Outcome(kind, None, None, "" if kind == "ok" else "it went wrong.", report), self.meet, request)

    def __call__(self, *args: str) -> Result:
        return CliRunner().invoke(cli, list(args), prog_name="magpy-lsp")


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    made = Tool(tmp_path)
    monkeypatch.setattr(program.execute, "__defaults__", (made.launch,))
    monkeypatch.chdir(tmp_path)
    return made


def test_without_an_argument_all_run_with_their_own_settings(tool: Tool) -> None:
    result = tool("check", "-j", "1")
    assert result.exit_code == 0, result.output
    train, evaluate = tool.requests
    assert (train.script, train.args, train.steps, train.cwd) == (
        str(tool.folder / "train.py"), ["--lr", "3"], 5, str(tool.folder),
    )  # fmt: skip
    assert train.env is not None and train.env["SEED"] == "7" and train.env["PATH"] == os.environ["PATH"]
    assert (evaluate.module, evaluate.steps, evaluate.timeout) == ("package.eval", 3, 9.0)
    assert evaluate.cwd == str(tool.folder / "sub") and evaluate.env is None
    assert train.stdin == "null" and callable(train.stdout)
    assert "magpy-lsp: train: done, 3 steps" in result.stderr and "magpy-lsp: eval: done, 3 steps" in result.stderr
    assert "net Net (shared.py:1) in train: one graph" in result.stdout
    assert "what it wrote" not in result.stderr, "only of a program that failed"


def test_one_is_chosen_by_name_and_has_the_terminal(tool: Tool) -> None:
    assert tool("check", "--steps", "2", "train", "--", "--lr", "9").exit_code == 0
    (request,) = tool.requests
    assert (request.args, request.steps, request.stdout, request.stdin) == (["--lr", "9"], 2, "inherit", "inherit")


def test_a_file_of_that_name_comes_first(tool: Tool) -> None:
    (tool.folder / "eval").write_text("")
    tool("check", "eval")
    assert tool.requests[0].script == "eval" and tool.requests[0].module is None


def test_they_run_beside_each_other(tool: Tool) -> None:
    tool.meet = threading.Barrier(2)
    assert tool("check", "-j", "2").exit_code == 0, "neither ends before the other has begun"


def test_a_run_measures_so_it_takes_one_at_a_time(tool: Tool) -> None:
    assert tool("run").exit_code == 0
    assert [bool(r.module) for r in tool.requests] == [False, True]
    params = cli.commands["run"].make_context("run", []).params
    assert jobs_for(resolve("run", [], params)) == 1
    assert jobs_for(resolve("run", [], params | {"jobs": 9})) == 2, "never more than there are"


def test_each_program_has_the_line_of_its_step(tool: Tool) -> None:
    step = StepReport(count=9, plain=4, compiled=4, plain_ms=3.0, compiled_ms=2.0)
    tool.steps = {"train": step, "eval": replace(step, compiled_ms=6.0)}
    out = " ".join(tool("run").stdout.split())  # the lines are as wide as the terminal
    assert "train: Step: 2.00 ms compiled, 3.00 ms in eager mode: too few steps to compare them. " in out
    assert "eval: Step: 6.00 ms compiled, 3.00 ms in eager mode: too few steps to compare them. " in out
    assert "step" not in json.loads(tool("run", "--format", "json").stdout), "steps of different programs are not one"
    del tool.steps["eval"]
    assert tool("run").stdout.count("Step: ") == 1
    tool.steps = {}
    assert "Step" not in tool("run").stdout


def test_the_entrypoint_key_is_one_of_them(tool: Tool) -> None:
    (tool.folder / "pyproject.toml").write_text("[tool.magpy]\nentrypoint = 'shared.py'\n" + TWO)
    tool("check", "-j", "1")
    assert [r.script for r in tool.requests][:2] == [str(tool.folder / "shared.py"), str(tool.folder / "train.py")]
    assert len(tool.requests) == 3


def test_a_finding_in_shared_code_is_one(tool: Tool) -> None:
    tool.codes = {"train": ["MP102"], "eval": ["MP102", "MP103"]}
    result = tool("check", "--format", "json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    jsonschema.validate(report, report_schema())
    assert [(f["code"], f["count"], f["region"]) for f in report["findings"]] == [
        ("MP102", 2, "train/r"), ("MP103", 1, "eval/r"),
    ]  # fmt: skip
    assert [(r["id"], r["entrypoint"]) for r in report["regions"]] == [("train/r", "train"), ("eval/r", "eval")]
    assert report["entrypoint"] == "train, eval"


@pytest.mark.parametrize(
    ("kinds", "codes", "status"),
    [
        ({}, {}, 0),
        ({}, {"eval": ["MP102"]}, 1),
        ({"train": "failed"}, {"eval": ["MP102"]}, 3),
        ({"train": "failed", "eval": "bad-entrypoint"}, {}, 2),
    ],
)
def test_the_worst_decides(tool: Tool, kinds: dict[str, Any], codes: dict[str, list[str]], status: int) -> None:
    tool.kinds, tool.codes = kinds, codes
    assert tool("check").exit_code == status


def test_a_program_that_fails_shows_what_it_wrote_and_the_other_reports(tool: Tool) -> None:
    tool.kinds, tool.codes = {"train": "failed"}, {"eval": ["MP102"]}
    result = tool("check", "--format", "concise")
    assert "magpy-lsp: the last 2 lines of train:\n    what it wrote\n    \ufffd[31mlast\n" in result.stderr
    assert "magpy-lsp: train: it went wrong." in result.stderr
    assert "shared.py:1:1: MP102" in result.stdout


def test_a_comment_that_one_of_them_needs_is_used(tool: Tool) -> None:
    (tool.folder / "shared.py").write_text("loss.item()  # magpy: ignore[MP102]\n")
    tool.codes = {"eval": ["MP102"]}
    result = tool("check", "--format", "concise")
    assert result.exit_code == 0 and "MP912" not in result.stdout and "1 suppressed" in result.stdout
    tool.codes = {}
    assert "shared.py:1:30: MP912" in tool("check", "--format", "concise").stdout
    tool.kinds = {"eval": "failed"}
    assert "MP912" not in tool("check", "--format", "concise").stdout


def test_a_budget_of_a_region_of_one_of_them_is_known_to_all(tool: Tool) -> None:
    table = '[tool.magpy.budgets.regions."{}"]\nguards = 1\n'
    (tool.folder / "pyproject.toml").write_text(TWO + table.format("net: Net") + table.format("net: Nett"))
    said = tool("check", "--format", "concise").stdout
    assert said.count("MP507") == 1 and "budget `net: Nett` matches no region" in said


def test_each_has_its_part_of_the_baseline(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    tool.codes = {"train": ["MP102"], "eval": ["MP103"]}
    assert tool("check", "--baseline", "known.json", "--update-baseline").exit_code == 0
    assert set(json.loads((tool.folder / "known.json").read_text())["runs"]) == {"check train", "check eval"}
    assert tool("check", "--baseline", "known.json").exit_code == 0
    tool.codes["eval"] = ["MP102"]
    assert tool("check", "--baseline", "known.json").exit_code == 1, "known of train, new of eval"


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["check", "--", "x"], "The arguments can go to only one program: name one of these entrypoints: train, eval."),
        (["check", "-j", "0"], "-j"),
    ],
)
def test_usage_errors(tool: Tool, args: list[str], sentence: str) -> None:
    result = tool(*args)
    assert result.exit_code == 2 and sentence in " ".join(result.stderr.split()) and tool.requests == []


def test_an_interpreter_that_is_missing_names_its_entrypoint(tool: Tool) -> None:
    (tool.folder / "pyproject.toml").write_text(TWO + "python = 'no/python'\n")
    result = tool("check")
    assert result.exit_code == 2 and "entrypoint 'eval': no Python interpreter at 'no/python'" in result.stderr
    (tool.folder / "pyproject.toml").write_text(TWO + f"python = {sys.prefix!r}\n")
    assert tool("check", "eval").exit_code == 0
    assert tool.requests[0].python == os.path.join(sys.prefix, "bin", "python")


def test_show_settings_of_all(tool: Tool) -> None:
    out = tool("check", "--show-settings").stdout
    assert 'name = "train"' in out and 'name = "eval"' in out and 'env = {"SEED": "7"}' in out
    assert "steps = 5  # entrypoint 'train'" in out and tool.requests == []

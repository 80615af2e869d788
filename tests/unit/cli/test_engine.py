"""``check --engine``: what is asked of the runner, the two engines side by side, and torch.compile's findings end to end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from lsp_server.cli import program
from lsp_server.cli.main import cli
from lsp_server.formats import engines, markdown
from lsp_server.formats.view import View
from magpy_core.findings import Finding, Location, Position, Range, Recompile, RegionSummary, Report
from magpy_core.findings.report import report_schema
from magpy_core.runner.protocol import Message
from magpy_core.runner.request import SESSIONS, Outcome, RunRequest
from tests.unit.cli.test_real import tool as real

SCRIPT = "x.item()  # magpy: ignore[MP102]\ny.item()  # magpy: ignore[MPD101]\nz.item()  # magpy: ignore\nw = 1\n"


def region(engine: str, file: str = "/p/a.py", **more: Any) -> RegionSummary:
    return RegionSummary("net: Net", "module", "net: Net", file, 4, calls=9, captures=1, engine=engine, graphs=1, **more)


class Handle:
    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    def __iter__(self) -> Iterator[Message]:
        yield {"type": "step", "n": 1}

    def interrupt(self) -> None: ...
    def cancel(self) -> None: ...


class Tool:
    def __init__(self, folder: Path) -> None:
        self.folder, self.requests = folder, list[RunRequest]()
        self.file = str(folder / "a.py")
        (folder / "a.py").write_text(SCRIPT)

    def launch(self, request: RunRequest, nproc: int = 1) -> Handle:
        self.requests.append(request)
        dynamo = request.session_factory == SESSIONS["dynamo"]
        at = [Location(self.file, Range(Position(n, 0), Position(n, 8))) for n in range(3)]
        if dynamo:
            found = [Finding("MPD101", "breaks", at[1], region="net: Net"), Finding("MPD301", "skips", at[0])]
            figures = {"guard_ms": 0.0102, "compiled_ms": 1234.5678, "compile_s": 1000.25}
            regions = [region("dynamo", self.file, graph_breaks=2, guards=3000, **figures)]
        else:
            found = [Finding("MP102", "reads", at[0], region="net: Net"), Finding("MP102", "reads", at[2])]
            regions = [region("magpy", self.file, complete=True, guards=20, eager_ms=0.9, compiled_ms=0.3)]
        return Handle(Outcome("ok", None, None, "", Report(request.entrypoint, regions, found, {"total": 1.0}, steps=24)))

    def __call__(self, *args: str) -> Result:
        return CliRunner().invoke(cli, ["check", *args, "a.py"], prog_name="magpy-lsp", env={"COLUMNS": "80"})


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    made = Tool(tmp_path)
    monkeypatch.setattr(program.execute, "__defaults__", (made.launch,))
    monkeypatch.chdir(tmp_path)
    return made


def test_what_the_runner_is_asked_for(tool: Tool) -> None:
    tool()
    tool("--engine", "dynamo")
    tool("--engine", "both")
    tool("--engine", "both", "--steps", "7", "--backend", "eager")
    asked = [(r.mode, r.session_factory, r.steps, r.backend) for r in tool.requests]
    assert asked[:2] == [("check", SESSIONS["magpy"], 3, "inductor"), ("run", SESSIONS["dynamo"], 3, "eager")]
    assert asked[2:4] == [("run", SESSIONS["magpy"], 24, "inductor"), ("run", SESSIONS["dynamo"], 24, "inductor")]
    assert asked[4:] == [("run", SESSIONS["magpy"], 7, "eager"), ("run", SESSIONS["dynamo"], 7, "eager")]


def test_comments_of_an_engine_that_did_not_run_are_not_unused(tool: Tool) -> None:
    assert "MP912" not in tool().output, "MPD101 in a run without torch.compile"
    assert "MP912" not in tool("--engine", "dynamo").output
    (tool.folder / "a.py").write_text(SCRIPT.replace("MPD101", "MPD202"))
    assert "This suppression is unused: there is no MPD202 finding" in tool("--engine", "both").output


def test_findings_of_torch_compile_alone(tool: Tool) -> None:
    result = tool("--engine", "dynamo", "--format", "concise")
    assert result.exit_code == 1
    assert "a.py:1:1: MPD301 [warning] skips" in result.output and "MPD101" not in result.output  # a comment hides it
    assert "net Net (a.py:4): torch.compile traced 1 graph, 2 graph breaks, 3,000 guards\n" in result.output
    detailed = tool("--engine", "dynamo", "--details").output
    assert "torch.compile traced 1 graph, incomplete graph, 2 graph breaks, 3,000 guards (10 µs)\n" in detailed
    assert "No findings" in tool("--engine", "dynamo", "--ignore", "MPD").output
    (tool.folder / "pyproject.toml").write_text("[tool.magpy.budgets]\ngraph-breaks = 1\n")
    assert "MP501" in tool("--engine", "dynamo").output and "MP501" not in tool("--engine", "both").output


def test_a_baseline_keeps_the_engines_apart(tool: Tool) -> None:
    assert tool("--engine", "dynamo", "--baseline", "b.json", "--update-baseline").exit_code == 0
    assert tool("--engine", "dynamo", "--baseline", "b.json").exit_code == 0
    assert "check --engine dynamo a.py" in (tool.folder / "b.json").read_text()
    assert tool("--engine", "both", "--baseline", "b.json").exit_code == 0
    assert tool("--engine", "both").exit_code == 1


def test_side_by_side_in_80_columns(tool: Tool) -> None:
    result = tool("--engine", "both")
    assert result.exit_code == 1
    shown = result.stdout[result.stdout.index("MagPy and torch.compile") :].splitlines()
    assert max(map(len, shown)) <= 80
    figures = {line[:18].strip(): line[18:].split() for line in shown}
    assert figures["eager mode"] == ["0.900"]
    assert figures["MagPy"] == ["1", "0", "0", "20", "-", "-", "0.300"]
    assert figures["torch.compile"] == ["1", "2", "0", "3000", "10.2", "1,000.25", "1,234.6"]
    assert "magpy-lsp: a.py [dynamo]: done" in result.stderr


def test_json_has_the_comparison(tool: Tool) -> None:
    report = json.loads(tool("--engine", "both", "--format", "json").stdout)
    jsonschema.validate(report, report_schema())
    (row,) = report["comparison"]
    assert row["eager_ms"] == 0.9 and row["engines"]["dynamo"]["graph_breaks"] == 2
    assert row["engines"]["magpy"]["region"] in {r["id"] for r in report["regions"]} and report["entrypoint"] == "a.py"
    alone = json.loads(tool("--format", "json").stdout)
    jsonschema.validate(alone, report_schema())
    assert "comparison" not in alone


def test_a_region_that_one_engine_does_not_have() -> None:
    other = RegionSummary("opt", "optimizer", "opt", "/p/a.py", 9, engine="magpy", recompiles=[Recompile(2, "n", "1", "2")])
    report = Report("a.py", [region("magpy"), region("dynamo"), other])
    both, alone = engines.pairs(report)
    assert [name for name, _ in engines.rows(both)] == ["MagPy", "torch.compile"]
    assert list(engines.rows(alone)) == [
        ("MagPy", ("0", "0", "1", "0", "-", "-", "-")),
        ("torch.compile", ("-",) * len(engines.HEAD)),
    ]
    text = markdown.text(report, View(), {})
    assert "| **opt** | MagPy | 0 | 0 | 1 |" in text and "<summary>2 regions</summary>" in text


PROGRAM = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
    def forward(self, x):
        x = self.layer(x)
        if x.sum() > 1000:
            print("large")
        return x * 2

net = Net()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(100):
    net(torch.ones(3 if step == 2 else 2, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.slow
def test_end_to_end(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    done = real(tmp_path, "check", "--engine", "both", "--backend", "eager", "--steps", "8", "--format", "json", "train.py")
    assert done.returncode == 1, done.stderr.decode()
    report = json.loads(done.stdout)
    jsonschema.validate(report, report_schema())
    assert report["steps"] == 8
    found = {(f["code"], f["range"]["start"]["line"] + 1, f["range"]["start"]["character"]) for f in report["findings"]}
    assert {("MP101", 10, 11), ("MPD101", 10, 11), ("MPD102", 18, 4)} <= found
    (again,) = [f for f in report["findings"] if f["code"] == "MPD201"]
    assert again["message"].startswith("`x.shape[0]` changed from 2 to 3")
    assert not [f for f in report["findings"] if f["code"].startswith("MP9")]
    loop, net, optimizer = report["comparison"]  # one region of MagPy, two of torch.compile
    assert (loop["name"], net["name"], net["line"], optimizer["name"]) == ("training loop", "net: Net", 8, "optimizer: SGD")
    for figures in (loop["engines"]["magpy"], net["engines"]["dynamo"]):
        assert (figures["calls"], figures["graphs"], figures["graph_breaks"]) == (8, 2, 1)
        assert figures["guards"] > 0 and figures["guard_ms"] > 0
    assert optimizer["engines"]["dynamo"]["graphs"] == 1
    assert net["engines"]["dynamo"]["compiled_ms"] > 0 and net["engines"]["dynamo"]["compile_s"] > 0


COMPILED = """\
import torch


@torch.compile(backend="eager")
def scaled(x, n):
    y = x * n
    if y.sum() > 0:  # break
        y = y + 1
    return y


@torch.compile(backend="eager")
def clean(x):
    return x + 1


print([scaled(torch.ones(3), i / 7).tolist() for i in range(4)], clean(torch.ones(1)).tolist())
"""


@pytest.mark.slow
def test_functions_that_the_program_compiles_are_told_without_any_region(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(COMPILED)
    ended = real(tmp_path, "check", "--engine", "dynamo", "--exit-zero", "--format", "json=report.json", "train.py")
    assert ended.returncode == 0, ended.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    found = {(f["code"], f["range"]["start"]["line"] + 1, f["region"]) for f in report["findings"]}
    assert ("MPD101", 7, None) in found and {code for code, *_ in found} == {"MPD101", "MPD201"}, found
    (number,) = (f for f in report["findings"] if f["values"][0]["name"] == "n")
    assert number["range"]["start"]["line"] + 1 == 6 and report["regions"] == []
    plain = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, check=True)
    assert plain.stdout in ended.stdout


RANKS = """\
import torch
import torch.distributed as dist


class Net(torch.nn.Module):
    def forward(self, x):
        y = x * 2
        if dist.get_rank() == 1:
            print(y.sum().item())  # one
        return y + 1 if y.sum() > 0 else y  # both


dist.init_process_group("gloo")
net = Net()
for _ in range(3):
    net(torch.ones(3))
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_two_ranks_under_torch_compile(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RANKS)
    asked = ("--engine", "dynamo", "--nproc-per-node", "2", "--exit-zero", "--format", "json=report.json")
    ended = real(tmp_path, "check", *asked, "train.py")
    assert ended.returncode == 0, ended.stderr[-2000:]
    report = json.loads((tmp_path / "report.json").read_text())
    lines = RANKS.splitlines()
    breaks = {(lines[f["range"]["start"]["line"]].partition("# ")[2], tuple(f.get("ranks", ()))) for f in report["findings"]
              if f["code"] == "MPD101"}  # fmt: skip
    assert {("one", (1,)), ("both", ())} <= breaks, report["findings"]
    assert {region["engine"] for region in report["regions"]} == {"dynamo"}

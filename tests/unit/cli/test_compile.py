"""``magpy-lsp compile`` with a fake runner, and ``cache save`` and ``cache load``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lsp_server.cli import cache, compile
from lsp_server.cli.main import cli
from magpy_core._compat.code_cache import CodeCache, usual_folder
from magpy_core.findings import Finding, Location, Position, Range, RegionSummary, Report
from magpy_core.runner.request import Kind, Outcome, RunRequest


class Tool:
    def __init__(self, folder: Path) -> None:
        self.script = folder / "train.py"
        self.script.write_text("x = 1\n", encoding="utf-8")
        self.kind: Kind = "ok"
        self.graphs = 2
        self.hits = 20
        self.steps, self.stopped_after = 24, 24
        self.findings: list[Finding] = []
        self.requests: list[RunRequest] = []
        self.regions = True

    def launch(self, request: RunRequest, nproc: int) -> Any:
        self.requests.append(request)
        region = RegionSummary("model: Net", "module", "model: Net", str(self.script), 1, hits=self.hits)
        report = Report("train.py", [region] if self.regions else [], self.findings, steps=self.steps)
        report.stopped_after = self.stopped_after or None
        outcome = Outcome(self.kind, 0, None, "" if self.kind == "ok" else "It failed.", report)
        messages = [
            {"type": "compiling", "running": running, "waiting": [], "ready": []}
            for _ in range(self.graphs)
            for running in (["model: Net"], [])
        ]

        class Handle:
            def __init__(self) -> None:
                self.outcome = outcome

            def __iter__(self) -> Iterator[Any]:
                return iter(messages)

        return Handle()

    def add(self, code: str, message: str) -> None:
        self.findings.append(Finding(code, message, Location(str(self.script), Range(Position(0, 0), Position(0, 5)))))

    def __call__(self, *args: str) -> Result:
        return CliRunner().invoke(cli, ["compile", *args], prog_name="magpy-lsp")


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    made = Tool(tmp_path)
    monkeypatch.setattr(compile.compile_ahead, "__defaults__", (made.launch,))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    return made


def test_it_runs_what_run_would_run(tool: Tool) -> None:
    result = tool("train.py", "--lr", "a b")
    (request,) = tool.requests
    assert (request.mode, request.compile, request.steps, request.args) == ("run", "ahead", 24, ["--lr", "a b"])
    assert request.to_child()["compile"] == "ahead"
    assert result.exit_code == 0 and "Next: magpy-lsp run train.py --lr 'a b'    #" in result.stdout
    assert "Compiled 2 graphs in 0.0 s, in 24 steps. The code is in " in result.stdout
    assert result.stderr.count("magpy-lsp: compiling model: Net ...") == 2


def test_the_next_command_has_the_options_that_matter(tool: Tool, tmp_path: Path) -> None:
    shown = tool("--mode", "max", "--steps", "3", "--cwd", str(tmp_path), "-m", "train", "--lr", "3").stdout
    assert tool.requests[0].steps == 3 and tool.requests[0].compile_mode == "max"
    assert f"Next: magpy-lsp run --mode max --cwd {tmp_path} -m train --lr 3    #" in shown


def test_a_program_that_ends_by_itself(tool: Tool) -> None:
    tool.steps, tool.stopped_after = 3, 0
    result = tool("train.py")
    assert result.exit_code == 0 and "in 3 steps, after which the program ended." in result.stdout


def test_what_was_compiled_before_need_not_be_again(tool: Tool) -> None:
    tool.graphs = 0
    result = tool("train.py")
    assert result.exit_code == 0 and "Nothing was left to compile in 24 steps: the code is in" in result.stdout


@pytest.mark.parametrize(
    "steps, regions, why",
    [(24, True, "in 24 steps"), (0, True, "before its first training step"), (0, False, "calls no module")],
)
def test_nothing_to_compile(tool: Tool, steps: int, regions: bool, why: str) -> None:
    tool.graphs = tool.hits = 0
    tool.steps, tool.regions = steps, regions
    result = tool("train.py", "--lr", "3")
    assert result.exit_code == 2 and why in result.stderr and not result.stdout
    assert "`magpy-lsp check train.py --lr 3` says more" in result.stderr


def test_what_the_compiler_refuses_is_named(tool: Tool) -> None:
    tool.add("MP902", "The compiler refuses the model.")
    result = tool("train.py")
    assert result.exit_code == 0 and "The compiler refuses the model." in result.stderr
    assert "Compiled 1 graph in" in result.stdout


def test_a_program_that_fails(tool: Tool) -> None:
    tool.kind = "failed"
    result = tool("train.py")
    assert result.exit_code == 3 and not result.stdout
    assert "magpy-lsp: It failed." in result.stderr and "2 graphs had been compiled by then" in result.stderr


def test_code_that_is_not_kept_is_no_success(tool: Tool) -> None:
    tool.add("MP405", "Compiled code is not kept for the next run: the folder belongs to another user.")
    result = tool("train.py")
    assert result.exit_code == 2 and "is not kept for the next run" in result.stderr and not result.stdout


def test_there_is_no_code_of_other_backends(tool: Tool, tmp_path: Path) -> None:
    result = tool("--mode", "quick", "train.py")
    assert result.exit_code == 2 and "a run with mode quick compiles nothing" in " ".join(result.stderr.split())
    (tmp_path / "pyproject.toml").write_text('[tool.magpy]\nbackend = "eager"\n')
    assert "a run with backend eager compiles nothing" in " ".join(tool("train.py").stderr.split())
    assert not tool.requests


def test_one_program_at_a_time(tool: Tool, tmp_path: Path) -> None:
    entries = "".join(f'[[tool.magpy.entrypoints]]\nname = "{n}"\nprogram = "train.py"\n' for n in "ab")
    (tmp_path / "pyproject.toml").write_text(entries)
    result = tool()
    assert result.exit_code == 2 and not tool.requests


# -- the archive ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def archive(tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cache, "_environment", lambda python: {"torch": "2.13.0"})
    code = CodeCache(usual_folder())
    assert not code.refusal()
    (code.folder / "graphs").mkdir()
    assert code.add(code.folder / "graphs" / "one.json", "{}")
    return tmp_path / "code.zip"


def test_saving_and_loading(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = CliRunner().invoke(cli, ["cache", "save", str(archive)])
    assert result.exit_code == 0 and f"Saved 1 file (2 B) to {archive} (" in result.output
    assert "Next, on the other machine: magpy-lsp cache load code.zip" in result.output
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    result = CliRunner().invoke(cli, ["cache", "load", str(archive)])
    assert result.exit_code == 0 and result.output == f"Loaded 1 file (2 B) into {usual_folder()}.\n"
    assert (usual_folder() / "graphs" / "one.json").read_text() == "{}"


def test_a_refusal_is_one_sentence(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert CliRunner().invoke(cli, ["cache", "save", str(archive)]).exit_code == 0
    monkeypatch.setattr(cache, "_environment", lambda python: {"torch": "2.12.0"})
    result = CliRunner().invoke(cli, ["cache", "load", str(archive)])
    assert result.exit_code == 2
    assert result.output == "Error: The code is for another environment: torch 2.13.0, and here it is 2.12.0.\n"


def test_help_says_that_an_archive_is_code() -> None:
    assert "LOAD ONLY FILES THAT YOU TRUST" in CliRunner().invoke(cli, ["cache", "load", "--help"]).output


def test_the_interpreter_says_what_code_depends_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = cache._environment(None)
    assert set(found) == {"torch", "Python", "MagPy's source", "processor", "instruction set"} and all(found.values())
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no torch here >&2\nexit 1\n")
    python.chmod(0o700)
    result = CliRunner().invoke(cli, ["cache", "save", "--python", str(python), str(tmp_path / "code.zip")])
    assert result.exit_code == 2 and "can't import torch (no torch here)" in result.output

"""demo: the example is copied, its finding is at the line that the text names, and the fix it names is one."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from lsp_server.cli.demo import EXAMPLE, cut_line, demo
from tests.unit.cli.test_real import ROOT, tool


def ok(args: list[str]) -> int:
    return 1


def test_the_example_is_copied_and_the_next_steps_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert demo("a b", check=ok) == 0
    assert (tmp_path / "a b" / "train.py").read_bytes() == EXAMPLE.read_bytes()
    out = capsys.readouterr().out
    assert f"train.py:{cut_line()} reads all logits into Python" in out
    assert "magpy-lsp check 'a b/train.py'" in out and "magpy-lsp init" in out


def test_an_existing_folder_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "magpy-demo").mkdir()
    (tmp_path / "magpy-demo" / "train.py").write_text("mine\n")
    done = tool(tmp_path, "demo")
    assert done.returncode == 2 and b"magpy-demo already exists: name a new folder with `--into DIR`" in done.stderr
    assert (tmp_path / "magpy-demo" / "train.py").read_text() == "mine\n"


def test_a_check_that_fails_names_the_doctor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo(str(tmp_path / "new"), check=lambda args: 3) == 3
    captured = capsys.readouterr()
    assert "magpy-lsp doctor" in captured.err and "Fix it" not in captured.out


@pytest.mark.slow
def test_the_finding_is_at_the_line_that_the_text_names(tmp_path: Path) -> None:
    done = tool(tmp_path, "demo", "--into", "new")
    assert done.returncode == 0, done.stderr
    out, line = done.stdout.decode(), cut_line()
    assert f"new/train.py:{line}:16: MP102 [warning]" in out and "Found 1 finding (1 warning) in 1 file." in out
    assert f"train.py:{line} reads all logits into Python" in out


@pytest.mark.slow
def test_the_fix_makes_the_whole_step_one_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo(str(tmp_path / "new"), check=ok) == 0
    script, line = tmp_path / "new" / "train.py", cut_line()
    lines = script.read_text().splitlines(keepends=True)
    lines[line - 1 : line + 1] = [lines[line].replace("    ", "", 1)]
    assert lines[line - 1].strip() in capsys.readouterr().out, "the text names this line"
    script.write_text("".join(lines))
    fixed = tool(tmp_path, "check", "--format", "json", "new/train.py")
    assert fixed.returncode == 0, fixed.stderr
    (step,) = json.loads(fixed.stdout)["regions"]
    assert step["kind"] == "step" and step["complete"]


def test_the_example_is_in_the_wheel() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert EXAMPLE.relative_to(ROOT).parts[0] in wheel["packages"]
    assert wheel["exclude"] == ["README.md"]


def test_it_can_be_copied_only(tmp_path: Path) -> None:
    done = tool(tmp_path, "demo", "--no-check")
    assert done.returncode == 0 and done.stdout.startswith(b"Created magpy-demo/train.py") and done.stdout.count(b"\n") == 1
    assert (tmp_path / "magpy-demo" / "train.py").read_bytes() == EXAMPLE.read_bytes()

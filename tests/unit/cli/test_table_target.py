"""``target`` under ``[tool.magpy]``: the device of ``check`` and ``kernels``, unless the command line names another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lsp_server.cli import program
from lsp_server.cli.main import cli
from lsp_server.config import ConfigError, parse
from tests.unit.cli import test_program
from tests.unit.cli.test_kernels import Tool
from tests.unit.cli.test_kernels import tool as tool  # a fixture


def table(folder: Path, target: str) -> None:
    (folder / "pyproject.toml").write_text(f'[tool.magpy]\ntarget = "{target}"\n')


@pytest.mark.parametrize(("args", "target"), [((), "cuda:sm_80"), (("--target", "B200"), "cuda:sm_100")])
def test_kernels_of_the_tables_device(tool: Tool, args: tuple[str, ...], target: str) -> None:
    table(tool.script.parent, "a100")
    tool(*args, "train.py")
    assert tool.requests[0].target == target


@pytest.mark.parametrize(
    ("args", "target"),
    [((), "cuda:sm_90"), (("--target", "none"), ""), (("--target", "a100"), "cuda:sm_80"), (("--engine", "dynamo"), "")],
)
def test_checks_for_the_tables_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], target: str
) -> None:
    tool = test_program.Tool(tmp_path)
    monkeypatch.setattr(program.execute, "__defaults__", (tool.launch,))
    monkeypatch.chdir(tmp_path)
    table(tmp_path, "H100")
    CliRunner().invoke(cli, ["check", *args, "train.py"])
    assert tool.requests[0].target == target
    shown: Any = CliRunner().invoke(cli, ["check", "--show-settings", *args, "train.py"]).output
    assert ('target = "cuda:sm_90"  # ' in shown) == (not args), shown


def test_an_unknown_device_in_the_table_is_a_mistake(tmp_path: Path) -> None:
    for value, says in (
        ('"tpu"', "is invalid: 'tpu' is not a target; known: cuda:sm_80"),
        ("90", "must be the name of a device"),
    ):
        with pytest.raises(ConfigError) as caught:
            parse(tmp_path / "pyproject.toml", f"[tool.magpy]\ntarget = {value}\n")
        (problem,) = caught.value.problems
        assert problem.key == "tool.magpy.target" and says in problem.message

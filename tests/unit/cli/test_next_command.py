"""The errors of the first minutes: each names the command to try next. The runner is a fake here."""

from __future__ import annotations

import json
import sys

import pytest

from magpy_core.runner.request import Kind
from tests.unit.cli.test_program import Tool, tool

__all__ = ["tool"]  # the fixture

INIT = "magpy-lsp: `magpy-lsp init` finds the programs of a project; `magpy-lsp demo` shows an example."


@pytest.mark.parametrize(
    ("kind", "code", "options", "next_line"),
    [
        ("bad-entrypoint", "MP908", [], INIT),
        ("tool-error", "MP903", [], "magpy-lsp: `magpy-lsp doctor` checks the interpreter and says how to fix it."),
        ("tool-error", "MP903", ["--python", "./my python"], "magpy-lsp: `magpy-lsp doctor --python '{0}/my python'`"),
        ("tool-error", "MP901", [], None),
    ],
)  # fmt: skip
def test_what_was_never_run_is_one_sentence_and_the_next_command(
    tool: Tool, kind: Kind, code: str, options: list[str], next_line: str | None
) -> None:
    (tool.folder / "my python").symlink_to(sys.executable)
    tool.kind, tool.message = kind, "what is wrong."
    tool.add(code, message=tool.message)
    result = tool("check", *options, "train.py")
    assert (result.exit_code, result.stdout) == (2, "")
    told, *following = result.stderr.splitlines()
    assert told == "magpy-lsp: what is wrong."
    assert len(following) == (next_line is not None)
    assert next_line is None or following[0].startswith(next_line.format(tool.folder))
    as_json = tool("check", "--format", "json", *options, "train.py")
    assert json.loads(as_json.stdout)["findings"][0]["code"] == code


def test_a_missing_program_names_the_next_command(tool: Tool) -> None:
    tool.kind, tool.message = "bad-entrypoint", "trian.py does not exist: check the path."
    result = tool("check", "trian.py")
    assert (result.exit_code, result.stdout) == (2, "")
    assert INIT in result.stderr
    assert "`magpy-lsp init`" in tool("run").stderr, "no program at all"


def test_several_programs_that_do_not_exist_name_it_once(tool: Tool) -> None:
    tool.kind, tool.message = "bad-entrypoint", "it does not exist."
    tool.pyproject("".join(f"[[tool.magpy.entrypoints]]\nname = '{name}'\nprogram = '{name}.py'\n" for name in "ab"))
    result = tool("check")
    assert result.exit_code == 2 and result.stderr.count(INIT) == 1
    assert "a: it does not exist." in result.stderr and "b: it does not exist." in result.stderr


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("notes.md", "notes.md is not a Python file: `magpy-lsp init` finds"),
        ("run.sh", "run.sh is not a Python file: `magpy-lsp init` finds"),
        ("study.ipynb", "study.ipynb is a notebook: `%load_ext lsp_server` in a cell of it"),
        ("train.py", None),
        ("train", None),
    ],
)
def test_a_file_that_is_no_program_names_the_next_command(tool: Tool, name: str, sentence: str | None) -> None:
    tool.kind, tool.message = "failed", "it has a syntax error."
    (tool.folder / name).write_text("\n")
    result = tool("check", name)
    assert result.exit_code == 3
    assert ("magpy-lsp init" in result.stderr or "notebook" in result.stderr) == (sentence is not None)
    assert sentence is None or f"magpy-lsp: {sentence}" in result.stderr


def test_a_backend_that_fails_names_the_doctor(tool: Tool) -> None:
    tool.add("MP902", message="The backend inductor failed to compile the region (no C++ compiler).")
    assert "hint: Run `magpy-lsp doctor`: it compiles a tiny graph" in tool("run", "--details", "train.py").stdout

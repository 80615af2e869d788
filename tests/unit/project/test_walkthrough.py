"""The editor's walkthrough tells the same first minutes as ``magpy-lsp demo`` and ``init``, with commands that exist."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click
import pytest

from lsp_server.cli.demo import demo
from lsp_server.cli.init import BASELINE
from lsp_server.cli.main import cli
from lsp_server.cli.options import ProgramCommand

EXTENSION = Path(__file__).resolve().parents[3] / "vscode-extension"
STEPS = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))["contributes"]["walkthroughs"][0]["steps"]
_COMMAND = re.compile(r"magpy-lsp [^`\n]+")


def text_of(step: dict[str, object]) -> str:
    media = step["media"]
    assert isinstance(media, dict)
    page = (EXTENSION / media["markdown"]).read_text(encoding="utf-8") if "markdown" in media else ""
    return f"{step['description']}\n{page}"


TEXTS = {step["id"]: text_of(step) for step in STEPS}
COMMANDS = [command for text in TEXTS.values() for command in _COMMAND.findall(text)]


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_that_it_names_is_one(line: str) -> None:
    name, *args = shlex.split(line)[1:]
    command = cli.commands[name]
    assert isinstance(command, click.Command)
    if isinstance(command, ProgramCommand):
        options = {option for parameter in command.params for option in parameter.opts}
        assert {arg for arg in args if arg.startswith("-")} <= options
    else:
        command.make_context(name, args)


def test_it_names_many() -> None:
    assert len(COMMANDS) >= 8


def test_the_example_is_told_as_the_command_tells_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert demo("magpy-demo", check=lambda args: 1) == 0
    told, page = capsys.readouterr().out, TEXTS["example"]
    fix = next(line.strip() for line in told.splitlines() if "clamp(" in line)
    assert f"`{fix}`" in page and "magpy-demo/train.py" in page
    shared = (
        "reads all logits into Python",
        "`clamp` changes nothing below the limit",
        "the whole training step is one graph",
    )
    for sentence in shared:
        assert sentence in told and sentence in page, sentence
    # demo's steps: check again, run, init. The editor's: Check, Run compiled, the next step.
    assert re.findall(r"magpy-lsp (\w+)", told) == ["check", "check", "run", "init"]
    assert [page.index(part) for part in ("**Check** again", "**Run compiled**", "your own project")] == sorted(
        page.index(part) for part in ("**Check** again", "**Run compiled**", "your own project")
    )


def test_what_init_writes_is_what_the_walkthrough_says() -> None:
    assert "`[tool.magpy]`" in TEXTS["project"] and ".github/workflows/magpy.yml" in TEXTS["project"]
    assert f"`{BASELINE}`" in TEXTS["ci"]

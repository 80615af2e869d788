"""``--help`` of every command has two examples that it accepts; a program without a command is answered with two of them."""

from __future__ import annotations

import re
import shlex

import click
import pytest
from click.testing import CliRunner

from lsp_server.cli.examples import EXAMPLES
from lsp_server.cli.main import cli
from lsp_server.cli.options import ProgramCommand


def commands_of(group: click.Group, before: str = "") -> dict[str, click.Command]:
    found: dict[str, click.Command] = {before.strip(): group}
    for name, command in group.commands.items():
        path = f"{before} {name}".strip()
        found.update(commands_of(command, path) if isinstance(command, click.Group) else {path: command})
    return found


COMMANDS = commands_of(cli)


def test_every_command_has_two_examples() -> None:
    assert EXAMPLES.keys() == COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_them_on_one_line_each(name: str) -> None:
    result = CliRunner().invoke(cli, [*name.split(), "--help"], env={"COLUMNS": "80"})
    lines = result.stdout.splitlines()
    at = lines.index("  Examples:")
    assert result.exit_code == 0
    assert [line.split("  # ")[0].strip() for line in lines[at + 1 : at + 3]] == [line for line, _ in EXAMPLES[name]]
    assert max(map(len, lines[at : at + 3])) <= 100


@pytest.mark.parametrize(("name", "line"), [(name, line) for name, both in EXAMPLES.items() for line, _ in both])
def test_the_command_has_the_options_of_its_examples(name: str, line: str) -> None:
    words = [word for word in shlex.split(line) if not re.match(r"[A-Z_]+=", word)]
    assert shlex.join(words).startswith(f"magpy-lsp {name}".strip())
    path = next(path for path in sorted(COMMANDS, key=len, reverse=True) if words[1:][: len(path.split())] == path.split())
    command, args = COMMANDS[path], words[1 + len(path.split()) :]
    if isinstance(command, ProgramCommand):
        options, _ = command._split(args)
        known = {option for parameter in command.params for option in parameter.opts}
        assert {arg for arg in options if arg.startswith("-")} <= known
    elif "code.zip" not in args and "train.py" not in args:
        command.make_context(path, list(args))


@pytest.mark.parametrize(
    ("args", "program"),
    [
        (["train.py"], "train.py"),
        (["train.py", "--lr", "3"], "train.py --lr 3"),
        (["some dir/train.py"], "'some dir/train.py'"),
        (["-m", "package.train", "--lr", "3"], "-m package.train --lr 3"),
    ],
)
def test_a_program_without_a_command_is_answered_with_both(args: list[str], program: str) -> None:
    result = CliRunner().invoke(cli, args)
    assert result.exit_code == 2 and result.stdout == ""
    lines = [line.split("    # ")[0].strip() for line in result.stderr.splitlines()]
    assert f"magpy-lsp check {program}" in lines and f"magpy-lsp run {program}" in lines


@pytest.mark.parametrize("args", [["chek"], ["train"], ["--module"], ["-x", "train.py"]])
def test_what_is_no_program_is_an_ordinary_error(args: list[str]) -> None:
    result = CliRunner().invoke(cli, args)
    assert result.exit_code == 2 and "is a program" not in result.stderr

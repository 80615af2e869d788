"""The examples at the end of each command's ``--help``, and the group that answers a program without a command.

Only click is imported: ``--help`` must be instant. Key types: Cli; key function: epilog.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import click

#: Two for each command: the command line, and what it does.
EXAMPLES: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "": (
        ("magpy-lsp check train.py", "what keeps it from one graph, on which lines"),
        ("magpy-lsp run train.py --lr 3", "train compiled, and print whether that paid"),
    ),
    "check": (
        ("magpy-lsp check train.py --lr 3", "the first three steps"),
        ("magpy-lsp check --engine dynamo train.py", "what torch.compile does with it"),
    ),
    "run": (
        ("magpy-lsp run train.py --lr 3", "to the end, compiled"),
        ("magpy-lsp run --steps 40 --html report train.py", "40 steps, and a page"),
    ),
    "compile": (
        ("magpy-lsp compile train.py --lr 3", "what the same `run` needs"),
        ("magpy-lsp compile --steps 200 train.py", "also what comes later"),
    ),
    "bisect": (
        ("magpy-lsp bisect train.py --lr 3", "each call of the first 50 steps"),
        ("magpy-lsp bisect --steps 0 --into reports train.py", "the whole run"),
    ),
    "verify": (
        ("magpy-lsp verify --steps 50 train.py --lr 3", "the first 50 steps"),
        ("magpy-lsp verify --format json train.py", "the whole program; JSON"),
    ),
    "kernels": (
        ("magpy-lsp kernels train.py", "for an H100"),
        ("magpy-lsp kernels --target cuda:sm_80 train.py:42", "of a line, for an A100"),
    ),
    "init": (
        ("magpy-lsp init", "the project in this folder"),
        ("magpy-lsp init --baseline train.py", "one script; its findings are known ones"),
    ),
    "demo": (
        ("magpy-lsp demo", "in the new folder magpy-demo"),
        ("magpy-lsp demo --into elsewhere", "in another new folder"),
    ),
    "diff": (
        ("magpy-lsp diff old.json new.json", "reports of --format json=FILE"),
        ("magpy-lsp diff --format html --output d.html old.json new.json", "a page"),
    ),
    "explain": (
        ("magpy-lsp explain MP102", "one code, or its name: host-read"),
        ("magpy-lsp explain MP1", "a family"),
    ),
    "explain-run": (
        ("magpy-lsp explain-run", "the last `magpy-lsp run` in this folder"),
        ("magpy-lsp explain-run report.json", "a report of --format json=FILE"),
    ),
    "docs": (
        ("magpy-lsp docs", "the list of pages"),
        ("magpy-lsp docs limits", "one page"),
    ),
    "doctor": (
        ("magpy-lsp doctor", "this interpreter"),
        ("magpy-lsp doctor --python .venv/bin/python", "another one"),
    ),
    "cache": (
        ("magpy-lsp cache info", "the folder and its size"),
        ("magpy-lsp cache save code.zip", "all compiled code, for another machine"),
    ),
    "cache info": (
        ("magpy-lsp cache info", "the folder, its size and its limit"),
        ("magpy-lsp cache info --format json", "the same, for scripts"),
    ),
    "cache clear": (
        ("magpy-lsp cache clear", "the next run compiles everything again"),
        ("XDG_CACHE_HOME=/data/cache magpy-lsp cache clear", "another folder"),
    ),
    "cache save": (
        ("magpy-lsp cache save code.zip", "after `magpy-lsp compile train.py`"),
        ("magpy-lsp cache save --python .venv/bin/python code.zip", "of that interpreter"),
    ),
    "cache load": (
        ("magpy-lsp cache load code.zip", "in a container's build, for example"),
        ("magpy-lsp cache load --python .venv/bin/python code.zip", "for that interpreter"),
    ),
    "mcp": (
        ("magpy-lsp mcp", "what a coding assistant starts"),
        ("magpy-lsp mcp --skill", "prints a SKILL.md, for any assistant"),
    ),
    "server": (
        ("magpy-lsp server", "what an editor starts"),
        ("magpy-lsp server --stdio", "the same, for clients that add this option"),
    ),
}


def epilog(command: str, status: str = "") -> str:
    """The end of the help of a command: its examples, then ``status``."""
    width = max(len(line) for line, _ in EXAMPLES[command])
    lines = [f"  {line:{width}}  # {what}" for line, what in EXAMPLES[command]]
    return "\n".join(["\b", "Examples:", *lines, *(["", status] if status else [])])


class Cli(click.Group):
    """The group of commands. A program in the place of a command is answered with the two commands that run it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] in (["-m"], ["--module"]) and len(args) > 1:
            self._ask_for_a_command(ctx, args)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command(ctx, args[0]) is None and (args[0].endswith(".py") or Path(args[0]).is_file()):
            self._ask_for_a_command(ctx, args)
        return super().resolve_command(ctx, args)

    def _ask_for_a_command(self, ctx: click.Context, args: list[str]) -> None:
        program = shlex.join(args)
        named = args[1] if args[0].startswith("-") else args[0]
        ctx.fail(
            f"`{named}` is a program, and a command is missing before it. Choose one:\n\n"
            f"  magpy-lsp check {program}    # a few steps; reports graph breaks and recompiles\n"
            f"  magpy-lsp run {program}      # to its end, compiled; reports what that saved"
        )

"""Writes `docs/reference/cli.md` from the commands themselves: ``python -m docs.cli_page``. Key function: page.

What ``--help`` says is not written here a second time: only what is too long for it (``NOTES``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from lsp_server.cli.examples import EXAMPLES
from lsp_server.cli.main import cli

PAGE = Path(__file__).parent / "reference" / "cli.md"
_HEAD = """\
# The command line

Every command and its options, as `magpy-lsp COMMAND --help` prints them. What a report contains: [output](output.md).

Options of `magpy-lsp` stand before the script (or `-m MODULE`). Everything after the script goes to the program, as with
`python script.py ...`. If one of these arguments has the name of an option of MagPy, a note says so; a `--` after the script
avoids the note.

| command | what it does |
|---|---|
"""
#: What `--help` has no room for.
NOTES = {
    "check": """\
A report says that the program was stopped after `--steps` steps; in JSON, this is `stopped_after`. With `--watch`, `check` and `run`
start again if files change during a run.""",
    "run": """\
The program starts in eager mode, and compiled code is used as soon as it is ready
([how run decides](../explanation/how-run-decides.md)). `--steps N` is for measurements, so it waits for the compiler.

| mode | what it does |
|---|---|
| `default` | Inductor with its default options |
| `max` | Inductor tries several kernels (`max_autotune`, `coordinate_descent_tuning`); while it does so in the background, the code of `default` runs |
| `quick` | nothing is compiled: the recorded graph runs operator by operator, the backend `eager` |""",
    "bisect": "Each search takes at most three minutes of processor time ([how it works](../how-to/compare-with-eager.md)).",
    "verify": "What is compared, and what each verdict means: [compare with eager mode](../how-to/compare-with-eager.md).",
    "compile": """\
The exit status is 0 if there is code for the program now, even if all of it had been compiled before. After Ctrl-C, what had been
compiled by then can be used ([compile ahead of time](../how-to/compile-ahead.md)).""",
    "kernels": "What the columns mean: [GPU kernels without a GPU](../how-to/kernels-without-gpu.md).",
    "init": """\
It runs nothing and writes:

- **`[tool.magpy]`** in pyproject.toml, with the scripts that import torch (or Lightning, transformers or accelerate) and have
  `if __name__ == "__main__":` or a training loop at their top level. If some of them train, only those are entrypoints, and the others
  are named. A script that imports from its own package runs as a module.
- **`.github/workflows/magpy.yml`**, which checks every push. An existing file stays.
- With `--baseline`: `magpy-baseline.json` ([baseline](settings.md#baseline)).

The rest of pyproject.toml stays as it is, comments included. If it has a `[tool.magpy]` already, nothing is written and the exit
status is 2. Setup errors (no entrypoint, no such file, no torch, an invalid table) end with the next command to try.""",
    "diff": "What counts as worse: [compare two reports](../how-to/compare-reports.md).",
    "docs": """\
`make site` in a checkout builds all pages as a site with a search that needs no web server. A wheel has the site if it was built before
the wheel. To publish it, copy `lsp_server/site` to a web server; `docs-url` is then the address of its folder `codes`.""",
    "cache": "What the folder holds, and which files are trusted: [the folder of compiled code](cache.md).",
    "mcp": "How to connect an assistant: [coding assistants](../how-to/agents.md).",
    "server": "How to connect an editor: [editors](../how-to/editors.md).",
}
_SHARING = ("check", "run", "bisect")
_TAIL = """\
## Which Python runs the program

The package brings no torch, so `magpy-lsp` can be anywhere: in the project's environment, or in a separate one (`pipx install
magpy-lsp`, `uvx magpy-lsp`). The program runs with the first of these:

1. `--python`: an interpreter, or the folder of a virtual environment; for an entrypoint of `[tool.magpy]`, its `python`
2. the Python of `magpy-lsp` itself, if it has torch (`pip install "magpy-lsp[engine]"` installs both)
3. the active environment (`VIRTUAL_ENV`, `CONDA_PREFIX`)
4. `.venv` or `venv` next to the script, or above
5. `python3` or `python` on `PATH`, if it has torch

It needs a supported Python and torch, and nothing of MagPy: an engine that is installed there is used, else the one of `magpy-lsp`.
The installed one must have the same version; if it has another, or if torch is missing, nothing runs, and the message has the command
that installs it (exit status 2). `--show-settings` shows which Python it is, and `magpy-lsp doctor` checks it.

## Exit status

| status | meaning |
|---|---|
| 0 | no finding at or above `--fail-on` (`check`: warning, `run`: error), or `--exit-zero` |
| 1 | such findings; `doctor`: a check failed; `verify`: compiled code differs, or did and was not used |
| 2 | usage error, bad `[tool.magpy]`, entrypoint that can't be run, or an error of the tool |
| 3 | the program itself failed: an exception, a non-zero exit status, a signal, the time limit |
| 130 | interrupted; the findings up to that point are printed |

A failed program is 3 even with `--exit-zero`, whatever the findings.
"""


def commands() -> Iterator[tuple[str, click.Command]]:
    """Each command with its name; those of a group follow it."""
    for name, command in cli.commands.items():
        yield name, command
        if isinstance(command, click.Group):
            yield from ((f"{name} {below}", inner) for below, inner in command.commands.items())


def page() -> str:
    rows = "".join(f"| [`{name}`](#{_anchor(name)}) | {_cell(_short(command))} |\n" for name, command in commands())
    sections = "".join(_section(name, command) for name, command in commands())
    return f"{_HEAD}{rows}\n{sections}## Common options\n\nOf `check`, `run` and `bisect`:\n\n{_table(_shared())}\n\n{_TAIL}"


def _section(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=f"magpy-lsp {name}", color=False)
    parts = [
        f"## {name}",
        f"    magpy-lsp {name} {' '.join(command.collect_usage_pieces(context))}",
        *_paragraphs(command),
        *filter(None, [NOTES.get(name)]),
    ]
    width = max(len(line) for line, _ in EXAMPLES[name])
    parts.append("\n".join(f"    {line:{width}}  # {what}" for line, what in EXAMPLES[name]))
    options = _options(command)
    if name in _SHARING:
        shared = _shared()
        options = [option for option in options if option not in shared]
        parts.append(f"[The options that {', '.join(_SHARING[:-1])} and {_SHARING[-1]} share](#common-options), and:")
    if options:
        parts.append(_table(options))
    return "\n\n".join(parts) + "\n\n"


def _options(command: click.Command) -> list[tuple[str, str]]:
    context = click.Context(command)
    options = [param for param in command.params if isinstance(param, click.Option)]
    return [record for param in options if (record := param.get_help_record(context)) is not None]


def _shared() -> list[tuple[str, str]]:
    """The options that mean the same for each command of ``_SHARING``."""
    first, *others = (_options(cli.commands[name]) for name in _SHARING)
    return [option for option in first if all(option in other for other in others)]


def _table(options: list[tuple[str, str]]) -> str:
    lines = [f"| `{_cell(names)}` | {_cell(text)} |" for names, text in options]
    return "\n".join(["| option | meaning |", "|---|---|", *lines])


def _paragraphs(command: click.Command) -> list[str]:
    text = click.unstyle(command.help or "").replace("\b\n", "")
    return [re.sub(r"\s*\n\s*", " ", paragraph).strip() for paragraph in text.split("\n\n") if paragraph.strip()]


def _short(command: click.Command) -> str:
    return command.short_help or _paragraphs(command)[0]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _anchor(name: str) -> str:
    return name.replace(" ", "-")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

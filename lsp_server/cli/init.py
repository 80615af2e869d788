"""``magpy-lsp init``: sets a project up, with `[tool.magpy]` and a CI workflow. Key function: init."""

from __future__ import annotations

import os
import shlex
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from lsp_server.cli.project_table import table_line, with_programs
from lsp_server.cli.publish import ToolError
from lsp_server.cli.scripts import FoundPrograms, find_programs, program_of
from lsp_server.cli.workflow import workflow_file, workflow_text
from lsp_server.config import ConfigError
from lsp_server.entrypoints import Entrypoint
from lsp_server.formats.view import relative

BASELINE = "magpy-baseline.json"
_PLACEHOLDER = '[tool.magpy]\nentrypoint = "train.py"  # or "-m package.train"'


def init(path: str, *, force: bool, ci: bool, baseline: bool, check: Callable[[list[str]], int]) -> int:
    """Writes the files and says what to do next; returns the exit status. ``check`` runs `magpy-lsp check`."""
    given = Path(os.path.abspath(path))
    root = given if given.is_dir() else _project_of(given)
    pyproject = root / "pyproject.toml"
    text = _read(pyproject)
    line = _table_line(pyproject, text)
    if line is not None and not force:
        raise ToolError(
            f"{_shown(pyproject)}:{line} already sets MagPy up: run `{_command('check', root)}`. "
            "`magpy-lsp init --force` replaces its entrypoints and keeps its other settings."
        )
    found = find_programs(root) if given == root else FoundPrograms([program_of(given, root)], [])
    if not found.chosen:
        raise ToolError(_nothing_found(root, pyproject))
    written = _with_programs(pyproject, text, found.chosen, BASELINE if baseline else None)
    _write(pyproject, written)
    click.echo(f"{'Changed' if text else 'Created'} {_shown(pyproject)}: {_named(found.chosen)}.")
    if found.others:
        click.echo(f"Left out, as they run a model but do not train one: {_list(found.others)}.")
    if ci:
        _write_workflow(workflow_file(root), workflow_text(root), force)
    if baseline:
        return _first_baseline(root, check)
    click.echo(f"\nNext: {_command('check', root)}")
    click.echo("To fail on new findings only, later: magpy-lsp init --baseline --force --no-ci")
    return 0


def _project_of(script: Path) -> Path:
    """The folder of the nearest pyproject.toml, else the current folder if it contains the script."""
    for folder in script.parents:
        if (folder / "pyproject.toml").exists():
            return folder
    here = Path.cwd()
    return here if script.is_relative_to(here) else script.parent


def _read(file: Path) -> str:
    """Line ends stay as they are. A file that does not exist is empty."""
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise ToolError(f"{_shown(file)} is not UTF-8 text: save it as UTF-8.") from None
    except OSError as error:
        raise ToolError(f"{_shown(file)} can't be read: {error.strerror or error}.") from None


def _table_line(file: Path, text: str) -> int | None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ToolError(f"{_shown(file)} is not valid TOML: {error}. Fix it and run `magpy-lsp init` again.") from None
    except RecursionError:
        raise ToolError(f"{_shown(file)} nests values too deeply. Fix it and run `magpy-lsp init` again.") from None
    return table_line(text.replace("\r\n", "\n"))


def _with_programs(file: Path, text: str, programs: Sequence[Entrypoint], baseline: str | None) -> str:
    try:
        return with_programs(file, text, programs, baseline)
    except ConfigError as error:
        raise ToolError(f"{_shown(file)} is not changed, as it would not be valid:\n{error}") from None
    except ValueError:
        raise ToolError(
            f"{_shown(file)} has an inline table `magpy`, which `init` can't change: set the entrypoints there."
        ) from None


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8"))
    except OSError as error:
        raise ToolError(f"{_shown(file)} can't be written: {error.strerror or error}.") from None


def _write_workflow(file: Path, text: str, force: bool) -> None:
    if file.exists() and not force:
        click.echo(f"Kept {_shown(file)}: it exists already, and `--force` replaces it.")
        return
    _write(file, text)
    click.echo(f"Wrote {_shown(file)}: checks every push and pull request on GitHub.")


def _first_baseline(root: Path, check: Callable[[list[str]], int]) -> int:
    click.echo("\nRunning a check for the first baseline ...", err=True)
    status = check(["--cwd", str(root), "--update-baseline"])
    if (root / BASELINE).exists():
        click.echo(f"\nNext: commit these files and {_shown(root / BASELINE)}. A check fails on new findings only:")
        click.echo(f"  {_command('check', root)}")
    else:
        again = _command("check --update-baseline", root)
        click.echo(f"\nNext: there is no baseline yet. Fix what the check reports above, and run\n  {again}")
    return status


def _nothing_found(root: Path, pyproject: Path) -> str:
    example = _PLACEHOLDER.replace("\n", "\n    ")
    where = "This folder" if root == Path.cwd() else _shown(root)
    return (
        f'{where} has no script that runs a model: none imports torch and has `if __name__ == "__main__":` or a '
        f"training loop at its top level.\nName your program: `magpy-lsp init path/to/train.py`, or write in "
        f"{_shown(pyproject)}\n\n    {example}\n\nNo program yet? `magpy-lsp demo` shows MagPy on an example."
    )


def _named(programs: Sequence[Entrypoint]) -> str:
    commands = [p.program or f"-m {p.module}" for p in programs]
    return f"the entrypoint{'s are' if len(commands) > 1 else ' is'} {_list(commands)}"


def _list(names: Sequence[str], most: int = 8) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _command(arguments: str, root: Path) -> str:
    """The command line as it works in the current folder."""
    return f"magpy-lsp {arguments}" + ("" if root == Path.cwd() else f" --cwd {shlex.quote(_shown(root))}")


def _shown(path: Path) -> str:
    return relative(str(path), Path.cwd())

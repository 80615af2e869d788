"""``magpy-lsp demo``: a small training script with one graph break, checked in a new folder. Key function: demo."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import click

from lsp_server.cli.publish import ToolError

EXAMPLE = Path(__file__).parents[1] / "demo" / "train.py"
_CUT = "if max(logits.abs().flatten().tolist()) > LIMIT:"  # the line of the example that cuts its graph
_FIXED = "logits = logits.clamp(-LIMIT, LIMIT)"


def demo(into: str, *, check: Callable[[list[str]], int] | None) -> int:
    """Copies the example, checks it, and says what to do next; returns the exit status. ``check`` None: only copies it."""
    script = _copy(Path(into))
    shown = shlex.quote(script.as_posix())
    click.echo(f"Created {script.as_posix()}: it trains a small character model on the CPU.")
    if check is None:
        return 0
    click.echo(f"$ magpy-lsp check {shown}\n")
    status = check([str(script)])
    if status not in (0, 1):
        click.echo("\nNext: magpy-lsp doctor    # checks this machine and says how to fix problems", err=True)
        return status
    line = cut_line()
    click.echo(
        f"\nNext:\n"
        f"  1. Open {shown} in your editor: {script.name}:{line} reads all logits into Python, and that breaks the graph.\n"
        f"  2. Fix it: `clamp` changes nothing below the limit, so the `if` is not needed.\n"
        f"     Replace lines {line} and {line + 1} by\n"
        f"         {_FIXED}\n"
        f"     and run `magpy-lsp check {shown}` again: the whole training step is one graph.\n"
        f"  3. magpy-lsp run {shown}    # compiles it while it trains, and says whether that pays\n"
        f"  4. magpy-lsp init    # in your own project: finds its programs and sets up CI"
    )
    return 0


def cut_line() -> int:
    """The 1-based line of the example at which the check reports the graph break."""
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, start=1) if line.strip() == _CUT)


def _copy(folder: Path) -> Path:
    """Copies the example into a folder that it creates."""
    script = folder / EXAMPLE.name
    try:
        folder.mkdir(parents=True)
        script.write_bytes(EXAMPLE.read_bytes())
    except FileExistsError:
        other = "name a new folder with `--into DIR`"
        again = f", or run `magpy-lsp check {shlex.quote(script.as_posix())}`" if script.exists() else ""
        raise ToolError(f"{folder.as_posix()} already exists: {other}{again}.") from None
    except OSError as error:
        raise ToolError(f"The example can't be written to {folder.as_posix()}: {error.strerror or error}.") from None
    return script

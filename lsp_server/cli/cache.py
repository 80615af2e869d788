"""``magpy-lsp cache``: the folder that keeps compiled code from run to run. Key functions: show, clear, save, load."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import click

from lsp_server.cli.publish import ToolError
from lsp_server.cli.targets import interpreter
from lsp_server.formats.view import clean, count
from lsp_server.interpreters import of_project
from magpy_core.runner import code_archive, compiled_code
from magpy_core.runner.bootstrap import engine_command

_ENVIRONMENT = """import json
from magpy_core._compat.torch.compiler_state import environment
print("magpy-environment", json.dumps(environment()))
"""
_MARK = "magpy-environment "
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(size: float) -> str:
    """``size`` bytes in a readable unit."""
    unit = 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.0f} {_UNITS[unit]}" if unit == 0 or size >= 100 else f"{size:.1f} {_UNITS[unit]}"


def show(output_format: str) -> None:
    """Prints the folder's path, size and number of graphs."""
    info = compiled_code.info()
    if output_format == "json":
        click.echo(json.dumps(asdict(info)))
        return
    click.echo(f"folder:  {info.folder}")
    click.echo(f"size:    {size_text(info.size)} of {size_text(info.limit)} (MAGPY_CACHE_SIZE)")
    click.echo(f"graphs:  {info.entries}")
    if info.problem:
        click.echo(f"not used: {info.problem}")


def clear() -> None:
    """Empties the folder."""
    freed = compiled_code.clear()
    click.echo(f"Removed {size_text(freed)} from {compiled_code.info().folder}.")


def save(file: str, python: str | None) -> None:
    """Makes an archive of the compiled code, which is for the interpreter ``python``."""
    try:
        saved = code_archive.save(Path(file), _environment(python), _compiler())
    except code_archive.ArchiveError as error:
        raise ToolError(clean(str(error))) from None
    size = Path(file).stat().st_size
    click.echo(f"Saved {count(saved.files, 'file')} ({size_text(saved.size)}) to {clean(file)} ({size_text(size)}).")
    click.echo(f"Next, on the other machine: magpy-lsp cache load {clean(os.path.basename(file))}")


def load(file: str, python: str | None) -> None:
    """Puts the code of an archive into the folder, if it is for the interpreter ``python`` and this machine."""
    try:
        loaded = code_archive.load(Path(file), _environment(python))
    except code_archive.ArchiveError as error:
        raise ToolError(clean(str(error))) from None
    click.echo(f"Loaded {count(loaded.files, 'file')} ({size_text(loaded.size)}) into {compiled_code.folder_in_use()}.")


def _environment(python: str | None) -> dict[str, str]:
    """What compiled code depends on, as the interpreter says that runs the programs: only it knows its torch."""
    chosen = interpreter(python) or of_project(Path.cwd()) or sys.executable
    command = engine_command(chosen, _ENVIRONMENT)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace")
    lines = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if done.returncode or not lines:
        why = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise ToolError(f"{chosen} can't import torch ({clean(why[0])}): `magpy-lsp doctor` says how to fix it.")
    return {str(name): str(value) for name, value in json.loads(lines[-1].removeprefix(_MARK)).items()}


def _compiler() -> str:
    """The C++ compiler's version, which an archive notes; empty if there is none."""
    for name in filter(None, (os.environ.get("CXX"), "g++", "clang++")):
        if path := shutil.which(name):
            done = subprocess.run([path, "--version"], capture_output=True, encoding="utf-8", errors="replace")
            return next(iter(done.stdout.splitlines()), "")
    return ""

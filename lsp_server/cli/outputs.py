"""Where reports go: at most one format to stdout, any number to files. Key types: Output, Outputs; key function: outputs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

# One of these on stdout is the only thing there. (`github` is lines that GitHub picks out of the log.)
DOCUMENT_NAMES = ("json", "sarif", "gitlab", "junit", "markdown")


@dataclass(frozen=True)
class Output:
    """One format and its file."""

    format: str
    path: Path


@dataclass(frozen=True)
class Outputs:
    """``stdout`` is None when all that goes there is the summary, since the report went to ``--output``."""

    stdout: str | None
    files: tuple[Output, ...] = ()

    @property
    def document_on_stdout(self) -> bool:
        return self.stdout in DOCUMENT_NAMES


def outputs(formats: Sequence[tuple[str, str | None]], output: str | None) -> Outputs:
    """Settles ``--format`` and ``--output``; what can't be written is refused before the program runs."""
    plain = [name for name, file in formats if file is None]
    if len(plain) > 1:
        raise click.UsageError(
            f"Only one --format can go to stdout: give a file to {plain[0]} or {plain[1]}, as in `--format {plain[1]}=FILE`."
        )
    files = [Output(name, writable(file, "--format")) for name, file in formats if file is not None]
    stdout: str | None = plain[0] if plain else "full"
    if output is not None:
        files.insert(0, Output(plain[0] if plain else "full", writable(output, "--output")))
        stdout = None
    if twice := [o for i, o in enumerate(files) if any(o.path == p.path for p in files[:i])]:
        raise click.UsageError(f"Two reports would go to {twice[0].path}: give each its own file.")
    return Outputs(stdout, tuple(files))


def writable(file: str, option: str) -> Path:
    """Refused before the program runs, and not after minutes of it."""
    path = Path(os.path.abspath(file))
    problem = None
    if path.is_dir():
        problem = "is a directory"
    elif not path.parent.is_dir():
        problem = f"can't be written: there is no directory {path.parent}"
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        problem = "can't be written: permission denied"
    if problem:
        raise click.BadParameter(f"{file} {problem}.", param_hint=option)
    return path


def folder(name: str | None, option: str) -> Path | None:
    """A folder to write into; made when it is written, but refused now if it can't be."""
    if name is None:
        return None
    path = Path(os.path.abspath(name))
    there = next(p for p in (path, *path.parents) if p.exists())
    if not there.is_dir():
        raise click.BadParameter(f"{name} can't be made: {there} is a file.", param_hint=option)
    if not os.access(there, os.W_OK):
        raise click.BadParameter(f"{name} can't be written: permission denied.", param_hint=option)
    return path

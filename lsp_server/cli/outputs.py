"""Destinations of reports: at most one format to stdout, any number to files. Key types: Output, Outputs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

# With one of these formats, stdout contains nothing else. (`github` writes lines that GitHub finds in the log.)
DOCUMENT_NAMES = ("json", "sarif", "gitlab", "junit", "markdown")


@dataclass(frozen=True)
class Output:
    """One format and its file."""

    format: str
    path: Path


@dataclass(frozen=True)
class Outputs:
    """``stdout`` is None if the report goes to ``--output`` and stdout gets only the summary."""

    stdout: str | None
    files: tuple[Output, ...] = ()

    def has(self, name: str) -> bool:
        return self.stdout == name or any(file.format == name for file in self.files)

    @property
    def document_on_stdout(self) -> bool:
        return self.stdout in DOCUMENT_NAMES


def outputs(formats: Sequence[tuple[str, str | None]], output: str | None) -> Outputs:
    """Resolves ``--format`` and ``--output``; refuses files that can't be written before the program runs."""
    plain = [name for name, file in formats if file is None]
    if len(plain) > 1:
        raise click.UsageError(
            f"Only one --format can go to stdout: add a file to {plain[0]} or {plain[1]}, as in `--format {plain[1]}=FILE`."
        )
    files = [Output(name, writable(file, "--format")) for name, file in formats if file is not None]
    stdout: str | None = plain[0] if plain else "full"
    if output is not None:
        files.insert(0, Output(plain[0] if plain else "full", writable(output, "--output")))
        stdout = None
    if twice := [o for i, o in enumerate(files) if any(o.path == p.path for p in files[:i])]:
        raise click.UsageError(f"Two reports would go to {twice[0].path}: use a separate file for each.")
    return Outputs(stdout, tuple(files))


def writable(file: str, option: str) -> Path:
    """The absolute path, if it can be written; else a usage error, before the program runs."""
    path = Path(os.path.abspath(file))
    problem = None
    if path.is_dir():
        problem = "is a directory"
    elif not path.parent.is_dir():
        problem = f"can't be written: the directory {path.parent} does not exist"
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        problem = "can't be written: permission denied"
    if problem:
        raise click.BadParameter(f"{file} {problem}.", param_hint=option)
    return path


def folder(name: str | None, option: str) -> Path | None:
    """A folder for output, created when it is written; a usage error now if that would fail."""
    if name is None:
        return None
    path = Path(os.path.abspath(name))
    existing = next(p for p in (path, *path.parents) if p.exists())
    if not existing.is_dir():
        raise click.BadParameter(f"{name} can't be created: {existing} is a file.", param_hint=option)
    if not os.access(existing, os.W_OK):
        raise click.BadParameter(f"{name} can't be written: permission denied.", param_hint=option)
    return path

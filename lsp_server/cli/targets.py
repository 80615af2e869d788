"""The programs to run: from the command line, or the entrypoints of ``[tool.magpy]``. Key names: Target, targets."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click

from lsp_server.config import Loaded
from lsp_server.entrypoints import Entrypoint
from lsp_server.interpreters import find_interpreter


@dataclass(frozen=True)
class Target:
    """One program and how to start it (None: not set). ``name`` is empty unless it is an entrypoint of the table."""

    name: str = ""
    script: str | None = None
    module: str | None = None
    args: list[str] = field(default_factory=list)
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    python: str | None = None
    steps: int | None = None
    timeout: float | None = None
    nproc: int = 0


def is_name(text: str | None, loaded: Loaded) -> bool:
    """Whether an argument is a configured entrypoint. A file of that name takes precedence."""
    return text is not None and not os.path.exists(text) and any(e.name == text for e in loaded.settings.entrypoints)


def targets(script: str | None, module: str | None, args: list[str], cwd: str | None, loaded: Loaded) -> list[Target]:
    """The program named on the command line, else all configured entrypoints."""
    if module is not None:
        return [Target(module=module, args=args, cwd=cwd)]
    if script is not None and not is_name(script, loaded):
        # The path is relative to the current folder, not to --cwd.
        return [Target(script=os.path.abspath(script) if cwd else script, args=args, cwd=cwd)]
    chosen = [e for e in loaded.settings.entrypoints if script is None or e.name == script]
    found = [_named_target(e, args, cwd, loaded) for e in chosen]
    if script is None and loaded.settings.entrypoint is not None:
        found.insert(0, _default_target(loaded.settings.entrypoint, args, cwd, loaded))
    if not found:
        raise click.UsageError(
            "No program to run: name a script or -m MODULE, or set `entrypoint` under [tool.magpy] in pyproject.toml. "
            "`magpy-lsp init` finds the programs of a project and writes this; `magpy-lsp demo` shows an example."
        )
    if len(found) > 1 and args:
        names = ", ".join(t.name or str(t.script or t.module) for t in found)
        raise click.UsageError(f"The arguments can go to only one program: name one of these entrypoints: {names}.")
    return found


def _default_target(entry: str, args: list[str], cwd: str | None, loaded: Loaded) -> Target:
    assert loaded.file is not None
    if entry.startswith("-m "):
        return Target(module=entry.removeprefix("-m ").strip(), args=args, cwd=cwd)
    return Target(script=str(loaded.file.parent / entry), args=args, cwd=cwd)


def _named_target(entry: Entrypoint, args: list[str], cwd: str | None, loaded: Loaded) -> Target:
    assert loaded.file is not None
    folder = loaded.file.parent
    return Target(
        name=entry.name,
        script=str(folder / entry.program) if entry.program is not None else None,
        module=entry.module,
        args=args or list(entry.args),
        env=entry.env,
        cwd=cwd or str(folder / (entry.cwd or "")),
        python=_python(entry, folder, loaded),
        steps=entry.steps,
        timeout=entry.timeout,
        nproc=entry.nproc,
    )


def _python(entry: Entrypoint, folder: Path, loaded: Loaded) -> str | None:
    if entry.python is None:
        return None
    python = str(folder / entry.python) if "/" in entry.python or (folder / entry.python).exists() else entry.python
    found = find_interpreter(python)
    if found is None:
        raise click.UsageError(f"{loaded.file}: entrypoint {entry.name!r}: no Python interpreter at {entry.python!r}.")
    return found


def interpreter(python: str | None) -> str | None:
    """The interpreter of ``--python``; a usage error if it is not found."""
    if python is None:
        return None
    if (found := find_interpreter(python)) is None:
        raise click.BadParameter(
            f"no Python interpreter at {python!r}; use the path of one, or of a virtual environment.",
            param_hint="--python",
        )
    return found


def config_start(script: str | None, cwd: str | None) -> Path:
    """Where the search for pyproject.toml begins: in the script's folder, else (a module, a name) in the program's."""
    if script is not None and (os.path.exists(script) or os.sep in script):
        return Path(script).parent
    return Path(cwd or os.curdir)

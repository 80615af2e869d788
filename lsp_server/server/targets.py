"""Validates the argument of a run command and looks up configured entrypoints.

Key types: Target; key function: target_of. An argument is ``{uri, name?, module?, args?, steps?, cwd?, env?, python?,
timeout?, nproc?, target?, engine?}``. ``name`` is that of an entrypoint of the setting ``magpy.entrypoints`` or of
``[[tool.magpy.entrypoints]]``; the argument's other values override those of the entrypoint.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from pygls.exceptions import JsonRpcInvalidParams

from lsp_server.config import ConfigError, device_name, load_for
from lsp_server.entrypoints import Entrypoint, problem_of_variable
from lsp_server.features.documents import key_of, path_of, uri_of
from lsp_server.features.settings import Settings
from magpy_core.runner.request import SESSIONS, UnknownTarget


@dataclass(frozen=True)
class Target:
    """The program: the file of ``uri``, or ``module``, run from that file's folder. None: not set."""

    uri: str
    path: str
    module: str | None = None
    args: tuple[str, ...] | None = None
    steps: int | None = None
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    engine: str = "magpy"
    name: str = ""
    python: str | None = None
    timeout: float | None = None
    nproc: int = 0
    device: str | None = None  # that kernels are made for
    notebook: str = ""  # whose script ``path`` is

    @property
    def entrypoint(self) -> str:
        return f"-m {self.module}" if self.module else self.path

    @property
    def key(self) -> str:
        """Identifies the program: one run at a time for each key."""
        program = f"-m {self.module} in {self.cwd}" if self.module else key_of(self.path)
        named = f"{self.name}: {program}" if self.name else program
        return named if self.engine == "magpy" else f"{named} with {self.engine}"

    def with_engine(self, engine: str) -> Target:
        """The same program under another engine."""
        return replace(self, engine=engine)

    @property
    def config_start(self) -> Path:
        """Where the search for ``[tool.magpy]`` begins."""
        if self.module is None:
            return Path(self.notebook or self.path).parent
        return Path(self.cwd or os.path.dirname(self.path))

    @property
    def label(self) -> str:
        name = self.name or self.module or os.path.basename(self.path)
        return name if self.engine == "magpy" else f"{name} with torch.compile"


def target_of(command: str, argument: object, settings: Settings, folder_of: Any) -> Target:
    """The target of a command's argument; ``folder_of(path)`` is a program's working directory. Raises if invalid."""

    def invalid(what: str) -> NoReturn:
        raise JsonRpcInvalidParams(f"{command}: {what}")

    if not isinstance(argument, Mapping) or not isinstance(argument.get("uri"), str):
        invalid("needs one argument {uri, name?, module?, args?, steps?, cwd?, env?}")
    path = path_of(argument["uri"])
    if path is None:
        invalid("only a file on disk can be run: save it first")
    for key in ("module", "cwd", "name", "python"):
        if not isinstance(argument.get(key), (str, type(None))):
            invalid(f"{key} must be a string")
    args, env = argument.get("args"), argument.get("env")
    if args is not None and not (isinstance(args, list) and all(isinstance(a, str) for a in args)):
        invalid("args must be a list of strings")
    if env is not None and not (isinstance(env, Mapping) and all(isinstance(v, str) for v in env.values())):
        invalid("env must be an object of strings")
    for name, value in (env or {}).items():
        if problem := problem_of_variable(name, value):
            invalid(f"env: {name!r} is not an environment variable: {problem}")
    steps, nproc, timeout = argument.get("steps"), argument.get("nproc"), argument.get("timeout")
    if steps is not None and (not _is_int(steps) or steps < 0):
        invalid("steps must be an integer, 0 or more")
    if nproc is not None and (not _is_int(nproc) or nproc < 1):
        invalid("nproc must be an integer, 1 or more")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or timeout <= 0):
        invalid("timeout must be a number of seconds above 0")
    device = argument.get("target")
    if device is not None:
        try:
            device = device_name(str(device))
        except UnknownTarget as error:
            invalid(f"target is invalid: {error}")
    engine = argument.get("engine") or "magpy"
    if engine not in SESSIONS or (engine != "magpy" and command != "magpy.check"):
        invalid(f"engine must be one of {', '.join(SESSIONS)}; torch.compile is only for magpy.check")
    base = Target(uri=argument["uri"], path=path)
    if name := argument.get("name"):
        entries = configured(path, settings, folder_of(path))
        if name not in entries:
            known = ", ".join(entries) or "none"
            invalid(f"unknown entrypoint {name!r} (known: {known})")
        base = _from_entry(base, *entries[name])
    given: dict[str, Any] = {
        "module": argument.get("module"), "steps": steps, "cwd": argument.get("cwd"), "python": argument.get("python"),
        "timeout": timeout, "nproc": nproc, "device": device, "args": None if args is None else tuple(args), "env": env,
    }  # fmt: skip
    target = replace(base, engine=engine, **{key: value for key, value in given.items() if value is not None})
    return replace(target, cwd=target.cwd or folder_of(target.path))


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def configured(path: str, settings: Settings, folder: str) -> dict[str, tuple[Entrypoint, str]]:
    """The entrypoints for a file, each with its base folder; the editor's take precedence over the project's."""
    found: dict[str, tuple[Entrypoint, str]] = {}
    try:
        loaded = load_for(Path(path) if os.path.isdir(path) else Path(path).parent)
    except ConfigError:
        loaded = None  # a run reports the error; the editor's entrypoints still apply
    if loaded is not None and loaded.file is not None:
        found = {entry.name: (entry, str(loaded.file.parent)) for entry in loaded.settings.entrypoints}
    return {**found, **{entry.name: (entry, folder) for entry in settings.entrypoints}}


def names_for(path: str, settings: Settings, folder: str) -> list[str]:
    """The names of the configured entrypoints that run this file."""
    entries = configured(path, settings, folder).items()
    return [name for name, (entry, base) in entries if entry.program and _is(_full(entry.program, base), path)]


def _is(path: str, other: str) -> bool:
    return key_of(path) == key_of(other)


def _full(path: str, folder: str) -> str:
    return os.path.join(folder, path.replace("${workspaceFolder}", folder))


def _from_entry(base: Target, entry: Entrypoint, folder: str) -> Target:
    path = _full(entry.program, folder) if entry.program is not None else base.path
    python = entry.python
    if python is not None and (os.sep in python or os.path.exists(_full(python, folder))):
        python = _full(python, folder)
    return replace(
        base,
        uri=uri_of(os.path.abspath(path)) if entry.program is not None else base.uri,
        path=path,
        module=entry.module,
        args=tuple(arg.replace("${workspaceFolder}", folder) for arg in entry.args),
        env=entry.env,
        cwd=_full(entry.cwd, folder) if entry.cwd is not None else folder,
        python=python,
        steps=entry.steps,
        timeout=entry.timeout,
        nproc=entry.nproc,
        name=entry.name,
    )

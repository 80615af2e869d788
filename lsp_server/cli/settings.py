"""Merges command line, ``[tool.magpy]`` and defaults, and records origins. Key type: ResolvedSettings."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

import attrs
import click

from lsp_server.budgets import Budgets, Limits
from lsp_server.cli.outputs import Outputs, folder, outputs, writable
from lsp_server.cli.targets import Target, config_start, interpreter, targets
from lsp_server.config import BACKENDS, ConfigError, Loaded, device_name, load_for
from lsp_server.formats.view import relative
from lsp_server.interpreters import of_project
from lsp_server.selection import Selection
from magpy_core.findings import Severity
from magpy_core.findings.secrets import REDACTED, is_secret
from magpy_core.runner.request import SESSIONS, RunRequest, UnknownTarget

Mode = Literal["check", "run"]

DEFAULTS: dict[str, dict[str, Any]] = {
    "check": {"steps": 3, "fail-on": Severity.WARNING},
    # A graph break does not make a training run fail.
    "run": {"steps": 0, "fail-on": Severity.ERROR},
}
_COMPARED_STEPS = 24  # enough steady calls for meaningful timings
_STEPS_IN_DETAIL = 100
_DEFAULT = "default"
_COMMAND_LINE = "command line"


@dataclass(frozen=True)
class ResolvedSettings:
    """All settings of one ``check`` or ``run``."""

    mode: Mode
    name: str
    script: str | None
    module: str | None
    args: list[str]
    env: dict[str, str]
    python: str | None
    cwd: str | None
    steps: int
    timeout: float | None
    backend: str
    compile: Literal["background", "foreground", "ahead"]
    compile_mode: Literal["default", "max", "quick"]
    verify: str
    regions: list[str]
    call_policy: dict[str, str]
    selection: Selection
    fail_on: Severity
    exit_zero: bool
    outputs: Outputs
    statistics: bool
    in_detail: bool
    color: str
    live: bool = True  # a panel below the program's output, where that is possible
    jobs: int | None = None
    html: Path | None = None
    events: Path | None = None  # a file for what happens in the run
    nproc: int = 0
    engine: str = "magpy"
    target: str = ""  # the device that the captures are compiled for
    target_line: tuple[str, int] | None = None  # only the kernels of this line
    ptx: bool = False
    compared: bool = False  # one of two runs of the same program, one per engine
    baseline: Path | None = None
    update_baseline: bool = False
    budgets: Budgets = field(default_factory=Budgets)
    docs_url: str | None = None
    config_file: Path | None = None
    region_lines: Mapping[str, int] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The program's display name: its name in the table, else as on the command line."""
        program = self.name or (f"-m {self.module}" if self.module is not None else str(self.script))
        return f"{program} [{self.engine}]" if self.compared else program

    @property
    def run_name(self) -> str:
        """The key of this run among several: the mode and the entrypoint."""
        mode = self.mode if self.engine == "magpy" else f"{self.mode} --engine {self.engine}"
        if self.name:
            return f"{mode} {self.name}"
        if self.script is None:
            return f"{mode} -m {self.module}"
        folder = self.baseline.parent if self.baseline is not None else Path.cwd()
        return f"{mode} {relative(os.path.abspath(os.path.join(self.cwd or '', self.script)), folder)}"

    @property
    def has_few_steps(self) -> bool:
        """Whether the report may have details, which take much memory in a long run: fixes are made of them."""
        return 0 < self.steps <= _STEPS_IN_DETAIL

    @property
    def _has_fixes(self) -> bool:
        """Whether the report is written as JSON, with fixes."""
        return self.mode == "check" and self.engine == "magpy" and self.has_few_steps and self.outputs.has("json")

    def request(self, **streams: Any) -> RunRequest:
        """The request for the runner."""
        return RunRequest(
            # torch.compile reports nothing without compiling, and comparing times requires compiled code
            mode="run" if self.compared or self.engine == "dynamo" else self.mode,
            script=self.script,
            module=self.module,
            args=self.args,
            python=self.python,
            cwd=self.cwd,
            env={**os.environ, **self.env} if self.env else None,
            steps=self.steps,
            timeout=self.timeout,
            backend=self.backend,
            compile=self.compile,
            compile_mode=self.compile_mode,
            verify=self.verify,
            regions=self.regions,
            call_policy=self.call_policy,
            details=self.html is not None or self._has_fixes,
            target=self.target,
            target_line=self.target_line,
            session_factory=SESSIONS[self.engine],
            **streams,
        )

    def describe(self) -> str:
        """``--show-settings``: one ``key = value  # origin`` line each."""
        values: dict[str, Any] = {
            **({"name": self.name} if self.name else {}),
            "entrypoint": f"-m {self.module}" if self.module else self.script,
            "args": self.args,
            **({"env": {k: REDACTED if is_secret(k) else v for k, v in self.env.items()}} if self.env else {}),
            **({"nproc": self.nproc} if self.nproc else {}),
            "python": self.python,
            "cwd": self.cwd,
            "steps": self.steps,
            "timeout": self.timeout,
            "backend": self.backend,
            **({"mode": self.compile_mode, "verify": self.verify} if self.mode == "run" else {}),
            **({"target": self.target} if self.target else {}),
            **({"engine": self.engine} if self.engine != "magpy" else {}),
            "select": list(self.selection.select),
            "ignore": list(self.selection.ignore),
            "fail-on": self.fail_on.value,
            "baseline": str(self.baseline) if self.baseline is not None else None,
            "docs-url": self.docs_url,
            "regions": self.regions,
            "severity": {code: s.value for code, s in self.selection.severity.items()},
            "call-policy": self.call_policy,
            "budgets": _budget_tables(self.budgets),
        }
        shown = {key: json.dumps(value) for key, value in values.items()}
        return "\n".join(f"{key} = {value}  # {self.origins.get(key, _DEFAULT)}" for key, value in shown.items())


class _Chooser:
    """Picks each setting from the command line, the table or the default, and records its origin."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self.origins: dict[str, str] = {}

    def pick(self, key: str, given: Any, configured: Any, default: Any) -> Any:
        if given is not None:
            self.origins[key] = _COMMAND_LINE
            return given
        if key in self._loaded.lines and configured is not None:
            self.origins[key] = f"{self._loaded.file}:{self._loaded.lines[key]}"
            return configured
        self.origins[key] = _DEFAULT
        return default


def resolve(mode: str, args: list[str], options: Mapping[str, Any]) -> list[ResolvedSettings]:
    """The settings of each program to run; raises click errors (exit status 2) that say what to do."""
    script, module = options["entrypoint"], options["module"]
    loaded = _load(config_start(script, options["cwd"]))
    found = targets(script, module, args, options["cwd"], loaded)
    engine = options.get("engine", "magpy")
    if engine != "both":
        return [replace(_resolve_target(mode, target, options, loaded), engine=engine) for target in found]
    both = [_resolve_target(mode, target, options, loaded) for target in found]
    return [replace(one, engine=engine, compared=True) for one in both for engine in ("magpy", "dynamo")]


def _resolve_target(mode: str, target: Target, options: Mapping[str, Any], loaded: Loaded) -> ResolvedSettings:
    config = loaded.settings
    chooser = _Chooser(loaded)
    if options["entrypoint"] is None and options["module"] is None:
        key = "entrypoints" if target.name else "entrypoint"
        chooser.pick(key, None, getattr(config, key), None)
        chooser.origins["entrypoint"] = chooser.origins[key]
    else:
        chooser.pick("entrypoint", target.script or target.module, None, None)
    python = interpreter(options["python"]) or target.python
    if python is None and (python := of_project(config_start(target.script, target.cwd))) is not None:
        chooser.origins["python"] = "the project's environment"
    else:
        chooser.pick("python", options["python"], None, None)
    chooser.pick("cwd", options["cwd"], None, None)
    chooser.pick("args", target.args or None, None, [])
    table = config if mode == "check" else None
    engine = options.get("engine", "magpy")
    default = {**DEFAULTS[mode], **({"steps": _COMPARED_STEPS} if engine == "both" else {})}
    configured_steps = target.steps if target.steps is not None else config.steps
    steps = chooser.pick("steps", options["steps"], table and configured_steps, default["steps"])
    if options["steps"] is None and table and target.steps is not None:
        steps, chooser.origins["steps"] = target.steps, f"entrypoint {target.name!r}"
    timeout = chooser.pick("timeout", options["timeout"], config.timeout, None)
    if options["timeout"] is None and target.timeout is not None:
        timeout, chooser.origins["timeout"] = target.timeout, f"entrypoint {target.name!r}"
    usual = "eager" if engine == "dynamo" else BACKENDS[0]
    backend = chooser.pick("backend", options["backend"], config.backend, usual)
    compile_mode = chooser.pick("mode", options.get("mode"), config.mode if mode == "run" else None, "default")
    verify = chooser.pick("verify", options.get("verify"), config.verify if mode == "run" else None, "first")
    fail_on = chooser.pick("fail-on", options["fail_on"], table and table.fail_on, default["fail-on"])
    difference_fails = {} if verify in ("first", "off") else {"MP914": Severity.ERROR}  # where a user asks for it
    selection = Selection(
        select=tuple(chooser.pick("select", options["select"], config.select, ())),
        ignore=tuple(chooser.pick("ignore", options["ignore"], config.ignore, ())),
        severity={**difference_fails, **chooser.pick("severity", None, config.severity, {})},
    )
    device = _device(chooser, options, config.target, engine)
    return ResolvedSettings(
        mode=cast(Mode, mode),
        name=target.name,
        script=target.script,
        module=target.module,
        args=target.args,
        env=dict(target.env),
        python=python,
        cwd=target.cwd,
        steps=steps,
        timeout=timeout,
        backend=_backend(backend),
        compile=options.get("compile") or ("foreground" if steps else "background"),
        compile_mode=compile_mode,
        verify=verify,
        regions=list(chooser.pick("regions", None, config.regions, ())),
        call_policy=dict(chooser.pick("call-policy", None, config.call_policy, {})),
        selection=selection,
        fail_on=Severity(fail_on),
        exit_zero=options["exit_zero"],
        outputs=outputs(options["formats"], options["output"]),
        statistics=options["statistics"],
        in_detail=options["details"],
        color=options["color"],
        live=options.get("live", True),
        jobs=options["jobs"],
        nproc=options["nproc"] or target.nproc,
        html=folder(options["html"], "--html"),
        events=writable(options["events"], "--events") if options.get("events") else None,
        target=device,
        target_line=options.get("target_line"),
        ptx=_ptx(options, device),
        baseline=_baseline(chooser, options, loaded),
        update_baseline=options["update_baseline"],
        docs_url=chooser.pick("docs-url", None, config.docs_url, None),
        budgets=chooser.pick("budgets", None, config.budgets, Budgets()),
        config_file=loaded.file,
        region_lines=loaded.region_lines,
        origins=chooser.origins,
    )


def _budget_tables(budgets: Budgets) -> dict[str, Any]:
    def table(limits: Limits) -> dict[str, Any]:
        return {name.replace("_", "-"): value for name, value in attrs.asdict(limits).items() if value is not None}

    regions = {pattern: table(limits) for pattern, limits in budgets.regions.items()}
    return {**table(budgets.every), **({"regions": regions} if regions else {})}


def _load(start: Path) -> Loaded:
    try:
        return load_for(start)
    except ConfigError as error:
        for problem in error.problems:
            click.echo(str(problem), err=True)
        click.echo("magpy-lsp: `magpy-lsp docs settings` describes the settings of [tool.magpy].", err=True)
        raise SystemExit(2) from None


def _baseline(chooser: _Chooser, options: Mapping[str, Any], loaded: Loaded) -> Path | None:
    """The command line's path is relative to the current folder, the table's to the folder of its file."""
    configured = None
    if loaded.settings.baseline is not None and loaded.file is not None:
        configured = loaded.file.parent / loaded.settings.baseline
    file = chooser.pick("baseline", options["baseline"], configured, None)
    if file is None:
        if options["update_baseline"]:
            raise click.UsageError("No baseline file: use --baseline FILE, or set `baseline` under [tool.magpy].")
        return None
    path = Path(os.path.abspath(file))
    if options["update_baseline"]:
        return writable(str(file), "--baseline")
    return path


def _device(chooser: _Chooser, options: Mapping[str, Any], configured: str | None, engine: str) -> str:
    """The device to compile for; empty: none. The table's is for MagPy's engine only."""
    given = options.get("target")
    if engine != "magpy":
        if given:
            raise click.UsageError("--target compiles MagPy's graphs: use it without --engine.")
        return ""
    target = chooser.pick("target", given, configured, options.get("usual_target", ""))
    try:
        return device_name(target) if target not in ("", "none") else ""
    except UnknownTarget as error:
        raise click.BadParameter(str(error), param_hint="--target") from None


def _ptx(options: Mapping[str, Any], device: str) -> bool:
    if options.get("ptx") and not device:
        raise click.UsageError("--ptx adds the PTX of a target's kernels: use it with --target.")
    return bool(options.get("ptx"))


def _backend(name: str) -> str:
    if name not in BACKENDS:
        raise click.BadParameter(f"{name!r} is not a backend; known: {', '.join(BACKENDS)}.", param_hint="--backend")
    return name

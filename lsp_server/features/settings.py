"""The client's validated settings (section ``magpy``). Key names: Settings, parse_settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lsp_server.config import BACKENDS, device_name, is_web_address
from lsp_server.config_tables import entrypoints
from lsp_server.config_values import InvalidValue
from lsp_server.entrypoints import Entrypoint, problem_of_variable
from magpy_core.findings import REGISTRY, Finding, Severity
from magpy_core.runner.request import UnknownTarget

SECTION = "magpy"
COMPILES = ("background", "foreground")


@dataclass(frozen=True)
class Settings:
    """``severity`` maps a code (``MP204``) or family (``MP2``) to a severity, or to None for "off".

    None in ``steps``, ``timeout``, ``backend`` and ``target``: not set, so ``[tool.magpy]`` or the default applies. An empty
    ``target``: no kernels, whatever the table says.
    """

    interpreter: str = ""
    steps: int | None = None
    timeout: float | None = None
    backend: str | None = None
    compile: str = "background"
    target: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    severity: Mapping[str, Severity | None] = field(default_factory=dict)
    code_lens: bool = True
    inlay_hints: bool = False
    run_on_save: bool = False
    run_on_save_delay: float = 1.0  # seconds
    entrypoints: tuple[Entrypoint, ...] = ()
    docs_url: str = ""

    def severity_of(self, finding: Finding) -> Severity | None:
        """The severity of ``finding``; None hides it."""
        for key in (finding.code, finding.code[:3]):
            if key in self.severity:
                return self.severity[key]
        return finding.severity

    def names(self, code: str) -> bool:
        """Whether ``severity`` names the code or its family."""
        return code in self.severity or code[:3] in self.severity


def parse_settings(raw: object) -> tuple[Settings, list[str]]:
    """The settings from the client's JSON, and one message for each invalid value (which gets its default)."""
    problems: list[str] = []
    if raw is None:
        return Settings(), problems
    if not isinstance(raw, Mapping):
        return Settings(), [f"the settings of section {SECTION} must be an object"]
    values: dict[str, Any] = {}

    def take(name: str, field_name: str, ok: bool, value: Any, wanted: str) -> None:
        if raw.get(name) is None:
            return
        if ok:
            values[field_name] = value
        else:
            problems.append(f"setting {SECTION}.{name} must be {wanted}, not {raw[name]!r}")

    def number(value: Any) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0

    interpreter, steps, timeout = raw.get("interpreter"), raw.get("steps"), raw.get("timeout")
    args, env, delay = raw.get("args"), raw.get("env"), raw.get("runOnSaveDelay")
    take("interpreter", "interpreter", isinstance(interpreter, str), interpreter, "a string")
    take("steps", "steps", isinstance(steps, int) and number(steps), steps, "an integer, 0 or more")
    take("timeout", "timeout", number(timeout), timeout, "a number of seconds, 0 for none")
    backend = raw.get("backend")
    take("backend", "backend", backend in ("", *BACKENDS), backend or None, f"one of {', '.join(BACKENDS)}")
    waits = raw.get("compile")
    take("compile", "compile", waits in COMPILES, waits, f"one of {', '.join(COMPILES)}")
    known, target = _device(raw.get("target"))
    take("target", "target", known, target, "none, or a device like cuda:sm_90")
    strings = isinstance(args, (list, tuple)) and all(isinstance(a, str) for a in args)
    take("args", "args", strings, tuple(args) if strings and args is not None else (), "a list of strings")
    pairs = isinstance(env, Mapping) and all(isinstance(k, str) and isinstance(v, str) for k, v in env.items())
    pairs = pairs and not any(problem_of_variable(name, value) for name, value in (env or {}).items())
    take("env", "env", pairs, env, "an object of strings, with names without `=`")
    docs_url = raw.get("docsUrl")
    address = isinstance(docs_url, str) and (docs_url == "" or is_web_address(docs_url))
    take("docsUrl", "docs_url", address, docs_url, "an address that begins with https:// or http://")
    for name, field_name in (("codeLens", "code_lens"), ("inlayHints", "inlay_hints"), ("runOnSave", "run_on_save")):
        take(name, field_name, isinstance(raw.get(name), bool), raw.get(name), "true or false")
    milliseconds = float(delay) / 1000 if isinstance(delay, (int, float)) and number(delay) else 0.0
    take("runOnSaveDelay", "run_on_save_delay", number(delay), milliseconds, "a number of milliseconds, 0 or more")
    if raw.get("entrypoints") is not None:
        try:
            values["entrypoints"] = entrypoints(raw["entrypoints"], None)
        except InvalidValue as bad:
            for below, message in bad.problems:
                path = ".".join((f"{SECTION}.entrypoints", *((below,) if isinstance(below, str) else below))).rstrip(".")
                problems.append(f"setting {path} {message.rstrip('.')}")
    severity, more = _parse_severity(raw.get("severity"))
    return Settings(**values, severity=severity), problems + more


def _device(raw: object) -> tuple[bool, str | None]:
    """Whether a value of ``target`` is valid, and what it means."""
    if raw in ("", "none"):
        return True, None if raw == "" else ""
    try:
        return True, device_name(str(raw))
    except UnknownTarget:
        return False, None


def _parse_severity(raw: object) -> tuple[dict[str, Severity | None], list[str]]:
    if raw is None:
        return {}, []
    if not isinstance(raw, Mapping):
        return {}, [f"setting {SECTION}.severity must be an object of code to severity"]
    known = set(REGISTRY) | {code[:3] for code in REGISTRY}
    words = [s.value for s in Severity]
    parsed: dict[str, Severity | None] = {}
    problems = []
    for code, word in raw.items():
        if code not in known:
            problems.append(f"setting {SECTION}.severity names {code!r}, which is not a finding code or family")
        elif word == "off":
            parsed[code] = None
        elif word in words:
            parsed[code] = Severity(word)
        else:
            problems.append(f"setting {SECTION}.severity: {code} must be one of {', '.join(words)}, off, not {word!r}")
    return parsed, problems

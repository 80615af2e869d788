"""``[tool.magpy]`` of the nearest pyproject.toml above the entrypoint; any invalid key or value is an error.

Key types: Settings (the table's content, or the defaults), Problem and ConfigError (one sentence per mistake, with
the key's path and line). ``discover`` finds the file, ``load`` reads it.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from operator import eq
from pathlib import Path
from typing import Any, NewType

import attrs
from cattrs import AttributeValidationNote, ClassValidationError, Converter, ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn, override

from lsp_server.budgets import Budgets
from lsp_server.config_tables import budgets, entrypoints
from lsp_server.config_values import InvalidValue, expect, kind_of, strings, suggest, table_of, toml_key
from lsp_server.entrypoints import Entrypoint
from lsp_server.toml_lines import key_lines
from magpy_core.findings import Finding, Location, Position, Range, Severity
from magpy_core.findings.registry import REGISTRY, matching
from magpy_core.runner.request import UnknownTarget, parse_target

BACKENDS = ("inductor", "aot_eager", "eager")
COMPILE_MODES = ("default", "max", "quick")
POLICIES = ("pure", "torch", "host")
_TABLE = ("tool", "magpy")

Steps = NewType("Steps", int)
Seconds = NewType("Seconds", float)
Codes = NewType("Codes", tuple[str, ...])
Names = NewType("Names", tuple[str, ...])
Severities = NewType("Severities", dict[str, Severity])
Policies = NewType("Policies", dict[str, str])
Backend = NewType("Backend", str)
CompileMode = NewType("CompileMode", str)
Verify = NewType("Verify", str)
WebAddress = NewType("WebAddress", str)
DeviceName = NewType("DeviceName", str)
Entrypoints = NewType("Entrypoints", tuple[Entrypoint, ...])


@attrs.frozen
class Settings:
    """The table's content. ``steps`` and ``fail_on`` apply to ``check``; ``run`` takes them only from its command line.
    ``mode`` and ``verify`` apply to ``run``, ``target`` to ``check`` and ``kernels``."""

    entrypoint: str | None = None
    steps: Steps | None = None
    timeout: Seconds | None = None
    select: Codes = Codes(())
    ignore: Codes = Codes(())
    fail_on: Severity | None = None
    regions: Names = Names(())
    severity: Severities = attrs.field(factory=lambda: Severities({}))
    backend: Backend | None = None
    mode: CompileMode | None = None
    verify: Verify | None = None
    target: DeviceName | None = None
    baseline: str | None = None
    docs_url: WebAddress | None = None
    call_policy: Policies = attrs.field(factory=lambda: Policies({}))
    budgets: Budgets = attrs.field(factory=Budgets)
    entrypoints: Entrypoints = Entrypoints(())


@attrs.frozen
class Loaded:
    """Settings, their file (None: defaults only) and the line of each key that is set.

    ``region_lines``: the line of each region pattern's budget.
    """

    settings: Settings = attrs.field(factory=Settings)
    file: Path | None = None
    lines: dict[str, int] = attrs.field(factory=dict)
    region_lines: dict[str, int] = attrs.field(factory=dict)


@attrs.frozen
class Problem:
    """One mistake in one key. ``line`` is 1-based; ``key`` is dotted, empty when the file is not valid TOML."""

    file: Path
    line: int
    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: MP910 {self.sentence}"

    @property
    def sentence(self) -> str:
        return f"`{self.key}` {self.message}" if self.key else self.message

    def finding(self) -> Finding:
        at = Position(self.line - 1, 0)
        return Finding("MP910", self.sentence, Location(str(self.file), Range(at, Position(self.line, 0))))


class ConfigError(Exception):
    """The table cannot be used. Carries every problem, not only the first."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


def discover(start: Path) -> Path | None:
    """The nearest pyproject.toml at or above ``start`` that has a ``[tool.magpy]`` table, or that mentions it but is not
    valid TOML (so that a broken file is reported, not skipped)."""
    start = Path(os.path.abspath(start))
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        try:
            raw = file.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            # It may have our table: load() reports that it is unreadable.
            return file
        try:
            table = tomllib.loads(raw.decode("utf-8")).get("tool", {})
            if isinstance(table, dict) and "magpy" in table:
                return file
        except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError):
            if re.search(rb"\btool\s*\.\s*magpy\b", raw):
                return file
    return None


def load(file: Path) -> Loaded:
    """The settings in ``file``; raises ConfigError with every problem in it."""
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = file.read_bytes()[: error.start].count(b"\n") + 1
        raise ConfigError([Problem(file, line, "", "the file is not UTF-8 text: save it as UTF-8.")]) from None
    except OSError as error:
        raise ConfigError([Problem(file, 1, "", f"the file can't be read: {error.strerror}.")]) from None
    return parse(file, text)


def parse(file: Path, text: str) -> Loaded:
    """The settings in ``text``, the content of ``file`` (possibly unsaved in an editor); raises like ``load``."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([_syntax_problem(file, text, error)]) from None
    except RecursionError:
        raise ConfigError([Problem(file, 1, "", "the file nests values too deeply: make it flatter.")]) from None
    lines = key_lines(text)
    table: Any = document
    for key in _TABLE:
        if not isinstance(table, dict):
            break
        table = table.get(key, {})
    if not isinstance(table, dict):
        raise ConfigError([Problem(file, _line(lines, _TABLE), "tool.magpy", f"must be a table, not {kind_of(table)}.")])
    try:
        settings = _converter().structure(table, Settings)
    except ClassValidationError as error:
        problems = [
            Problem(file, _line(lines, (*_TABLE, *path)), ".".join((*_TABLE, *path)), message)
            for path, message in _walk(error)
        ]
        raise ConfigError(sorted(problems, key=lambda p: (p.line, p.key))) from None
    set_lines = {key: _line(lines, (*_TABLE, key)) for key in table}
    budgets = (*_TABLE, "budgets", "regions")
    return Loaded(settings, file, set_lines, {p: _line(lines, (*budgets, p)) for p in settings.budgets.regions})


def load_for(start: Path) -> Loaded:
    """Loads the settings that :func:`discover` finds from ``start``; the defaults if there are none."""
    file = discover(start)
    return load(file) if file else Loaded()


def check_codes(prefixes: list[str]) -> list[str]:
    """One sentence for each prefix that no code starts with."""
    return [f"{p!r} is not a finding code or a prefix of one{suggest(p, REGISTRY)}" for p in prefixes if not matching(p)]


def _line(lines: dict[tuple[str, ...], int], path: tuple[str, ...]) -> int:
    """The line of ``path``, or of its nearest parent that has one."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def _syntax_problem(file: Path, text: str, error: tomllib.TOMLDecodeError) -> Problem:
    message = str(error)
    found = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", message)
    if found is None:
        return Problem(file, 1, "", f"the file is not valid TOML: {message}.")
    line = int(found[1]) if found[1] else text.rstrip("\n").count("\n") + 1
    return Problem(file, line, "", f"the file is not valid TOML: {message[: found.start()]}.")


def _walk(error: ClassValidationError) -> Iterator[tuple[tuple[str, ...], str]]:
    """Flattens cattrs' tree of errors into (path below the table, sentence)."""
    known = [toml_key(a.name) for a in attrs.fields(Settings)]
    for inner in error.exceptions:
        if isinstance(inner, ForbiddenExtraKeysError):
            for key in sorted(inner.extra_fields):
                yield (key,), f"is not a setting{suggest(key, known)}"
            continue
        notes = [n for n in getattr(inner, "__notes__", ()) if isinstance(n, AttributeValidationNote)]
        if not isinstance(inner, InvalidValue) or not notes:
            raise error  # a bug of ours, not a mistake in the file
        for below, message in inner.problems:
            names = below if isinstance(below, tuple) else (below,) if below else ()
            yield (toml_key(notes[-1].name), *names), message


def _string(value: Any, _: Any) -> str:
    expect(isinstance(value, str) and bool(value.strip()), "a non-empty string", value)
    return str(value)


def _steps(value: Any, _: Any) -> Steps:
    fits = isinstance(value, int) and not isinstance(value, bool)
    expect(fits, "an integer, 0 or more", value)
    if value < 0:
        raise InvalidValue(("", f"must be an integer, 0 or more, not {value}."))
    return Steps(value)


def _seconds(value: Any, _: Any) -> Seconds:
    expect(isinstance(value, int | float) and not isinstance(value, bool), "a number of seconds above 0", value)
    if not 0 < value < float("inf"):
        raise InvalidValue(("", f"must be a number of seconds above 0, not {value}."))
    return Seconds(float(value))


def _codes(value: Any, _: Any) -> Codes:
    codes = strings(value)
    if wrong := check_codes(codes):
        raise InvalidValue(*(("", f"has an invalid entry: {message}") for message in wrong))
    return Codes(tuple(codes))


def is_dotted(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def _names(value: Any, _: Any) -> Names:
    names = strings(value)
    if wrong := [n for n in names if not is_dotted(n)]:
        text = "has an invalid entry: {!r} is not a dotted name like `package.module.function`."
        raise InvalidValue(*(("", text.format(n)) for n in wrong))
    return Names(tuple(names))


def _one_of(known: tuple[str, ...], value: Any, below: str = "") -> str:
    if not isinstance(value, str) or value not in known:
        raise InvalidValue((below, f"must be one of {', '.join(known)}, not {kind_of(value)}."))
    return value


def _severity(value: Any, _: Any) -> Severity:
    return Severity(_one_of(tuple(s.value for s in Severity), value))


def _severities(value: Any, _: Any) -> Severities:
    def check(key: str, entry: Any) -> None:
        if key not in REGISTRY:
            raise InvalidValue((key, f"is not a finding code{suggest(key, REGISTRY)}"))
        _one_of(tuple(s.value for s in Severity), entry, key)

    return Severities({code: Severity(name) for code, name in table_of(value, check).items()})


def _policies(value: Any, _: Any) -> Policies:
    def check(key: str, entry: Any) -> None:
        if isinstance(entry, dict):
            raise InvalidValue((key, f'is a table: quote the dotted name, as in `"{key}.function" = "pure"`.'))
        if not is_dotted(key):
            raise InvalidValue((key, "is not a dotted name like `package.function`."))
        _one_of(POLICIES, entry, key)

    return Policies(table_of(value, check))


def _backend(value: Any, _: Any) -> Backend:
    return Backend(_one_of(BACKENDS, value))


def _mode(value: Any, _: Any) -> CompileMode:
    return CompileMode(_one_of(COMPILE_MODES, value))


def _verify(value: Any, _: Any) -> Verify:
    if isinstance(value, bool):
        return Verify("first" if value else "off")
    if isinstance(value, int) and value > 0:
        return Verify(str(value))
    if value != "strict":
        raise InvalidValue(("", f'must be true, false, "strict" or a number of calls above 0, not {kind_of(value)}.'))
    return Verify("strict")


def device_name(text: str) -> str:
    """The full name of a target (``cuda:sm_90``). Raises UnknownTarget, with the known ones."""
    return parse_target(text).target


def _target(value: Any, _: Any) -> DeviceName:
    expect(isinstance(value, str), 'the name of a device, like "cuda:sm_90"', value)
    try:
        return DeviceName(device_name(value))
    except UnknownTarget as error:
        raise InvalidValue(("", f"is invalid: {error}")) from None


def is_web_address(text: str) -> bool:
    return re.fullmatch(r"https?://[^/\s]+\S*", text) is not None


def _web_address(value: Any, _: Any) -> WebAddress:
    expect(isinstance(value, str) and is_web_address(value), "an address that begins with https:// or http://", value)
    return WebAddress(value)


def _converter() -> Converter:
    converter = Converter()
    hooks: dict[Any, Callable[[Any, Any], Any]] = {
        str | None: _string, Steps | None: _steps, Seconds | None: _seconds, Codes: _codes, Names: _names,
        Severity | None: _severity, Severities: _severities, Policies: _policies, Backend | None: _backend,
        CompileMode | None: _mode, Verify | None: _verify, DeviceName | None: _target,
        Budgets: budgets, Entrypoints: entrypoints, WebAddress | None: _web_address,
    }  # fmt: skip
    for kind, hook in hooks.items():
        converter.register_structure_hook_func(partial(eq, kind), hook)
    renames: dict[str, Any] = {a.name: override(rename=toml_key(a.name)) for a in attrs.fields(Settings) if "_" in a.name}
    converter.register_structure_hook(
        Settings, make_dict_structure_fn(Settings, converter, _cattrs_forbid_extra_keys=True, **renames)
    )
    return converter

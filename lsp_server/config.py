"""``[tool.magpy]`` of pyproject.toml: found upward from the entrypoint, checked key by key, never half understood.

Key types: Settings (what the table says, or the defaults), Problem and ConfigError (one sentence per mistake, with
the key's path and line). ``discover`` finds the file, ``load`` reads it.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import eq
from pathlib import Path
from typing import Any, NewType

import attrs
from cattrs import AttributeValidationNote, ClassValidationError, Converter, ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn, override

from lsp_server.budgets import Budgets, Limit, Limits
from lsp_server.toml_lines import key_lines
from magpy_core.findings import Finding, Location, Position, Range, Severity
from magpy_core.findings.registry import REGISTRY, matching

BACKENDS = ("inductor", "aot_eager", "eager")
POLICIES = ("pure", "torch", "host")
_TABLE = ("tool", "magpy")

Steps = NewType("Steps", int)
Seconds = NewType("Seconds", float)
Codes = NewType("Codes", tuple[str, ...])
Names = NewType("Names", tuple[str, ...])
Severities = NewType("Severities", dict[str, Severity])
Policies = NewType("Policies", dict[str, str])
Backend = NewType("Backend", str)


@attrs.frozen
class Settings:
    """The table's content. ``steps`` and ``fail_on`` are for ``check``; ``run`` takes them from its command line only."""

    entrypoint: str | None = None
    steps: Steps | None = None
    timeout: Seconds | None = None
    select: Codes = Codes(())
    ignore: Codes = Codes(())
    fail_on: Severity | None = None
    regions: Names = Names(())
    severity: Severities = attrs.field(factory=lambda: Severities({}))
    backend: Backend | None = None
    baseline: str | None = None
    call_policy: Policies = attrs.field(factory=lambda: Policies({}))
    budgets: Budgets = attrs.field(factory=Budgets)


@attrs.frozen
class Loaded:
    """Settings, the file they come from (None: there is none) and the line of each key that is set.

    ``region_lines``: where the budget of each pattern of regions begins.
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


class _Bad(Exception):
    """Wrong value: pairs of the path below the key (a name, or several in a tuple) and what is wrong there."""

    def __init__(self, *problems: tuple[str | tuple[str, ...], str]) -> None:
        super().__init__(problems)
        self.problems = problems


def discover(start: Path) -> Path | None:
    """The nearest pyproject.toml at or above ``start`` with a ``[tool.magpy]`` table, or that cannot be read as TOML
    and mentions it (so that a broken file is reported and not passed over)."""
    start = Path(os.path.abspath(start))
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        try:
            raw = file.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            # Whether it has our table cannot be known: let load() say that it is unreadable.
            return file
        try:
            table = tomllib.loads(raw.decode("utf-8")).get("tool", {})
            if isinstance(table, dict) and "magpy" in table:
                return file
        except (UnicodeDecodeError, tomllib.TOMLDecodeError):
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
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([_syntax_problem(file, text, error)]) from None
    lines = key_lines(text)
    table: Any = document
    for key in _TABLE:
        if not isinstance(table, dict):
            break
        table = table.get(key, {})
    if not isinstance(table, dict):
        raise ConfigError([Problem(file, _line(lines, _TABLE), "tool.magpy", f"must be a table, not {_kind(table)}.")])
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
    """Discovers upward from ``start`` and loads; the defaults when there is no table."""
    file = discover(start)
    return load(file) if file else Loaded()


def check_codes(prefixes: list[str]) -> list[str]:
    """One sentence for each prefix that no code starts with."""
    return [f"{p!r} is no code or beginning of one{_suggest(p, REGISTRY)}" for p in prefixes if not matching(p)]


def _line(lines: dict[tuple[str, ...], int], path: tuple[str, ...]) -> int:
    """The line of ``path``, or of the nearest thing above it that has one."""
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
    known = [_key(a.name) for a in attrs.fields(Settings)]
    for inner in error.exceptions:
        if isinstance(inner, ForbiddenExtraKeysError):
            for key in sorted(inner.extra_fields):
                yield (key,), f"is no setting{_suggest(key, known)}"
            continue
        notes = [n for n in getattr(inner, "__notes__", ()) if isinstance(n, AttributeValidationNote)]
        if not isinstance(inner, _Bad) or not notes:
            raise error  # not a mistake in the file but one of ours
        for below, message in inner.problems:
            names = below if isinstance(below, tuple) else (below,) if below else ()
            yield (_key(notes[-1].name), *names), message


def _key(attribute: str) -> str:
    return attribute.replace("_", "-")


def _suggest(wrong: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the closest known one, or the list when it is short."""
    by_lower = {k.lower(): k for k in known}
    close = difflib.get_close_matches(wrong.lower().replace("_", "-"), by_lower, 1, 0.6)
    if close:
        return f"; did you mean `{by_lower[close[0]]}`?"
    return "; `magpy-lsp explain --all` lists them." if len(by_lower) > 20 else f"; known: {', '.join(by_lower.values())}."


_KINDS = {bool: "a boolean", int: "an integer", float: "a float", str: "the string", list: "a list", dict: "a table"}


def _kind(value: Any) -> str:
    """How a sentence names a wrong value."""
    name = _KINDS.get(type(value), "a date or time")
    return f"{name} {value!r}" if isinstance(value, str) else name


def _expect(fits: bool, what: str, value: Any, below: str = "") -> None:
    if not fits:
        raise _Bad((below, f"must be {what}, not {_kind(value)}."))


def _string(value: Any, _: Any) -> str:
    _expect(isinstance(value, str) and bool(value.strip()), "a string that is not empty", value)
    return str(value)


def _steps(value: Any, _: Any) -> Steps:
    fits = isinstance(value, int) and not isinstance(value, bool)
    _expect(fits, "an integer, 0 or more", value)
    if value < 0:
        raise _Bad(("", f"must be an integer, 0 or more, not {value}."))
    return Steps(value)


def _seconds(value: Any, _: Any) -> Seconds:
    _expect(isinstance(value, int | float) and not isinstance(value, bool), "a number of seconds above 0", value)
    if not 0 < value < float("inf"):
        raise _Bad(("", f"must be a number of seconds above 0, not {value}."))
    return Seconds(float(value))


def _strings(value: Any) -> list[str]:
    fits = isinstance(value, list) and all(isinstance(v, str) for v in value)
    if isinstance(value, list) and not fits:
        wrong = next(v for v in value if not isinstance(v, str))
        raise _Bad(("", f"must be a list of strings, but has {_kind(wrong)} in it."))
    _expect(fits, "a list of strings", value)
    return list(value)


def _codes(value: Any, _: Any) -> Codes:
    codes = _strings(value)
    if wrong := check_codes(codes):
        raise _Bad(*(("", f"has a wrong entry: {message}") for message in wrong))
    return Codes(tuple(codes))


def is_dotted(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def _names(value: Any, _: Any) -> Names:
    names = _strings(value)
    if wrong := [n for n in names if not is_dotted(n)]:
        raise _Bad(*(("", f"has a wrong entry: {n!r} is no dotted name like `package.module.function`.") for n in wrong))
    return Names(tuple(names))


def _one_of(known: tuple[str, ...], value: Any, below: str = "") -> str:
    if not isinstance(value, str) or value not in known:
        raise _Bad((below, f"must be one of {', '.join(known)}, not {_kind(value)}."))
    return value


def _severity(value: Any, _: Any) -> Severity:
    return Severity(_one_of(tuple(s.value for s in Severity), value))


def _table_of(value: Any, check: Callable[[str, Any], None]) -> dict[str, Any]:
    """Checks every entry and reports all wrong ones."""
    _expect(isinstance(value, dict), "a table", value)
    problems: list[tuple[str | tuple[str, ...], str]] = []
    for key, entry in value.items():
        try:
            check(key, entry)
        except _Bad as bad:
            problems += bad.problems
    if problems:
        raise _Bad(*problems)
    return dict(value)


def _severities(value: Any, _: Any) -> Severities:
    def check(key: str, entry: Any) -> None:
        if key not in REGISTRY:
            raise _Bad((key, f"is no code{_suggest(key, REGISTRY)}"))
        _one_of(tuple(s.value for s in Severity), entry, key)

    return Severities({code: Severity(name) for code, name in _table_of(value, check).items()})


def _policies(value: Any, _: Any) -> Policies:
    def check(key: str, entry: Any) -> None:
        if isinstance(entry, dict):
            raise _Bad((key, f'is a table: write the dotted name in quotes, like `"{key}.function" = "pure"`.'))
        if not is_dotted(key):
            raise _Bad((key, "is no dotted name like `package.function`."))
        _one_of(POLICIES, entry, key)

    return Policies(_table_of(value, check))


def _limits(value: Any, above: tuple[str, ...], *, top: bool) -> Limits:
    """One table of budgets; ``above`` is its path below ``budgets``."""
    if not isinstance(value, dict):
        raise _Bad((above, f"must be a table, not {_kind(value)}."))
    known = [_key(a.name) for a in attrs.fields(Limits)]
    problems: list[tuple[str | tuple[str, ...], str]] = []
    limits: dict[str, Limit] = {}
    for key, entry in value.items():
        if top and key == "regions":
            continue
        if key not in known:
            problems.append(((*above, key), f"is no budget{_suggest(key, [*known, *(['regions'] if top else [])])}"))
        elif (wrong := _wrong_limit(key, entry)) is not None:
            problems.append(((*above, key), wrong))
        else:
            limits[key.replace("-", "_")] = entry
    if problems:
        raise _Bad(*problems)
    return Limits(**limits)


_FRACTIONS = ("host-syncs", "min-speedup")


def _wrong_limit(key: str, value: Any) -> str | None:
    what = "a number" if key in _FRACTIONS else "an integer"
    if value is False:
        return None
    fits = isinstance(value, (int, float) if key in _FRACTIONS else int) and not isinstance(value, bool)
    if not fits:
        return f"must be {what}, 0 or more, or false for no limit, not {_kind(value)}."
    return None if 0 <= value < float("inf") else f"must be {what}, 0 or more, or false for no limit, not {value}."


def _budgets(value: Any, _: Any) -> Budgets:
    _expect(isinstance(value, dict), "a table", value)
    problems: list[tuple[str | tuple[str, ...], str]] = []

    def taken(table: Any, above: tuple[str, ...], *, top: bool = False) -> Limits:
        try:
            return _limits(table, above, top=top)
        except _Bad as bad:
            problems.extend(bad.problems)
            return Limits()

    every = taken(value, (), top=True)
    named = value.get("regions", {})
    if not isinstance(named, dict):
        problems.append((("regions",), f"must be a table of tables by region name, not {_kind(named)}."))
        named = {}
    regions = {pattern: taken(table, ("regions", pattern)) for pattern, table in named.items()}
    if problems:
        raise _Bad(*problems)
    return Budgets(every, regions)


def _backend(value: Any, _: Any) -> Backend:
    return Backend(_one_of(BACKENDS, value))


def _converter() -> Converter:
    converter = Converter()
    hooks: dict[Any, Callable[[Any, Any], Any]] = {
        str | None: _string, Steps | None: _steps, Seconds | None: _seconds, Codes: _codes, Names: _names,
        Severity | None: _severity, Severities: _severities, Policies: _policies, Backend | None: _backend,
        Budgets: _budgets,
    }  # fmt: skip
    for kind, hook in hooks.items():
        converter.register_structure_hook_func(partial(eq, kind), hook)
    renames: dict[str, Any] = {a.name: override(rename=_key(a.name)) for a in attrs.fields(Settings) if "_" in a.name}
    converter.register_structure_hook(
        Settings, make_dict_structure_fn(Settings, converter, _cattrs_forbid_extra_keys=True, **renames)
    )
    return converter

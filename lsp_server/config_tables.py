"""Nested tables of ``[tool.magpy]``: budgets and entrypoints. Key functions: budgets, entrypoints."""

from __future__ import annotations

from typing import Any

import attrs

from lsp_server.budgets import Budgets, Limit, Limits
from lsp_server.config_values import Below, InvalidValue, expect, kind_of, strings, suggest, toml_key
from lsp_server.entrypoints import Entrypoint, problem_of_variable


def _limits(value: Any, above: tuple[str, ...], *, top: bool) -> Limits:
    """One table of budgets; ``above`` is its path below ``budgets``."""
    if not isinstance(value, dict):
        raise InvalidValue((above, f"must be a table, not {kind_of(value)}."))
    known = [toml_key(a.name) for a in attrs.fields(Limits)]
    problems: list[tuple[Below, str]] = []
    limits: dict[str, Limit] = {}
    for key, entry in value.items():
        if top and key == "regions":
            continue
        if key not in known:
            problems.append(((*above, key), f"is not a budget{suggest(key, [*known, *(['regions'] if top else [])])}"))
        elif (wrong := _wrong_limit(key, entry)) is not None:
            problems.append(((*above, key), wrong))
        else:
            limits[key.replace("-", "_")] = entry
    if problems:
        raise InvalidValue(*problems)
    return Limits(**limits)


_FRACTIONS = ("host-syncs", "min-speedup", "estimated-us")


def _wrong_limit(key: str, value: Any) -> str | None:
    what = "a number" if key in _FRACTIONS else "an integer"
    if value is False:
        return None
    fits = isinstance(value, (int, float) if key in _FRACTIONS else int) and not isinstance(value, bool)
    if not fits:
        return f"must be {what}, 0 or more, or false for no limit, not {kind_of(value)}."
    return None if 0 <= value < float("inf") else f"must be {what}, 0 or more, or false for no limit, not {value}."


def budgets(value: Any, _: Any) -> Budgets:
    expect(isinstance(value, dict), "a table", value)
    problems: list[tuple[Below, str]] = []

    def parsed(table: Any, above: tuple[str, ...], *, top: bool = False) -> Limits:
        try:
            return _limits(table, above, top=top)
        except InvalidValue as bad:
            problems.extend(bad.problems)
            return Limits()

    every = parsed(value, (), top=True)
    named = value.get("regions", {})
    if not isinstance(named, dict):
        problems.append((("regions",), f"must be a table of tables by region name, not {kind_of(named)}."))
        named = {}
    regions = {pattern: parsed(table, ("regions", pattern)) for pattern, table in named.items()}
    if problems:
        raise InvalidValue(*problems)
    return Budgets(every, regions)


def entrypoints(value: Any, _: Any) -> tuple[Entrypoint, ...]:
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise InvalidValue(((), f"must be tables, each under `[[tool.magpy.entrypoints]]`, not {kind_of(value)}."))
    problems: list[tuple[Below, str]] = []
    found: list[Entrypoint] = []
    for number, entry in enumerate(value):
        wrong = [((str(number), *below), message) for below, message in _entry_problems(entry)]
        problems += wrong
        if not wrong:
            given: dict[str, Any] = {k: tuple(v) if k == "args" else v for k, v in entry.items()}
            found.append(Entrypoint(**given))
            if any(e.name == entry["name"] for e in found[:-1]):
                problems.append(((str(number), "name"), f"is not unique: two entrypoints are named {entry['name']!r}."))
    if problems:
        raise InvalidValue(*problems)
    return tuple(found)


def _entry_problems(entry: dict[str, Any]) -> list[tuple[tuple[str, ...], str]]:
    problems: list[tuple[tuple[str, ...], str]] = []
    known = [toml_key(a.name) for a in attrs.fields(Entrypoint)]
    for name, given in entry.items():
        if name not in known:
            problems.append(((name,), f"is not a setting of an entrypoint{suggest(name, known)}"))
            continue
        try:
            _CHECKS[name](given)
        except InvalidValue as bad:
            problems += [((name, *((below,) if isinstance(below, str) and below else ())), m) for below, m in bad.problems]
    if "name" not in entry:
        problems.append(((), "has no `name`: add one to identify the entrypoint."))
    if ("program" in entry) == ("module" in entry):
        either = "both `program` (a file) and" if "program" in entry else "neither `program` (a file) nor"
        problems.append(((), f"has {either} `module`: set exactly one of them."))
    return problems


def _text(value: Any) -> None:
    expect(isinstance(value, str) and bool(value.strip()), "a non-empty string", value)


def _integer(least: int) -> Any:
    def check(value: Any) -> None:
        fits = isinstance(value, int) and not isinstance(value, bool)
        expect(fits, f"an integer, {least} or more", value)
        if value < least:
            raise InvalidValue(("", f"must be an integer, {least} or more, not {value}."))

    return check


def _seconds(value: Any) -> None:
    expect(isinstance(value, int | float) and not isinstance(value, bool), "a number of seconds above 0", value)
    if not 0 < value < float("inf"):
        raise InvalidValue(("", f"must be a number of seconds above 0, not {value}."))


def _environment(value: Any) -> None:
    expect(isinstance(value, dict), "a table", value)
    wrong = [(name, f"must be a string, not {kind_of(v)}.") for name, v in value.items() if not isinstance(v, str)]
    bad = [(name, problem) for name, v in value.items() if isinstance(v, str) and (problem := problem_of_variable(name, v))]
    wrong += [(name, f"is not an environment variable: {problem}.") for name, problem in bad]
    if wrong:
        raise InvalidValue(*wrong)


_CHECKS = {
    "name": _text, "program": _text, "module": _text, "cwd": _text, "python": _text, "args": strings,
    "env": _environment, "steps": _integer(0), "nproc": _integer(1), "timeout": _seconds,
}  # fmt: skip

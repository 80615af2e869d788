"""Validation of single values of ``[tool.magpy]``, one sentence per mistake. Key type: InvalidValue."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any

Below = str | tuple[str, ...]


class InvalidValue(Exception):
    """Pairs of a path below the key (a name, or several in a tuple) and what is wrong there."""

    def __init__(self, *problems: tuple[Below, str]) -> None:
        super().__init__(problems)
        self.problems = problems


def toml_key(attribute: str) -> str:
    return attribute.replace("_", "-")


def suggest(wrong: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the closest known name, or all known names if they are few."""
    by_lower = {k.lower(): k for k in known}
    close = difflib.get_close_matches(wrong.lower().replace("_", "-"), by_lower, 1, 0.6)
    if close:
        return f"; did you mean `{by_lower[close[0]]}`?"
    return "; `magpy-lsp explain --all` lists them." if len(by_lower) > 20 else f"; known: {', '.join(by_lower.values())}."


_KINDS = {bool: "a boolean", int: "an integer", float: "a float", str: "the string", list: "a list", dict: "a table"}


def kind_of(value: Any) -> str:
    """How a message names an invalid value."""
    name = _KINDS.get(type(value), "a date or time")
    return f"{name} {value!r}" if isinstance(value, str) else name


def expect(fits: bool, what: str, value: Any, below: str = "") -> None:
    if not fits:
        raise InvalidValue((below, f"must be {what}, not {kind_of(value)}."))


def strings(value: Any) -> list[str]:
    fits = isinstance(value, list) and all(isinstance(v, str) for v in value)
    if isinstance(value, list) and not fits:
        wrong = next(v for v in value if not isinstance(v, str))
        raise InvalidValue(("", f"must be a list of strings, but contains {kind_of(wrong)}."))
    expect(fits, "a list of strings", value)
    return list(value)


def table_of(value: Any, check: Callable[[str, Any], None]) -> dict[str, Any]:
    """Checks every entry and reports all invalid ones."""
    expect(isinstance(value, dict), "a table", value)
    problems: list[tuple[Below, str]] = []
    for key, entry in value.items():
        try:
            check(key, entry)
        except InvalidValue as bad:
            problems += bad.problems
    if problems:
        raise InvalidValue(*problems)
    return dict(value)

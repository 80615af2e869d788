"""Checking single values of ``[tool.magpy]``: one sentence for each mistake. Key type: Bad."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any

Below = str | tuple[str, ...]


class Bad(Exception):
    """Wrong value: pairs of the path below the key (a name, or several in a tuple) and what is wrong there."""

    def __init__(self, *problems: tuple[Below, str]) -> None:
        super().__init__(problems)
        self.problems = problems


def toml_key(attribute: str) -> str:
    return attribute.replace("_", "-")


def suggest(wrong: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the closest known one, or the list when it is short."""
    by_lower = {k.lower(): k for k in known}
    close = difflib.get_close_matches(wrong.lower().replace("_", "-"), by_lower, 1, 0.6)
    if close:
        return f"; did you mean `{by_lower[close[0]]}`?"
    return "; `magpy-lsp explain --all` lists them." if len(by_lower) > 20 else f"; known: {', '.join(by_lower.values())}."


_KINDS = {bool: "a boolean", int: "an integer", float: "a float", str: "the string", list: "a list", dict: "a table"}


def kind_of(value: Any) -> str:
    """How a sentence names a wrong value."""
    name = _KINDS.get(type(value), "a date or time")
    return f"{name} {value!r}" if isinstance(value, str) else name


def expect(fits: bool, what: str, value: Any, below: str = "") -> None:
    if not fits:
        raise Bad((below, f"must be {what}, not {kind_of(value)}."))


def strings(value: Any) -> list[str]:
    fits = isinstance(value, list) and all(isinstance(v, str) for v in value)
    if isinstance(value, list) and not fits:
        wrong = next(v for v in value if not isinstance(v, str))
        raise Bad(("", f"must be a list of strings, but has {kind_of(wrong)} in it."))
    expect(fits, "a list of strings", value)
    return list(value)


def table_of(value: Any, check: Callable[[str, Any], None]) -> dict[str, Any]:
    """Checks every entry and reports all wrong ones."""
    expect(isinstance(value, dict), "a table", value)
    problems: list[tuple[Below, str]] = []
    for key, entry in value.items():
        try:
            check(key, entry)
        except Bad as bad:
            problems += bad.problems
    if problems:
        raise Bad(*problems)
    return dict(value)

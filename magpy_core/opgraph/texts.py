"""Texts of numbers that vary: what makes them, so that replay can make them again. None of it raises where it is used:
`can_format` and the like say so from the types. Key functions: formatted, joined, percent, filled, Json."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Sequence
from json import dumps
from typing import Any

_CONVERSIONS: dict[str | None, Callable[[Any], Any]] = {None: lambda value: value, "s": str, "r": repr, "a": ascii}
_PLAIN = (str, int, float, bool, type(None))
_CODE = re.compile(r"%[#0\- +]*\d*(?:\.\d+)?([diouxXeEfFgGrsa%])")
_OF_FLOATS = frozenset("eEfFgGrsa")
_OF_ANY = frozenset("rsa")
LARGEST = 10**300
"""Integers beyond may be too large to be formatted: as a float, or with so many digits."""
#: Methods of texts that give another text, for any text.
METHODS = {
    name: getattr(str, name) for name in ("strip", "lstrip", "rstrip", "upper", "lower", "title", "capitalize")
} | {name: getattr(str, name) for name in ("ljust", "rjust", "center", "zfill", "replace")}  # fmt: skip


def is_small(value: int) -> bool:
    """Whether every format of integers can show ``value``."""
    return -LARGEST < value < LARGEST


def formatted(value: Any, conversion: str | None, spec: str) -> str:
    """``f"{value!conversion:spec}"``"""
    return format(_CONVERSIONS[conversion](value), spec)


def can_format(value: Any, conversion: str | None, spec: str) -> bool:
    """Whether `formatted` raises for no other value of the same type, where it does not for this one."""
    return type(value) in _PLAIN and (conversion is not None or not spec.endswith("c"))  # the code of a character


def joined(*parts: str) -> str:
    """``f"{a}{b}"`` and ``a + b``."""
    return "".join(parts)


def separated(separator: str, *parts: str) -> str:
    """``separator.join(parts)``"""
    return separator.join(parts)


def percent(template: str, *values: Any) -> str:
    """``template % values``"""
    return template % values


def can_percent(template: str, values: Sequence[Any]) -> bool:
    """The same as `can_format` of ``template % values``."""
    codes = [code for code in _CODE.findall(template) if code != "%"]
    rest = _CODE.sub("", template)
    return "%" not in rest and len(codes) == len(values) and all(map(_suits, codes, values))


def _suits(code: str, value: Any) -> bool:
    """No text for a number, and no infinity for an integer."""
    if type(value) in (int, bool):
        return True
    return type(value) in _PLAIN and code in (_OF_FLOATS if type(value) is float else _OF_ANY)


def filled(template: str, names: tuple[str, ...], *values: Any) -> str:
    """``template.format(...)``; the last ``values`` are those of ``names``."""
    first = len(values) - len(names)
    return template.format(*values[:first], **dict(zip(names, values[first:], strict=True)))


def can_fill(template: str, names: tuple[str, ...], values: Sequence[Any]) -> bool:
    """The same as `can_format` of `filled`."""
    try:
        fields = [(name, spec or "", conversion) for _, name, spec, conversion in string.Formatter().parse(template)]
    except ValueError:
        return False
    plain = all(type(value) in _PLAIN for value in values)
    return plain and all(name is None or _is_plain_field(name, spec) for name, spec, _ in fields)


def _is_plain_field(name: str, spec: str) -> bool:
    return (not name or name.isidentifier() or name.isdigit()) and "{" not in spec and not spec.endswith("c")


class Json:
    """``json.dumps(tree, **options)``, called with the values in the tree, from left to right."""

    def __init__(self, tree: Any, options: dict[str, Any]) -> None:
        self._tree, self._options = _copied(tree, iter(())), options

    def __call__(self, *values: Any) -> str:
        return dumps(_copied(self._tree, iter(values)), **self._options)


_MISSING = object()


def _copied(tree: Any, values: Any) -> Any:
    """A copy of ``tree`` with other values, of which there may be fewer."""
    if type(tree) is dict:
        return {key: _copied(value, values) for key, value in tree.items()}
    if type(tree) in (list, tuple):
        return [_copied(value, values) for value in tree]
    return next(values, None)


def values_in(tree: Any, deep: int = 0) -> list[Any] | None:
    """The values in a tree that JSON shows without any code of the program; None for another one."""
    if type(tree) is dict and deep < _DEEPEST:
        parts = list(tree.values()) if all(type(key) is str for key in tree) else [_MISSING]
    elif type(tree) in (list, tuple) and deep < _DEEPEST:
        parts = list(tree)
    else:
        return [tree] if type(tree) in _PLAIN else None
    found: list[Any] = []
    for part in parts:
        inside = values_in(part, deep + 1)
        if inside is None:
            return None
        found += inside
    return found


_DEEPEST = 20
#: Options of ``json.dumps`` that only say how the text looks.
LOOKS = frozenset({"indent", "sort_keys", "ensure_ascii", "separators"})

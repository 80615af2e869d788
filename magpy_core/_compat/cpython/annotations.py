"""Annotations: from 3.14 on they are code, which runs when they are first asked for (PEP 649), and whose result is kept.

Key names: evaluated, KEPT_IN, names_in.
"""

from __future__ import annotations

from typing import Any, Final

from magpy_core._compat.versions import PY314

KEPT_IN: Final[tuple[str, ...]] = ("__annotations__", "__annotations_cache__") if PY314 else ()
"""The names in a class by which its annotations are kept, where `class.__annotations__` is not simply one of them."""


def evaluated(holder: Any) -> Any:
    """The annotations of a function, class or module, which are evaluated now (3.14); None if it has none. Raises what that
    raises (NameError: a name that they use has no value yet)."""
    if isinstance(holder, type) and not PY314:  # asking a class that has none would give it some
        return holder.__dict__.get("__annotations__")  # noqa: RUF063
    return getattr(holder, "__annotations__", None)


def names_in(text: str) -> tuple[str, ...]:
    """The names that an annotation written as a text uses; none if it is no expression."""
    try:
        return compile(text, "<annotation>", "eval").co_names
    except SyntaxError:
        return ()

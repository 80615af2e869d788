"""Builds dataclasses from JSON, the reverse of ``dataclasses.asdict``. Key function: build."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


def build(kind: Callable[..., T], data: dict[str, Any]) -> T:
    """An instance of the dataclass ``kind``; fields that ``data`` lacks have their defaults."""
    return kind(**{name: read(data[name]) for name, read in _readers(kind).items() if name in data})


@functools.cache
def _readers(kind: Any) -> dict[str, Callable[[Any], Any]]:
    return {name: _reader(hint) for name, hint in get_type_hints(kind).items()}


def _reader(hint: Any) -> Callable[[Any], Any]:
    """Reads a field's value: a dataclass (by its ``from_json`` if it has one), a list or tuple of them, or a plain value."""
    container, parts = get_origin(hint), get_args(hint)
    if container in (list, tuple):
        read = _reader(parts[0])
        return lambda items: container(map(read, items))
    found: Any = next(filter(is_dataclass, (hint, *parts)), None)
    if found is None:
        return lambda value: value
    make = getattr(found, "from_json", None) or functools.partial(build, found)
    return lambda value: None if value is None else make(value)

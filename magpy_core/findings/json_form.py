"""Builds dataclasses from JSON, the reverse of ``dataclasses.asdict``. Key function: build."""

from __future__ import annotations

import enum
import functools
import math
import types
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def build(kind: Callable[..., T], data: dict[str, Any]) -> T:
    """An instance of the dataclass ``kind``; fields that ``data`` lacks have their defaults. Raises TypeError or ValueError
    if a value is not of its field's type: nothing that was built fails later."""
    if not isinstance(data, dict):
        raise TypeError(f"{kind.__name__}: not an object")
    return kind(**{name: read(data[name]) for name, read in _readers(kind).items() if name in data})


@functools.cache
def _readers(kind: Any) -> dict[str, Callable[[Any], Any]]:
    return {name: _reader(hint) for name, hint in get_type_hints(kind).items()}


def _reader(hint: Any) -> Callable[[Any], Any]:
    """Reads a value of JSON as one of this type."""
    container, parts = get_origin(hint), get_args(hint)
    if container is tuple and parts[-1] is not Ellipsis:
        return functools.partial(_fixed, [_reader(part) for part in parts])
    if container in (list, tuple):
        return functools.partial(_items, container, _reader(parts[0]))
    if container is dict:
        return functools.partial(_members, _reader(parts[1]))
    if container in (types.UnionType, Union):
        readers = [_reader(part) for part in parts if part is not types.NoneType]
        return functools.partial(_either, readers, types.NoneType in parts)
    if container is Literal:
        return functools.partial(_one_of, parts)
    if is_dataclass(hint):
        made: Any = hint
        return getattr(made, "from_json", None) or functools.partial(build, made)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint
    return functools.partial(_plain, hint)


def _items(container: Callable[..., Any], read: Callable[[Any], Any], value: Any) -> Any:
    if not isinstance(value, (list, tuple)):
        raise TypeError("not a list")
    return container(map(read, value))


def _fixed(readers: list[Callable[[Any], Any]], value: Any) -> Any:
    if not isinstance(value, (list, tuple)):
        raise TypeError("not a list")
    return tuple(read(item) for read, item in zip(readers, value, strict=True))


def _members(read: Callable[[Any], Any], value: Any) -> Any:
    if not isinstance(value, dict):
        raise TypeError("not an object")
    return {name: read(item) for name, item in value.items()}


def _either(readers: list[Callable[[Any], Any]], or_none: bool, value: Any) -> Any:
    if value is None and or_none:
        return None
    for read in readers[:-1]:
        try:
            return read(value)
        except (TypeError, ValueError, KeyError, AttributeError):
            continue  # one of the others reads it
    return readers[-1](value)


def _one_of(values: tuple[Any, ...], value: Any) -> Any:
    if value not in values:
        raise ValueError(f"not one of {values}")
    return value


def _plain(kind: Any, value: Any) -> Any:
    if kind is float and value is None:
        return math.nan  # JSON has none
    fits = kind is Any or (
        isinstance(value, (int, float) if kind is float else kind) and (kind is bool or not isinstance(value, bool))
    )
    if not fits:
        raise TypeError(f"not {kind.__name__}")
    return value

"""Dataclasses from the JSON that ``dataclasses.asdict`` makes of them. Key function: build."""

from __future__ import annotations

import functools
from dataclasses import is_dataclass
from typing import Any, get_args, get_origin, get_type_hints


def build(kind: Any, data: dict[str, Any]) -> Any:
    """An instance of the dataclass ``kind``, whose fields may hold dataclasses, and lists and tuples of them."""
    parts = {}
    for name, (container, item) in _nested(kind).items():
        if name in data:
            part = data[name]
            parts[name] = build(item, part) if container is None else container(build(item, one) for one in part)
    return kind(**{**data, **parts})


@functools.cache
def _nested(kind: Any) -> dict[str, tuple[Any, Any]]:
    """The fields that hold dataclasses: in what (None: one by itself), and which."""
    items = {name: (get_origin(hint), (get_args(hint) or (hint,))[0]) for name, hint in get_type_hints(kind).items()}
    return {name: found for name, found in items.items() if is_dataclass(found[1])}

"""The text of a value at a source, for messages: no secrets. Key functions: shown, is_hidden."""

from __future__ import annotations

from typing import Any

from magpy_core.findings import secrets
from magpy_core.refgraph.kinds import bounded_repr
from magpy_core.refgraph.source import Source


def shown(source: Source, value: Any) -> str:
    return secrets.REDACTED if is_hidden(source, value) else bounded_repr(value)


def is_hidden(source: Source, value: Any) -> bool:
    """Whether ``value`` is a text that reports don't show. If so, they don't show it anywhere from now on."""
    if type(value) not in (str, bytes):
        return False
    name: Any = source.label
    at: Source | None = source
    while at is not None:  # an item of a list is called as the list is
        if type(at.key) in (str, bytes):
            name = at.key
            break
        at = at.base
    return secrets.note(name, value, of_environment=_of_environment(source))


def _of_environment(source: Source) -> bool:
    """``os.environ._data[name]``, or what was read through it."""
    return any(step.key == "environ" and step.base is not None for step in source.chain() if type(step.key) is str)

"""Phrases for messages. Key function: a_type."""

from __future__ import annotations

from typing import Any


def a_type(value: Any) -> str:
    """A value described by its type: ``a NumPy array``, ``an `Element` ``."""
    name = "NumPy array" if type(value).__name__ == "ndarray" else f"`{type(value).__name__}`"
    return f"{'an' if name.strip('`_')[:1] in 'AEIOUaeiou' else 'a'} {name}"

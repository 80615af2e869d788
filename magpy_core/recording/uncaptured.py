"""Functions whose calls are in no capture (`magpy_core.disable`). Key function: never_captured."""

from __future__ import annotations

import types
from typing import TypeVar

F = TypeVar("F", bound=types.FunctionType)

CODES: set[types.CodeType] = set()


def never_captured(fn: F) -> F:
    """Frames of ``fn``, and all that they call, are left alone; a recording that meets one becomes no capture."""
    CODES.add(fn.__code__)
    return fn

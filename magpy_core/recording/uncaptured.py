"""Functions whose calls are excluded from captures (`magpy_core.disable`). Key function: never_captured."""

from __future__ import annotations

import types
from typing import TypeVar

F = TypeVar("F", bound=types.FunctionType)

CODES: set[types.CodeType] = set()


def never_captured(fn: F) -> F:
    """Exclude ``fn`` and its callees from monitoring; a recording in which it runs does not become a capture."""
    CODES.add(fn.__code__)
    return fn

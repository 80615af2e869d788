"""Which code a cut function had. What is recorded runs the original: a stretch is part of what it is called in.

Key functions: remember, original_of.
"""

from __future__ import annotations

from types import CodeType
from weakref import WeakKeyDictionary

_originals: WeakKeyDictionary[CodeType, CodeType] = WeakKeyDictionary()


def remember(cut: CodeType, original: CodeType) -> None:
    """``cut`` does the same as ``original``, by calling stretches."""
    _originals[cut] = original


def original_of(code: CodeType) -> CodeType | None:
    """The code that ``code`` was cut from; None: it is cut from none."""
    return _originals.get(code) if _originals else None

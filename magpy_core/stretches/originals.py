"""Which code a cut function had. What is recorded runs the original: a stretch is part of what it is called in.

Key functions: remember, original_of, cut_codes, restore.
"""

from __future__ import annotations

import gc
from types import CodeType, FunctionType
from weakref import WeakKeyDictionary

_originals: WeakKeyDictionary[CodeType, CodeType] = WeakKeyDictionary()


def remember(cut: CodeType, original: CodeType) -> None:
    """``cut`` does the same as ``original``, by calling stretches."""
    _originals[cut] = original


def original_of(code: CodeType) -> CodeType | None:
    """The code that ``code`` was cut from; None: it is cut from none."""
    return _originals.get(code)


def cut_codes() -> list[CodeType]:
    """All codes that call stretches."""
    return list(_originals)


def restore() -> None:
    """Functions get the code that they were cut from; calls that are running are not affected."""
    for one in gc.get_objects() if _originals else ():
        if type(one) is FunctionType and (original := original_of(one.__code__)) is not None:
            one.__code__ = original

"""The constants of a program's code: what is compiled from the same source once more gets the same objects.

``x is 1000`` compares with a constant by identity. Key type: Constants.
"""

from __future__ import annotations

from types import CodeType
from typing import Any


class Constants:
    """Those of ``code`` and of the code in it."""

    def __init__(self, code: CodeType) -> None:
        self._known: dict[tuple[type, str], Any] = {}
        todo = [code]
        while todo:
            for const in todo.pop().co_consts:
                if isinstance(const, CodeType):
                    todo.append(const)
                else:
                    self._known.setdefault(_key(const), const)

    def same(self, const: Any) -> Any:
        """The program's object that is equal to ``const``, or ``const`` itself."""
        return self._known.get(_key(const), const)


def _key(const: Any) -> tuple[type, str]:
    return type(const), repr(const)  # 0.0 and -0.0, 1 and True are equal, but not the same

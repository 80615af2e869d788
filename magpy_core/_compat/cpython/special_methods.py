"""Special methods as the interpreter looks them up: in the class and its bases, whatever the instance has.

From 3.14 on, a with block looks up ``__enter__`` and ``__exit__`` by LOAD_SPECIAL, which leaves a method and its object on
the stack, or something bound and a NULL. Key names: SPECIAL_METHODS, bound_special.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from typing import Any, Final

SPECIAL_METHODS: Final[tuple[str, ...]] = tuple(getattr(dis, "_special_method_names", ()))
"""The names by the argument of LOAD_SPECIAL; empty before 3.14."""
_METHOD_DESCRIPTOR: Final = 1 << 17  # Py_TPFLAGS_METHOD_DESCRIPTOR, which no class of Python code has

_mro_of: Final[Callable[[type], tuple[type, ...]]] = type.__dict__["__mro__"].__get__
_dict_of: Final[Callable[[type], dict[str, Any]]] = type.__dict__["__dict__"].__get__
_flags_of: Final[Callable[[type], int]] = type.__dict__["__flags__"].__get__


def bound_special(name: str, obj: Any) -> Any:
    """The bound method where LOAD_SPECIAL would leave a method and its object; None where it binds itself, or finds nothing.
    Runs no code of the program."""
    kind = type(obj)
    for base in _mro_of(kind):
        names = _dict_of(base)
        if name in names:
            found = names[name]
            return found.__get__(obj, kind) if _flags_of(type(found)) & _METHOD_DESCRIPTOR else None
    return None

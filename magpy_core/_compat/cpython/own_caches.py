"""The caches of MagPy's own functions. Their keys are classes and functions of the program, which keep its modules alive: at
the end of the interpreter, what those hold would die too late, or never. Key functions: clear_own_caches, clear_at_exit.
"""

from __future__ import annotations

import atexit
import functools
import sys

_CACHE = type(functools.lru_cache(lambda: None))
_PACKAGE = __name__.partition(".")[0]


def clear_own_caches() -> None:
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == _PACKAGE:
            for value in list(vars(module).values()):
                if isinstance(value, _CACHE) and value.__module__ == name:
                    value.cache_clear()


@functools.cache
def clear_at_exit() -> None:
    """Clears them when the interpreter ends."""
    atexit.register(clear_own_caches)

"""Keeping torch's own warnings out of the program, without touching what Python remembers of warnings it has shown.

Key function: no_warnings.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterator
from typing import Any

#: Modules that only a compilation imports or runs; the line a warning names lies in them, not in the program.
COMPILERS = r"(torch|sympy|triton|networkx|filelock)(\.|$)"


@contextlib.contextmanager
def no_warnings(modules: str | None = None) -> Iterator[None]:
    """Warnings are ignored, those of modules whose name matches ``modules`` or all of them, also where they are errors.

    ``warnings.catch_warnings`` would make Python forget which warnings it has shown, and show them again.
    """
    entry: Any = ("ignore", None, Warning, None if modules is None else re.compile(modules), 0)
    filters: list[Any] = warnings.filters  # type: ignore[assignment]
    filters.insert(0, entry)
    try:
        yield
    finally:
        filters.remove(entry)

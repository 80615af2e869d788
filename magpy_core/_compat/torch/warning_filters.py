"""Suppressing torch's own warnings, without changing Python's registries of shown warnings.

Key function: no_warnings.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterator
from typing import Any

#: Modules that only a compilation imports or runs; a warning from a compilation names a line in them, not in the program.
COMPILERS = r"(torch|sympy|triton|networkx|filelock)(\.|$)"


@contextlib.contextmanager
def no_warnings(modules: str | None = None) -> Iterator[None]:
    """Ignore warnings inside the block, of modules whose name matches ``modules`` or all of them, even if they are errors.

    ``warnings.catch_warnings`` would reset the registries of shown warnings, so that Python would show them again.
    """
    entry: Any = ("ignore", None, Warning, None if modules is None else re.compile(modules), 0)
    filters: list[Any] = warnings.filters  # type: ignore[assignment]
    filters.insert(0, entry)
    try:
        yield
    finally:
        filters.remove(entry)

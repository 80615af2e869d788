"""Modules that are there to be used, and the import system's own code. Key function: imported."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from types import CodeType, ModuleType

FIND_AND_LOAD: CodeType = importlib._bootstrap._find_and_load.__code__  # type: ignore[attr-defined]
"""What an import of a module runs that is not in ``sys.modules``."""
FROM_LIST: CodeType = importlib._bootstrap._handle_fromlist.__code__  # type: ignore[attr-defined]
"""What ``from package import name`` runs."""
LOADERS: str = importlib.machinery.PathFinder.find_spec.__func__.__code__.co_filename  # type: ignore[attr-defined]
"""The file name in the code of all finders and loaders that access files."""


def imported(name: str) -> ModuleType | None:
    """The module, if it has been imported. While a thread is importing it, a part of it is in ``sys.modules`` for all."""
    module = sys.modules.get(name)
    return None if getattr(getattr(module, "__spec__", None), "_initializing", False) else module

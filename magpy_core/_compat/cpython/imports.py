"""Modules that are there to be used. Key function: imported."""

from __future__ import annotations

import sys
from types import ModuleType


def imported(name: str) -> ModuleType | None:
    """The module, if it has been imported. While a thread is importing it, a part of it is in ``sys.modules`` for all."""
    module = sys.modules.get(name)
    return None if getattr(getattr(module, "__spec__", None), "_initializing", False) else module

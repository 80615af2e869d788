"""Slot: the place from which a number was read. Key type: Slot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Slot:
    """The place from which a number was read, used to replace the number by a private copy."""

    get: Callable[[], Any]
    swap: Callable[[Any, Any], None]
    """``swap(old, new)`` stores ``new`` if the place still holds ``old``."""

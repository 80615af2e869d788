"""Slot: where a number was read. Key type: Slot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Slot:
    """Where a number was read, so that the program can be handed a private copy of it."""

    get: Callable[[], Any]
    swap: Callable[[Any, Any], None]
    """Puts the second where the first still is."""

"""Where ``compile`` finds the running program's session, when there is one. Imports nothing: the runner sets it before
it imports torch. Key: ``use``, ``session``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_provider: Callable[[], Any] | None = None


def use(provider: Callable[[], Any] | None) -> None:
    """From now on compiled functions and modules become regions of the session ``provider()`` (None: of no session)."""
    global _provider
    _provider = provider


def session() -> Any:
    return _provider() if _provider is not None else None

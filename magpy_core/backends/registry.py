"""The backends by name. Key function: `get_backend`."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from magpy_core.backends.aot import AotEagerBackend, InductorBackend
from magpy_core.backends.base import Backend
from magpy_core.backends.eager import EagerBackend

_BACKENDS: dict[str, Backend] = {b.name: b for b in (EagerBackend(), AotEagerBackend(), InductorBackend())}


class UnknownBackend(ValueError):
    """No backend has this name. ``names`` are the known ones."""

    def __init__(self, name: str, names: Sequence[str] = ()) -> None:
        self.names = list(names) or backend_names()
        close = difflib.get_close_matches(str(name), self.names, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        super().__init__(f"{name!r} is not a backend; known backends: {', '.join(self.names)}.{hint}")


def backend_names() -> list[str]:
    return list(_BACKENDS)


def get_backend(name: str) -> Backend:
    """The backend of that name; raises UnknownBackend."""
    try:
        return _BACKENDS[name]
    except (KeyError, TypeError):
        raise UnknownBackend(name) from None

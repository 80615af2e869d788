"""Backends by name: operator graph in, callable out. Key function: `get_backend`.

compiled = get_backend("inductor").compile(graph_module, make_fake_inputs(real_inputs))
outputs = compiled.fn(*real_inputs)
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from magpy_core.backends.aot import AotBackend
from magpy_core.backends.base import Backend
from magpy_core.backends.eager import EagerBackend

_BACKENDS: dict[str, Backend] = {b.name: b for b in (EagerBackend(), AotBackend("aot_eager"), AotBackend("inductor"))}


class UnknownBackend(ValueError):
    """No backend has this name. ``names`` are the known ones."""

    def __init__(self, name: str, names: Sequence[str] = ()) -> None:
        self.names = list(names or _BACKENDS)
        close = difflib.get_close_matches(str(name), self.names, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        super().__init__(f"{name!r} is not a backend; known backends: {', '.join(self.names)}.{hint}")


def get_backend(name: str) -> Backend:
    """The backend of that name; raises UnknownBackend."""
    if type(name) is not str or name not in _BACKENDS:
        raise UnknownBackend(name)
    return _BACKENDS[name]

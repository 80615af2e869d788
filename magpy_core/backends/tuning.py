"""Tuning: how much work a compiler puts into a graph, and options of its own. Key type: Tuning. Key function: tuned."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from magpy_core._compat.torch import inductor_options

MODES = ("default", "max", "quick")


@dataclass(frozen=True)
class Tuning:
    """``mode``: ``default``, or ``max``, which tries several kernels and takes longer. ``options``: names and values of
    ``torch._inductor.config``, which win over the mode's. They are part of the key of torch's caches."""

    mode: str = "default"
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def whole(self) -> bool:
        """Whether a graph is compiled as one, however often its blocks are repeated."""
        return self.mode == "max"

    @property
    def stages(self) -> tuple[Tuning, ...]:
        """What to compile with, one after the other, beside the program: what is there soon serves first."""
        return (replace(self, mode="default"), self) if self.mode == "max" else (self,)

    def for_inductor(self) -> dict[str, Any]:
        """The values of ``torch._inductor.config`` to compile with."""
        return {**inductor_options.OF_MODE[self.mode], **dict(self.options)}


DEFAULT = Tuning()


def tuned(backend: str, mode: str, options: Mapping[str, Any] | None = None) -> tuple[str, Tuning]:
    """The backend and the tuning that a user means. ``quick`` is the recorded graph itself, operator by operator: all that
    makes Inductor's compilations shorter makes its code slower than that (docs/performance.md has the figures).

    Raises ValueError for a mode or a name that there is not, TypeError for a value of the wrong type."""
    if mode not in MODES:
        close = difflib.get_close_matches(str(mode), MODES, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"{mode!r} is not a mode; known modes: {', '.join(MODES)}.{hint}")
    without = "mode='quick'" if mode == "quick" else f"backend={backend!r}" if backend != "inductor" else ""
    if without and options:
        raise ValueError(f"options are Inductor's, which {without} does not use.")
    if without:
        return "eager" if backend == "inductor" else backend, DEFAULT
    return backend, Tuning(mode, tuple(inductor_options.checked(options).items()) if options else ())

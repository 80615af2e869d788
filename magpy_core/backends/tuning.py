"""Tuning: how much work a compiler puts into a graph, and Inductor's options. Key type: Tuning. Key function: tuned."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from magpy_core._compat.torch import inductor_options

MODES = ("default", "max", "quick")


@dataclass(frozen=True)
class Tuning:
    """``mode``: ``default``, or ``max``, which tries several kernels and takes longer. ``options``: names and values of
    ``torch._inductor.config``, which override the mode's. They are part of the key of torch's caches.
    ``cuda_graphs``: whole steps on a device are replayed as CUDA graphs where that is faster; None: the environment
    decides."""

    mode: str = "default"
    options: tuple[tuple[str, Any], ...] = ()
    cuda_graphs: bool | None = None

    @property
    def replays(self) -> bool:
        """Whether CUDA graphs may be used."""
        return self.cuda_graphs if self.cuda_graphs is not None else os.environ.get("MAGPY_CUDA_GRAPHS") != "0"

    def strictly(self) -> Tuning:
        """With torch's strict numerics, where this version has them and the user has not chosen others."""
        strict = inductor_options.strict_numerics()
        return replace(self, options=(*strict.items(), *self.options)) if strict.keys() - dict(self.options) else self

    @property
    def is_strict(self) -> bool:
        return dict(self.options).get("numerics") == "strict"

    @property
    def as_one_graph(self) -> bool:
        """Whether a graph is compiled as one even if it has repeated blocks."""
        return self.mode == "max"

    @property
    def stages(self) -> tuple[Tuning, ...]:
        """The tunings to compile with in the background, one after the other: the code that is ready first runs first."""
        return (replace(self, mode="default"), self) if self.mode == "max" else (self,)

    def for_inductor(self, *, has_backward: bool = False) -> dict[str, Any]:
        """The values of ``torch._inductor.config`` to compile with. ``has_backward``: the graph is on the CPU and has a
        backward pass inside."""
        of_graph = inductor_options.OF_BACKWARD if has_backward else {}
        return {**of_graph, **inductor_options.OF_MODE[self.mode], **dict(self.options)}


DEFAULT = Tuning()


def tuned(
    backend: str,
    mode: str,
    options: Mapping[str, Any] | None = None,
    *,
    cuda_graphs: bool | None = None,
) -> tuple[str, Tuning]:
    """The backend and the tuning for a user's settings. ``quick`` runs the recorded graph itself, operator by operator:
    every option that shortens Inductor's compilation makes its code slower than that (docs/benchmarks.md has the figures).

    Raises ValueError for an unknown mode or name, TypeError for a value of the wrong type."""
    if mode not in MODES:
        close = difflib.get_close_matches(str(mode), MODES, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"{mode!r} is not a mode; known modes: {', '.join(MODES)}.{hint}")
    without = "mode='quick'" if mode == "quick" else f"backend={backend!r}" if backend != "inductor" else ""
    if without and options:
        raise ValueError(f"options apply to Inductor, which {without} does not use.")
    if without:
        return "eager" if backend == "inductor" else backend, replace(DEFAULT, cuda_graphs=cuda_graphs)
    chosen = tuple(inductor_options.checked(options).items()) if options else ()
    return backend, Tuning(mode, chosen, cuda_graphs)

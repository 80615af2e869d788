"""The interface of backends: Backend (a name and `compile`) and CompiledGraph (the callable and its assumptions)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch.fx

from magpy_core.backends.convention import Convention
from magpy_core.backends.cuda_graphs import Replayed
from magpy_core.backends.fakes import FakeInputs
from magpy_core.backends.tuning import DEFAULT, Tuning


@dataclass(frozen=True)
class CompiledCode:
    """What a compiled graph consists of: the compiler's function, if it takes a list, and how it is called in place of the
    graph."""

    call: Callable[[list[Any]], Sequence[Any]] | None
    convention: Convention


@dataclass
class CompiledGraph:
    """A compiled operator graph.

    ``fn(*inputs)`` is the bare callable and returns a tuple or list of outputs. ``boxed([inputs])``, if present, empties its
    list and so saves a copy of the arguments. ``guards``: expressions over ``L``, the list of inputs, that must hold for a
    dynamic capture to be valid; evaluate them with the names of `_compat.torch.fake.guard_namespace()`.
    ``replayed``: the part of it on a device, if it may be replayed as a CUDA graph. ``code``: what could be stored of it.
    """

    fn: Callable[..., Sequence[Any]]
    boxed: Callable[[list[Any]], Sequence[Any]] | None = None
    guards: list[str] = field(default_factory=list)
    generated_code: str | None = None
    replayed: Replayed | None = None
    code: CompiledCode | None = None


class Backend(Protocol):
    """Compiles an operator graph to a callable; raises `Unsupported("MP902", ...)` if it can't."""

    name: str

    def compile(
        self,
        gm: torch.fx.GraphModule,
        inputs: FakeInputs,
        *,
        same_random: bool = False,
        tuning: Tuning = DEFAULT,
        checked: bool = False,
    ) -> CompiledGraph:
        """``same_random`` keeps eager's random stream. ``checked``: the caller compares the sizes and strides of all inputs
        with these at each call."""

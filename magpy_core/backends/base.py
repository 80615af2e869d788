"""The interface of backends: Backend (a name and `compile`) and CompiledGraph (the callable and its assumptions)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch.fx


@dataclass(frozen=True)
class ShapeGuard:
    """A Python expression over ``L``, the list of graph inputs, that must hold for a dynamic capture to be valid.

    Evaluate it with the names of `magpy_core.backends.fakes.guard_namespace()`.
    """

    expression: str
    explanation: str

    def holds(self, inputs: Sequence[Any]) -> bool:
        from magpy_core._compat.torch.fake import guard_namespace

        return bool(eval(self.expression, guard_namespace(), {"L": inputs}))


@dataclass
class CompiledGraph:
    """A compiled operator graph.

    ``fn(*inputs)`` is the bare callable and returns a tuple or list of outputs. ``boxed([inputs])``, if present, empties its
    list and so saves a copy of the arguments.
    """

    fn: Callable[..., Sequence[Any]]
    backend: str
    boxed: Callable[[list[Any]], Sequence[Any]] | None = None
    guards: list[ShapeGuard] = field(default_factory=list)
    generated_code: str | None = None

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        return tuple(self.fn(*inputs))


class Backend(Protocol):
    """Compiles an operator graph to a callable; raises `Unsupported("MP902", ...)` if it can't."""

    name: str

    def compile(
        self, gm: torch.fx.GraphModule, example_inputs: Sequence[Any], *, dynamic: bool, same_random: bool = False
    ) -> CompiledGraph: ...

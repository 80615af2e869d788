"""Expectations in a graph: whether decisions on tensors' data are as in the recorded run, computed where the program reads
the data. Compilers let the graph's writes depend on them (``backends.held_writes``). Key type: Expectation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.condition_op import holds
from magpy_core.opgraph.scalars import Sym
from magpy_core.refgraph.kinds import same_scalar


@dataclass(frozen=True)
class Expectation:
    """The number that ``sym`` stands for is ``outcome``, in type and value."""

    sym: Sym
    outcome: Any

    @property
    def reads(self) -> list[torch.fx.Node]:
        """The operations that read its numbers."""
        return [leaf.payload for leaf in self.sym.leaves() if leaf.kind == "node"]

    @property
    def is_possible(self) -> bool:
        """Whether a graph can hold it: it needs nothing but numbers that are each read from one tensor."""
        leaves = self.sym.leaves()
        return bool(leaves) and all(leaf.kind == "node" and _reads_one_tensor(leaf.payload) for leaf in leaves)

    def add_to(self, graph: torch.fx.Graph, copies: Mapping[torch.fx.Node, torch.fx.Node]) -> None:
        """Add it to a copy of its graph."""
        values = []
        for read in self.reads:  # the program may write the tensor afterwards
            with graph.inserting_after(copies[read]):
                detached = graph.call_method("detach", (copies[read.all_input_nodes[0]],))
            with graph.inserting_after(detached):
                values.append(graph.call_method("clone", (detached,)))
        with graph.inserting_after(max(values)):
            holds(graph, values, self._is_met, self._text(self.sym) + f" is {self.outcome!r}")

    def _is_met(self, *values: torch.Tensor) -> bool:
        numbers = {read: _read(read, value) for read, value in zip(self.reads, values, strict=True)}
        try:
            return same_scalar(_computed(self.sym, numbers), self.outcome)
        except (ArithmeticError, ValueError):  # the program would raise it
            return False

    def _text(self, value: Any) -> str:
        if not isinstance(value, Sym):
            return f"{type(value).__name__} {value!r}"
        if value.kind == "node":
            return f"{_name(value.payload.target)} {self.reads.index(value.payload)}"
        return f"{_name(value.payload)}({', '.join(map(self._text, value.args))})"


def _reads_one_tensor(read: torch.fx.Node) -> bool:
    return len(read.args) == 1 and isinstance(read.args[0], torch.fx.Node) and not read.kwargs


def _read(read: torch.fx.Node, value: torch.Tensor) -> Any:
    target: Any = read.target
    return getattr(value, target)() if read.op == "call_method" else target(value)


def _computed(value: Any, numbers: Mapping[torch.fx.Node, Any]) -> Any:
    if not isinstance(value, Sym):
        return value
    if value.kind == "node":
        return numbers[value.payload]
    return value.payload(*(_computed(argument, numbers) for argument in value.args))


def _name(target: Any) -> str:
    return target if isinstance(target, str) else f"{target.__module__}.{target.__qualname__}"

"""Expectations in a graph: whether decisions on tensors' data are as in the recorded run, computed where the program reads
the data. Compilers let the graph's writes depend on them (``backends.held_writes``). Key type: Expectation.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
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
        computed = self._without_nodes(self.sym)
        test = functools.partial(_is_met, computed, self.outcome)
        with graph.inserting_after(max(values)):
            holds(graph, values, test, f"{computed} is {self.outcome!r}")

    def _without_nodes(self, value: Any) -> _Value:
        """``value`` as an expression that keeps no graph alive: its reads are numbered."""
        if not isinstance(value, Sym):
            return _Constant(value)
        if value.kind == "node":
            return _Read(self.reads.index(value.payload), value.payload.op == "call_method", value.payload.target)
        return _Call(value.payload, tuple(map(self._without_nodes, value.args)))


def _reads_one_tensor(read: torch.fx.Node) -> bool:
    return len(read.args) == 1 and isinstance(read.args[0], torch.fx.Node) and not read.kwargs


def _is_met(computed: _Value, outcome: Any, *values: torch.Tensor) -> bool:
    try:
        return same_scalar(computed.of(values), outcome)
    except (ArithmeticError, ValueError, LookupError, TypeError):  # the program would raise it
        return False


@dataclass(frozen=True)
class _Constant:
    value: Any

    def of(self, values: Sequence[torch.Tensor]) -> Any:
        return self.value

    def __str__(self) -> str:
        return f"{type(self.value).__name__} {self.value!r}"


@dataclass(frozen=True)
class _Read:
    index: int
    is_method: bool
    target: Any

    def of(self, values: Sequence[torch.Tensor]) -> Any:
        value = values[self.index]
        return getattr(value, self.target)() if self.is_method else self.target(value)

    def __str__(self) -> str:
        return f"{_name(self.target)} {self.index}"


@dataclass(frozen=True)
class _Call:
    fn: Any
    arguments: tuple[_Value, ...]

    def of(self, values: Sequence[torch.Tensor]) -> Any:
        return self.fn(*(argument.of(values) for argument in self.arguments))

    def __str__(self) -> str:
        return f"{_name(self.fn)}({', '.join(map(str, self.arguments))})"


_Value = _Constant | _Read | _Call


def _name(target: Any) -> str:
    return target if isinstance(target, str) else f"{target.__module__}.{target.__qualname__}"

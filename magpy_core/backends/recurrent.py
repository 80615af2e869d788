"""Recurrent layers stay one operator each where lengths or batches vary: AOTAutograd would take them apart, step by step.
And sequences are padded for all lengths.

Dropout between layers becomes operations of the graph, and so do batches that come first. A layer under autocast, on a
device, whose gradient is differentiated, or called in another way than `torch.nn` does is always taken apart. Key function:
`keep_layers`.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.operators import is_recurrent
from magpy_core._compat.torch.padded_sequences import is_padding, pad_sequence
from magpy_core._compat.torch.recurrent_operator import KINDS, recurrent
from magpy_core.limits import LIMITS
from magpy_core.opgraph.functions import argument, operator_name

_Node = torch.fx.Node
_ARGUMENTS = 9  # of `torch.lstm` and its kin, packed or not


def keep_layers(gm: torch.fx.GraphModule) -> None:
    """Let a graph on the CPU call our operators for its recurrent layers and their padded sequences."""
    _keep_lengths(gm.graph)
    is_cast = torch.is_autocast_enabled("cpu") or any("autocast" in operator_name(node) for node in gm.graph.nodes)
    twice = any(node.target is torch.autograd.grad and argument(node, "create_graph", 4) for node in gm.graph.nodes)
    kept = [] if is_cast or twice else [n for n in gm.graph.nodes if is_recurrent(n) and _is_usual(n)]
    for node in kept:
        with gm.graph.inserting_before(node):
            results = _Layers(node).write()
        for user in list(node.users):
            user.replace_all_uses_with(results[user.args[1]])
            gm.graph.erase_node(user)
        gm.graph.erase_node(node)
    gm.recompile()


def _keep_lengths(graph: torch.fx.Graph) -> None:
    for node in graph.nodes:
        if not is_padding(node):
            continue
        given: list[Any] = list(node.args)
        rows = given.pop(0)
        defaults: list[Any] = [False, 0.0, "right"]
        batch_first, value, side = given + defaults[len(given) :]
        if isinstance(rows, list | tuple) and type(value) in (int, float) and side in ("left", "right"):
            node.target, node.args = pad_sequence, (list(rows), batch_first, float(value), side)


def _is_usual(node: _Node) -> bool:
    """Whether a layer has the arguments that `torch.nn` gives, in its order, and its results are used one by one."""
    one_by_one = all(user.target is operator.getitem and type(user.args[1]) is int for user in node.users)
    return node.target.__name__ in KINDS and one_by_one and not node.kwargs and len(node.args) == _ARGUMENTS  # type: ignore[union-attr]


@dataclass(frozen=True)
class _Stack:
    """The options of a call. ``rate``: of the dropout between its layers."""

    biases: bool
    layers: int
    rate: float
    trains: bool
    both: bool
    batch_first: bool = False


class _Layers:
    """Writes what computes the results of one call in place of ``node``."""

    def __init__(self, node: _Node) -> None:
        self.graph, self.kind = node.graph, node.target.__name__  # type: ignore[union-attr]
        self.input, *rest = node.args
        is_packed = isinstance(node.args[3], list | tuple)
        self.batch_sizes = rest.pop(0) if is_packed else None
        states, weights, *options = rest
        self.states: list[Any] = list(states) if isinstance(states, list | tuple) else [states]
        self.weights: list[Any] = list(weights)  # type: ignore[arg-type]
        self.stack = _Stack(*options)  # type: ignore[arg-type]

    def write(self) -> list[Any]:
        """The results: output, hidden state and, of an LSTM, cell state."""
        stack, value = self.stack, self.input
        if stack.batch_first:
            value = self._call(torch.transpose, value, 0, 1)
        drops = stack.trains and stack.rate > 0 and stack.layers > 1
        output, *states = self._one_by_one(value) if drops else self._layer(value, self.states, self.weights)
        if stack.batch_first:
            output = self._call(torch.transpose, output, 0, 1)
        return [output, *states]

    def _one_by_one(self, value: Any) -> list[Any]:
        """Layers with dropout between them."""
        stack, directions = self.stack, 1 + self.stack.both
        parts = [self._call(torch.split, state, directions) for state in self.states]
        size = len(self.weights) // stack.layers
        found: list[list[Any]] = []
        for i in range(stack.layers):
            if i:
                value = self._call(torch.dropout, value, stack.rate, True)
            states = [self._call(operator.getitem, part, i) for part in parts]
            value, *after = self._layer(value, states, self.weights[i * size : (i + 1) * size])
            found.append(after)
        return [value, *(self._call(torch.cat, [*each]) for each in zip(*found, strict=True))]

    def _layer(self, value: Any, states: list[Any], weights: list[Any]) -> list[Any]:
        stack = self.stack
        given = (self.kind, value, self.batch_sizes, states, weights, stack.biases, stack.both)
        call = self._call(recurrent, *given, LIMITS.unrolled_steps)
        return [self._call(operator.getitem, call, i) for i in range(1 + len(states))]

    def _call(self, target: Any, *args: Any) -> Any:
        return self.graph.call_function(target, args)

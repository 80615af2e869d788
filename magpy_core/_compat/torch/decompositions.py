"""Operators that torch takes apart in Python on their way through AOTAutograd, and where it does so wrongly.

torch 2.11 takes an LSTM whose input requires a gradient apart into one whose states have a dimension too many; what runs
in eager, and what FakeTensors say, is right. Key function: `wrongly_decomposed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.fx
from torch._dispatch.python import enable_python_dispatcher

_VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
_RECURRENT = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"})


def _shapes(graph: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any) -> dict[str, list[tuple[int, ...]]]:
    """The shapes that each recurrent operator of the graph gives."""
    found: dict[str, list[tuple[int, ...]]] = {}

    class Shapes(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> Any:
            result = super().run_node(n)
            if is_recurrent(n):
                parts = result if isinstance(result, (tuple, list)) else (result,)
                found[n.name] = [tuple(part.shape) for part in parts]
            return result

    with mode:
        Shapes(graph).run(*fakes)
    return found


def draws_otherwise(name: str) -> bool:
    """Whether this torch's Inductor takes an operator apart into other draws: `rrelu`, until torch 2.12."""
    return name == "rrelu" and _VERSION < (2, 12)


def kernels_check() -> bool:
    """Whether kernels of this torch's Inductor raise for an integer divided by zero (others end the process), and for an
    index of an embedding below zero."""
    return _VERSION >= (2, 13)


def is_recurrent(node: torch.fx.Node) -> bool:
    """Whether a node is one of the operators that torch takes apart in Python."""
    return node.op == "call_function" and getattr(node.target, "__name__", "") in _RECURRENT


def wrongly_decomposed(graph: torch.fx.GraphModule, fakes: Sequence[Any], mode: Any) -> str | None:
    """The name of a recurrent operator that gives other shapes taken apart than whole; None where all agree."""
    if not any(is_recurrent(node) for node in graph.graph.nodes):
        return None
    whole = _shapes(graph, fakes, mode)
    with enable_python_dispatcher():
        apart = _shapes(graph, fakes, mode)
    return next((name for name in whole if whole[name] != apart[name]), None)

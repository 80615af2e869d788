"""Operators that torch takes apart in Python on their way through AOTAutograd, and where it does so wrongly.

Key functions: `wrong_here`, `kernels_check`, `is_recurrent`.
"""

from __future__ import annotations

import torch
import torch.fx

_VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
_RECURRENT = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"})


def wrong_here(name: str) -> str | None:
    """What this version of torch does wrong when it compiles an operator."""
    if name == "rrelu" and _VERSION < (2, 12):
        return f"compiled code draws other random numbers for {name} in this torch version"
    # seen in 2.11, which takes an LSTM whose input requires a gradient apart into states with a dimension too many
    if name == "lstm" and _VERSION < (2, 13):
        return f"this torch compiles `{name}` incorrectly: its states get another shape"
    return None


def kernels_check() -> bool:
    """Whether kernels of this torch's Inductor raise for an integer divided by zero (others end the process), and for an
    index of an embedding below zero."""
    return _VERSION >= (2, 13)


def is_recurrent(node: torch.fx.Node) -> bool:
    """Whether a node is one of the operators that torch takes apart in Python."""
    return node.op == "call_function" and getattr(node.target, "__name__", "") in _RECURRENT

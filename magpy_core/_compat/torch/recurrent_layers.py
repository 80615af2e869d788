"""Recurrent layers as torch takes them apart in Python, with two mistakes of it corrected.

torch omits the dropout between layers, and before 2.13 the states of an LSTM have an additional dimension. Key functions:
`corrected_layers`, `taken_apart`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

_Layer = Callable[..., Any]


@contextmanager
def corrected_layers() -> Iterator[None]:
    """In this context, AOTAutograd's traces have all that eager mode computes."""
    from torch._decomp import decompositions
    from torch._dynamo.convert_frame import compile_lock

    with compile_lock:  # another thread may be tracing too
        helper, layer = decompositions._rnn_helper, decompositions.one_layer_lstm
        decompositions._rnn_helper, decompositions.one_layer_lstm = _with_dropout(helper), _with_states(layer)
        try:
            yield
        finally:
            decompositions._rnn_helper, decompositions.one_layer_lstm = helper, layer


@contextmanager
def taken_apart(inputs: Sequence[Any]) -> Iterator[None]:
    """Traces a recurrent layer of these inputs in its parts. On a CUDA device torch would ask cuDNN about the memory of its
    weights, and fakes have none; on the CPU it knows a layer's shapes."""
    if all(value.device.type == "cpu" for value in inputs if isinstance(value, torch.Tensor)):
        yield
        return
    from torch._dispatch.python import enable_python_dispatcher

    with corrected_layers(), enable_python_dispatcher():
        yield


def _with_dropout(helper: _Layer) -> _Layer:
    parameters = inspect.signature(helper)

    @functools.wraps(helper)
    def run(*args: Any, **kwargs: Any) -> Any:
        given = parameters.bind(*args, **kwargs).arguments
        if given["train"] and given["dropout"]:
            given["layer_fn"] = _dropping(given["layer_fn"], given["dropout"])
        return helper(**{**given, "dropout": 0.0})

    return run


def _dropping(layer: _Layer, rate: float) -> _Layer:
    """``layer``, whose input is dropped at that rate except in the first layer; both directions have the same input."""
    before: list[Any] = []

    def run(value: Any, *args: Any, **kwargs: Any) -> Any:
        if not before:
            before[:] = value, value
        elif before[0] is not value:
            before[:] = value, torch.dropout(value, rate, train=True)
        return layer(before[1], *args, **kwargs)

    return run


def _with_states(layer: _Layer) -> _Layer:
    @functools.wraps(layer)
    def run(value: Any, hidden: Any, *args: Any, **kwargs: Any) -> Any:
        out, states = layer(value, hidden, *args, **kwargs)
        return out, tuple(s.squeeze(0) if s.dim() > h.dim() else s for s, h in zip(states, hidden, strict=True))

    return run

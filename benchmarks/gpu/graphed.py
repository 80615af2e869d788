"""The compiled graph of a capture as a CUDA graph: what replaying it could save. A measurement, not a part of MagPy.

Key type: Graphed. Only the operator graph is replayed: no guard is checked and no effect of the program is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch


class NotGraphable(Exception):
    """The graph can't be replayed with the values that a later call would give it; the message says why."""


def unfit(inputs: Sequence[Any]) -> str:
    """Why a CUDA graph for these inputs would compute something else in later calls, or empty."""
    if numbers := sum(not isinstance(value, torch.Tensor) for value in inputs):
        return f"{numbers} of its inputs are Python numbers, which the CUDA graph would keep as they are"
    if on_host := sum(value.device.type != "cuda" for value in inputs):
        return f"{on_host} of its inputs are tensors on the CPU, which kernels get by value"
    return ""


class Graphed:
    """``bare`` recorded for ``inputs``, which it must have run with before. A call replays it on the memory of the tensors
    that were recorded: ``fits`` tells whether other inputs are in the same places. ``outputs`` are written by each call."""

    def __init__(self, bare: Callable[..., Sequence[Any]], inputs: Sequence[Any]) -> None:
        if reason := unfit(inputs):
            raise NotGraphable(reason)
        self._places = [_place(tensor) for tensor in inputs]
        self._inputs = list(inputs)  # their memory must stay theirs
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):  # records, and runs nothing
            self.outputs = bare(*inputs)

    def fits(self, inputs: Sequence[Any]) -> bool:
        return not unfit(inputs) and [_place(tensor) for tensor in inputs] == self._places

    def __call__(self) -> Sequence[Any]:
        self._graph.replay()
        return self.outputs


def _place(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()


def make_capturable(optimizers: Sequence[torch.optim.Optimizer]) -> None:
    """Optimizers keep their counts on the device, as ``torch.compile`` makes them do under CUDA graphs. Before the first
    step."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            if "capturable" in group:
                group["capturable"] = True

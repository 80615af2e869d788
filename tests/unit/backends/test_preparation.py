"""Graphs that are refused before any compiler sees them, because of where their tensors are."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensorMode

from magpy_core.backends.preparation import prepare
from magpy_core.findings import Unsupported


def _lstm(device: str) -> tuple[torch.fx.GraphModule, list[Any]]:
    """One layer of the graph of an LSTM in evaluation."""
    graph = torch.fx.Graph()
    x, h, c, *weights = (graph.placeholder(name) for name in ("x", "h", "c", "w", "u"))
    out = graph.call_function(torch.lstm, (x, (h, c), tuple(weights), False, 1, 0.0, False, False, False))
    graph.output((out,))
    with FakeTensorMode():
        sizes = ((5, 2, 4), (1, 2, 3), (1, 2, 3), (12, 4), (12, 3))
        fakes = [torch.empty(size, device=device) for size in sizes]
    return torch.fx.GraphModule({}, graph), fakes


def test_recurrent_layers_under_autocast_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """cuDNN's results are in float16, those of the parts that it is taken apart into are not."""
    gm, fakes = _lstm("cuda")
    prepare(gm, fakes, torch.device("cpu"))
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device="cuda": True)
    with pytest.raises(Unsupported, match="results of another type"):
        prepare(gm, fakes, torch.device("cpu"))
    gm, fakes = _lstm("cpu")
    prepare(gm, fakes, torch.device("cpu"))


def test_autocast_inside() -> None:
    gm, fakes = _lstm("cuda")
    first = next(node for node in gm.graph.nodes if node.op == "call_function")
    with gm.graph.inserting_before(first):
        gm.graph.call_function(torch.amp.autocast_mode._enter_autocast, ("cuda", None, True, None))
    with pytest.raises(Unsupported, match="results of another type"):
        prepare(gm, fakes, torch.device("cpu"))

"""Recurrent layers are taken apart into what eager mode computes: with their dropout, with states of the right shape."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import nn
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import FakeTensorMode

import magpy_core
from magpy_core._compat.torch import recurrent_layers
from magpy_core._compat.torch.operators_trace import trace_operators
from magpy_core.backends import recomputation
from magpy_core.backends.preparation import prepare
from magpy_core.findings import Unsupported
from magpy_core.regions.api import region_of

KINDS = (nn.LSTM, nn.GRU, nn.RNN)


@pytest.mark.slow
@pytest.mark.parametrize("both", [False, True], ids=["one direction", "both directions"])
@pytest.mark.parametrize("kind", KINDS)
def test_dropout_between_layers(kind: type[nn.RNNBase], both: bool) -> None:
    """torch's own function omits it."""
    torch.manual_seed(0)
    module = kind(3, 4, num_layers=3, dropout=0.5, bidirectional=both, dtype=torch.float64)
    other = copy.deepcopy(module)
    compiled = magpy_core.compile(module, backend="aot_eager", wait=True)
    for seed in range(3):
        x = torch.randn(2, 2, 3, dtype=torch.float64)
        for called in (compiled, other):
            torch.manual_seed(seed)
            out, states = called(x)
            assert states[0].dim() == 3 - (kind is not nn.LSTM)
            (out.sum() + sum(s.square().sum() for s in states)).backward()
        for a, b in zip(module.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(a.grad, b.grad)
    assert region_of(compiled).hits >= 2


def test_additional_dimensions_of_states_are_removed() -> None:
    """Versions before 2.13 return such states."""
    hidden = (torch.zeros(2, 4), torch.zeros(2, 4))

    def layer(value: Any, hidden: Any) -> Any:
        return value, (hidden[0].unsqueeze(0), hidden[1])

    _, states = recurrent_layers._with_states(layer)(torch.zeros(5, 2, 3), hidden)
    assert [tuple(state.shape) for state in states] == [(2, 4), (2, 4)]


def _graph(kind: str, numbers: Sequence[Any]) -> torch.fx.GraphModule:
    graph = torch.fx.Graph()
    x, h, *weights = (graph.placeholder(name) for name in ("x", "h", "a", "b", "c", "d"))
    given = (h, h) if kind == "lstm" else h
    graph.output((graph.call_function(getattr(torch, kind), (x, given, weights, *numbers)),))
    return torch.fx.GraphModule(nn.Module(), graph)


def _inputs(gates: int, device: str) -> list[torch.Tensor]:
    shapes = ((5, 2, 3), (1, 2, 4), (gates * 4, 3), (gates * 4, 4), (gates * 4,), (gates * 4,))
    return [torch.empty(shape, device=device) for shape in shapes]


@pytest.mark.parametrize(("kind", "gates"), [("lstm", 4), ("gru", 3), ("rnn_tanh", 1)])
def test_a_layer_on_a_device_is_traced_in_its_parts(kind: str, gates: int) -> None:
    """Its own function would ask cuDNN about the memory of fakes, or use fused kernels that have no shape function."""
    module = _graph(kind, (True, 1, 0.0, True, False, False))
    mode = FakeTensorMode()
    with mode, torch.no_grad():
        fakes = _inputs(gates, "cuda")
    traced = trace_operators(recomputation.Parts(module).run, fakes, mode)
    names = {str(node.target) for node in traced.graph.nodes}
    assert {"aten.addmm.default", "aten.tanh.default"} <= names
    assert not [name for name in names if "rnn" in name or "fused" in name]


@contextmanager
def _always_taken_apart(inputs: Sequence[Any]) -> Iterator[None]:
    with recurrent_layers.corrected_layers(), enable_python_dispatcher():
        yield


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_step_with_a_layer_in_its_parts(kind: type[nn.RNNBase], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recomputation, "taken_apart", _always_taken_apart)
    modules, steps = [], []
    x = torch.randn(2, 2, 3, dtype=torch.float64)
    for _ in range(2):
        torch.manual_seed(0)
        modules.append(kind(3, 4, num_layers=2, batch_first=True, dtype=torch.float64))
        steps.append(_step(modules[-1], x))
    compiled = magpy_core.compile(steps[0], backend="aot_eager", wait=True)
    for _ in range(4):
        torch.testing.assert_close(compiled(), steps[1]())
    torch.testing.assert_close(list(modules[0].parameters()), list(modules[1].parameters()))
    assert region_of(compiled).hits >= 2


def _step(module: nn.Module, x: torch.Tensor) -> Any:
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss: torch.Tensor = module(x)[0].square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(module.parameters(), 0.1)
        optimizer.step()
        return loss.detach()

    return step


@pytest.mark.parametrize(
    ("device", "layers", "rate", "trains", "refused"),
    [
        ("cuda", 2, 0.5, True, True),
        ("cuda", 1, 0.5, True, False),
        ("cuda", 2, 0.5, False, False),
        ("cuda", 2, 0.0, True, False),
        ("cpu", 2, 0.5, True, False),
    ],
)
def test_dropout_of_cudnn_is_refused(device: str, layers: int, rate: float, trains: bool, refused: bool) -> None:
    module = _graph("lstm", (True, layers, rate, trains, False, False))
    with FakeTensorMode(), torch.no_grad():
        fakes = _inputs(4, device)
    if refused:
        with pytest.raises(Unsupported, match="uses random numbers of a device"):
            prepare(module, fakes, torch.device("cpu"))
    else:
        prepare(module, fakes, torch.device("cpu"))

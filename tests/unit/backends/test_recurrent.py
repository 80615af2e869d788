"""A graph with recurrent layers fits all lengths and batches, in training too, and computes what eager mode computes."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext
from torch.nn.utils.rnn import pack_sequence, pad_sequence

import magpy_core
from magpy_core._compat.torch import padded_sequences, recurrent_operator
from magpy_core._compat.torch.operators_trace import trace_operators
from magpy_core.backends.recurrent import keep_layers
from magpy_core.limits import LIMITS
from magpy_core.regions.api import region_of

KINDS = (nn.LSTM, nn.GRU, nn.RNN)
BACKENDS = ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]
_Step = Callable[..., Any]


def _step(module: nn.Module, **options: Any) -> _Step:
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)

    def step(x: Any) -> torch.Tensor:
        optimizer.zero_grad()
        output, _ = module(x.tanh() if isinstance(x, torch.Tensor) else x)
        values = output if isinstance(output, torch.Tensor) else output.data
        loss: torch.Tensor = (values * 2).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def _both(module: nn.Module, backend: str, make: Callable[[nn.Module], _Step], calls: list[Any]) -> Any:
    """The region of a step that has been called, after it has been compared with the same one in eager mode."""
    other = copy.deepcopy(module)
    compiled, plain = magpy_core.compile(make(module), backend=backend, wait=True, same_random=True), make(other)
    for seed, given in enumerate(calls):
        results = []
        for called in (compiled, plain):
            torch.manual_seed(seed)
            results.append(called(given))
            results.append(torch.get_rng_state())
        torch.testing.assert_close(results[0], results[2])
        assert torch.equal(results[1], results[3])
    torch.testing.assert_close(list(module.parameters()), list(other.parameters()))
    return region_of(compiled)


def _batches(count: int = 12) -> list[torch.Tensor]:
    return [torch.randn(6 + i % 3, 6 + (i * 5) % 7, 3) for i in range(count)]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_lengths_and_batches_vary_in_a_step(kind: Callable[..., nn.Module], backend: str) -> None:
    torch.manual_seed(0)
    region = _both(kind(3, 4, batch_first=True), backend, _step, _batches())
    assert region.hits >= 8
    assert len(region.captures) <= 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_lengths_vary_in_a_layer(backend: str) -> None:
    """With a backward pass outside."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cells, self.last = nn.GRU(3, 4, num_layers=2, bidirectional=True), nn.Linear(8, 1)

        def forward(self, x: torch.Tensor) -> Any:
            return self.last(self.cells(x.exp() - 1)[0].relu()).mean()

    torch.manual_seed(0)
    net = Net()
    other = copy.deepcopy(net)
    compiled = magpy_core.compile(net, backend=backend, wait=True)
    for x in _batches():
        results = []
        for called, module in ((compiled, net), (other, other)):
            given = x.clone().requires_grad_()
            module.zero_grad()
            called(given).backward()
            results.append([given.grad, *(parameter.grad for parameter in module.parameters())])
        torch.testing.assert_close(*results)
    region = region_of(compiled)
    assert region.hits >= 8
    assert len(region.captures) <= 3


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_dropout_between_layers_draws_as_in_eager_mode(kind: Callable[..., nn.Module], backend: str) -> None:
    torch.manual_seed(0)
    module = kind(3, 4, num_layers=3, dropout=0.5, bidirectional=True)
    region = _both(module, backend, _step, _batches(8))
    assert region.hits >= 4


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("whole", [True, False], ids=["a whole step", "a backward pass outside"])
def test_a_backward_pass_uses_the_history(backend: str, whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Computing the layer again would be correct, but slow."""
    made = []
    begin = recurrent_operator._History.__init__

    def count(self: Any, *args: Any) -> None:
        made.append(0)
        begin(self, *args)

    torch.manual_seed(0)
    module = nn.GRU(3, 4)
    called = magpy_core.compile(_step(module) if whole else module, backend=backend, wait=True)
    for x in _batches(6):
        called(x) if whole else called(x)[0].sum().backward()
    before = region_of(called).hits
    monkeypatch.setattr(recurrent_operator._History, "__init__", count)
    for x in _batches(4):
        called(x) if whole else called(x)[0].sum().backward()
    assert region_of(called).hits == before + 4
    assert len(made) == 4


def test_packed_sequences_from_outside() -> None:
    torch.manual_seed(0)
    lengths = [[4, 3, 1], [5, 3, 1], [5, 2, 2], [3, 3, 2], [6, 4, 1], [2, 1, 1], [5, 5, 5], [3, 2, 1]]
    calls = [pack_sequence([torch.randn(n, 3) for n in each]) for each in lengths]
    region = _both(nn.LSTM(3, 4, num_layers=2, dropout=0.3), "aot_eager", _step, calls)
    assert region.hits >= 4
    assert len(region.captures) <= 3


def test_autocast_takes_a_layer_apart() -> None:
    torch.manual_seed(0)

    def make(module: nn.Module) -> _Step:
        def step(x: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu"):
                loss: torch.Tensor = module(x)[0].float().mean()
            return loss.detach()

        return step

    _both(nn.GRU(3, 4), "aot_eager", make, [torch.randn(3, 2, 3) for _ in range(4)])


@pytest.mark.slow
def test_gradients_of_a_layer_under_autocast_are_eager_modes() -> None:
    """Its kernel gives them in float32, whatever the layer computes in; first calls are compared."""
    torch.manual_seed(0)
    net = nn.LSTM(8, 8)

    def step(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, ...]:
        out, (h, c) = net(x, (h, c))
        return out, h, c

    compiled: Any = magpy_core.compile(step, wait=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        given = torch.randn(5, 3, 8), torch.randn(1, 3, 8), torch.randn(1, 3, 8)
        try:
            step(*given)
        except RuntimeError as error:
            pytest.skip(f"this processor has no such kernel: {error}")
        for _ in range(3):
            compiled(*given)
    region = region_of(compiled)
    assert region.hits and not [one.message for one in region.findings.values() if one.code == "MP914"]


@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"padding_value": -1.5, "padding_side": "left"}])
def test_padded_sequences_of_all_lengths(options: dict[str, Any]) -> None:
    torch.manual_seed(0)

    def make(module: nn.Module) -> _Step:
        def step(rows: list[torch.Tensor]) -> Any:
            padded = pad_sequence([module(row) for row in rows], **options)
            loss = padded.sin().sum()
            return padded.detach(), *torch.autograd.grad(loss, list(module.parameters()))

        return step

    calls = [[torch.randn(n, 3) for n in (3 + i % 4, 7 + i % 3, 2 + i % 5)] for i in range(12)]
    region = _both(nn.Linear(3, 2), "aot_eager", make, calls)
    assert region.hits >= 7
    assert len(region.captures) <= 4


def _operators(steps: int, batch: int, *, varies: bool) -> set[str]:
    """Of the graph of a GRU's step."""
    graph = torch.fx.Graph()
    names = ("x", "h", "a", "b", "c", "d")
    x, h, *weights = (graph.placeholder(name) for name in names)
    call = graph.call_function(torch.gru, (x, h, weights, True, 1, 0.0, True, False, False))
    graph.output(graph.call_function(operator.getitem, (call, 0)))
    module = torch.fx.GraphModule(nn.Module(), graph)
    keep_layers(module)
    mode = FakeTensorMode(shape_env=ShapeEnv())
    real = [torch.randn(steps, batch, 3), torch.randn(1, batch, 4), *nn.GRU(3, 4).parameters()]
    places: Any = StatelessSymbolicContext([DimDynamic.DYNAMIC, DimDynamic.STATIC, DimDynamic.STATIC])
    given, *others = real
    first = mode.from_tensor(given, symbolic_context=places) if varies else mode.from_tensor(given, static_shapes=True)
    fakes = [first, *(mode.from_tensor(other, static_shapes=True) for other in others)]
    with torch.no_grad():
        traced = trace_operators(lambda *values: module(*values), fakes, mode)
    return {str(node.target) for node in traced.graph.nodes}


def test_a_layer_of_one_length_is_taken_apart() -> None:
    """Its code is faster, unless there is much of it."""
    ours = "magpy.recurrent_forward.default"
    assert ours not in _operators(5, 2, varies=False)
    assert ours in _operators(5, 2, varies=True)
    assert ours in _operators(LIMITS.unrolled_steps + 1, 2, varies=False)


def test_rows_of_other_types_and_sizes_are_padded_as_the_first() -> None:
    rows = [torch.randn(2, 3), torch.ones(4, 1, dtype=torch.int64), torch.randn(1, 3, dtype=torch.float64)]
    for side in ("left", "right"):
        expected = pad_sequence(rows, batch_first=True, padding_value=0.5, padding_side=side)
        found = padded_sequences.pad_sequence(rows, True, 0.5, side)
        assert found.dtype == expected.dtype
        assert torch.equal(found, expected)

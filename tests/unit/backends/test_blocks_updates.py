"""Updates of parameters of different shapes: one compiled code with a symbolic size serves all of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.fx
from torch import nn

import magpy_core
from magpy_core._compat.torch import inductor as compat
from magpy_core.backends.blocks import compiling, flat_code, updates
from magpy_core.backends.blocks.units import Unit
from magpy_core.backends.fakes import make_fake_inputs
from magpy_core.limits import LIMITS
from magpy_core.regions.api import region_of

BACKENDS = ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]
OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.1),
    "amsgrad": lambda p: torch.optim.Adam(p, lr=0.1, amsgrad=True),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.1, momentum=0.9, centered=True),
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
}


@pytest.fixture(autouse=True)
def _few_updates_repay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "LIMITS", replace(LIMITS, updates_save=20))
    monkeypatch.setattr(compiling, "least_work", lambda device: 1)
    monkeypatch.setattr(compiling, "LIMITS", replace(LIMITS, block_saves=1))
    monkeypatch.setattr("magpy_core.backends.stored.key_of", lambda *given, **named: None)  # each test compiles


@pytest.fixture(name="flat")
def _flat(monkeypatch: pytest.MonkeyPatch) -> list[list[bool]]:
    """For each graph that was compiled in units, which of its kinds of units serve all sizes."""
    found: list[list[bool]] = []
    original = compiling._compiled

    def compiled(graph: Any, units: Any, compile_one: Any) -> Any:
        kinds = {id(kind): kind for _, kind in units}
        found.append([kind.flat is not None for kind in kinds.values()])
        return original(graph, units, compile_one)

    monkeypatch.setattr(compiling, "_compiled", compiled)
    return found


class Shapes(nn.Module):
    """Parameters of 1, 2 and 4 dimensions, and single numbers between them."""

    def __init__(self) -> None:
        super().__init__()
        shapes = [(6, 6), (6,), (1,), (3, 2, 2, 2), (5, 3), (1, 1), (3,), (4, 4), (7,), (2, 9), (1, 4)]
        self.each = nn.ParameterList(torch.randn(shape) for shape in shapes)


def set_gradients(plain: nn.Module, other: nn.Module) -> None:
    for p, q in zip(plain.parameters(), other.parameters(), strict=True):
        p.grad = torch.randn_like(p)
        q.grad = p.grad.clone()


def compare(plain: nn.Module, other: nn.Module) -> None:
    for p, q in zip(plain.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(q, p, rtol=1e-4, atol=1e-6)
        assert q.stride() == p.stride()
        assert q.requires_grad
        assert q.is_leaf


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_parameters_of_all_shapes(name: str, backend: str, flat: list[list[bool]]) -> None:
    torch.manual_seed(0)
    plain = Shapes()
    model = copy.deepcopy(plain)
    optimizers = [OPTIMIZERS[name](m.parameters()) for m in (plain, model)]
    step = magpy_core.compile(optimizers[1].step, backend=backend)
    for i in range(6):
        set_gradients(plain, model)
        if i == 4:
            for optimizer in optimizers:
                optimizer.param_groups[0]["lr"] = 0.05
        versions = [(p._version, q._version) for p, q in zip(plain.parameters(), model.parameters(), strict=True)]
        optimizers[0].step()
        step()
        compare(plain, model)
        for p, q, (before, ours) in zip(plain.parameters(), model.parameters(), versions, strict=True):
            assert p._version > before
            assert q._version > ours, "autograd must see that it was written"
    states = [optimizer.state_dict()["state"] for optimizer in optimizers]
    torch.testing.assert_close(states[1], states[0], rtol=1e-4, atol=1e-6)
    assert region_of(step).hits
    assert any(True in kinds for kinds in flat)
    assert flat[-1].count(False) <= 2, "the first update, which computes what others use, and those of single numbers"


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_whole_step(backend: str, flat: list[list[bool]]) -> None:
    torch.manual_seed(0)
    plain = nn.Sequential(*(layer for n in range(5, 12) for layer in (nn.Linear(n, n + 1), nn.Tanh())), nn.Linear(12, 1))
    model = copy.deepcopy(plain)
    inputs = [torch.randn(4, 5) for _ in range(6)]

    def step_of(module: nn.Module) -> Callable[[torch.Tensor], torch.Tensor]:
        optimizer = torch.optim.AdamW(module.parameters(), lr=0.01, amsgrad=True)  # others are one call of torch's kernel

        def step(x: torch.Tensor) -> torch.Tensor:
            optimizer.zero_grad()
            loss = module(x).square().mean()
            loss.backward()
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            optimizer.step()
            return loss.detach()

        return step

    plain_step, step = step_of(plain), magpy_core.compile(step_of(model), backend=backend)
    for x in inputs:
        torch.testing.assert_close(step(x), plain_step(x), rtol=1e-4, atol=1e-6)
        compare(plain, model)
    assert region_of(step).hits
    assert any(True in kinds for kinds in flat)


class ByParameter(torch.optim.Optimizer):
    def __init__(self, params: Any) -> None:
        super().__init__(params, {})
        self.total = torch.ones(())

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for p in self.param_groups[0]["params"]:
            self.update(p, p.grad.abs().add(1.0).sqrt().mul(0.5).neg().exp().sub(1.0).mul(0.3))

    def update(self, p: torch.Tensor, d: torch.Tensor) -> None:
        raise NotImplementedError


class Normalised(ByParameter):
    """Each update depends on the sum of a row of its gradient."""

    def update(self, p: torch.Tensor, d: torch.Tensor) -> None:
        p.sub_(d.div(d.sum(-1, keepdim=True).add(1.0)).mul(0.1))


class Shared(ByParameter):
    """Each update reads and writes the same number."""

    def update(self, p: torch.Tensor, d: torch.Tensor) -> None:
        self.total.mul_(1.1)
        p.sub_(d.mul(self.total).mul(0.1))


class Noisy(ByParameter):
    """Each update draws random numbers."""

    def update(self, p: torch.Tensor, d: torch.Tensor) -> None:
        p.sub_(d.mul(torch.rand_like(p)).mul(0.1))


@pytest.mark.parametrize("kind", [Normalised, Shared, Noisy])
def test_what_is_not_element_by_element(kind: type[torch.optim.Optimizer], flat: list[list[bool]]) -> None:
    torch.manual_seed(0)
    plain = Shapes()
    model = copy.deepcopy(plain)
    optimizers = [kind(m.parameters()) for m in (plain, model)]
    step = magpy_core.compile(optimizers[1].step, backend="aot_eager")
    for i in range(4):
        set_gradients(plain, model)
        torch.manual_seed(i)
        optimizers[0].step()
        torch.manual_seed(i)
        step()
        compare(plain, model)
    assert region_of(step).hits
    assert not any(map(any, flat))


def test_gradients_through_what_is_written(flat: list[list[bool]]) -> None:
    """In-place operations that autograd records are no updates."""
    torch.manual_seed(0)
    weights = [torch.randn(n + 2, requires_grad=True) for n in range(8)]

    def step(*tensors: torch.Tensor) -> None:
        for t in tensors:
            t.mul_(0.5).add_(1.0).mul_(2.0).add_(0.5).mul_(0.25).add_(0.1).mul_(1.5).add_(0.2).mul_(1.1).add_(0.3).mul_(0.9)

    compiled = magpy_core.compile(step, backend="aot_eager")
    for _ in range(4):
        results = []
        for call in (step, compiled):
            given = [w * 1.0 for w in weights]
            call(*given)
            results.append(torch.autograd.grad(sum(t.square().sum() for t in given), weights))
        torch.testing.assert_close(results[1], results[0])
    assert not any(map(any, flat))


def test_code_that_assumes_a_size_serves_no_other() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.add, (x, 1))
    graph.output((y,))
    unit = Unit([y], [x], flat=frozenset([x]))
    code = flat_code.FlatCode(unit, [torch.empty(4, 5)], grad=True)
    assert code.is_elementwise
    assert code.serves(2)
    assert code.serves(10**9)
    assert not code.serves(1)
    assert code.fakes[0].shape[0] < 100  # assumes it
    assert code.serves(99)
    assert not code.serves(100)


def test_compilers_see_symbolic_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[list[Any]] = []
    original = compat.aot_eager_compile

    def compile_it(graph: Any, fakes: Any, mode: Any) -> Any:
        shapes.append([fake.shape[0] for fake in fakes if fake.dim()])
        return original(graph, fakes, mode)

    monkeypatch.setattr(compat, "aot_eager_compile", compile_it)
    model = Shapes()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
    step = magpy_core.compile(optimizer.step, backend="aot_eager")
    for _ in range(5):
        set_gradients(model, model)
        step()
    assert any(sizes and all(isinstance(size, torch.SymInt) for size in sizes) for sizes in shapes)


@pytest.mark.parametrize("shares", [False, True])
def test_updates_that_write_what_others_read(shares: bool) -> None:
    """Through another tensor with the same memory, so that no edge of the graph shows it."""
    aten, memory = torch.ops.aten, torch.ones(12)
    counts = [memory[i] for i in range(6)] if shares else [torch.ones(()) for _ in range(6)]
    inputs = make_fake_inputs([*(torch.ones(2, 2 + n) for n in range(6)), *counts])
    fakes, mode = inputs.fakes, inputs.fake_mode
    graph = torch.fx.Graph()
    nodes = [graph.placeholder(f"x{i}") for i in range(12)]
    for x, count in zip(nodes[:6], nodes[6:], strict=True):
        more = graph.call_function(aten.add_.Tensor, (count, 1))
        y = graph.call_function(aten.mul.Tensor, (x, more))
        graph.call_function(aten.add_.Tensor, (x, graph.call_function(aten.exp.default, (y,))))
    graph.output(())
    operations = [node for node in graph.nodes if node.op == "call_function"]
    found = updates.find_updates(operations, dict(zip(nodes, fakes, strict=True)), mode, grad=False)
    assert [len(one.flat) for one in found] == ([] if shares else [6])


def test_the_order_of_updates_that_share_a_number(flat: list[list[bool]]) -> None:
    """In a whole step: its graph has other operators than an optimizer's."""
    torch.manual_seed(0)
    plain = Shapes()
    model = copy.deepcopy(plain)

    def step_of(module: Shapes) -> Callable[[torch.Tensor], None]:
        optimizer = Shared(module.parameters())

        def step(x: torch.Tensor) -> None:
            optimizer.zero_grad()
            sum((p * x).square().sum() for p in module.parameters()).backward()
            optimizer.step()

        return step

    plain_step, step = step_of(plain), magpy_core.compile(step_of(model), backend="aot_eager")
    for i in range(4):
        plain_step(torch.tensor(i + 1.0))
        step(torch.tensor(i + 1.0))
        compare(plain, model)
    assert region_of(step).hits
    assert not any(map(any, flat))

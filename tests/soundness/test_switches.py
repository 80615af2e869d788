"""A program computes the same whenever its compiled code arrives: the switch is made at every call in turn.

The queue of compilations is replaced by one that is ready at a chosen call; that a forked process does the work is tested in
``tests/unit/backends/test_background.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core.backends import background, fair_share
from magpy_core.backends.background import Compilation, Result
from magpy_core.regions.api import region_of
from tests.limits import WITHOUT_SHARES

pytestmark = [pytest.mark.torch_compile, pytest.mark.filterwarnings("ignore")]
CALLS = 6


class ReadyAt:
    """A queue whose compilations are ready when they are polled for the n-th time."""

    def __init__(self, n: int) -> None:
        self.n, self.times = n, dict[int, int]()

    def add(self, size: int = 1, calls: int = 0, *, improves: bool = False, learns: bool = False) -> Compilation:
        return Compilation()

    def poll(self, one: Compilation, work: Callable[[], object]) -> bool:
        self.times[id(one)] = self.times.get(id(one), 0) + 1
        if self.times[id(one)] >= self.n:
            one._result = Result(1.0)
        return one.ended()


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)
        self.calls, self.seen = 0, list[int]()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.seen.append(self.calls)
        return self.norm(self.lin(x)) * self.calls


def trained(compile: Callable[..., Any]) -> list[Any]:
    """A counter, a list, running statistics, gradients and the state of an optimizer."""
    net = Counting()
    compile(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    step = compile(optimizer.step)
    losses = []
    for _ in range(CALLS):
        optimizer.zero_grad()
        loss = net(torch.arange(12.0).view(4, 3)).square().mean()
        loss.backward()
        step()
        losses.append(loss.detach())
    return [*losses, *net.state_dict().values(), torch.tensor(net.seen), torch.tensor(net.calls)]


def cut(compile: Callable[..., Any]) -> list[Any]:
    """Two graphs with a decision between them, each ready at a call of its own; random numbers; a write."""
    total = torch.zeros(3)

    def region(x: torch.Tensor) -> torch.Tensor:
        noise = torch.nn.functional.dropout(torch.rand(3))
        total.add_(x)
        y = x.sin() + total
        return y * 2 + noise if y.sum() > 0 else y - noise

    compiled = compile(region)
    torch.manual_seed(3)
    return [*(compiled(torch.full((3,), float(i % 3))) for i in range(CALLS)), total, torch.rand(2)]


@pytest.mark.slow
@pytest.mark.parametrize("program", [trained, cut])
def test_a_switch_at_every_call(program: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    expected = program(lambda target: target)
    served = []
    for n in range(1, CALLS + 1):
        compiled: list[Any] = []

        def compile(target: Any, into: list[Any] = compiled) -> Any:
            into.append(magpy_core.compile(target, backend="inductor", wait=False))
            return into[-1]

        monkeypatch.setattr(background, "QUEUE", ReadyAt(n))
        torch.manual_seed(0)
        got = program(compile)
        for want, have in zip(expected, got, strict=True):
            torch.testing.assert_close(have, want, rtol=1e-4, atol=1e-5)  # kernels round otherwise
        served.append(sum(capture.hits for target in compiled for capture in magpy_core.captures(target)))
    assert served == sorted(served, reverse=True) and served[0] > served[-1], served


def test_what_the_compiler_refuses_there_runs_as_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refuses(ReadyAt):
        def poll(self, one: Compilation, work: Callable[[], object]) -> bool:
            one._result = Result(1.0, "MP902", "The backend can't compile it.")
            return True

    monkeypatch.setattr(background, "QUEUE", Refuses(1))
    compiled = magpy_core.compile(lambda x: x * 2, backend="inductor", wait=False)
    assert [compiled(torch.ones(1)).item() for _ in range(4)] == [2.0] * 4
    region = compiled.__magpy_region__  # type: ignore[attr-defined]
    assert region.disabled == "The backend can't compile it." and "MP902" in [f.code for f in region.findings.values()]


def test_calls_meanwhile_are_plain_and_a_dropped_capture_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "QUEUE", ReadyAt(100))
    compiled = magpy_core.compile(lambda x: x * 2, backend="inductor", wait=False)
    for _ in range(4):
        assert compiled(torch.ones(1)).item() == 2.0
    (capture,) = magpy_core.captures(compiled)
    assert capture.is_compiling and not capture.is_ready and (capture.hits, capture.plain_calls) == (0, 3)
    (compilation,) = capture._graphs._compilations.values()
    cancelled = []
    compilation.cancel = lambda: cancelled.append(True)  # type: ignore[method-assign]
    del compilation, capture
    magpy_core.reset()
    assert magpy_core.captures(compiled) == []


@pytest.mark.slow
@pytest.mark.usefixtures("empty_compiler_cache")
def test_a_forked_process_compiles_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_share, "LIMITS", WITHOUT_SHARES)
    net, twin = Counting(), Counting()
    twin.load_state_dict(net.state_dict())
    magpy_core.compile(net, backend="inductor", wait=False)
    region = region_of(net)
    region.options = replace(region.options, on_trial=False)
    ready = None
    for call in range(200_000):
        x = torch.full((4, 3), float(call % 5)) + torch.arange(12.0).view(4, 3)
        torch.testing.assert_close(net(x), twin(x), rtol=1e-4, atol=1e-4)
        if ready is None and magpy_core.captures(net)[0].is_ready:
            ready = call
        if ready is not None and call == ready + 5:
            break
    capture = magpy_core.captures(net)[0]  # in which the counter varies
    assert ready is not None and capture.hits == 6 and net.seen == twin.seen
    assert capture.compile_seconds is not None and capture.plain_calls > 0

"""CUDA graphs: those that MagPy replays, one that a program records of a compiled step, and one of a measurement
(``Graphed``).

Where a program records one, nothing may be recorded or compiled by MagPy meanwhile: that would end the program's recording.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import magpy_core
from benchmarks.gpu.graphed import Graphed, NotGraphable, make_capturable, unfit
from magpy_core.backends.cuda_graphs import Replayed
from magpy_core.regions.api import region_of
from tests.gpu.device import DEVICE, codes, compiled, finished, needs_cuda, served, twice

_WARM = 4


class _Training:
    """A step over a batch that stays in its place, as CUDA graphs need it. ``kind``: of the optimizer."""

    def __init__(self, kind: str = "SGD") -> None:
        self.model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 4)).to(DEVICE)
        options = {"lr": 0.05, "momentum": 0.9} if kind == "SGD" else {"lr": 1e-2}
        self.optimizer: torch.optim.Optimizer = getattr(torch.optim, kind)(self.model.parameters(), **options)
        make_capturable([self.optimizer])
        self.x, self.y = torch.randn(32, 16, device=DEVICE), torch.randint(4, (32,), device=DEVICE)

    def step(self) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(self.x), self.y)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.detach()

    def new_batch(self, number: int) -> None:
        generator = torch.Generator().manual_seed(number)
        self.x.copy_(torch.randn(32, 16, generator=generator))
        self.y.copy_(torch.randint(4, (32,), generator=generator))


def _warm(step: Callable[[], torch.Tensor], calls: int = _WARM) -> None:
    """On another stream, as torch's documentation of CUDA graphs has it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(calls):
            step()
    torch.cuda.current_stream().wait_stream(stream)


def _same(ours: _Training, plain: _Training) -> None:
    for one, other in zip(ours.model.parameters(), plain.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@needs_cuda
@pytest.mark.parametrize("kind", ["SGD", "AdamW"])
def test_a_program_records_a_compiled_step(kind: str) -> None:
    plain, ours = twice(lambda: _Training(kind))
    step = compiled(ours.step)
    _warm(step)
    for _ in range(_WARM):
        plain.step()
    assert served(step) >= 2, "it is compiled before the recording"
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    for number in range(5):
        plain.new_batch(number)
        ours.new_batch(number)
        graph.replay()
        torch.testing.assert_close(loss, plain.step(), rtol=1e-4, atol=1e-5)
    _same(ours, plain)


@needs_cuda
def test_nothing_is_recorded_while_a_program_records_a_cuda_graph() -> None:
    """The step is compiled but has never run: its call in the recording runs in eager mode, and a finding says so."""
    plain, ours = twice(_Training)
    _warm(ours.step)  # its buffers, not MagPy's
    for _ in range(_WARM):
        plain.step()
    step = compiled(ours.step)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    assert region_of(step).recordings == 0 and served(step) == 0
    assert "MP106" in codes(step)
    for number in range(3):
        plain.new_batch(number)
        ours.new_batch(number)
        graph.replay()
        torch.testing.assert_close(loss, plain.step(), rtol=1e-4, atol=1e-5)
    _same(ours, plain)


@needs_cuda
def test_nothing_is_compiled_while_a_program_records_a_cuda_graph() -> None:
    """A step was recorded by MagPy but not compiled yet: its call in the recording runs in eager mode."""
    plain, ours = twice(_Training)
    _warm(ours.step)
    step = compiled(ours.step)
    step()  # recorded: the next call would compile it
    for _ in range(_WARM + 1):
        plain.step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    assert served(step) == 0
    graph.replay()
    torch.testing.assert_close(loss, plain.step(), rtol=1e-4, atol=1e-5)
    ours.new_batch(0)
    plain.new_batch(0)
    torch.testing.assert_close(step(), plain.step(), rtol=1e-4, atol=1e-5)
    assert served(step) == 1, "after the recording it is compiled"
    _same(ours, plain)


@needs_cuda
@pytest.mark.parametrize("kind", ["SGD", "AdamW"])
def test_the_graph_of_a_whole_step_can_be_replayed(kind: str) -> None:
    """What ``benchmarks/gpu`` measures computes the same as eager, and knows when tensors are elsewhere."""
    plain, ours = twice(lambda: _Training(kind))
    step = compiled(ours.step)
    for _ in range(_WARM):
        step()
        plain.step()
    capture = magpy_core.captures(step)[0]
    inputs = capture.gather_inputs((), {})
    assert not unfit(inputs), unfit(inputs)
    graphed = Graphed(capture.bare_callable, inputs)
    for number in range(5):
        plain.new_batch(number)
        ours.new_batch(number)
        graphed()
        plain.step()
    _same(ours, plain)
    assert graphed.fits(capture.gather_inputs((), {}))
    ours.x = ours.x.clone()
    assert not graphed.fits(capture.gather_inputs((), {}))


@needs_cuda
@pytest.mark.torch_compile
def test_reduce_overhead_beside_a_compiled_step() -> None:
    """torch.compile's own CUDA graphs in the same process disturb nothing."""
    plain, ours = twice(_Training)
    step = compiled(ours.step)
    linear = nn.Linear(8, 8).to(DEVICE)
    other = torch.compile(linear, mode="reduce-overhead")
    x = torch.randn(4, 8, device=DEVICE)
    for _ in range(6):
        torch.testing.assert_close(step(), plain.step(), rtol=1e-4, atol=1e-5)
        with torch.no_grad():
            torch.compiler.cudagraph_mark_step_begin()
            torch.testing.assert_close(other(x), F.linear(x, linear.weight, linear.bias), rtol=1e-4, atol=1e-5)
    _same(ours, plain)


def test_numbers_and_tensors_of_the_host_are_no_inputs_of_a_cuda_graph() -> None:
    assert "1 of its inputs are Python numbers" in unfit([0.5])
    assert "tensors on the CPU" in unfit([torch.ones(2)])
    with pytest.raises(NotGraphable, match="Python numbers"):
        Graphed(lambda rate: [rate], [0.5])


def test_the_step_itself() -> None:
    """Compiled and plain, on whatever device these tests have."""
    plain, ours = twice(_Training)
    step = compiled(ours.step)
    for number in range(5):
        plain.new_batch(number)
        ours.new_batch(number)
        torch.testing.assert_close(step(), plain.step(), rtol=1e-4, atol=1e-5)
    _same(ours, plain)
    assert served(step) >= 3


def _replaying(step: Any) -> Replayed:
    """What replays the step."""
    (found,) = [one for capture in magpy_core.captures(step) if capture.hits for one in capture.replayed]
    return found


class _Batches(_Training):
    """A step over batches that are elsewhere each time, with a learning rate that changes."""

    def __init__(self, kind: str, **options: Any) -> None:
        self.model = nn.Sequential(
            nn.Linear(16, 64, bias=False), nn.BatchNorm1d(64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, 4)
        )  # a bias before the normalization would have gradients of rounding errors alone
        self.model.to(DEVICE)
        self.optimizer = getattr(torch.optim, kind)(self.model.parameters(), lr=0.01, **options)
        self.rates = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.95)
        self.kept: list[torch.Tensor] = []

    def next_step(self, number: int, step: Any) -> torch.Tensor:
        generator = torch.Generator().manual_seed(number)
        x = torch.randn(32, 16, generator=generator).to(DEVICE)
        y = torch.randint(4, (32,), generator=generator).to(DEVICE)
        self.kept.append(x)  # so that the next one is elsewhere
        torch.manual_seed(number)
        loss: torch.Tensor = step(x, y)
        self.rates.step()
        return loss

    def train(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


_OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9},
    "Adam": {"foreach": False},
    "AdamW": {},
    "NAdam": {"capturable": True},
}


@needs_cuda
@pytest.mark.parametrize("kind", _OPTIMIZERS)
def test_whole_steps_are_replayed(kind: str) -> None:
    """Batches, learning rate, step counts, running statistics and random numbers are those of the step; what the program
    keeps of earlier steps stays as it was."""
    plain, ours = twice(lambda: _Batches(kind, **_OPTIMIZERS[kind]))
    step = compiled(ours.train)
    losses, gradients = list[tuple[torch.Tensor, torch.Tensor]](), list[tuple[Any, Any]]()
    for number in range(30):
        losses.append((ours.next_step(number, step), plain.next_step(number, plain.train)))
        gradients.append((ours.model[0].weight.grad, plain.model[0].weight.grad))
        if number == 20:
            finished()
    replaying = _replaying(step)
    assert replaying.replays >= 15 and not replaying.reason and not replaying.is_slower, (vars(replaying), codes(step))
    for found, wanted in losses + gradients:
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)
    _same(ours, plain)
    for one, other in zip(ours.model.buffers(), plain.model.buffers(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@needs_cuda
def test_the_random_stream_goes_on_as_in_eager() -> None:
    """One seed for all steps: each replay draws the next numbers, as many as eager does."""
    plain, ours = twice(lambda: _Batches("SGD"))
    step = compiled(ours.train)
    x, y = torch.randn(32, 16, device=DEVICE), torch.randint(4, (32,), device=DEVICE)
    torch.manual_seed(0)
    wanted = [plain.train(x, y).item() for _ in range(24)]
    torch.manual_seed(0)
    found = [step(x, y).item() for _ in range(24)]
    assert found == pytest.approx(wanted, rel=1e-3)
    assert _replaying(step).replays


@needs_cuda
def test_parameters_that_are_elsewhere() -> None:
    """A checkpoint that replaces parameters' memory: what is recorded for the old memory is not replayed."""
    plain, ours = twice(lambda: _Batches("SGD"))
    step = compiled(ours.train)
    for number in range(24):
        for one, train in ((ours, step), (plain, plain.train)):
            if number == 18:
                for parameter in one.model.parameters():
                    parameter.data = parameter.data * 0.5
            one.next_step(number, train)
    assert _replaying(step).replays
    _same(ours, plain)


@needs_cuda
def test_inference_is_replayed() -> None:
    model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 4)).to(DEVICE).eval()
    predict = compiled(lambda x: model(x).softmax(-1))
    given = [torch.randn(8, 16, device=DEVICE) for _ in range(24)]
    with torch.no_grad():
        results = [predict(x) for x in given]
        finished()
        results += [predict(x) for x in given]
        for found, x in zip(results, given * 2, strict=True):
            torch.testing.assert_close(found, model(x).softmax(-1), rtol=1e-4, atol=1e-5)
    assert _replaying(predict).replays, vars(_replaying(predict))


@needs_cuda
def test_a_step_that_can_not_be_recorded() -> None:
    """Whatever waits for the device: the code runs as it is, and torch's random numbers still work."""

    def step(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.inv(x @ x.t() + 8 * torch.eye(8, device=DEVICE)) + torch.rand(8, 8, device=DEVICE)

    run = compiled(step)
    with torch.no_grad():
        for number in range(12):
            x = torch.randn(8, 8, device=DEVICE)
            torch.manual_seed(number)
            found = run(x)
            torch.manual_seed(number)
            torch.testing.assert_close(found, step(x), rtol=1e-4, atol=1e-4)
    assert torch.rand(4, device=DEVICE).numel() == 4


@needs_cuda
def test_a_recording_that_fails_leaves_the_random_generator_usable() -> None:
    """Code that waits for the device where nothing said so; what was recorded before draws the right numbers afterwards."""

    def draws(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        return [inputs[0] + torch.rand(4, device=DEVICE)]

    def waits(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        return [inputs[0] * float(inputs[0].sum()) + torch.rand(4, device=DEVICE)]

    x = torch.ones(4, device=DEVICE)
    first, second = Replayed(draws, frozenset(), 0), Replayed(waits, frozenset(), 0)
    for code, replaying in ((draws, first), (waits, second), (draws, first)):
        for number in range(8):
            torch.manual_seed(number)
            (wanted,) = code([x])
            torch.manual_seed(number)
            (found,) = replaying([x])
            torch.testing.assert_close(found, wanted)
    assert "can't be recorded" in second.reason and first.replays and not first.reason
    wanted = [torch.rand(4, device=DEVICE) for _ in range(2)]
    assert not torch.equal(*wanted)


@needs_cuda
def test_another_stream() -> None:
    plain, ours = twice(lambda: _Batches("SGD"))
    step = compiled(ours.train)
    stream = torch.cuda.Stream()
    for number in range(24):
        plain.next_step(number, plain.train)
        if number % 2:
            ours.next_step(number, step)
        else:
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                ours.next_step(number, step)
            torch.cuda.current_stream().wait_stream(stream)
    _same(ours, plain)


@needs_cuda
def test_cuda_graphs_can_be_switched_off() -> None:
    ours = _Batches("SGD")
    step = compiled(ours.train, cuda_graphs=False)
    for number in range(8):
        ours.next_step(number, step)
    assert served(step) and not [one for capture in magpy_core.captures(step) for one in capture.replayed]

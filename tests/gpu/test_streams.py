"""CUDA streams: a compiled call runs on the current stream, and a region that uses streams computes what eager does."""

from __future__ import annotations

import threading

import torch
from torch import nn

from tests.gpu.device import DEVICE, compiled, needs_cuda, served, twice

_LONG = 200_000_000  # cycles of the device: about a tenth of a second


def _wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * 2 + torch.cos(x)


@needs_cuda
def test_a_compiled_call_waits_for_what_its_stream_does_before() -> None:
    wave = compiled(_wave)
    x = torch.zeros(1 << 16, device=DEVICE)
    for _ in range(4):
        wave(x)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(_LONG)  # on any other stream, the call would read x before it is written
        x.fill_(1.5)
        found = wave(x)
    stream.synchronize()
    torch.testing.assert_close(found, _wave(torch.full_like(x, 1.5)))
    assert served(wave) >= 4


@needs_cuda
def test_two_streams_at_once() -> None:
    """Calls of one region by turns on two streams, each with tensors of its own."""
    wave = compiled(_wave)
    xs = [torch.randn(1 << 18, device=DEVICE) for _ in range(2)]
    for _ in range(3):
        wave(xs[0])
    streams = [torch.cuda.Stream() for _ in xs]
    torch.cuda.synchronize()
    results = list(xs)
    for _ in range(10):
        for i, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                results[i] = wave(results[i])
    torch.cuda.synchronize()
    for x, found in zip(xs, results, strict=True):
        wanted = x
        for _ in range(10):
            wanted = _wave(wanted)
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-2)  # each round doubles the rounding of the last


@needs_cuda
def test_a_step_on_another_stream_trains_alike() -> None:
    """The backward pass runs on the streams of the forward pass, in eager mode and compiled."""

    def make() -> tuple[nn.Module, torch.optim.Optimizer]:
        model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1)).to(DEVICE)
        return model, torch.optim.SGD(model.parameters(), lr=0.05)

    (plain, its), (ours, mine) = twice(make)
    x = torch.randn(64, 8, device=DEVICE)
    compiled(ours)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(6):
            for model, optimizer in ((plain, its), (ours, mine)):
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()
    torch.cuda.current_stream().wait_stream(stream)
    for one, other in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert served(ours) >= 4


@needs_cuda
def test_a_region_that_uses_a_stream() -> None:
    """Whether MagPy captures it or runs it plainly, the result is eager's."""
    side = torch.cuda.Stream()

    def step(x: torch.Tensor) -> torch.Tensor:
        current = torch.cuda.current_stream()
        side.wait_stream(current)
        with torch.cuda.stream(side):
            torch.cuda._sleep(_LONG // 20)
            y = x * 3
        current.wait_stream(side)
        return y + 1

    run = compiled(step)
    for number in range(5):
        x = torch.full((1 << 16,), float(number), device=DEVICE)
        torch.testing.assert_close(run(x), x * 3 + 1)


@needs_cuda
def test_a_region_that_waits_for_an_event() -> None:
    """Recorded and awaited inside: timing, too, is the program's own."""

    def step(x: torch.Tensor) -> tuple[torch.Tensor, bool]:
        done = torch.cuda.Event()
        y = x * 2
        done.record()
        done.synchronize()
        return y, done.query()

    run = compiled(step)
    for number in range(5):
        x = torch.full((64,), float(number), device=DEVICE)
        y, is_done = run(x)
        assert is_done
        torch.testing.assert_close(y, x * 2)


def test_threads_with_regions_of_their_own() -> None:
    """Each thread compiles and calls a module of its own; on CUDA, on a stream of its own."""

    def made() -> list[nn.Sequential]:
        return [nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to(DEVICE) for _ in range(3)]

    models, twins = twice(made)
    x = torch.randn(5, 8, device=DEVICE)
    found: dict[int, list[torch.Tensor]] = {}

    def work(number: int) -> None:
        model = compiled(models[number])
        stream = torch.cuda.Stream() if DEVICE.type == "cuda" else None
        with torch.no_grad(), torch.cuda.stream(stream):
            found[number] = [model(x) for _ in range(5)]
        if stream is not None:
            stream.synchronize()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(models))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with torch.no_grad():
        for number, twin in enumerate(twins):
            assert len(found[number]) == 5
            for result in found[number]:
                torch.testing.assert_close(result, twin(x), rtol=1e-4, atol=1e-5)

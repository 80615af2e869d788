"""Batches from loaders: pinned memory, copies that don't wait, prefetching on a stream, inside and outside of a region."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import magpy_core
from tests.gpu.device import DEVICE, IS_CUDA, compiled, finished, needs_cuda, served, twice

_SIZE, _BATCH = 96, 16


def _data() -> TensorDataset:
    generator = torch.Generator().manual_seed(5)
    return TensorDataset(torch.randn(_SIZE, 12, generator=generator), torch.randint(3, (_SIZE,), generator=generator))


def _loader(workers: int) -> DataLoader[tuple[torch.Tensor, ...]]:
    return DataLoader(_data(), _BATCH, num_workers=workers, pin_memory=IS_CUDA)


class _Training:
    """``step(x, y)`` copies its batch to the device itself if it is ``inside``."""

    def __init__(self, inside: bool) -> None:
        self.model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3)).to(DEVICE)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.inside = inside

    def step(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if self.inside:
            x, y = x.to(DEVICE, non_blocking=True), y.to(DEVICE, non_blocking=True)
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def _same(ours: _Training, plain: _Training) -> None:
    for one, other in zip(ours.model.parameters(), plain.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
@pytest.mark.parametrize("workers", [0, 2])
def test_training_from_a_loader(workers: int, inside: bool) -> None:
    plain, ours = twice(lambda: _Training(inside))
    step = compiled(ours.step)
    for _ in range(2):
        for x, y in _loader(workers):
            assert x.is_pinned() == IS_CUDA
            if not inside:
                x, y = x.to(DEVICE, non_blocking=True), y.to(DEVICE, non_blocking=True)
            torch.testing.assert_close(step(x, y), plain.step(x, y), rtol=1e-4, atol=1e-5)
    _same(ours, plain)
    assert served(step) >= 2 * _SIZE // _BATCH - 4 and magpy_core.captures(step)


def test_one_buffer_for_all_batches() -> None:
    """A program may fill the same pinned buffer again once the device has finished with it."""
    plain, ours = twice(lambda: _Training(inside=True))
    step = compiled(ours.step)
    x, y = torch.empty(_BATCH, 12, pin_memory=IS_CUDA), torch.empty(_BATCH, dtype=torch.long, pin_memory=IS_CUDA)
    for number in range(8):
        generator = torch.Generator().manual_seed(number)
        x.normal_(generator=generator)
        y.random_(0, 3, generator=generator)
        found, wanted = step(x, y), plain.step(x, y)
        finished()
        x.fill_(float("nan"))
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    _same(ours, plain)


@needs_cuda
def test_a_prefetching_loader() -> None:
    """The next batch is copied on a stream of its own while the step runs, with ``record_stream``."""

    def prefetched(loader: DataLoader[tuple[torch.Tensor, ...]]) -> Iterator[tuple[torch.Tensor, ...]]:
        stream = torch.cuda.Stream()
        coming: tuple[torch.Tensor, ...] | None = None
        for batch in loader:
            with torch.cuda.stream(stream):
                copied = tuple(t.to(DEVICE, non_blocking=True) for t in batch)
            if coming is not None:
                yield coming
            torch.cuda.current_stream().wait_stream(stream)
            for tensor in copied:
                tensor.record_stream(torch.cuda.current_stream())
            coming = copied
        if coming is not None:
            yield coming

    plain, ours = twice(lambda: _Training(inside=False))
    step = compiled(ours.step)
    for _ in range(3):
        for x, y in prefetched(_loader(0)):
            torch.testing.assert_close(step(x, y), plain.step(x, y), rtol=1e-4, atol=1e-5)
    _same(ours, plain)


def test_results_that_go_back_without_waiting() -> None:
    """A step that copies its loss to a pinned tensor of the host."""
    shown = torch.zeros((), pin_memory=IS_CUDA)

    def maker() -> Callable[[torch.Tensor], torch.Tensor]:
        weight = torch.ones(8, device=DEVICE)

        def step(x: torch.Tensor) -> torch.Tensor:
            loss = (x * weight).square().mean()
            shown.copy_(loss, non_blocking=True)
            return loss

        return step

    run = compiled(maker())
    for number in range(6):
        x = torch.full((8,), float(number), device=DEVICE)
        found = run(x)
        finished()
        assert shown.item() == pytest.approx(number**2) and found.item() == pytest.approx(number**2)

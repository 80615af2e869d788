"""No memory is left inside a compiled step: it raises what eager raises, nothing has changed, and later steps go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import nn

from tests.gpu.device import DEVICE, compiled, needs_cuda, served, twice

_WIDTH = 64
_MARGIN = 256 << 20  # bytes that are left
_TOO_MUCH = 1 << 21  # rows whose activations need more: 512 MiB each


@contextmanager
def little_memory() -> Iterator[None]:
    """A context in which the process gets no more than the margin beyond what it has."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(DEVICE).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + _MARGIN) / total)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()


class _Training:
    """Blows its batch up: ``rows`` of the hidden layer for each of the batch. Keeps count in several places."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Linear(4, _WIDTH), nn.Tanh(), nn.Linear(_WIDTH, 1)).to(DEVICE)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.steps = 0
        self.losses: list[torch.Tensor] = []

    def step(self, x: torch.Tensor, rows: int) -> torch.Tensor:
        self.steps += 1
        self.optimizer.zero_grad()
        loss: torch.Tensor = self.model(x.expand(rows, -1, -1)).square().mean()
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.detach())
        return loss.detach()


def _same(ours: _Training, plain: _Training) -> None:
    assert ours.steps == plain.steps and len(ours.losses) == len(plain.losses)
    for one, other in zip(ours.model.parameters(), plain.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
        assert (one.grad is None) == (other.grad is None)
        state, wanted = ours.optimizer.state[one], plain.optimizer.state[other]
        assert state.keys() == wanted.keys()
        for key, value in state.items():
            torch.testing.assert_close(value, wanted[key], rtol=1e-4, atol=1e-5)


@needs_cuda
@pytest.mark.parametrize("known", [False, True], ids=["a new size", "a compiled size"])
def test_a_step_without_memory(known: bool) -> None:
    """``known``: the size that is too large now has been compiled, while there was memory."""
    plain, ours = twice(_Training)
    step = compiled(ours.step)
    x = torch.randn(1, 4, device=DEVICE)
    for rows in [256] * 4 + ([_TOO_MUCH] * 3 if known else []):
        torch.testing.assert_close(step(x, rows), plain.step(x, rows), rtol=1e-4, atol=1e-5)
    hits = served(step)
    for optimizer in (ours.optimizer, plain.optimizer):
        optimizer.zero_grad()
    with little_memory():
        for training, call in ((plain, plain.step), (ours, step)):
            with pytest.raises(torch.OutOfMemoryError, match="out of memory"):
                call(x, _TOO_MUCH)
            training.optimizer.zero_grad()
    _same(ours, plain)
    for _ in range(3):
        torch.testing.assert_close(step(x, 256), plain.step(x, 256), rtol=1e-4, atol=1e-5)
    _same(ours, plain)
    assert served(step) > hits, "compiled code serves again"


@needs_cuda
def test_a_program_that_tries_a_smaller_batch() -> None:
    """The usual loop that halves its batch until it fits ends with the same size and the same weights."""

    def search(training: _Training, call: object) -> int:
        rows = 4 * _TOO_MUCH
        with little_memory():
            while True:
                try:
                    call(torch.ones(1, 4, device=DEVICE), rows)  # type: ignore[operator]
                    return rows
                except torch.OutOfMemoryError:
                    training.optimizer.zero_grad()
                    torch.cuda.empty_cache()
                    rows //= 64

    plain, ours = twice(_Training)
    wanted = search(plain, plain.step)
    assert search(ours, compiled(ours.step)) == wanted
    _same(ours, plain)

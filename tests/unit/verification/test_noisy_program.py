"""Rounding noise in all operations of a program, also in its backward pass and its optimizer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from magpy_core.verification.runs.noisy_program import NoisyProgram


@contextmanager
def noise(seed: int = 0, *, separates: bool = False) -> Iterator[None]:
    mode = NoisyProgram(seed, separates=separates)
    mode.is_on = True
    mode.begin()
    try:
        yield
    finally:
        mode.end()


def trained() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.rand(16, 8)).square().mean().backward()
        optimizer.step()
    return {name: value.clone() for name, value in net.state_dict().items()}


def test_noise_is_of_the_size_of_rounding_and_takes_no_random_numbers() -> None:
    plain = trained()
    after = torch.rand(1)
    with noise():
        noisy = trained()
        assert torch.equal(torch.rand(1), after)
    for name in plain:
        if "num_batches" in name:
            assert noisy[name] == plain[name]
        elif name != "0.bias":  # a normalization takes it away: its gradient is noise
            assert "running" in name or not torch.equal(noisy[name], plain[name])
            assert torch.allclose(noisy[name], plain[name], atol=1e-4)


def test_the_same_seed_gives_the_same_noise() -> None:
    runs = []
    for seed in (1, 1, 2):
        with noise(seed):
            runs.append(trained()["4.weight"])
    assert torch.equal(runs[0], runs[1]) and not torch.equal(runs[0], runs[2])


def test_whole_numbers_and_moved_elements_are_exact() -> None:
    with noise():
        labels = torch.arange(8).float() * 2 + 1
        assert torch.equal(labels, torch.tensor([1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0]))
        x = torch.rand(4, 4)
        assert torch.equal(x.clone().t()[0], x[:, 0]) and torch.equal(torch.cat([x, x])[4:], x)


def test_equal_values_stay_equal_unless_they_are_separated() -> None:
    x = torch.linspace(0.1, 0.2, 16).repeat(8, 1)
    with noise(3):
        alike = x * 0.9
    with noise(3, separates=True):
        separated = x * 0.9
    assert torch.equal(alike, alike[:1].expand(8, -1)) and not torch.equal(alike, x * 0.9)
    assert not torch.equal(separated, separated[:1].expand(8, -1))

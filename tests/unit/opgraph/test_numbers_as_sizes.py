"""Sizes that a varying integer decides: how many captures they need."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import magpy_core
from magpy_core.regions.api import region_of

Call = Callable[[torch.Tensor, int], torch.Tensor]

SIZES: dict[str, Call] = {
    "a prefix": lambda x, n: x * x.flatten()[:n].numel(),
    "a suffix": lambda x, n: x * x.flatten()[-n:].numel(),
    "a window": lambda x, n: x + x.flatten()[n : n + x.shape[1]].view(1, x.shape[1]),
    "a stride": lambda x, n: x.flatten()[::n].reshape(1, -1) + len(x.flatten()[::n]),
    "a factory": lambda x, n: x * torch.zeros(n, 2).shape[0],
    "expanded": lambda x, n: x[:1].expand(n, 3) * x[:1].expand(n, 3).shape[0],
    "repeated": lambda x, n: x.repeat(n, 1).view(-1, 3 * n).sum(0) * x.repeat(n, 1).shape[0],
    "padded": lambda x, n: F.pad(x, (0, n)) * F.pad(x, (0, n)).shape[1],
    "interpolated": lambda x, n: F.interpolate(x[None], size=n) * F.interpolate(x[None], size=n).shape[-1],
    "computed from a float": lambda x, n: x * x.flatten()[: int(n * 0.7)].shape[0],
    "times another size": lambda x, n: x * torch.ones(n * x.shape[0], x.shape[1]).shape[0],
}


@pytest.mark.parametrize("name", SIZES)
def test_two_captures_serve_every_number(name: str) -> None:
    compiled = magpy_core.compile(SIZES[name], backend="eager")
    for n in range(2, 10):
        x = torch.randn(4, 3)
        assert torch.equal(compiled(x, n), SIZES[name](x, n))
    assert region_of(compiled).recordings == 2


def test_a_number_beyond_the_other_size_is_another_capture() -> None:
    compiled = magpy_core.compile(SIZES["a prefix"], backend="eager")
    for n in (3, 4, 12, 5, 0, 13, 50, 14):
        x = torch.randn(4, 3)
        assert torch.equal(compiled(x, n), SIZES["a prefix"](x, n)), n
    assert region_of(compiled).recordings == 3


def test_a_branch_on_such_a_size_is_a_guard() -> None:
    def region(x: torch.Tensor, n: int) -> torch.Tensor:
        part = x.flatten()[:n]
        return part.sum() if part.shape[0] < 5 else part.mean()

    compiled = magpy_core.compile(region, backend="eager")
    for n in (2, 3, 4, 6, 7, 3, 8):
        x = torch.randn(4, 3)
        assert torch.equal(compiled(x, n), region(x, n)), n
    assert region_of(compiled).recordings == 3


@pytest.mark.parametrize("name", ["a window", "padded"])
def test_compiled(name: str) -> None:
    compiled = magpy_core.compile(SIZES[name], backend="inductor")
    for n in range(2, 8):
        x = torch.randn(4, 3)
        torch.testing.assert_close(compiled(x, n), SIZES[name](x, n))
    assert region_of(compiled).recordings == 2


def test_sizes_that_follow_from_packed_sequences_are_fixed() -> None:
    """Torch's shape functions can't follow them: the layer makes its first state with a size that it reads from a tensor."""
    layer = torch.nn.GRU(4, 5, batch_first=True)

    def last(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = torch.nn.utils.rnn.pack_padded_sequence(x * 2, lengths, batch_first=True, enforce_sorted=False)
        out, _ = layer(packed)
        padded, _ = torch.nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
        return padded * padded.shape[1]

    compiled = magpy_core.compile(last, backend="eager")
    for longest in (3, 4, 5, 3):
        args = torch.ones(3, longest, 4), torch.tensor([longest, 1, 2])
        assert torch.equal(compiled(*args), last(*args))
    assert "MP901" not in {finding.code for finding in region_of(compiled).findings.values()}

"""Matrices in the same memory overlap exactly if they have an element in common."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch

import magpy_core
from magpy_core._compat.torch.overlapping_rows import overlaps_found
from magpy_core.regions.api import region_of


def test_blocks_of_a_matrix() -> None:
    from torch._inductor.fx_passes import reinplace

    table = torch.arange(30).view(5, 6)
    blocks = [
        table[a:b, c:d] for a, b, c, d in itertools.product((0, 1, 3), (2, 4, 5), (0, 1, 3), (2, 4, 6)) if a < b and c < d
    ]
    original, missed = reinplace.compute_overlapping_tensors, 0
    with overlaps_found():
        for one, other in itertools.combinations(blocks, 2):
            have_common = not set(one.flatten().tolist()).isdisjoint(other.flatten().tolist())
            assert reinplace.compute_overlapping_tensors([one, other]) == ({0, 1} if have_common else set())
            missed += have_common and not original([one, other])
    assert missed, "torch finds them all: this file can go"
    assert reinplace.compute_overlapping_tensors is original


def writes_the_whole(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return y * 2


def writes_the_block(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    y.add_(1)
    return x * 2


def reads_before_it_writes(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    before = torch.cat([(x + 0)[1:], (x + 0)[:1]])
    x[1:3, 1:3][torch.tensor([0, 1]), torch.tensor([1, 0])] = 5.0
    return before.flip(0)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("program", [writes_the_whole, writes_the_block, reads_before_it_writes])
def test_what_one_writes_the_other_shows(program: Callable[..., torch.Tensor], backend: str) -> None:
    compiled = magpy_core.compile(program, backend=backend, wait=True)
    for _ in range(3):
        plain = torch.rand(4, 6)
        ours = plain.clone()
        expected = program(plain, plain[1:3, 1:3])
        assert torch.allclose(compiled(ours, ours[1:3, 1:3]), expected) and torch.allclose(ours, plain)
    assert region_of(compiled).hits

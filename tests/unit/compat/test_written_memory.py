"""What a compiled graph reads was not written over before: graphs that write what they also read."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.backends import fair_share
from magpy_core.regions.api import region_of
from tests.limits import WITHOUT_SHARES
from tests.soundness.generators import writes

Program = Callable[..., Any]


def swap(p: torch.Tensor, q: torch.Tensor) -> None:
    kept = p.clone()
    p.copy_(q)
    q.copy_(kept)


def swap_through_sums(p: torch.Tensor, q: torch.Tensor) -> None:
    torch._foreach_copy_([p, q], torch._foreach_add([p, q], [q, p]))


def swap_through_values(p: torch.Tensor, q: torch.Tensor) -> None:
    torch._foreach_copy_([p, q], torch._foreach_add([p, q], [q * 2, p * 2]))


def mix(p: torch.Tensor, q: torch.Tensor) -> None:
    p[:, 1:3] = p.flip(0)[:, 1:3]


def shift(p: torch.Tensor, q: torch.Tensor) -> None:
    p[1:] = p[:-1].clone()


def shift_what_is_computed(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    moved = p + 1
    kept = moved.clone()
    moved[torch.tensor([0, 1])] = kept[torch.tensor([2, 3])] * 2
    moved[1:] = moved[:-1].clone()
    return moved


def fill_a_bucket(p: torch.Tensor, q: torch.Tensor) -> None:
    q.view(-1).copy_(p.view(-1))
    p.zero_()


def fill_a_part(p: torch.Tensor, q: torch.Tensor) -> None:
    q.view(-1)[:10] = p.view(-1)[:10]
    p.sub_(q * 0.5 + 1)


def all_rows(p: torch.Tensor, q: torch.Tensor) -> None:
    q[0:, :] = p[0:, :]
    p.add_(1)


def put_and_add(p: torch.Tensor, q: torch.Tensor) -> None:
    p.index_put_((torch.tensor([1, 2]),), torch.ones(4))
    p.add_(p.flip(0))


def put_and_transpose(p: torch.Tensor, q: torch.Tensor) -> None:
    p[torch.tensor([0, 1]), torch.tensor([2, 3])] = 1
    p.add_(p.t().clone())


def put_what_is_read(p: torch.Tensor, q: torch.Tensor) -> None:
    p[torch.tensor([0, 1, 2, 3])] = p.flip(0) * 2


def reversed_list(p: torch.Tensor, q: torch.Tensor) -> None:
    torch._foreach_add_([p], [p.flip(0)])


def kept_result(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    p.diagonal().add_(1)
    kept = p.clone()
    p.copy_(q)
    q.copy_(kept)
    return kept[1]


def average(p: torch.Tensor, q: torch.Tensor) -> None:
    q.mul_(0.9).add_(p, alpha=0.1)
    p.copy_(q)


PROGRAMS: list[Program] = [
    swap, swap_through_sums, swap_through_values, mix, shift, shift_what_is_computed, fill_a_bucket, fill_a_part, all_rows,
    put_and_add, put_and_transpose, put_what_is_read, reversed_list, kept_result, average,
]  # fmt: skip


def all_of_them(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> list[Any]:
    return [program(*pair) for program, pair in zip(PROGRAMS, pairs, strict=True)]


@pytest.mark.slow
def test_compiled_beside_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one call leaves in the tensors is what the next one reads."""
    monkeypatch.setattr(fair_share, "LIMITS", WITHOUT_SHARES)
    torch.manual_seed(0)
    start = [(torch.rand(4, 4), torch.rand(4, 4)) for _ in PROGRAMS]
    compiled = magpy_core.compile(all_of_them, wait=False)
    region = region_of(compiled)
    region.options = replace(region.options, on_trial=False)  # so little work does not pay
    end, served = time.monotonic() + 400, 0
    while served < 4:
        plain, ours = [[(p.clone(), q.clone()) for p, q in start] for _ in range(2)]
        before = region.hits
        for _ in range(2):
            for program, one, other in zip(PROGRAMS, all_of_them(plain), compiled(ours), strict=True):
                assert other is one is None or torch.allclose(other, one), program.__name__
        for program, one, other in zip(PROGRAMS, plain, ours, strict=True):
            assert all(map(torch.allclose, other, one)), program.__name__
        served += region.hits - before
        assert time.monotonic() < end, region.findings
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_generated_programs(seed: int) -> None:
    programs = writes.batch_of(random.Random(seed), 12)
    ran, different = writes.differing(programs)
    assert ran
    assert not different, "\n".join(f"{programs[i].source('f')}\n{line}" for i, line in different.items())

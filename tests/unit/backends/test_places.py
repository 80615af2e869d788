"""Places in tensors that a number in another tensor from outside says: a queue that is written round and round."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core.regions.api import region_of


class Queue(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(3, 40))
        self.register_buffer("place", torch.zeros(1, dtype=torch.long))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        at = int(self.place)
        self.rows[:, at : at + 4] = x
        self.place[0] = (at + 4) % 40
        return self.rows.sum(1) * 2


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_place_in_a_buffer_is_an_input(backend: str) -> None:
    plain = Queue()
    compiled = magpy_core.compile(copy.deepcopy(plain), backend=backend, wait=True)
    for i in range(30):
        x = torch.full((3, 4), float(i))
        assert torch.allclose(plain(x), compiled(x))
        assert torch.equal(plain.rows, compiled.rows) and torch.equal(plain.place, compiled.place)
    region = region_of(compiled)
    assert len(region.captures) <= 5 and region.hits >= 20, (region, region.disabled)

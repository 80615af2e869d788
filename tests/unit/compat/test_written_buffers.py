"""What reads a buffer that a kernel has written in place runs after that kernel, in compiled code too."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import magpy_core
from magpy_core.regions.api import region_of

WRITTEN: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "bernoulli_": lambda x: torch.empty_like(x).bernoulli_(0.9),
    "index_put_": lambda x: torch.zeros_like(x).index_put_((torch.zeros(4, dtype=torch.long),), x[:4], accumulate=True),
    "put_": lambda x: torch.zeros_like(x).put_(torch.arange(10), torch.ones(10)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN)
def test_a_reduction_beside_what_is_written(name: str) -> None:
    """Its loops are computed again so that all of it becomes one kernel."""

    def normalise(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        moved = x + 1
        normal = torch.nn.functional.layer_norm(moved, (128,))
        mask = WRITTEN[name](normal).div_(0.9)
        return moved, mask, normal * mask

    compiled = magpy_core.compile(normalise, wait=True)
    for seed in range(3):
        x = torch.randn(32, 32, 128)
        with torch.no_grad():
            torch.manual_seed(seed)
            expected = normalise(x)
            torch.manual_seed(seed)
            torch.testing.assert_close(compiled(x), expected)
    assert region_of(compiled).hits

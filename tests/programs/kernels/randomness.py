"""Programs that draw random numbers, which are those of Philox in the kernel, not of eager mode."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.kernels.program import Case, Numbers, leaf, program


def philox(seed: int, count: int) -> torch.Tensor:
    """Uniform numbers of Philox 4x32-10: four for each of the counters 0, 1, ..., as floats that Triton defines."""
    zero, counter = np.zeros(count // 4, dtype=np.uint64), np.arange(count // 4, dtype=np.uint64)
    c0, c1, c2, c3 = counter, zero, zero, zero
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    key0, key1 = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
    for _ in range(10):
        product0, product2 = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c2 = (product2 >> shift) ^ c1 ^ np.uint64(key0), (product0 >> shift) ^ c3 ^ np.uint64(key1)
        c1, c3 = product2 & low, product0 & low
        key0, key1 = (key0 + 0x9E3779B9) & 0xFFFFFFFF, (key1 + 0xBB67AE85) & 0xFFFFFFFF
    signed = np.stack([c0, c1, c2, c3], 1).reshape(-1).astype(np.uint32).view(np.int32).astype(np.int64)
    return torch.from_numpy(np.where(signed < 0, -signed - 1, signed).astype(np.float32) * np.float32(4.6566127342e-10))


def _seed_of(call: int) -> int:
    """What the wrapper draws as the first seed of this call."""
    torch.manual_seed(200 + call)
    return int(torch.randint(-(2**63), 2**63 - 1, (1,)))


def _is_philox(numbers: Numbers) -> str | None:
    wanted = philox(_seed_of(1), 600).view(20, 30)
    wrong = (numbers["result 0"] != wanted * 2).sum()
    return f"{int(wrong)} numbers are not those of Philox" if wrong else None


@program(check=_is_philox)
def uniform() -> Case:
    return Case(lambda x: torch.rand(x.shape) * 2 + x, lambda i: (torch.zeros(20, 30),))


def _is_normal(numbers: Numbers) -> str | None:
    drawn = numbers["result 0"]
    mean, deviation = float(drawn.mean()), float(drawn.std())
    return None if abs(mean) < 0.06 and abs(deviation - 1) < 0.06 else f"mean {mean}, deviation {deviation}"


@program(check=_is_normal)
def normal() -> Case:
    return Case(lambda x: torch.randn_like(x) + x, lambda i: (torch.zeros(50, 60),))


def _are_whole(numbers: Numbers) -> str | None:
    drawn = numbers["result 0"]
    values = set(drawn.flatten().tolist())
    return None if values == set(range(3, 9)) else f"{sorted(values)} of the numbers from 3 to 8"


@program(check=_are_whole)
def whole_numbers() -> Case:
    return Case(lambda x: torch.randint(3, 9, x.shape) + x, lambda i: (torch.zeros(20, 30, dtype=torch.int64),))


def _is_dropout(numbers: Numbers) -> str | None:
    """Results are 0 or scaled; the backward pass has the mask of the forward pass. Weights of the gradient: the driver's."""
    value, result, gradient = numbers["argument 0"], numbers["result 0"], numbers["gradient of argument 0"]
    keeps = result != 0
    weights = torch.randn(result.shape, generator=torch.Generator().manual_seed(301))
    rate = 1 - float(keeps.float().mean())
    if abs(rate - 0.3) > 0.05:
        return f"rate {rate}"
    for name, found, wanted in (("result", result, value / 0.7), ("gradient", gradient, weights / 0.7)):
        if not torch.allclose(found, wanted * keeps, rtol=1e-5, atol=1e-6):
            return f"{name} is neither 0 nor scaled"
    return None


@program(check=_is_dropout)
def dropout() -> Case:
    return Case(lambda x: F.dropout(x, 0.3), lambda i: (leaf(40, 50),))


def _is_dropout_of_philox(numbers: Numbers) -> str | None:
    keeps = philox(_seed_of(1), 2000).view(40, 50) > 0.3
    agrees = ((numbers["result 0"] != 0) == keeps).all()
    return _is_dropout(numbers) if agrees else "the mask is not that of Philox"


@program(check=_is_dropout_of_philox)
def dropout_between_products() -> Case:
    """The identity, so that the masks can be seen."""
    first = nn.Linear(50, 50, bias=False)
    with torch.no_grad():
        first.weight.copy_(torch.eye(50))
    return Case(lambda x: F.dropout(first(x), 0.3), lambda i: (leaf(40, 50),), {"first": first})

"""How many tensor values Python waits for in a call of a region, as its summary counts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.regions.lines import line_location
from magpy_core.regions.options import Options
from magpy_core.regions.region import Region

HISTORY: list[float] = []


def none(x: Any) -> Any:
    return x.shape[0] * x


def one(x: Any) -> Any:
    HISTORY.append(x.mean().item())
    return x


def several(x: Any) -> Any:
    for _ in range(3):
        HISTORY.append(x.sum().item())
    if x.any() and (x * x).sum() > 0:
        x = x + 1
    return x * int(x.max())


def a_list(x: Any) -> Any:
    return x[0].tolist()


def refused(x: Any) -> Any:
    import time

    if x.sum() > 0:
        x = x * time.time()
    return x


def test_step_counts_of_optimizers_are_on_the_host_already() -> None:
    magpy_core.reset()
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.AdamW([weight], lr=0.1)
    weight.grad = torch.ones(3)

    def step() -> None:
        optimizer.step()

    region = Region("r", "function", "f", line_location(__file__, 1), step, Options(mode="observe", backend="eager"))
    region()
    region()
    assert region.captures, [f.message for f in region.findings.values()]
    assert any(node.target == "item" for capture in region.captures for node in capture.nodes)
    assert region.summary().host_reads == 0


@pytest.mark.parametrize(("function", "reads"), [(none, 0), (one, 1), (several, 6), (a_list, 1), (refused, 1)])
def test_host_reads(function: Callable[..., Any], reads: int) -> None:
    magpy_core.reset()
    region = Region("r", "function", "f", line_location(__file__, 1), function, Options(mode="observe", backend="eager"))
    region(torch.ones(2, 4))
    assert region.summary().host_reads == reads

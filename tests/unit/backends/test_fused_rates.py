"""Fused optimizers by themselves, whose learning rate a scheduler changes: compiled code serves them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core.regions.api import region_of

OPTIMIZERS: dict[str, tuple[type[torch.optim.Optimizer], dict[str, Any]]] = {
    "adam": (torch.optim.Adam, {}),
    "adamw": (torch.optim.AdamW, {"weight_decay": 0.1, "amsgrad": True}),
    "sgd": (torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
    "adagrad": (torch.optim.Adagrad, {"lr_decay": 0.1}),
}


def trained(name: str, backend: str | None) -> tuple[list[torch.Tensor], Any]:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
    kind, options = OPTIMIZERS[name]
    optimizer: Any = kind(net.parameters(), lr=1e-2, fused=True, **options)  # type: ignore[call-arg]
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: 1 / (1 + i))
    step = optimizer.step if backend is None else magpy_core.compile(optimizer.step, backend=backend, wait=True)
    for _ in range(7):
        optimizer.zero_grad()
        net(torch.ones(3, 4)).square().mean().backward()
        step()
        scheduler.step()
    return [p.detach() for p in net.parameters()], None if backend is None else region_of(step)


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_it_is_compiled(name: str, backend: str) -> None:
    ours, region = trained(name, backend)
    assert not region.disabled and region.hits >= 4, region.findings
    for one, other in zip(ours, trained(name, None)[0], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)

"""Regions whose results are differentiated twice, which compiled graphs can't be."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.runtime.api import region_of


def penalty(function: Any, x: torch.Tensor) -> torch.Tensor:
    result = function(x)
    result = result["score"][0] if isinstance(result, dict) else result
    (gradient,) = torch.autograd.grad(result.sum(), x, create_graph=True)
    return (gradient.norm(dim=1) - 1).pow(2).mean()


@pytest.mark.parametrize("nested", [False, True])
def test_a_gradient_penalty(nested: bool) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))

    def critic(x: torch.Tensor) -> Any:
        return {"score": [model(x)]} if nested else model(x)

    compiled = magpy_core.compile(critic, backend="aot_eager")
    for n in (2, 2, 3, 2, 4):
        x = torch.randn(n, 3)
        grads = []
        for function in (critic, compiled):
            model.zero_grad()
            penalty(function, x.clone().requires_grad_()).backward()
            grads.append([p.grad for p in model.parameters() if p.grad is not None])
        assert len(grads[0]) == len(grads[1]) and all(map(torch.equal, *grads))
    region = region_of(compiled)
    assert region.hits and magpy_core.captures(compiled)
    assert [f.code for f in region.findings.values()].count("MP902") == 1


def test_a_first_derivative_stays_compiled() -> None:
    model = torch.nn.Linear(3, 1)
    compiled = magpy_core.compile(lambda x: model(x).tanh(), backend="aot_eager")
    for _ in range(3):
        compiled(torch.randn(2, 3)).sum().backward()
    assert not region_of(compiled).learned.twice and region_of(compiled).hits == 2

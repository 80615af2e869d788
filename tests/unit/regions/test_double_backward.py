"""Regions whose results are differentiated twice, which compiled graphs can't be."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.regions.api import region_of


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
    assert [f.code for f in region.findings.values()].count("MP913") == 1


def test_a_first_derivative_stays_compiled() -> None:
    model = torch.nn.Linear(3, 1)
    compiled = magpy_core.compile(lambda x: model(x).tanh(), backend="aot_eager")
    for _ in range(3):
        compiled(torch.randn(2, 3)).sum().backward()
    assert not region_of(compiled).learned.twice and region_of(compiled).hits == 2


def test_results_differentiated_one_after_the_other() -> None:
    """Apart in eager, which frees only what the first one saved; compiled, they are results of one node."""

    def losses(x: torch.Tensor, w: torch.Tensor) -> Any:
        return {"a": (x * w).sin().sum(), "b": (x + w).cos().sum()}

    compiled = magpy_core.compile(losses, backend="aot_eager")
    for _ in range(4):
        grads = []
        for function in (losses, compiled):
            x, w = torch.full((3,), 0.5, requires_grad=True), torch.ones(3, requires_grad=True)
            found = function(x, w)
            found["a"].backward()
            found["b"].backward()
            grads.append((x.grad, w.grad))
        torch.testing.assert_close(grads[1], grads[0])
    region = region_of(compiled)
    (finding,) = region.findings.values()
    assert region.hits and finding.code == "MP913" and "one after the other" in finding.message


def test_a_graph_that_is_kept_stays_compiled() -> None:
    def losses(x: torch.Tensor) -> Any:
        return x.sin().sum(), x.cos().sum()

    compiled = magpy_core.compile(losses, backend="aot_eager")
    for _ in range(3):
        x = torch.ones(3, requires_grad=True)
        first, second = compiled(x)
        first.backward(retain_graph=True)
        second.backward()
        x = torch.ones(3, requires_grad=True)
        torch.autograd.backward(compiled(x))
    assert not region_of(compiled).learned.twice and region_of(compiled).hits == 5

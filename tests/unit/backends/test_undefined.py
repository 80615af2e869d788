"""A loss that uses some of a region's outputs: what it does not depend on gets no gradient, as in eager mode."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import magpy_core

BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]


class Heads(nn.Module):
    """Two heads on a trunk, one of which may be unused; ``b`` depends on ``a``'s trunk, ``c`` on nothing of it."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.a, self.b, self.c = (nn.Linear(3, 3) for _ in range(4))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        h = self.trunk(x).relu()
        apart = self.c(x)
        return {"a": self.a(h), "b": self.b(h).tanh(), "c": apart, "view": apart[:1], "held": self.b(h).detach() + self.a(h)}


LOSSES: dict[str, Callable[[dict[str, torch.Tensor]], torch.Tensor]] = {
    "one head": lambda out: out["a"].sum(),
    "the other": lambda out: out["b"].pow(2).sum(),
    "apart from the trunk": lambda out: out["c"].sum(),
    "a view of an output": lambda out: out["view"].sum(),
    "behind detach": lambda out: out["held"].sum(),
    "two": lambda out: (out["a"] * out["c"]).sum(),
    "all": lambda out: sum((value.sum() for value in out.values()), torch.zeros(())),
}


def grads(module: nn.Module) -> dict[str, torch.Tensor | None]:
    return {name: parameter.grad for name, parameter in module.named_parameters()}


def same(left: dict[str, Any], right: dict[str, Any]) -> bool:
    return all(
        (left[name] is None) == (right[name] is None)
        and (left[name] is None or torch.allclose(left[name], right[name], atol=1e-6))
        for name in left
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_only_what_the_loss_depends_on_gets_a_gradient(backend: str) -> None:
    plain = Heads()
    module = magpy_core.compile(copy.deepcopy(plain), backend=backend, wait=True)
    for name, loss in [*LOSSES.items(), *LOSSES.items()]:
        for one in (plain, module):
            one.zero_grad(set_to_none=True)
            loss(one(torch.ones(2, 3))).backward()
        assert same(grads(plain), grads(module)), name
    (capture,) = magpy_core.captures(module)
    assert capture.hits >= 10


@pytest.mark.parametrize("backend", BACKENDS[:2])
def test_weight_decay_leaves_an_unused_head_alone(backend: str) -> None:
    plain = Heads()
    module = magpy_core.compile(copy.deepcopy(plain), backend=backend, wait=True)
    optimizers = [torch.optim.AdamW(one.parameters(), lr=0.1, weight_decay=0.5) for one in (plain, module)]
    for _ in range(5):
        for one, optimizer in zip((plain, module), optimizers, strict=True):
            optimizer.zero_grad()
            one(torch.ones(2, 3))["a"].sum().backward()
            optimizer.step()
    for (name, left), right in zip(plain.named_parameters(), module.parameters(), strict=True):
        assert torch.allclose(left, right, atol=1e-5), name


@pytest.mark.parametrize("backend", BACKENDS[:2])
def test_inputs_that_are_results_and_one_tensor_twice(backend: str) -> None:
    def f(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * y, z.exp()

    compiled = magpy_core.compile(f, backend=backend, wait=True)
    for used in (0, 1):
        for _ in range(3):
            found = []
            for function in (f, compiled):
                leaf, other = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
                function(leaf, leaf, other * 3)[used].sum().backward()
                found.append((leaf.grad, other.grad))
            assert str(found[0]) == str(found[1])


@pytest.mark.parametrize("backend", BACKENDS[:2])
def test_several_calls_before_one_backward_pass(backend: str) -> None:
    plain = Heads()
    module = magpy_core.compile(copy.deepcopy(plain), backend=backend, wait=True)
    for _ in range(4):
        for one in (plain, module):
            one.zero_grad(set_to_none=True)
            first, second = one(torch.ones(2, 3)), one(torch.full((2, 3), 2.0))
            (first["a"].sum() + second["c"].sum()).backward()
        assert same(grads(plain), grads(module))


@pytest.mark.parametrize("backend", BACKENDS[1:2])
def test_hooks_are_called_with_tensors(backend: str) -> None:
    """Of a parameter that the loss does not depend on, with zeros: not at all, as in eager mode, is out of reach."""
    module = Heads()
    seen: list[Any] = []
    module.c.weight.register_hook(lambda gradient: seen.append(gradient.sum().item()))
    compiled = magpy_core.compile(module, backend=backend, wait=True)
    for _ in range(3):
        compiled(torch.ones(2, 3))["a"].sum().backward()
    assert set(seen) <= {0.0} and module.c.bias.grad is None

"""Optimizer steps whose closure runs first: which ones they are, and that nothing else changes."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import nn, optim

from magpy_core.runner.closures import _CLOSURE_FIRST, closure_of


def steps() -> dict[str, Any]:
    """torch's own functions, without what instances wrap around them."""
    kinds = {name: kind for name, kind in vars(optim).items() if inspect.isclass(kind) and kind is not optim.Optimizer}
    return {name: inspect.unwrap(kind.step) for name, kind in kinds.items() if issubclass(kind, optim.Optimizer)}


def closure() -> float:
    return 1.0


def test_all_optimizers_of_torch_but_lbfgs_are_known() -> None:
    assert {name for name in steps() if name != "LBFGS"} == _CLOSURE_FIRST


@pytest.mark.parametrize("name", sorted(_CLOSURE_FIRST))
def test_torchs_step_begins_with_its_closure(name: str) -> None:
    """Seen in its source: the closure is called once, with gradients, before the first loop over parameters."""
    source = inspect.getsource(steps()[name])
    assert source.count("closure()") == 1
    before = source.partition("loss = closure()")[0]
    assert "torch.enable_grad()" in before and "param_groups" not in before.partition('"""')[2].rpartition('"""')[2]


def test_calls_with_a_closure() -> None:
    step, one = steps()["AdamW"], object()
    assert closure_of(step, (one, closure), {}) is closure_of(step, (one,), {"closure": closure}) is closure
    assert closure_of(step, (one,), {}) is closure_of(step, (one, closure), {"more": 1}) is None
    assert closure_of(steps()["LBFGS"], (one, closure), {}) is None


def test_steps_of_others_are_left_alone() -> None:
    class AdamW(optim.AdamW):
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    assert closure_of(AdamW.step, (object(), closure), {}) is None
    model = nn.Linear(1, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    assert getattr(type(optimizer).step, "hooked", False)
    assert closure_of(type(optimizer).step, (optimizer, closure), {}) is None, "hooks run before the closure"


@pytest.mark.parametrize("name", ["AdamW", "SGD", "RMSprop"])
def test_the_closure_may_run_before_the_step(name: str) -> None:
    def train(split: bool) -> list[Any]:
        torch.manual_seed(3)
        model = nn.Linear(4, 2)
        optimizer = getattr(optim, name)(model.parameters(), lr=0.1)
        seen: list[Any] = []

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            seen.append(torch.is_grad_enabled())
            loss: torch.Tensor = model(torch.ones(3, 4)).square().mean()
            loss.backward()
            return loss

        for _ in range(4):
            if split:
                with torch.enable_grad():
                    loss = closure()
                optimizer.step()
            else:
                loss = optimizer.step(closure)
            seen.append(loss.item())
        return [*seen, model.weight.tolist()]

    assert train(True) == train(False)

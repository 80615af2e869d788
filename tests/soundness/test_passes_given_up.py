"""Steps whose backward pass runs Python that sees the pass: none of them is captured, and the recorded call is as in eager
mode, although a recorded pass would assign gradients at its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core.regions.api import region_of

_SEEN: list[Any] = []


class _Watcher:
    def __init__(self, weight: torch.Tensor) -> None:
        self.weight = weight

    def note(self) -> None:
        _SEEN.append(None if self.weight.grad is None else self.weight.grad.sum().item())


class _Calls(torch.autograd.Function):
    """Its backward calls a method of an object, as that of FSDP does."""

    @staticmethod
    def forward(ctx: Any, watcher: _Watcher, x: torch.Tensor) -> torch.Tensor:
        ctx.watcher = watcher
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        ctx.watcher.note()
        return None, gradient


class _Sees(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(weight)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        (weight,) = ctx.saved_tensors
        return (gradient if weight.grad is None else gradient * 2), None


class _Queues(torch.autograd.Function):
    """Its backward asks the engine to call a function at the end of the pass."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.weight = weight
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        weight = ctx.weight

        def scale() -> None:
            weight.grad.mul_(3)

        torch.autograd.Variable._execution_engine.queue_callback(scale)  # type: ignore[attr-defined]
        return gradient, None


def _hooked(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y.register_hook(lambda gradient: _SEEN.append(weight.grad is None))  # type: ignore[no-untyped-call]
    return y


def _hooked_together(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    torch.autograd.graph.register_multi_grad_hook([y], lambda gradients: _SEEN.append(weight.grad is None))
    return y


_BETWEEN: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "calls": lambda x, weight: _Calls.apply(_Watcher(weight), x),
    "sees": _Sees.apply,
    "queues": _Queues.apply,
    "hooked": _hooked,
    "hooked together": _hooked_together,
}


def _trained(between: Any, wrap: Callable[[Any], Any]) -> tuple[list[torch.Tensor], list[Any], Any]:
    """Parameters, what Python in the passes saw, and the step."""
    _SEEN.clear()
    torch.manual_seed(0)
    first, last = nn.Linear(4, 4), nn.Linear(4, 4)
    parameters = [*first.parameters(), *last.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)

    def step(x: torch.Tensor) -> None:
        optimizer.zero_grad()
        last(between(first(x), last.weight)).square().sum().backward()
        optimizer.step()

    called = wrap(step)
    for _ in range(5):
        called(torch.randn(3, 4))
    return [p.detach().clone() for p in parameters], list(_SEEN), called


@pytest.mark.parametrize("name", _BETWEEN)
def test_python_in_a_backward_pass_sees_the_pass(name: str) -> None:
    expected, seen, _ = _trained(_BETWEEN[name], lambda step: step)
    found, seen_in_ours, called = _trained(_BETWEEN[name], magpy_core.compile(wait=False))
    assert seen_in_ours == seen and all(map(torch.equal, found, expected))
    region = region_of(called)
    assert region.hits == 0 and any(f.code in ("MP106", "MP107", "MP118") for f in region.findings.values())

"""Updates of Adam and AdamW that torch's own kernel computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core._compat.torch.fused_adam import fused_adam
from magpy_core.backends.blocks import compiling, fused

Made = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


@pytest.fixture
def split(monkeypatch: pytest.MonkeyPatch) -> list[fused.Rest]:
    """What has been split off, of each graph that was compiled."""
    found: list[fused.Rest] = []

    def split_off(gm: torch.fx.GraphModule, fakes: Any) -> fused.Rest | None:
        rest = fused.split_off(gm, fakes)
        if rest is not None:
            found.append(rest)
        return rest

    monkeypatch.setattr(compiling, "split_off", split_off)
    return found


def trained(make: Made, backend: str, after: str = "", schedule: bool = False) -> dict[str, Any]:
    """Parameters, state and losses after 8 steps; ``backend``: empty: in eager mode. ``after``: what a step does last."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(3)))
    average = [torch.zeros_like(one) for one in model.parameters()]
    optimizer = make(model.parameters())
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8) if schedule else None

    def step(x: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        if after == "average":
            with torch.no_grad():
                for kept, one in zip(average, model.parameters(), strict=True):
                    kept.lerp_(one, 0.1)
        if after == "zero":
            for one in model.parameters():
                assert one.grad is not None
                one.grad.zero_()
        return loss.detach() if after == "detached" else loss

    region = magpy_core.compile(step, wait=True, backend=backend) if backend else step
    losses = []
    for i in range(8):
        losses.append(region(torch.full((2, 4), 0.1 * i + 0.1)).detach().clone())
        if scheduler is not None:
            scheduler.step()
    if backend:
        assert sum(capture.hits for capture in magpy_core.captures(region)) >= 5
    state = [optimizer.state[one] for one in model.parameters()]
    gradients = [one.grad for one in model.parameters()]
    return {"losses": losses, "model": list(model.parameters()), "state": state, "average": average, "grad": gradients}


def agree(make: Made, **options: Any) -> None:
    torch.testing.assert_close(trained(make, "aot_eager", **options), trained(make, "", **options), rtol=1e-5, atol=1e-7)


FUSED: dict[str, Made] = {
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adam with decay": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "other numbers": lambda p: torch.optim.AdamW(p, lr=0.02, betas=(0.7, 0.9), eps=1e-4, weight_decay=0.3),
    "one by one": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=False),
}


@pytest.mark.parametrize("schedule", [False, True])
@pytest.mark.parametrize("name", FUSED)
def test_updates_are_one_call(name: str, schedule: bool, split: list[fused.Rest]) -> None:
    agree(FUSED[name], schedule=schedule)
    assert len(split[0].updates) == 6 and len({update.options for update in split[0].updates}) == 1
    inside = {node.target for node in split[0].module.graph.nodes}
    assert torch.ops.aten.lerp_.Scalar not in inside and torch.ops.aten.addcmul_.default not in inside


def test_groups_with_other_options_are_other_calls(split: list[fused.Rest]) -> None:
    def make(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        weights = list(parameters)
        return torch.optim.AdamW([{"params": weights[:3]}, {"params": weights[3:], "weight_decay": 0.0, "lr": 0.1}], lr=0.01)

    agree(make)
    assert [len({update.options for update in rest.updates}) for rest in split] == [2]


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.Adam(p, amsgrad=True),
        lambda p: torch.optim.Adam(p, maximize=True),
        lambda p: torch.optim.NAdam(p),
        lambda p: torch.optim.Adamax(p),
        lambda p: torch.optim.SGD(p, momentum=0.9),
    ],
)
def test_other_updates_stay_in_the_graph(make: Made, split: list[fused.Rest]) -> None:
    agree(make)
    assert not split


@pytest.mark.parametrize(("after", "splits"), [("average", 0), ("zero", 0), ("detached", 1)])
def test_what_reads_or_writes_the_same_tensors_later_keeps_updates_in_the_graph(
    after: str, splits: int, split: list[fused.Rest]
) -> None:
    agree(FUSED["adamw"], after=after)
    assert len(split) == splits


def test_few_updates_are_no_call_of_their_own(split: list[fused.Rest]) -> None:
    weight = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.Adam([weight])

    def step() -> None:
        optimizer.zero_grad()
        weight.square().sum().backward()
        optimizer.step()

    region = magpy_core.compile(step, wait=True, backend="aot_eager")
    for _ in range(5):
        region()
    assert not split and magpy_core.captures(region)[0].hits


def test_other_types_stay_in_the_graph(split: list[fused.Rest]) -> None:
    def make(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        weights = list(parameters)
        for one in weights:
            one.data = one.data.double()
        return torch.optim.AdamW(weights)

    torch.manual_seed(0)
    results = []
    for backend in ("", "aot_eager"):
        model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(3)))
        with torch.no_grad():
            for i, one in enumerate(model.parameters()):
                one.fill_(0.1 * i)
        optimizer = make(model.parameters())

        def step(x: torch.Tensor, model: nn.Module = model, optimizer: torch.optim.Optimizer = optimizer) -> torch.Tensor:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        region = magpy_core.compile(step, wait=True, backend=backend) if backend else step
        results.append([region(torch.ones(2, 4, dtype=torch.float64)).item() for _ in range(5)])
    assert results[0] == pytest.approx(results[1], rel=1e-9) and not split


@pytest.mark.slow
def test_the_next_run_loads_them_without_a_compiler(split: list[fused.Rest]) -> None:
    """Inductor's code of the rest, and the kernel's call, by the text that is stored."""
    torch.testing.assert_close(
        trained(FUSED["adamw"], "inductor", schedule=True), trained(FUSED["adamw"], "", schedule=True), rtol=1e-5, atol=1e-6
    )
    assert len(split) == 1
    again = trained(FUSED["adamw"], "inductor", schedule=True)
    torch.testing.assert_close(again, trained(FUSED["adamw"], "", schedule=True), rtol=1e-5, atol=1e-6)
    assert len(split) == 1, "the second one was not compiled"


@pytest.mark.parametrize("kept", [None, 0.99])
def test_autograd_sees_what_the_kernel_writes(kept: float | None) -> None:
    """As in eager mode, a backward pass through a parameter's old value raises after the update."""
    params = [nn.Parameter(torch.ones(3)) for _ in range(2)]
    result = (params[0] * params[1]).sum()
    gradients, averages, squares = ([torch.ones(3) for _ in params] for _ in range(3))
    steps = [torch.zeros(()) for _ in params]
    before = [one._version for one in (*params, *averages, *squares, *steps)]
    fused_adam(params, gradients, averages, squares, steps, 0.1, kept, 0.9, 0.999, 0.0, 1e-8)
    assert all(one._version > old for one, old in zip((*params, *averages, *squares, *steps), before, strict=True))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()

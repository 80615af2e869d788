"""Grad mode and autocast stay the program's own, whatever way a compiled call ends."""

from __future__ import annotations

import pytest
import torch

import magpy_core
from magpy_core.regions.api import region_of


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_branch_that_goes_another_way_leaves_grad_mode_on(backend: str) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            y = x * 2
            z = y + 1 if y.sum() > 0 else y - 1
        return z + x

    compiled = magpy_core.compile(f, backend=backend)
    for value in (1.0, -1.0, 1.0, 1.0, -1.0, -1.0):
        x = torch.full((3,), value, requires_grad=True)
        out = compiled(x)
        assert torch.is_grad_enabled()
        assert out.requires_grad and torch.equal(out, f(x))
    assert len(magpy_core.captures(compiled)) == 2


def test_a_graph_that_raises_leaves_grad_mode_and_autocast() -> None:
    def f(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            return torch.nn.functional.embedding(i, x)

    compiled = magpy_core.compile(f, backend="eager")
    good, bad = torch.tensor([0, 1]), torch.tensor([0, 99])
    for _ in range(2):
        compiled(torch.ones(4, 2), good)
    with pytest.raises(IndexError):
        compiled(torch.ones(4, 2), bad)
    assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("beside_torch_compile", [False, pytest.param(True, marks=pytest.mark.torch_compile)])
def test_numbers_that_vary_pass_through_generators(beside_torch_compile: bool) -> None:
    """An optimizer's `all(isinstance(t, Tensor) for t in steps)` must not pin the learning rate to its value."""
    if beside_torch_compile:  # which wraps the optimizers' _init_group, for good
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    parameter = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.AdamW([parameter], lr=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: 1 / (n + 1))
    step = magpy_core.compile(optimizer.step, backend="eager")
    region = region_of(step)

    def steps(n: int) -> None:
        for _ in range(n):
            parameter.grad = torch.ones(3)
            step()
            schedule.step()

    steps(3)  # the first makes the optimizer's state, or may only fill caches of torch's
    served = region.hits
    steps(4)
    captures = len(region.captures)
    assert (region.hits - served, captures in (1, 2)) == (4, True), [f.message for f in region.findings.values()]


def test_native_code_gets_the_exact_value_a_generator_yields() -> None:
    class Counter:
        n = 0

    counter = Counter()

    def f(x: torch.Tensor) -> torch.Tensor:
        counter.n += 1
        return x * sum(n for n in (counter.n, 1))

    compiled = magpy_core.compile(f, backend="eager")
    assert [compiled(torch.ones(1)).item() for _ in range(5)] == [2.0, 3.0, 4.0, 5.0, 6.0]

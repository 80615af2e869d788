"""Whole training steps (forward, backward, clipping, optimizer, zeroed gradients) as one graph on the device equal eager's.

In float64, where rounding can't hide a wrong gradient; and once in float32 with the kernels that training uses.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_leaves

import magpy_core
from benchmarks.whole_step.programs import PROGRAMS, Program
from tests.gpu.device import BACKEND, DEVICE, IS_CUDA, compiled, findings, generated_code, random_state, served, twice

_STEPS = 6
_NEEDS = {"bert": "transformers"}


def _states(program: Program) -> list[torch.Tensor]:
    """Parameters, buffers, gradients and the state of the optimizers."""
    found: list[torch.Tensor] = []
    for module in program.modules.values():
        found += [*module.state_dict().values(), *(p.grad for p in module.parameters() if p.grad is not None)]
    for optimizer in program.optimizers.values():
        found += [leaf for leaf in tree_leaves(optimizer.state_dict()["state"]) if isinstance(leaf, torch.Tensor)]
    return found


def _run_both(plain: Program, ours: Program, rtol: float, atol: float) -> Any:
    """The compiled step, after both have made their steps with equal results."""
    step = compiled(ours.train_step())
    for number in range(_STEPS):
        torch.manual_seed(number)
        wanted = plain.step()
        after = random_state()
        torch.manual_seed(number)
        found = step()
        assert torch.equal(random_state(), after), f"step {number}: the random streams differ"
        torch.testing.assert_close(found, wanted, rtol=rtol, atol=atol)
    for one, other in zip(_states(ours), _states(plain), strict=True):
        torch.testing.assert_close(one, other, rtol=rtol, atol=atol)
    return step


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_one_graph_and_equals_eager(name: str) -> None:
    if (package := _NEEDS.get(name)) and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    plain, ours = twice(lambda: PROGRAMS[name]().to(DEVICE, torch.float64))
    step = _run_both(plain, ours, rtol=1e-6, atol=1e-8)
    captures = magpy_core.captures(step)
    assert captures and all(capture.is_complete for capture in captures), findings(step)
    assert served(step) >= 2, [str(found.message) for found in findings(step) if found.code[:3] in ("MP1", "MP9")]
    if BACKEND == "inductor" and IS_CUDA:
        assert "@triton.jit" in generated_code(step)


def test_the_compiled_step_has_no_autograd_and_waits_for_nothing() -> None:
    """The whole step runs without a synchronization of host and device."""
    program = PROGRAMS["mlp"]().to(DEVICE)
    step = compiled(program.train_step())
    for _ in range(4):
        step()
    before = served(step)
    if IS_CUDA:
        torch.cuda.set_sync_debug_mode("error")
    try:
        loss = step()
    finally:
        if IS_CUDA:
            torch.cuda.set_sync_debug_mode("default")
    assert served(step) == before + 1
    assert loss.grad_fn is None and loss.device.type == DEVICE.type


def test_fused_adamw_and_float32() -> None:
    """The kernels that training uses: fused AdamW where the device has it, attention in float32."""

    def make() -> tuple[Callable[[], torch.Tensor], nn.Module]:
        model = nn.TransformerEncoderLayer(32, 4, 64, 0.0, "gelu", batch_first=True, norm_first=True).to(DEVICE)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
        x = torch.randn(4, 16, 32, device=DEVICE)

        def step() -> torch.Tensor:
            loss: torch.Tensor = model(x).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss.detach()

        return step, model

    (plain, _), (ours, _) = twice(make)
    step = compiled(ours)
    losses = [(step().item(), plain().item()) for _ in range(8)]
    for found, wanted in losses:
        assert found == pytest.approx(wanted, rel=1e-3)
    assert losses[-1][0] < losses[0][0], "it learns"

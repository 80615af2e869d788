"""Automatic mixed precision in a compiled step: bfloat16 and float16 autocast, and GradScaler with its skipped steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import magpy_core
from tests.gpu.device import BACKEND, DEVICE, IS_CUDA, compiled, generated_code, served, twice


def _model() -> nn.Module:
    return nn.Sequential(nn.Linear(32, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 8))


@dataclass
class Training:
    """``step(x, y)`` returns the loss."""

    model: nn.Module
    step: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    scaler: Any = None


def _autocast(dtype: torch.dtype) -> Training:
    model = _model().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        with torch.autocast(DEVICE.type, dtype=dtype):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    return Training(model, step)


def _scaled(dtype: torch.dtype = torch.float16) -> Training:
    model = _model().to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scaler = torch.amp.GradScaler(DEVICE.type, init_scale=2.0**10, growth_interval=3)

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        with torch.autocast(DEVICE.type, dtype=dtype):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    return Training(model, step, scaler)


def _batch(number: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(number)
    x, y = torch.randn(64, 32, generator=generator), torch.randint(8, (64,), generator=generator)
    return x.to(DEVICE), y.to(DEVICE)


def _difference(found: nn.Module, wanted: nn.Module, start: list[torch.Tensor]) -> float:
    """As a share of what the steps have changed."""
    pairs = list(zip(found.parameters(), wanted.parameters(), start, strict=True))
    apart = sum(float((a - b).detach().double().square().sum()) for a, b, _ in pairs)
    moved = sum(float((b - s).detach().double().square().sum()) for _, b, s in pairs)
    return float((apart / moved) ** 0.5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bfloat16", "float16"])
def test_autocast(dtype: torch.dtype) -> None:
    plain, ours = twice(lambda: _autocast(dtype))
    start = [p.detach().clone() for p in plain.model.parameters()]
    step = compiled(ours.step)
    for number in range(8):
        x, y = _batch(number)
        wanted, found = plain.step(x, y), step(x, y)
        assert found.dtype == wanted.dtype
        torch.testing.assert_close(found, wanted, rtol=3e-2, atol=3e-2)
    assert _difference(ours.model, plain.model, start) < 0.1
    assert served(step) >= 5 and all(capture.is_complete for capture in magpy_core.captures(step))
    if BACKEND == "inductor" and IS_CUDA:
        code = generated_code(step)
        assert "@triton.jit" in code and str(dtype) in code


def test_a_scaler_grows_and_skips_as_in_eager() -> None:
    """The sixth batch overflows float16: the step is skipped and the scale halves, although compiled steps came before."""
    plain, ours = twice(_scaled)
    step = compiled(ours.step)
    scales: list[float] = []
    for number in range(12):
        x, y = _batch(number)
        if number == 6:
            x = x * 1e30
        before = [p.detach().clone() for p in ours.model.parameters()]
        plain.step(x, y)
        step(x, y)
        scales.append(plain.scaler.get_scale())
        assert ours.scaler.get_scale() == scales[-1], f"step {number}"
        moved = any(not torch.equal(a, b) for a, b in zip(before, ours.model.parameters(), strict=True))
        assert moved != (number == 6), f"step {number}"
        for a, b in zip(ours.model.parameters(), plain.model.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=3e-2, atol=3e-2)
    assert scales[6] < scales[5] and max(scales) > scales[0], "it has grown, and halved once"
    assert served(step) >= 3


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bfloat16", "float16"])
def test_weights_in_low_precision(dtype: torch.dtype) -> None:
    model, other = twice(lambda: _model().to(DEVICE, dtype).eval())
    x = torch.randn(64, 32, device=DEVICE, dtype=dtype)
    compiled(other)
    with torch.no_grad():
        for _ in range(4):
            torch.testing.assert_close(other(x), model(x), rtol=3e-2, atol=3e-2)
    assert served(other) >= 2


def test_autocast_is_part_of_the_guards() -> None:
    """The same region under another dtype of autocast, or none, is another capture."""
    model = _model().to(DEVICE).eval()
    x = torch.randn(4, 32, device=DEVICE)
    forward = compiled(model.forward)
    with torch.no_grad():
        for _ in range(3):
            assert forward(x).dtype == torch.float32
            with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
                assert forward(x).dtype == torch.bfloat16
            with torch.autocast(DEVICE.type, dtype=torch.float16):
                assert forward(x).dtype == torch.float16
    assert len(magpy_core.captures(forward)) == 3

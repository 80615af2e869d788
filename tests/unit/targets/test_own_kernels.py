"""A loss without logits among the kernels of a target."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import magpy_core
from magpy_core.backends import fusing
from magpy_core.findings import Kernel
from magpy_core.targets import kept

pytest.importorskip("triton")
pytestmark = pytest.mark.slow
ROWS, WIDTH, WORDS = 96, 32, 1000


@pytest.fixture(autouse=True)
def nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another limit of small losses is not in the name of what is kept."""
    monkeypatch.setattr(kept, "folder", lambda: None)


def kernels() -> tuple[Kernel, ...]:
    """Of a step whose gradient is left to the caller."""
    head = nn.Linear(WIDTH, WORDS)

    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(head(x), y)

    step_line = step.__code__.co_firstlineno + 1
    found = magpy_core.kernels(magpy_core.monitor(step)(torch.randn(ROWS, WIDTH), torch.randint(0, WORDS, (ROWS,))))
    assert all({at.line for at in kernel.lines} <= {step_line} for kernel in found)
    return found


def test_the_operator_is_listed_with_the_kernel_that_it_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusing, "LEAST_BYTES", 1)
    monkeypatch.setenv("MAGPY_FUSED_LOSS", "1")
    (own,) = (kernel for kernel in kernels() if kernel.code is not None and "loss_rows" in kernel.code.triton)
    assert own.kind == "extern" and own.operators == ("linear_cross_entropy_sum",) and own.lines
    assert own.work.flops == 2 * 2 * ROWS * WIDTH * WORDS and own.work.dtype == "float32"  # x needs no gradient
    assert own.code is not None and own.code.registers and not own.code.spill_bytes and ".target sm_90a" in own.code.ptx
    assert own.code.grid == (ROWS, 1, 1)


def test_small_losses_are_inductors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAGPY_FUSED_LOSS", "1")
    found = kernels()
    assert found and not any("linear_cross_entropy" in name for kernel in found for name in kernel.operators)

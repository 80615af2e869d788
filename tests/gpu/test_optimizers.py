"""Optimizers in a whole step on the device, one parameter at a time and with lists of tensors (``foreach``)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.gpu.device import DEVICE, compiled, findings, served, twice


class _Regularized(nn.Module):
    """Dropout and batch normalization: random numbers and running statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = nn.Sequential(nn.Linear(16, 64), nn.BatchNorm1d(64), nn.GELU(), nn.Dropout(0.3))
        self.out = nn.Linear(64, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.out(self.inside(x))
        return logits


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam"])
@pytest.mark.parametrize("foreach", [False, True], ids=["single", "foreach"])
def test_optimizers(name: str, foreach: bool) -> None:
    """Dropout, batch normalization, clipping, and a rate that the scheduler changes in every step."""

    def make() -> tuple[Callable[[], torch.Tensor], nn.Module]:
        model = _Regularized().to(DEVICE, torch.float64)
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=1e-2, foreach=foreach)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50)
        x = torch.randn(32, 16, device=DEVICE, dtype=torch.float64)
        y = torch.randint(4, (32,), device=DEVICE)

        def step() -> torch.Tensor:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            scheduler.step()
            return loss.detach()

        return step, model

    (plain, model), (ours, other) = twice(make)
    step = compiled(ours)
    for number in range(8):
        torch.manual_seed(number)
        wanted = plain()
        torch.manual_seed(number)
        torch.testing.assert_close(step(), wanted, rtol=1e-7, atol=1e-9)
    for key, value in model.state_dict().items():
        torch.testing.assert_close(other.state_dict()[key], value, rtol=1e-6, atol=1e-8)
    assert served(step) >= 3, [str(found.message) for found in findings(step) if found.code[:3] in ("MP1", "MP9")]

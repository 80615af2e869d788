"""The regions of the golden captures. Their lines are in the golden texts: add at the end only."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

LIMIT = 3


class Counter(nn.Module):
    """A module that counts its calls, keeps a log, and reads a setting with a quote in its name."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(2))
        self.calls = 0
        self.log: list[Any] = []
        self.settings = {"it's on": True, "scale": 2.0}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        y = x @ self.weight
        if self.settings["it's on"] and self.calls < 1000:
            y = y * self.settings["scale"]
        self.log.append(y.sum())
        return y


def branches(x: torch.Tensor, log: list[Any]) -> torch.Tensor:
    """One data-dependent branch: two segments, and an effect behind them."""
    y = x.exp() * LIMIT
    if y.sum() > 0:
        y = torch.relu(y)
    log.append({"last": y})
    return y - 1


def writes(x: torch.Tensor, state: dict[str, Any]) -> Any:
    """Objects made anew, an alias, a print."""
    fresh = [x + 1, None]
    state["fresh"] = fresh
    state.pop("old", None)
    print("done", len(fresh))
    return fresh, state

"""Optimizers' steps: updates of like parameters are compiled once, with the results of eager mode."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core._compat.torch import inductor as compat
from magpy_core.regions.api import region_of

OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.1),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.1, amsgrad=True),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.1, momentum=0.9, centered=True),
}


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_updates(name: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    compiler = f"{backend}_compile"
    original = getattr(compat, compiler)

    def compile_it(graph: Any, *args: Any, **options: Any) -> Any:
        sizes.append(len(graph.graph.nodes))
        return original(graph, *args, **options)

    monkeypatch.setattr(compat, compiler, compile_it)
    monkeypatch.setattr("magpy_core.backends.stored.key_of", lambda *given, **named: None)
    torch.manual_seed(0)
    plain = nn.Sequential(*(nn.Linear(6, 6) for _ in range(6)))
    model = copy.deepcopy(plain)
    steps = [OPTIMIZERS[name](m.parameters()) for m in (plain, model)]
    compiled = magpy_core.compile(steps[1].step, backend=backend)
    for i in range(8):
        for p, q in zip(plain.parameters(), model.parameters(), strict=True):
            p.grad = torch.randn_like(p)
            q.grad = p.grad.clone()
        if i == 5:
            for optimizer in steps:
                optimizer.param_groups[0]["lr"] = 0.05
        steps[0].step()
        compiled()
        assert torch.is_grad_enabled()
        for p, q in zip(plain.parameters(), model.parameters(), strict=True):
            torch.testing.assert_close(q, p, rtol=1e-4, atol=1e-6)
    assert region_of(compiled).hits
    assert len(sizes) >= 2, "a first update, and the one of all others"

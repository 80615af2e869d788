"""Whole optimizer steps with a learning rate and a step count that vary: one compiled graph and eager's values."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from tests.unit.backends.recorder import compile_recorded, record

STEPS = 20

OPTIMIZERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "adamw": (torch.optim.AdamW, {"weight_decay": 0.02}),
    "adam-amsgrad": (torch.optim.Adam, {"amsgrad": True}),
    "sgd-momentum": (torch.optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 1e-3}),
    "sgd-plain": (torch.optim.SGD, {}),
    "rmsprop": (torch.optim.RMSprop, {"momentum": 0.5, "centered": True}),
    "adagrad": (torch.optim.Adagrad, {"lr_decay": 0.1}),
    "adam-maximize": (torch.optim.Adam, {"maximize": True}),
}


def parameters(seed: int) -> list[nn.Parameter]:
    torch.manual_seed(seed)
    shapes = [(3, 4), (4,), (), (2, 3, 2)]
    return [nn.Parameter(torch.randn(s)) for s in shapes]


def state_tensors(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    groups = [p for g in optimizer.param_groups for p in g["params"]]
    return groups + [v for p in groups for v in optimizer.state[p].values() if isinstance(v, torch.Tensor)]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("foreach", [False, True], ids=["single", "foreach"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_compiled_once_follows_eager_for_twenty_steps(name: str, foreach: bool, backend: str) -> None:
    make, options = OPTIMIZERS[name]
    ours = parameters(0)
    optimizer = make(ours, lr=0.01, foreach=foreach, **options)

    def set_gradients(params: list[nn.Parameter], step: int) -> None:
        torch.manual_seed(1000 + step)
        for p in params:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            with torch.no_grad():
                p.grad.copy_(torch.randn_like(p))

    set_gradients(ours, 0)
    optimizer.step()  # makes the state
    theirs = copy.deepcopy(ours)
    reference = make(theirs, lr=0.01, foreach=foreach, **options)
    reference.load_state_dict(copy.deepcopy(optimizer.state_dict()))

    def step(lr: float) -> None:
        optimizer.param_groups[0]["lr"] = lr
        optimizer.step()

    set_gradients(ours, 1)
    before = [t.detach().clone() for t in state_tensors(optimizer)]
    gm, inputs = record(step, 0.02)
    with torch.no_grad():  # the recording ran the step for real
        for t, old in zip(state_tensors(optimizer), before, strict=True):
            t.copy_(old)
    assert any(n.meta.get("magpy_scalar") is float for n in gm.graph.nodes)
    compiled = compile_recorded(gm, inputs, backend)
    position = next(i for i, v in enumerate(inputs) if type(v) is float)
    for i in range(STEPS):
        lr = 0.02 / (1 + i)
        set_gradients(ours, i + 1)
        set_gradients(theirs, i + 1)
        inputs[position] = lr
        compiled.fn(*inputs)
        reference.param_groups[0]["lr"] = lr
        reference.step()
    for mine, other in zip(state_tensors(optimizer), state_tensors(reference), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-6)
    assert compiled.guards == []

"""Training: optimizers times ways to write a training step times everything a program changes between two steps.

The step is one region: zero_grad, forward, backward, optimizer step. Parameters, gradients, the optimizer's state and its
groups must be what eager mode leaves, whatever is changed in between. `python -m tests.soundness.generators.training`.
Key function: trained.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn, optim

import magpy_core
from tests.soundness.harness.families import Family, main


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.last = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.last(torch.relu(self.norm(self.first(x))))
        return out


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD": lambda p: optim.SGD(p, lr=0.1),
    "SGD momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "SGD one by one": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, foreach=False),
    "SGD fused": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, fused=True),
    "Adam": lambda p: optim.Adam(p, lr=0.01),
    "Adam amsgrad": lambda p: optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.1, foreach=False),
    "Adam lr tensor": lambda p: optim.Adam(p, lr=torch.tensor(0.01)),
    "Adam fused": lambda p: optim.Adam(p, lr=0.01, fused=True),
    "AdamW": lambda p: optim.AdamW(p, lr=0.01, maximize=True, foreach=True),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.1),
    "Adadelta": lambda p: optim.Adadelta(p),
    "Adamax": lambda p: optim.Adamax(p, lr=0.01),
    "NAdam": lambda p: optim.NAdam(p, lr=0.01),
    "RAdam": lambda p: optim.RAdam(p, lr=0.01),
    "ASGD": lambda p: optim.ASGD(p, lr=0.01),
    "Rprop": lambda p: optim.Rprop(p, lr=0.01),
    "LBFGS": lambda p: optim.LBFGS(list(p), lr=0.1, max_iter=3),
    "groups": lambda p: _groups(list(p)),
}


def _groups(parameters: list[Any]) -> torch.optim.Optimizer:
    return optim.AdamW([{"params": parameters[:2], "lr": 0.1}, {"params": parameters[2:], "weight_decay": 0.0}], lr=0.01)


class Work:
    """One program that trains."""

    def __init__(self, optimizer: str) -> None:
        torch.manual_seed(0)
        self.net = Net()
        self.make = OPTIMIZERS[optimizer]
        self.optimizer = self.make(self.net.parameters())
        self.scheduler: Any = optim.lr_scheduler.StepLR(self.optimizer, 2, 0.5)
        self.ema = copy.deepcopy(self.net)
        self.scale = 1.0
        self.clip = 1.0
        self.accumulate = 2
        self.steps = 0
        self.losses: list[float] = []
        self.set_to_none = True
        self.kept: Any = None

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.mse_loss(self.net(x), y) * self.scale

    def shown(self) -> Any:
        parameters = [(p.detach(), p.grad, p.requires_grad, p.grad_fn is None) for p in self.net.parameters()]
        state = [
            [(k, v) for k, v in self.optimizer.state.get(p, {}).items() if k not in ("func_evals",)]
            for group in self.optimizer.param_groups
            for p in group["params"]
        ]
        groups = [[(k, v) for k, v in group.items() if k != "params"] for group in self.optimizer.param_groups]
        ends = self.steps, list(self.losses), getattr(self.scheduler, "last_epoch", None), torch.rand(1)
        return copy.deepcopy(
            [parameters, list(self.net.buffers()), state, groups, list(self.ema.state_dict().values()), ends]
        )


def _plain(w: Work, x: torch.Tensor, y: torch.Tensor) -> Any:
    w.optimizer.zero_grad()
    loss = w.loss(x, y)
    loss.backward()
    w.optimizer.step()
    return loss


def _zero_last(w: Work, x: torch.Tensor, y: torch.Tensor) -> Any:
    loss = w.loss(x, y)
    loss.backward()
    w.optimizer.step()
    w.optimizer.zero_grad(set_to_none=w.set_to_none)
    return loss.item()


def _clipped(w: Work, x: torch.Tensor, y: torch.Tensor) -> Any:
    w.net.zero_grad()
    loss = w.loss(x, y)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(w.net.parameters(), w.clip)
    nn.utils.clip_grad_value_(w.net.parameters(), 0.5)
    w.optimizer.step()
    return loss, norm


def _scheduled(w: Work, x: torch.Tensor, y: torch.Tensor) -> Any:
    out = _plain(w, x, y)
    w.scheduler.step()
    return out, w.scheduler.get_last_lr()


def _by_closure(w: Work, x: torch.Tensor, y: torch.Tensor) -> Any:
    def closure() -> torch.Tensor:
        w.optimizer.zero_grad()
        loss = w.loss(x, y)
        loss.backward()
        return loss

    return w.optimizer.step(closure)


def _accumulated(w: Work, x: torch.Tensor, y: torch.Tensor) -> Any:
    loss = w.loss(x, y) / w.accumulate
    loss.backward()
    w.steps += 1
    if w.steps % w.accumulate == 0:
        w.optimizer.step()
        w.optimizer.zero_grad()
    return loss


def _counted(w: Work, x: torch.Tensor, y: torch.Tensor) -> Any:
    loss = _plain(w, x, y)
    w.steps += 1
    w.losses.append(loss.item())
    if len(w.losses) > 3:
        w.losses.pop(0)
    return sum(w.losses) / len(w.losses)


def _averaged(w: Work, x: torch.Tensor, y: torch.Tensor) -> Any:
    loss = _plain(w, x, y)
    with torch.no_grad():
        for kept, now in zip(w.ema.parameters(), w.net.parameters(), strict=True):
            kept.mul_(0.9).add_(now, alpha=0.1)
        for kept, now in zip(w.ema.buffers(), w.net.buffers(), strict=True):
            kept.copy_(now)
    return loss.detach()


def _by_hand(w: Work, x: torch.Tensor, y: torch.Tensor) -> Any:
    parameters = [p for p in w.net.parameters() if p.requires_grad]
    loss = w.loss(x, y)
    gradients = torch.autograd.grad(loss, parameters)
    with torch.no_grad():
        for p, g in zip(parameters, gradients, strict=True):
            p -= w.optimizer.param_groups[0]["lr"] * g
    return loss


def _penalised(w: Work, x: torch.Tensor, y: torch.Tensor) -> Any:
    x = x.detach().requires_grad_()
    w.optimizer.zero_grad()
    loss = w.loss(x, y)
    (gradient,) = torch.autograd.grad(loss, x, create_graph=True)
    total = loss + gradient.pow(2).sum()
    total.backward()
    w.optimizer.step()
    return total


def _mixed(w: Work, x: torch.Tensor, y: torch.Tensor) -> Any:
    w.optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = w.loss(x, y)
    loss.backward()
    w.optimizer.step()
    return loss


def _skipped(w: Work, x: torch.Tensor, y: torch.Tensor) -> Any:
    w.optimizer.zero_grad()
    loss = w.loss(x, y)
    if torch.isfinite(loss):
        loss.backward()
        w.optimizer.step()
    else:
        w.steps += 1
    return loss


def _twice(w: Work, x: torch.Tensor, y: torch.Tensor) -> Any:
    out = [_plain(w, x, y) for _ in range(2)]
    return out[-1] - out[0]


def _evaluated(w: Work, x: torch.Tensor, y: torch.Tensor) -> Any:
    loss = _plain(w, x, y)
    w.net.eval()
    with torch.no_grad():
        after = w.loss(x, y)
    w.net.train()
    return loss, after


STYLES: dict[str, Callable[[Work, torch.Tensor, torch.Tensor], Any]] = {
    "plain": _plain,
    "zero last": _zero_last,
    "clipped": _clipped,
    "scheduled": _scheduled,
    "closure": _by_closure,
    "accumulated": _accumulated,
    "counted": _counted,
    "averaged": _averaged,
    "by hand": _by_hand,
    "penalised": _penalised,
    "mixed": _mixed,
    "skipped": _skipped,
    "twice": _twice,
    "evaluated": _evaluated,
}


def _new_group(w: Work) -> None:
    extra = nn.Parameter(torch.ones(2))
    w.net.extra = extra
    w.optimizer.add_param_group({"params": [extra], "lr": 0.5})


def _loaded(w: Work) -> None:
    state = copy.deepcopy(w.optimizer.state_dict())
    for values in state["state"].values():
        for k, v in values.items():
            if torch.is_tensor(v) and v.dim() > 0:
                values[k] = v * 0.5
    w.optimizer.load_state_dict(state)


def _started_anew(w: Work) -> None:
    w.optimizer = w.make(w.net.parameters())
    w.scheduler = optim.lr_scheduler.ExponentialLR(w.optimizer, 0.9)


def _state_scaled(w: Work) -> None:
    for state in w.optimizer.state.values():
        for v in state.values():
            if torch.is_tensor(v) and v.dim():
                v.mul_(0.5)


def _option(name: str, change: Callable[[Any], Any]) -> Callable[[Work], None]:
    def apply(w: Work) -> None:
        group = w.optimizer.param_groups[0]
        if name in group:
            group[name] = change(group[name])

    return apply


def _replaced(w: Work) -> None:
    w.net.last = nn.Linear(4, 2)


def _tied(w: Work) -> None:
    w.net.first.bias = w.net.norm.bias


def _hooked(w: Work) -> None:
    w.optimizer.register_step_pre_hook(lambda o, a, k: None)
    w.net.first.weight.register_hook(lambda g: g * 2)


def _set(name: str, value: Any) -> Callable[[Work], None]:
    return lambda w: setattr(w, name, value)


CHANGES: dict[str, Callable[[Work], Any]] = {
    "nothing": lambda w: None,
    "lr": _option("lr", lambda v: v * 0.5),
    "lr zero": _option("lr", lambda v: v * 0),
    "lr tensor": _option("lr", lambda v: torch.tensor(float(v)) if not torch.is_tensor(v) else v.add_(0.01)),
    "weight decay": _option("weight_decay", lambda v: 0.3),
    "betas": _option("betas", lambda v: (0.5, 0.6)),
    "momentum": _option("momentum", lambda v: 0.3 if v else v),
    "maximize": _option("maximize", lambda v: not v),
    "foreach": _option("foreach", lambda v: not v),
    "scheduler": lambda w: w.scheduler.step(),
    "frozen": lambda w: w.net.first.requires_grad_(False),
    "frozen and cleared": lambda w: (w.net.first.requires_grad_(False), w.net.zero_grad()),
    "bias frozen": lambda w: w.net.last.bias.requires_grad_(False),
    "gradients left": lambda w: [p.grad.add_(1) for p in w.net.parameters() if p.grad is not None],
    "gradients gone": lambda w: w.net.zero_grad(),
    "gradients zero": lambda w: w.net.zero_grad(set_to_none=False),
    "one gradient gone": lambda w: setattr(w.net.first.weight, "grad", None),
    "new gradient": lambda w: setattr(w.net.last.bias, "grad", torch.ones(2)),
    "weights written": lambda w: w.net.last.weight.data.mul_(0.5),
    "weights assigned": lambda w: setattr(w.net.last.weight, "data", torch.ones(2, 4)),
    "weights loaded": lambda w: w.net.load_state_dict({k: v * 0.9 for k, v in w.net.state_dict().items()}),
    "layer replaced": _replaced,
    "tied": _tied,
    "new group": _new_group,
    "state loaded": _loaded,
    "state cleared": lambda w: w.optimizer.state.clear(),
    "one state gone": lambda w: w.optimizer.state.pop(w.net.last.weight, None),
    "state scaled": _state_scaled,
    "optimizer replaced": _started_anew,
    "eval": lambda w: w.net.eval(),
    "norm eval": lambda w: w.net.norm.eval(),
    "norm momentum": _set("scale", 1.5),
    "no tracking": lambda w: setattr(w.net.norm, "track_running_stats", False),
    "loss scale": _set("scale", 2.0),
    "loss scale zero": _set("scale", 0.0),
    "loss infinite": _set("scale", float("inf")),
    "clip": _set("clip", 0.1),
    "accumulate": _set("accumulate", 3),
    "zeros kept": _set("set_to_none", False),
    "hooks": _hooked,
    "double": lambda w: w.net.double(),
    "averages replaced": lambda w: setattr(w, "ema", copy.deepcopy(w.net)),
    "grad mode": lambda w: torch.set_grad_enabled(True),
}

CALLS = 7


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return (
            isinstance(b, torch.Tensor)
            and type(a) is type(b)
            and (a.dtype, a.shape, a.requires_grad) == (b.dtype, b.shape, b.requires_grad)
            and bool(torch.allclose(a, b, 1e-6, 1e-7, equal_nan=True))
        )
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, float):
        return type(b) is float and (a == b or abs(a - b) <= 1e-6 * abs(a) or (a != a and b != b))
    return type(a) is type(b) and bool(a == b)


def _life(optimizer: str, style: str, change: str, compiled: bool) -> list[Any]:
    work = Work(optimizer)
    step = STYLES[style]

    def region(x: torch.Tensor, y: torch.Tensor) -> Any:
        return step(work, x, y)

    target = magpy_core.compile(region, backend="eager") if compiled else region
    seen: list[Any] = []
    for call in range(CALLS):
        if call in (3, 5):
            CHANGES[change](work)
        torch.manual_seed(call)
        dtype = work.net.first.weight.dtype
        size = 6 if call == 6 else 5
        x, y = torch.randn(size, 3, dtype=dtype), torch.randn(size, 2, dtype=dtype)
        try:
            value = target(x, y)
        except Exception as error:
            value = type(error).__name__, str(error)[:60]
        if isinstance(value, torch.Tensor):
            value = value.detach(), value.requires_grad, value.grad_fn is None
        seen.append([copy.deepcopy(value) if not isinstance(value, tuple) else repr(value), work.shown()])
    return seen


def _first(a: Any, b: Any, where: str = "") -> str:
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and len(a) == len(b):
        return next(
            (_first(x, y, f"{where}[{i}]") for i, (x, y) in enumerate(zip(a, b, strict=True)) if not _same(x, y)), ""
        )
    return f"at {where} {a} expected, {b} found"


def trained(optimizer: str, style: str, change: str) -> str | None:
    """How training in this style with such a change differs from eager mode over some steps; None where it doesn't."""
    expected, got = (_life(optimizer, style, change, compiled) for compiled in (False, True))
    pairs = enumerate(zip(expected, got, strict=True))
    return next(
        (f"{optimizer}, {style}, {change}, call {i}: {_first(e, g)}" for i, (e, g) in pairs if not _same(e, g)), None
    )


FAMILY = Family.product(trained, optimizer=OPTIMIZERS, style=STYLES, change=CHANGES)


if __name__ == "__main__":
    raise SystemExit(main(FAMILY))

"""Training steps of many kinds, and changes of the world between their calls. Used by test_step_programs and step_campaign.

Key names: STEPS (name -> Program of test_steps), CHANGES (what a campaign does between calls).
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import lr_scheduler as S
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_avg_fn, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint

from tests.soundness.test_steps import Program, Step, World, accumulating, micro_batches, two_losses, usual, world

OPTIMIZERS = (
    "SGD",
    "Adam",
    "AdamW",
    "NAdam",
    "RAdam",
    "Adamax",
    "Adadelta",
    "Adagrad",
    "ASGD",
    "Rprop",
    "RMSprop",
    "Adafactor",
)
_OPTIONS: dict[str, dict[str, Any]] = {
    "foreach": {"foreach": True}, "fused": {"fused": True}, "amsgrad": {"amsgrad": True}, "maximize": {"maximize": True},
    "weight_decay": {"weight_decay": 0.1}, "momentum": {"momentum": 0.9}, "centered": {"centered": True},
    "differentiable": {"differentiable": False}, "decoupled_weight_decay": {"decoupled_weight_decay": True},
}  # fmt: skip
#: Their step depends on a step count in a tensor.
_CUT = ("RAdam", "ASGD")


def _optimizer(name: str, **options: Any) -> Callable[[], World]:
    return lambda: world(lambda parameters: getattr(torch.optim, name)(parameters, lr=0.01, **options))


def _accepts(name: str, option: dict[str, Any]) -> bool:
    return set(option) <= set(inspect.signature(getattr(torch.optim, name)).parameters)


def optimizers() -> dict[str, Program]:
    found = {}
    for name in OPTIMIZERS:
        for option, values in {"plain": {}, **_OPTIONS}.items():
            if option != "differentiable" and _accepts(name, values):
                compiled = name != "ASGD"  # compilers lack the maximum of two numbers
                program = Program(
                    _optimizer(name, **values), usual, hits=4, compiled=compiled, held=name in _CUT and compiled
                )
                program.refused = not compiled
                found[f"{name}_{option}"] = program
    return found


# -- schedules -----------------------------------------------------------------------------------------------------

SCHEDULES: dict[str, Callable[[Any], Any]] = {
    "lambda": lambda o: S.LambdaLR(o, lambda epoch: 0.9**epoch),
    "multiplicative": lambda o: S.MultiplicativeLR(o, lambda epoch: 0.95),
    "step": lambda o: S.StepLR(o, 3),
    "multi_step": lambda o: S.MultiStepLR(o, [2, 5]),
    "constant": lambda o: S.ConstantLR(o, total_iters=3),
    "linear": lambda o: S.LinearLR(o, total_iters=5),
    "exponential": lambda o: S.ExponentialLR(o, 0.9),
    "polynomial": lambda o: S.PolynomialLR(o, 20),
    "cosine": lambda o: S.CosineAnnealingLR(o, 20),
    "warm_restarts": lambda o: S.CosineAnnealingWarmRestarts(o, 5),
    "one_cycle": lambda o: S.OneCycleLR(o, 0.1, total_steps=40),
    "cyclic": lambda o: S.CyclicLR(o, 0.01, 0.1, step_size_up=4, cycle_momentum=False),
    "warm_up": lambda o: S.SequentialLR(o, [S.LinearLR(o, total_iters=3), S.CosineAnnealingLR(o, 20)], [3]),
    "chained": lambda o: S.ChainedScheduler([S.ConstantLR(o, total_iters=2), S.ExponentialLR(o, 0.9)]),
    "swa": lambda o: SWALR(o, 0.05, anneal_epochs=4),
}


def _scheduled(make: Callable[[Any], Any], *, inside: bool) -> Callable[[World], Step]:
    def program(w: World) -> Step:
        w.scheduler = make(w.optimizer)
        step = usual(w)

        def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
            loss = step(x, y)
            w.scheduler.step()
            return loss

        return train_step if inside else step

    return program


def _advance(w: World) -> None:
    w.scheduler.step()


def schedules() -> dict[str, Program]:
    found = {}
    for name, make in SCHEDULES.items():
        found[f"schedule_{name}_inside"] = Program(_optimizer("SGD"), _scheduled(make, inside=True), hits=2)
        for optimizer in ("SGD", "AdamW"):
            options = {"foreach": True} if optimizer == "AdamW" else {}
            found[f"schedule_{name}_{optimizer}"] = Program(
                _optimizer(optimizer, **options),
                _scheduled(make, inside=False),
                dict.fromkeys(range(1, 8), _advance),
                hits=3,
            )
    return found


# -- everything else that stands in a step -----------------------------------------------------------------------------


def clipped(w: World, **options: Any) -> Step:
    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        w.optimizer.zero_grad()
        loss = F.mse_loss(w.model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(w.model.parameters(), 0.1, **options)
        w.optimizer.step()
        return loss.detach(), norm

    return train_step


def scaled(w: World, dtype: torch.dtype, *, clip: bool = False, scale: float = 1024.0) -> Step:
    w.extra["scaler"] = scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=3)

    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        w.optimizer.zero_grad()
        with torch.autocast("cpu", dtype):
            loss = F.mse_loss(w.model(x).float(), y)
        scaler.scale(loss).backward()
        if clip:
            scaler.unscale_(w.optimizer)
            nn.utils.clip_grad_norm_(w.model.parameters(), 1.0)
        scaler.step(w.optimizer)
        scaler.update()
        return loss.detach()

    return train_step


def averaged(w: World, **options: Any) -> Step:
    w.extra["average"] = average = AveragedModel(w.model, **options)
    step = usual(w)

    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        loss = step(x, y)
        average.update_parameters(w.model)
        return loss

    return train_step


def averaged_by_hand(w: World) -> Step:
    w.extra["average"] = average = copy.deepcopy(w.model)
    step = usual(w)

    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        loss = step(x, y)
        with torch.no_grad():
            for one, other in zip(average.parameters(), w.model.parameters(), strict=True):
                one.mul_(0.9).add_(other, alpha=0.1)
        return loss

    return train_step


def taught(w: World) -> Step:
    teacher = copy.deepcopy(w.model).eval()

    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        w.optimizer.zero_grad()
        with torch.no_grad():
            target = teacher(x)
        loss = F.kl_div(F.log_softmax(w.model(x), 1), F.softmax(target + y, 1), reduction="batchmean")
        loss.backward()
        w.optimizer.step()
        return loss.item()

    return train_step


def gan(w: World, *, toggles: bool) -> Step:
    torch.manual_seed(1)
    judge = nn.Sequential(nn.Linear(2, 5), nn.LeakyReLU(0.2), nn.Linear(5, 1))
    w.extra["judge"], w.extra["optimizer"] = judge, torch.optim.Adam(judge.parameters(), lr=0.01)

    def learns(flag: bool) -> None:
        for p in judge.parameters() if toggles else ():
            p.requires_grad_(flag)

    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        learns(True)
        w.extra["optimizer"].zero_grad()
        fake = w.model(x)
        loss = F.softplus(-judge(y)).mean() + F.softplus(judge(fake.detach())).mean()
        loss.backward()
        w.extra["optimizer"].step()
        learns(False)
        w.optimizer.zero_grad()
        other = F.softplus(-judge(fake)).mean()
        other.backward()
        w.optimizer.step()
        return loss.detach(), other.detach()

    return train_step


def penalized(w: World) -> Step:
    """Gradient penalty (Gulrajani et al. 2017)."""

    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        w.optimizer.zero_grad()
        x = x.clone().requires_grad_(True)
        out = w.model(x)
        (gradient,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        loss = F.mse_loss(out, y) + (gradient.norm(2, 1) - 1).square().mean()
        loss.backward()
        w.optimizer.step()
        return loss.detach()

    return train_step


def physics(w: World) -> Step:
    """Derivatives of the model's output in the loss (Raissi et al. 2019)."""

    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        w.optimizer.zero_grad()
        x = x.detach().requires_grad_()
        out = torch.tanh(w.model(x)[:, :1])
        (first,) = torch.autograd.grad(out, x, torch.ones_like(out), create_graph=True)
        (second,) = torch.autograd.grad(first[:, :1], x, torch.ones_like(out), create_graph=True)
        loss = (second[:, :1] + out).square().mean() + F.mse_loss(out, y[:, :1])
        loss.backward()
        w.optimizer.step()
        return loss.detach()

    return train_step


def adversarial(w: World, *, made: bool) -> Step:
    """The fast gradient sign method (Goodfellow et al. 2014)."""

    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        leaf = torch.zeros_like(x, requires_grad=True) if made else x.clone().requires_grad_()
        F.mse_loss(w.model(x + leaf if made else leaf), y).backward()
        assert leaf.grad is not None
        w.optimizer.zero_grad()
        loss = F.mse_loss(w.model((x + 0.1 * leaf.grad.sign()).detach()), y)
        loss.backward()
        w.optimizer.step()
        return loss.detach()

    return train_step


def sharp(w: World) -> Step:
    """Sharpness-aware minimization (Foret et al. 2020): two passes, the parameters changed and restored between them."""

    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        parameters = list(w.model.parameters())
        w.optimizer.zero_grad()
        loss = F.mse_loss(w.model(x), y)
        loss.backward()
        moved = []
        with torch.no_grad():
            norm = torch.stack([p.grad.norm() for p in parameters if p.grad is not None]).norm()
            for p in parameters:
                moved.append(torch.zeros_like(p) if p.grad is None else p.grad * (0.05 / (norm + 1e-12)))
                p.add_(moved[-1])
        w.optimizer.zero_grad()
        F.mse_loss(w.model(x), y).backward()
        with torch.no_grad():
            for p, step in zip(parameters, moved, strict=True):
                p.sub_(step)
        w.optimizer.step()
        return loss.detach()

    return train_step


class Clamp(torch.autograd.Function):
    """Passes no gradient where it has clamped."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (x,) = ctx.saved_tensors
        return gradients[0] * (x.abs() < 1)


def custom(w: World) -> Step:
    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        w.optimizer.zero_grad()
        loss = F.mse_loss(Clamp.apply(w.model(x)), y)  # type: ignore[no-untyped-call]
        loss.backward()
        w.optimizer.step()
        return loss.detach()

    return train_step


def frozen_inside(w: World) -> Step:
    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        first: Any = w.model.first
        first.requires_grad_(False)
        w.optimizer.zero_grad()
        loss = F.mse_loss(w.model(x), y)
        loss.backward()
        w.optimizer.step()
        first.requires_grad_(True)
        return loss.detach()

    return train_step


def replaced_gradients(w: World) -> Step:
    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        w.optimizer.zero_grad()
        loss = F.mse_loss(w.model(x), y)
        loss.backward()
        for p in w.model.parameters():
            if p.grad is not None:
                p.grad = p.grad.sign()
        w.optimizer.step()
        return loss.detach()

    return train_step


def measured(w: World) -> Step:
    w.extra["losses"], w.extra["total"] = [], torch.zeros(())

    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        w.optimizer.zero_grad()
        out = w.model(x)
        loss = F.cross_entropy(out, y.argmax(1), label_smoothing=0.1)
        loss.backward()
        w.optimizer.step()
        w.extra["losses"].append(loss.detach())
        w.extra["total"] += loss.detach()
        return (out.argmax(1) == y.argmax(1)).float().mean()

    return train_step


def spoil(w: World) -> None:
    """The loss will not be finite."""
    w.extra["weight"] = w.model.last.weight.detach().clone()  # type: ignore[union-attr, operator]
    with torch.no_grad():
        w.model.last.weight.fill_(float("nan"))  # type: ignore[union-attr, operator]


def heal(w: World) -> None:
    with torch.no_grad():
        w.model.last.weight.copy_(w.extra["weight"])  # type: ignore[union-attr, operator]


def by_sign(w: World) -> Step:
    """A decision that goes one way as often as the other."""

    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        w.optimizer.zero_grad()
        out = w.model(x)
        loss = F.mse_loss(out, y)
        if (out.detach() - y).sum() > 0:
            loss = loss + out.square().mean()
        loss.backward()
        w.optimizer.step()
        return loss.detach()

    return train_step


def checked(w: World, *, number: bool = False) -> Step:
    """Skips what isn't finite."""

    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        w.optimizer.zero_grad()
        loss = F.mse_loss(w.model(x), y)
        if not (math.isfinite(loss.item()) if number else torch.isfinite(loss)):
            return None
        loss.backward()
        w.optimizer.step()
        return loss.item()

    return train_step


def counted(w: World, every: int) -> Step:
    """Gradient accumulation by a counter."""

    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        loss = F.mse_loss(w.model(x), y) / every
        loss.backward()
        w.calls += 1
        if w.calls % every == 0:
            w.optimizer.step()
            w.optimizer.zero_grad()
        return loss.detach()

    return train_step


def groups(w: World) -> Step:
    return usual(w)


def _grouped() -> World:
    return world(
        lambda parameters: torch.optim.AdamW(
            [{"params": [p], "lr": 0.01 * (i + 1), "weight_decay": 0.1 * i} for i, p in enumerate(parameters)]
        )
    )


class Lion(torch.optim.Optimizer):
    """Chen et al. 2023, as its packages write it."""

    def __init__(
        self, parameters: Any, lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99), decay: float = 0.0
    ) -> None:
        super().__init__(parameters, {"lr": lr, "betas": betas, "weight_decay": decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            for p in filter(lambda p: p.grad is not None, group["params"]):
                grad, state = p.grad, self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                average, (first, second) = state["exp_avg"], group["betas"]
                p.data.mul_(1 - group["lr"] * group["weight_decay"])
                update = average.clone().mul_(first).add(grad, alpha=1 - first).sign_()
                p.add_(update, alpha=-group["lr"])
                average.mul_(second).add_(grad, alpha=1 - second)


class Muon(torch.optim.Optimizer):
    """Orthogonalized momentum by Newton-Schulz iterations (Jordan et al. 2024)."""

    def __init__(self, parameters: Any, lr: float = 0.02, momentum: float = 0.95) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(p.grad)
                buffer = state["momentum_buffer"]
                buffer.mul_(group["momentum"]).add_(p.grad)
                update = p.grad.add(buffer, alpha=group["momentum"])
                p.add_(_orthogonal(update) if p.ndim == 2 else update.sign(), alpha=-group["lr"])


class Checkpointed(nn.Module):
    """Blocks whose activations the backward pass computes again."""

    def __init__(self, *, rate: float, norm: bool) -> None:
        super().__init__()
        layers = [nn.Linear(4, 8), nn.BatchNorm1d(8) if norm else nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 4)]
        self.blocks = nn.ModuleList([nn.Sequential(*copy.deepcopy(layers), nn.Dropout(rate)) for _ in range(3)])
        self.last = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        return self.last(x)


def checkpointed(optimizer: str, *, rate: float = 0.0, norm: bool = False) -> Callable[[], World]:
    def make() -> World:
        torch.manual_seed(0)
        model = Checkpointed(rate=rate, norm=norm)
        return World(model, getattr(torch.optim, optimizer)(model.parameters(), lr=0.01))

    return make


def _orthogonal(g: torch.Tensor, steps: int = 5) -> torch.Tensor:
    a, b, c = (3.4445, -4.7750, 2.0315)
    x = g / (g.norm() + 1e-7)
    if g.size(0) > g.size(1):
        x = x.T
    for _ in range(steps):
        product = x @ x.T
        x = a * x + (b * product + c * product @ product) @ x
    return x.T if g.size(0) > g.size(1) else x


def others() -> dict[str, Program]:
    sgd, adamw = _optimizer("SGD"), _optimizer("AdamW")
    found = {
        "clip_finite": Program(sgd, lambda w: clipped(w, error_if_nonfinite=True)),
        "clip_inf": Program(sgd, lambda w: clipped(w, norm_type=float("inf"))),
        "clip_foreach": Program(sgd, lambda w: clipped(w, foreach=True)),
        "clip_each": Program(sgd, lambda w: clipped(w, foreach=False)),
        # the check for infinite gradients is a decision, but for optimizers that take its result
        "scaler_bfloat16": Program(sgd, lambda w: scaled(w, torch.bfloat16), held=True),
        "scaler_float16": Program(sgd, lambda w: scaled(w, torch.float16), held=True),
        "scaler_clip": Program(adamw, lambda w: scaled(w, torch.bfloat16, clip=True), held=True),
        "scaler_overflow": Program(adamw, lambda w: scaled(w, torch.float16, scale=2.0**21), hits=2, held=True),
        "scaler_fused": Program(_optimizer("AdamW", fused=True), lambda w: scaled(w, torch.bfloat16), hits=3),
        "average": Program(sgd, averaged, hits=3),
        "average_ema": Program(sgd, lambda w: averaged(w, avg_fn=get_ema_avg_fn(0.9)), hits=3),
        "average_multi": Program(sgd, lambda w: averaged(w, multi_avg_fn=get_ema_multi_avg_fn(0.9)), hits=3),
        "average_by_hand": Program(sgd, averaged_by_hand),
        "teacher": Program(adamw, taught),
        "gan": Program(adamw, lambda w: gan(w, toggles=False)),
        "gan_toggles": Program(adamw, lambda w: gan(w, toggles=True), hits=3),
        "penalty": Program(adamw, penalized),
        "physics": Program(adamw, physics),
        "adversarial": Program(sgd, lambda w: adversarial(w, made=False)),
        "adversarial_made": Program(sgd, lambda w: adversarial(w, made=True)),
        "sharpness": Program(sgd, sharp),
        "custom_function": Program(sgd, custom),
        "frozen_inside": Program(adamw, frozen_inside),
        "gradients_replaced": Program(adamw, replaced_gradients),
        "metrics": Program(sgd, measured),
        "finite": Program(sgd, checked, held=True),
        "finite_number": Program(adamw, lambda w: checked(w, number=True), held=True),
        "finite_sometimes": Program(adamw, checked, {5: spoil, 6: heal, 8: spoil, 10: heal}, hits=3, held=True),
        "finite_norm": Program(
            lambda: world(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), norm=True, rate=0.2),
            checked,
            {4: spoil, 5: heal},
            hits=3,
            held=True,
        ),
        "sign_varies": Program(sgd, by_sign, hits=0, refused=True),
        "checkpoint": Program(checkpointed("AdamW"), usual),
        "checkpoint_accumulate": Program(checkpointed("SGD"), accumulating, hits=2),
        "checkpoint_clip": Program(checkpointed("AdamW"), clipped),
        "checkpoint_dropout": Program(checkpointed("SGD", rate=0.3), usual),
        "checkpoint_parts": Program(checkpointed("AdamW", rate=0.3), micro_batches),
        # its second run writes the running statistics again, which compilers leave out
        "checkpoint_norm": Program(checkpointed("SGD", norm=True), usual, compiled=False),
        "count_2": Program(adamw, lambda w: counted(w, 2), hits=2),
        "count_3": Program(sgd, lambda w: counted(w, 3), hits=1),
        "groups": Program(_grouped, groups),
        "lion": Program(lambda: world(lambda p: Lion(p, lr=0.01, decay=0.1)), usual),
        "muon": Program(lambda: world(lambda p: Muon(p, lr=0.02)), usual),
    }
    for model, options in {"shared": {"shared": True}, "norm": {"norm": True}, "dropout": {"rate": 0.3}}.items():
        for step, make in {"usual": usual, "accumulate": accumulating, "parts": micro_batches, "losses": two_losses}.items():
            for name in ("SGD", "AdamW"):
                make_world = lambda name=name, options=options: world(  # noqa: E731
                    lambda p: getattr(torch.optim, name)(p, lr=0.01), **options
                )
                hits = 2 if step == "accumulate" else 4
                found[f"{model}_{step}_{name}"] = Program(make_world, make, hits=hits)  # type: ignore[arg-type]
    return found


STEPS: dict[str, Program] = {**optimizers(), **schedules(), **others()}

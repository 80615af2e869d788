"""Whole training steps as one region: forward, backward, clipping and the optimizer in one graph.

Each program runs twice, in eager mode and compiled, and something of its world changes between some of the calls. After
every call, losses, parameters, gradients (that there is none, and strides, too) and the optimizer's state are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn

import magpy_core
from magpy_core.regions.api import region_of

STEPS = 12
Step = Callable[[torch.Tensor, torch.Tensor], Any]
Change = Callable[["World"], object]


class Net(nn.Module):
    def __init__(self, width: int = 6, *, shared: bool = False, norm: bool = False, rate: float = 0.0) -> None:
        super().__init__()
        self.first = nn.Linear(4, width)
        self.middle = nn.Linear(width, width)
        self.again = self.middle if shared else nn.Identity()
        self.norm = nn.BatchNorm1d(width) if norm else nn.LayerNorm(width)
        self.dropout = nn.Dropout(rate)
        self.last = nn.Linear(width, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.first(x))
        x = self.dropout(F.gelu(self.again(torch.relu(self.middle(x)))))
        return self.last(self.norm(x))


@dataclass
class World:
    """What a step function works on."""

    model: nn.Module
    optimizer: Any
    scheduler: Any = None
    calls: int = 0
    extra: dict[str, Any] = field(default_factory=dict)


def world(make_optimizer: Callable[[Any], Any] = lambda p: torch.optim.SGD(p, lr=0.1), **options: Any) -> World:
    torch.manual_seed(0)
    model = Net(**options)
    return World(model, make_optimizer(model.parameters()))


# -- step functions --------------------------------------------------------------------------------------------


def usual(w: World, *, none: bool = True, clip: str = "", result: str = "detach", scaled: bool = False) -> Step:
    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        w.optimizer.zero_grad(set_to_none=none)
        loss = F.mse_loss(w.model(x), y)
        if scaled:
            (loss / 4).backward()
        else:
            loss.backward()
        if clip == "norm":
            nn.utils.clip_grad_norm_(w.model.parameters(), 0.1)
        elif clip == "value":
            nn.utils.clip_grad_value_(w.model.parameters(), 0.01)
        w.optimizer.step()
        return loss.item() if result == "item" else loss.detach() if result == "detach" else loss

    return train_step


def accumulating(w: World) -> Step:
    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        loss = F.mse_loss(w.model(x), y)
        loss.backward()
        w.calls += 1
        if w.calls % 2 == 0:
            w.optimizer.step()
            w.optimizer.zero_grad()
        return loss.detach()

    return train_step


def micro_batches(w: World) -> Step:
    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        w.optimizer.zero_grad()
        total = torch.zeros(())
        for part, target in zip(x.chunk(2), y.chunk(2), strict=True):
            loss = F.mse_loss(w.model(part), target) / 2
            loss.backward()
            total = total + loss.detach()
        w.optimizer.step()
        return total

    return train_step


def two_losses(w: World, *, retain: bool = False, together: bool = False) -> Step:
    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        w.optimizer.zero_grad()
        out = w.model(x)
        first, second = F.mse_loss(out, y), out.abs().mean()
        if together:
            torch.autograd.backward([first, second])
        elif retain:
            first.backward(retain_graph=True)
            second.backward()
        else:
            (first + 0.1 * second).backward()
        w.optimizer.step()
        return first.detach(), second.detach()

    return train_step


def by_hand(w: World, *, assign: bool = False) -> Step:
    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        loss = F.mse_loss(w.model(x), y)
        parameters = list(w.model.parameters())
        gradients = torch.autograd.grad(loss, parameters)
        if assign:
            for p, g in zip(parameters, gradients, strict=True):
                p.grad = g
            w.optimizer.step()
        else:
            with torch.no_grad():
                for p, g in zip(parameters, gradients, strict=True):
                    p.sub_(g, alpha=0.1)
        return loss.detach()

    return train_step


def some_inputs(w: World) -> Step:
    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        w.optimizer.zero_grad()
        loss = F.mse_loss(w.model(x), y)
        loss.backward(inputs=[w.model.last.weight, w.model.last.bias])  # type: ignore[union-attr, list-item]
        w.optimizer.step()
        return loss.detach()

    return train_step


def with_gradient(w: World) -> Step:
    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        w.optimizer.zero_grad()
        out = w.model(x)
        out.backward(gradient=(out - y).detach())
        w.optimizer.step()
        return out.detach()

    return train_step


def scheduled(w: World) -> Step:
    w.scheduler = torch.optim.lr_scheduler.ExponentialLR(w.optimizer, 0.9)
    return usual(w)


def of_an_input(w: World) -> Step:
    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        loss = F.mse_loss(w.model(x), y)
        loss.backward()
        return loss.detach()

    return train_step


def cleared(w: World) -> Step:
    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        loss = F.mse_loss(w.model(x), y)
        loss.backward()
        w.optimizer.step()
        w.optimizer.zero_grad()
        return loss.detach()

    return train_step


def halved(g: torch.Tensor) -> torch.Tensor:
    return g / 2


def hooked(w: World, *, times: int = 1) -> Step:
    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        w.optimizer.zero_grad()
        out = w.model(x)
        for _ in range(times):
            out.register_hook(halved)
        loss = F.mse_loss(out, y)
        loss.backward()
        w.optimizer.step()
        return loss.detach()

    return train_step


def refused(w: World, what: str) -> Step:
    """A step whose backward pass is more than a graph can repeat."""

    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        w.optimizer.zero_grad()
        out = w.model(x)
        if what == "checkpoint":
            out = torch.utils.checkpoint.checkpoint(torch.exp, out, use_reentrant=True)
        elif what == "embedding":
            out = out + w.extra["table"](torch.arange(2))[0, :2]
        elif what == "outside":
            out = out + w.extra["made"]
        elif what == "hook":
            out.register_hook(lambda g: w.extra.update(seen=1))
        loss = F.mse_loss(out, y)
        loss.backward(create_graph=what == "create_graph", retain_graph=what in ("outside", "create_graph"))
        w.optimizer.step()
        return loss.detach()

    return train_step


def with_extra(what: str) -> World:
    w = world()
    if what == "embedding":
        w.extra["table"] = nn.Embedding(4, 3, sparse=True)
    elif what == "outside":
        w.extra["leaf"] = torch.ones(2, requires_grad=True)
        w.extra["made"] = w.extra["leaf"] * w.extra["leaf"]
    elif what == "node_hook":
        weight: Any = w.model.last.weight  # type: ignore[union-attr]
        w.extra["node"] = node = torch.autograd.graph.get_gradient_edge(weight).node
        node.register_hook(lambda *_: w.extra.update(seen=w.extra.get("seen", 0) + 1))
    return w


REFUSED = ("checkpoint", "embedding", "outside", "hook", "create_graph", "node_hook", "anomaly")


def cut(w: World, *, before: bool) -> Step:
    """A value decides what happens next, before or after the backward pass."""

    def train_step(x: torch.Tensor, y: torch.Tensor) -> Any:
        w.optimizer.zero_grad()
        loss = F.mse_loss(w.model(x), y)
        if before and loss > 1.0:
            loss = loss * 0.5 + w.model.last.bias.sum()  # type: ignore[union-attr, operator]
        loss.backward()
        if not before and loss > 1.0:
            return loss.detach() * 2
        w.optimizer.step()
        return loss

    return train_step


def penalty(w: World) -> Step:
    """A gradient is part of the loss: its pass is the program's own, and the loss is differentiated outside."""

    def region(x: torch.Tensor, y: torch.Tensor) -> Any:
        x.requires_grad_()
        loss = F.mse_loss(w.model(x), y)
        (gradient,) = torch.autograd.grad(loss, x, create_graph=True)
        return loss + gradient.square().sum()

    return region


# -- changes of the world --------------------------------------------------------------------------------------


def set_rate(w: World) -> None:
    w.optimizer.param_groups[0]["lr"] *= 0.5


def freeze(w: World) -> None:
    w.model.first.weight.requires_grad_(False)  # type: ignore[union-attr]
    w.model.first.weight.grad = None  # type: ignore[union-attr]


def unfreeze(w: World) -> None:
    w.model.first.weight.requires_grad_(True)  # type: ignore[union-attr]


def preset(w: World) -> None:
    for p in w.model.parameters():
        p.grad = torch.full_like(p, 0.25)


def preset_transposed(w: World) -> None:
    p: Any = w.model.first.weight
    p.grad = torch.full(p.shape[::-1], 0.5).t()


def clear(w: World) -> None:
    for p in w.model.parameters():
        p.grad = None


def hook(w: World) -> None:
    w.extra["hook"] = w.model.last.weight.register_hook(lambda g: g * 2)  # type: ignore[union-attr, operator]


def hook_kept(w: World) -> None:
    """A hook that reads an object, which no guard covers."""
    seen: list[int] = w.extra.setdefault("seen", [])
    w.extra["hook"] = w.model.last.weight.register_hook(lambda g: seen.append(1))  # type: ignore[union-attr, operator]


def hook_scales(w: World) -> None:
    """Two hooks, with a number in their closure."""
    limit, scale = 0.05, 0.5
    w.extra["hook"] = w.model.last.weight.register_hook(lambda g: g.clamp(-limit, limit))  # type: ignore[union-attr, operator]
    w.model.last.weight.register_hook(lambda g: scale * g)  # type: ignore[union-attr, operator]


def hook_all(w: World) -> None:
    for p in w.model.parameters():
        p.register_hook(lambda g: torch.where(g.abs() > 0.01, g, 0.0))


def hook_in_place(w: World) -> None:
    w.model.last.weight.register_hook(lambda g: g.mul_(0.5))  # type: ignore[union-attr, operator]
    w.model.first.weight.register_hook(lambda g: g.clamp_(-0.01, 0.01) * 2)  # type: ignore[union-attr, operator]


def hook_reads(w: World) -> None:
    w.model.last.weight.register_hook(lambda g: g / g.norm() if g.norm() > 0.2 else None)  # type: ignore[union-attr, operator]


def hook_after(w: World) -> None:
    def double(p: torch.Tensor) -> None:
        assert p.grad is not None
        p.grad.mul_(2)

    w.extra["hook"] = w.model.last.weight.register_post_accumulate_grad_hook(double)  # type: ignore[union-attr, operator]


def unhook(w: World) -> None:
    w.extra["hook"].remove()


def to_eval(w: World) -> None:
    w.model.eval()


def to_train(w: World) -> None:
    w.model.train()


def write_data(w: World) -> None:
    with torch.no_grad():
        for p in w.model.parameters():
            p.mul_(0.5)


def schedule(w: World) -> None:
    w.scheduler.step()


SGD = torch.optim.SGD
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda p: SGD(p, lr=0.1, foreach=False),
    "sgd_foreach": lambda p: SGD(p, lr=0.1, foreach=True),
    "momentum": lambda p: SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01, foreach=False),
    "momentum_foreach": lambda p: SGD(p, lr=0.1, momentum=0.9, foreach=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, foreach=False),
    "adam_foreach": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True, foreach=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=False),
    "adamw_foreach": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, foreach=False),
    "rmsprop_foreach": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5, foreach=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01, foreach=False),
    "adagrad_foreach": lambda p: torch.optim.Adagrad(p, lr=0.01, foreach=True),
}


@dataclass
class Program:
    """``changes``: what is done before a call, by its number. ``hits``: calls that captures serve at least. ``refused``:
    some calls must run in eager mode. ``batches``: sizes of the batches, in turn."""

    make_world: Callable[[], World]
    make_step: Callable[[World], Step]
    changes: dict[int, Change] = field(default_factory=dict)
    hits: int = 4
    refused: bool = False
    context: Callable[[], Any] | None = None
    batches: tuple[int, ...] = (6,)
    input_learns: bool = False
    compiled: bool = True
    """Whether compilers take it."""
    held: bool = False
    """Whether a decision on data cuts its graph, but no compiled graph, which holds its writes instead."""


def _adamw(**options: Any) -> Callable[[], World]:
    return lambda: world(OPTIMIZERS["adamw_foreach"], **options)


PROGRAMS: dict[str, Program] = {
    **{f"optimizer_{n}": Program(lambda m=m: world(m), usual, {6: set_rate}, 3) for n, m in OPTIMIZERS.items()},
    **{
        f"zeros_{n}": Program(lambda m=OPTIMIZERS[n]: world(m), lambda w: usual(w, none=False), {}, 4)
        for n in ("sgd", "adamw", "momentum_foreach", "rmsprop_foreach")
    },
    "clip_norm": Program(_adamw(), lambda w: usual(w, clip="norm")),
    "clip_norm_zeros": Program(_adamw(), lambda w: usual(w, clip="norm", none=False)),
    "clip_value": Program(_adamw(), lambda w: usual(w, clip="value")),
    "clip_norm_sgd": Program(world, lambda w: usual(w, clip="norm")),
    "loss_returned": Program(_adamw(), lambda w: usual(w, result="loss")),
    "loss_item": Program(_adamw(), lambda w: usual(w, result="item")),
    "loss_scaled": Program(_adamw(), lambda w: usual(w, scaled=True)),
    "accumulate": Program(world, accumulating, {}, 3),
    "accumulate_adam": Program(_adamw(), accumulating, {}, 2),
    "micro_batches": Program(_adamw(), micro_batches),
    "frozen": Program(_adamw(), usual, {0: freeze}),
    "frozen_later": Program(_adamw(), usual, {3: freeze}, 3),
    "unfrozen_again": Program(world, usual, {3: freeze, 5: unfreeze}, 2),
    "shared": Program(_adamw(shared=True), usual),
    "shared_accumulate": Program(lambda: world(shared=True), of_an_input),
    "two_losses": Program(_adamw(), two_losses),
    "two_losses_retained": Program(_adamw(), lambda w: two_losses(w, retain=True)),
    "two_losses_together": Program(_adamw(), lambda w: two_losses(w, together=True)),
    "scheduler": Program(lambda: world(OPTIMIZERS["adamw"]), scheduled, {i: schedule for i in range(1, STEPS)}),
    "grad_by_hand": Program(world, by_hand),
    "grad_assigned": Program(_adamw(), lambda w: by_hand(w, assign=True)),
    "inputs": Program(_adamw(), some_inputs),
    "gradient_given": Program(_adamw(), with_gradient),
    "no_step": Program(world, of_an_input),
    "zero_after": Program(_adamw(), cleared),
    "preset": Program(world, of_an_input, {3: preset}, 4),
    "preset_transposed": Program(world, of_an_input, {3: preset_transposed}, 1, refused=True),
    "cleared_outside": Program(world, of_an_input, {i: clear for i in range(0, STEPS, 2)}, 3),
    "hook": Program(world, usual, {5: hook}, 4),
    "hook_kept": Program(world, usual, {4: hook_kept}, 1, refused=True),
    "hook_scales": Program(_adamw(), usual, {0: hook_scales, 6: unhook}),
    "hook_all": Program(_adamw(), usual, {0: hook_all}),
    "hook_in_place": Program(world, usual, {0: hook_in_place}),
    "hook_reads": Program(world, usual, {0: hook_reads}, compiled=False),
    "hook_inside": Program(world, hooked),
    "hook_inside_twice": Program(_adamw(), lambda w: hooked(w, times=2)),
    "hook_accumulates": Program(world, accumulating, {0: hook_scales}, 3),
    "hook_after": Program(world, usual, {4: hook_after}, 1, refused=True),
    "hook_removed": Program(world, usual, {4: hook, 5: unhook}, 3),
    "hook_from_the_start": Program(world, usual, {0: hook}),
    "data_written": Program(_adamw(), usual, {4: write_data}),
    "batch_norm": Program(_adamw(norm=True), usual),
    "batch_norm_eval": Program(lambda: world(norm=True), usual, {3: to_eval, 6: to_train}, 2),
    "dropout": Program(_adamw(rate=0.3), usual),
    "dropout_eval": Program(lambda: world(rate=0.3), usual, {3: to_eval, 6: to_train}, 2),
    "no_grad_off": Program(world, usual, context=torch.enable_grad),
    "sizes": Program(_adamw(), usual, hits=2, batches=(6, 5, 7)),
    "input_learns": Program(_adamw(), usual, input_learns=True),
    "autocast": Program(_adamw(), usual, context=lambda: torch.autocast("cpu", torch.bfloat16)),
}


# -- comparing -------------------------------------------------------------------------------------------------


def _facts(value: Any) -> Any:
    """What must be equal, tensors aside."""
    if isinstance(value, torch.Tensor):
        return (type(value), value.shape, value.stride(), value.dtype, value.requires_grad)
    return value if value is None else type(value)


def _flat(tree: Any) -> list[Any]:
    if isinstance(tree, nn.Module):
        gradients = [p.grad.to_dense() if p.grad is not None else None for p in tree.parameters()]
        return [*tree.parameters(), *gradients, *tree.buffers()]
    if isinstance(tree, (torch.optim.Optimizer, torch.amp.GradScaler)):
        return _flat(tree.state_dict())
    if isinstance(tree, dict):
        return [leaf for key, value in tree.items() for leaf in (key, *_flat(value))]
    if isinstance(tree, (list, tuple)):
        return [leaf for value in tree for leaf in _flat(value)]
    return [tree]


_COMPARED = (nn.Module, torch.optim.Optimizer, torch.amp.GradScaler, torch.Tensor, list, float)


def state(w: World, result: Any) -> list[Any]:
    parameters = list(w.model.parameters())
    return [
        *_flat(result), *parameters, *(p.grad for p in parameters), *w.model.buffers(), w.calls,
        *_flat(w.optimizer.state_dict()), *_flat([v for v in w.extra.values() if isinstance(v, _COMPARED)]),
    ]  # fmt: skip


def agree(ours: list[Any], theirs: list[Any], exact: bool, when: str) -> None:
    assert len(ours) == len(theirs), when
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert _facts(a) == _facts(b), (when, i)
        if isinstance(a, torch.Tensor):
            a, b = a.detach(), b.detach()
            tolerance = {"rtol": 0.0, "atol": 0.0} if exact else {"rtol": 1e-4, "atol": 1e-5}
            assert torch.allclose(a, b, equal_nan=True, **tolerance), (when, i)
        else:
            assert a == b if exact or not isinstance(a, float) else abs(a - b) < 1e-4, (when, i)


def run(program: Program, backend: str) -> Any:
    """Both ways, compared after each call; gives the region."""
    plain, ours = program.make_world(), program.make_world()
    step = program.make_step(plain)
    compiled = magpy_core.compile(program.make_step(ours), backend=backend, wait=True)
    generator = torch.Generator().manual_seed(1)
    for i in range(STEPS):
        size = program.batches[i % len(program.batches)]
        data, y = torch.randn(size, 4, generator=generator), torch.randn(size, 2, generator=generator)
        states = []
        for w, call in ((plain, step), (ours, compiled)):
            if i in program.changes:
                program.changes[i](w)
            torch.manual_seed(i)
            x = data.clone().requires_grad_(program.input_learns)
            if program.context is None:
                result = call(x, y)
            else:
                with program.context():
                    result = call(x, y)
            states.append((state(w, (result, x.grad)), torch.random.get_rng_state()))
        agree(states[1][0], states[0][0], backend == "eager", f"call {i}")
        if backend == "eager":
            assert torch.equal(states[0][1], states[1][1])
    return region_of(compiled)


def check(program: Program, backend: str) -> None:
    region = run(program, backend)
    findings = [f"{f.code} {f.message}" for f in region.findings.values() if f.code not in ("MP201", "MP204")]
    hits = region.hits
    if backend == "eager" or program.compiled:
        assert hits >= program.hits, (hits, findings)
    if program.held and backend != "eager":
        assert any(capture.holds_writes and capture.hits for capture in region.captures), findings
    if not program.refused and not program.held:
        can_run = backend == "eager" or program.compiled  # a compiler may refuse the only capture that there is
        assert region.captures or not can_run, findings
        assert all(capture.is_complete for capture in region.captures), findings


@pytest.mark.parametrize("name", PROGRAMS)
def test_eager(name: str) -> None:
    check(PROGRAMS[name], "eager")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * bool(i % 8)) for i, name in enumerate(PROGRAMS)]
)
def test_aot_eager(name: str) -> None:
    check(PROGRAMS[name], "aot_eager")


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph", "ignore:Anomaly Detection")
@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    program = Program(
        lambda: with_extra(what), lambda w: refused(w, what), refused=True,
        context=torch.autograd.detect_anomaly if what == "anomaly" else None,
    )  # fmt: skip
    region = run(program, "eager")
    assert region.hits == 0 and not region.captures
    assert region.findings


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.LSTM(4, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.last = nn.Linear(10, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, _ = self.cells(x.view(-1, 1, 4).expand(-1, 3, 4))
        return self.last(out[:, -1])


class Tokens(nn.Module):
    """An embedding whose weight is the output's too."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 6, padding_idx=0)
        self.block = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = (x.detach() * 10).long() % 7
        return (self.block(self.table(tokens)) @ self.table.weight.t())[:, 0, :2]


MODELS: dict[str, Callable[[], nn.Module]] = {
    "convolution": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 2, 2)), nn.Conv2d(1, 3, 2, padding=1), nn.GroupNorm(1, 3), nn.SiLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(3, 2),
    ),
    "channels_last": lambda: nn.Sequential(
        nn.Unflatten(1, (2, 2, 1)), nn.Conv2d(2, 4, 1).to(memory_format=torch.channels_last), nn.ReLU(),
        nn.Conv2d(4, 2, (2, 1)).to(memory_format=torch.channels_last), nn.Flatten(),
    ),
    "recurrent": Recurrent,
    "tokens": Tokens,
    "double": lambda: Net().double(),
}  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", pytest.param("aot_eager", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", MODELS)
def test_models(name: str, backend: str) -> None:
    def make_world() -> World:
        torch.manual_seed(0)
        model = MODELS[name]()
        if name == "double":
            model = nn.Sequential(_Double(), model)
        # Adam's `lerp_` of what isn't contiguous is refused for every region, and it turns rounding into updates where a
        # gradient is zero (of the bias of attention's keys)
        plain = name == "channels_last" or backend == "inductor" or (name == "tokens" and backend != "eager")
        make_optimizer: Any = torch.optim.SGD if plain else torch.optim.AdamW
        return World(model, make_optimizer(model.parameters(), lr=0.01))

    check(Program(make_world, lambda w: usual(w, clip="norm"), hits=4), backend)


class _Double(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.double()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("before", [True, False])
def test_a_value_cuts_the_step(before: bool, backend: str) -> None:
    run(Program(world, lambda w: cut(w, before=before)), backend)


_BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]


@pytest.mark.parametrize("backend", _BACKENDS)
def test_a_cut_without_gradients(backend: str) -> None:
    """What follows a cut runs in the grad mode of the cut, though compiled code returns in the mode it was called in."""

    def make() -> tuple[nn.Parameter, Callable[[torch.Tensor, float], Any]]:
        weight = nn.Parameter(torch.ones(3))

        def step(x: torch.Tensor, limit: float) -> Any:
            weight.grad = None
            loss = (weight * x).square().sum()
            loss.backward()
            with torch.no_grad():
                if weight.grad.sum().item() * limit > 1.0:  # no graph can hold its writes: the limit varies
                    weight.sub_(weight.grad * 0.01 * limit)
                    return loss.detach(), weight * 2
                return loss.detach(), weight * 1

        return weight, step

    (weight, plain), (other, ours) = make(), make()
    compiled = magpy_core.compile(ours, backend=backend, wait=True)
    for i in range(8):
        x, limit = torch.full((3,), 1.0 + i / 10), 0.5 + i / 7
        for one, two in zip((*plain(x, limit), weight), (*compiled(x, limit), other), strict=True):
            torch.testing.assert_close(two, one)
            assert two.requires_grad == one.requires_grad
        assert torch.is_grad_enabled()
    assert any(len(capture.segments) > 1 and capture.hits for capture in region_of(compiled).captures)


@pytest.mark.parametrize("backend", _BACKENDS)
def test_a_grad_mode_that_lasts(backend: str) -> None:
    """A step may leave gradients switched off."""
    weight = nn.Parameter(torch.ones(3))

    def step(x: torch.Tensor) -> torch.Tensor:
        weight.grad = None
        loss = (weight * x).sum()
        loss.backward()
        torch.set_grad_enabled(False)
        weight.sub_(weight.grad)
        return loss.detach()

    compiled = magpy_core.compile(step, backend=backend, wait=True)
    for _ in range(5):
        with torch.enable_grad():
            compiled(torch.ones(3))
            assert not torch.is_grad_enabled()
    assert region_of(compiled).hits


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_the_loss_of_a_finished_pass_raises_as_in_eager_mode(backend: str) -> None:
    w = world()
    compiled = magpy_core.compile(usual(w, result="loss"), backend=backend, wait=True)
    for _ in range(4):
        loss = compiled(torch.ones(6, 4), torch.ones(6, 2))
        assert loss.requires_grad and not loss.is_leaf
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            loss.backward()
    assert region_of(compiled).hits >= 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_backward_pass_that_raises(backend: str) -> None:
    w = world()

    def train_step(x: torch.Tensor, y: torch.Tensor) -> None:
        out = torch.sigmoid(w.model(x))
        out.add_(1)  # the pass needs it as it was
        F.mse_loss(out, y).backward()

    compiled = magpy_core.compile(train_step, backend=backend, wait=True)
    for _ in range(4):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            compiled(torch.ones(6, 4), torch.ones(6, 2))
        assert all(p.grad is None for p in w.model.parameters() if p is not None)


def test_a_gradient_in_the_loss_is_compiled_as_before() -> None:
    plain, ours = world(), world()
    compiled = magpy_core.compile(penalty(ours), backend="aot_eager", wait=True)
    for i in range(5):
        x, y = torch.full((6, 4), 0.1 * i), torch.ones(6, 2)
        for w, call in ((plain, penalty(plain)), (ours, compiled)):
            w.optimizer.zero_grad()
            call(x.clone().requires_grad_(), y).backward()
            w.optimizer.step()
        for one, other in zip(plain.model.parameters(), ours.model.parameters(), strict=True):
            torch.testing.assert_close(one, other)
    assert region_of(compiled).hits >= 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["tokens", *(pytest.param(n, marks=pytest.mark.exhaustive) for n in MODELS if n != "tokens")]
)
def test_models_inductor(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAGPY_COMPILE", "foreground")
    test_models(name, "inductor")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["optimizer_sgd", "optimizer_adamw_foreach", "clip_norm", "loss_returned", "accumulate", "shared", "batch_norm"]
)
def test_inductor(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAGPY_COMPILE", "foreground")
    check(PROGRAMS[name], "inductor")

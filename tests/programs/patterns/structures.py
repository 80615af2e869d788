"""Data structures, objects and control flow that training steps are written with."""

# mypy: disable-error-code="var-annotated,no-any-return,union-attr,operator"

from __future__ import annotations

import contextlib
import contextvars
import functools
import heapq
import math
import warnings
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.patterns.pattern import Made, labelled, net, pattern, points, sgd


@pattern
def history_of_floats() -> Made:
    model, (x, y), history = net(), points(), {"loss": [], "lr": []}
    opt = sgd(model)

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        history["loss"].append(loss.item())
        history["lr"].append(opt.param_groups[0]["lr"])

    return step, lambda: (model, opt, history)


@pattern
def history_of_tensors() -> Made:
    model, (x, y), history = net(), points(), []
    opt = sgd(model)

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        history.append(loss.detach())

    return step, lambda: (model, opt, history)


@pattern
def deque_of_floats() -> Made:
    model, (x, y), recent = net(), points(), deque[float](maxlen=5)
    opt = sgd(model)

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        recent.append(loss.item())
        return recent[-1]

    return step, lambda: (model, opt, recent)


@pattern
def stop_when_deque_is_flat() -> Made:
    model, (x, y), recent, flat = net(), points(), deque[float](maxlen=5), [0]
    opt = sgd(model)

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        recent.append(loss.item())
        if len(recent) == recent.maxlen and max(recent) - min(recent) < 1e-4:
            flat[0] += 1

    return step, lambda: (model, opt, recent, flat)


@pattern
def losses_of_tasks() -> Made:
    model, heads = nn.Linear(4, 8), nn.ModuleDict({"depth": nn.Linear(8, 1), "normal": nn.Linear(8, 2)})
    opt, losses = torch.optim.SGD([*model.parameters(), *heads.parameters()], lr=0.05), {"depth": [], "normal": []}

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        features, total = torch.relu(model(x)), torch.zeros(())
        for task, head in heads.items():
            loss = F.mse_loss(head(features), y[:, : head.out_features])
            losses[task].append(loss.item())
            total = total + loss
        opt.zero_grad()
        total.backward()
        opt.step()
        return {task: values[-1] for task, values in losses.items()}

    return step, lambda: (model, heads, opt, losses)


@pattern
def tasks_in_turn() -> Made:
    model, heads = nn.Linear(4, 8), nn.ModuleDict({n: nn.Linear(8, 2) for n in ("a", "b", "c")})
    opt, tasks, n = torch.optim.SGD([*model.parameters(), *heads.parameters()], lr=0.05), ["a", "b", "c"], 0

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        nonlocal n
        task = tasks[n % len(tasks)]
        n += 1
        opt.zero_grad()
        loss = F.mse_loss(heads[task](torch.relu(model(x))), y)
        loss.backward()
        opt.step()
        return task, loss.item()

    return step, lambda: (model, heads, opt, n)


@pattern
def truncated_bptt() -> Made:
    rnn, head, hidden = nn.GRU(4, 6, batch_first=True), nn.Linear(6, 2), None
    opt = torch.optim.SGD([*rnn.parameters(), *head.parameters()], lr=0.05)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        nonlocal hidden
        if hidden is not None:
            hidden = hidden.detach()
        out, hidden = rnn(x.view(2, 3, 4), hidden)
        loss = F.mse_loss(head(out), y.view(2, 3, 2))
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (rnn, head, opt, hidden)


def repackage_hidden(h: Any) -> Any:
    """word_language_model's."""
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


@pattern
def lstm_state_repackaged() -> Made:
    rnn = nn.LSTM(4, 6)
    opt, state = sgd(rnn), {"hidden": (torch.zeros(1, 2, 6), torch.zeros(1, 2, 6))}

    def step(x: torch.Tensor) -> Any:
        hidden = repackage_hidden(state["hidden"])
        opt.zero_grad()
        out, state["hidden"] = rnn(x.view(3, 2, 4), hidden)
        loss = out.pow(2).mean()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (rnn, opt, [h.detach() for h in state["hidden"]])


@pattern
def hidden_reset_every_k() -> Made:
    cell, head = nn.LSTMCell(4, 6), nn.Linear(6, 2)
    opt, h, c = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.05), torch.zeros(6, 6), torch.zeros(6, 6)

    def step(i: int, x: torch.Tensor, y: torch.Tensor) -> Any:
        nonlocal h, c
        if i % 6 == 0:
            h, c = torch.zeros(6, 6), torch.zeros(6, 6)
        h, c = cell(x, (h.detach(), c.detach()))
        loss = F.mse_loss(head(h), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (cell, head, opt, h, c)


@pattern
def cache_by_shape() -> Made:
    linear, masks = nn.Linear(4, 4), {}
    opt = sgd(linear)

    def causal(n: int) -> torch.Tensor:
        if n not in masks:
            masks[n] = torch.triu(torch.full((n, n), -1e9), 1)
        return masks[n]

    def step(i: int, x: torch.Tensor) -> Any:
        q = linear(x[: 4 + i % 2])
        loss = ((q @ q.t() + causal(len(q))).softmax(1) @ q).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (linear, opt, masks)


@functools.lru_cache(maxsize=None)
def _rate(n: int) -> float:
    return 0.05 / math.sqrt(1 + n // 10)


@functools.lru_cache
def _positions(length: int, dim: int) -> torch.Tensor:
    return torch.arange(length)[:, None] / (10 ** torch.arange(dim))


@pattern
def lru_cache_of_numbers() -> Made:
    _rate.cache_clear()
    model, (x, y) = net(), points()
    opt = sgd(model)

    def step(i: int) -> Any:
        opt.param_groups[0]["lr"] = _rate(i // 5)
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def lru_cache_of_tensors() -> Made:
    _positions.cache_clear()
    model = net()
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x + 0.1 * _positions(len(x), 4)), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def iterator_restarted() -> Made:
    model, batches = net(), [points(4) for _ in range(4)]
    opt, it = sgd(model), iter(batches)

    def step() -> Any:
        nonlocal it
        try:
            x, y = next(it)
        except StopIteration:
            it = iter(batches)
            x, y = next(it)
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def infinite_generator() -> Made:
    def cycle(batches: list[Any]) -> Iterator[Any]:
        while True:
            yield from batches

    model, loader = net(), cycle([points(4) for _ in range(3)])
    opt = sgd(model)

    def step() -> Any:
        x, y = next(loader)
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@dataclass
class Batch:
    x: torch.Tensor
    y: torch.Tensor
    meta: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.x)

    def to(self, dtype: torch.dtype) -> Batch:
        return Batch(self.x.to(dtype), self.y.to(dtype), self.meta)


@pattern
def dataclass_batch() -> Made:
    model, seen = net(), [0]
    opt = sgd(model)

    def step(i: int, x: torch.Tensor, y: torch.Tensor) -> Any:
        batch = Batch(x, y, {"id": i}).to(torch.float32)
        opt.zero_grad()
        loss = F.mse_loss(model(batch.x), batch.y)
        loss.backward()
        opt.step()
        seen[0] += len(batch)
        return {"loss": loss.item(), "n": len(batch), **batch.meta}

    return step, lambda: (model, opt, seen)


def to_device(batch: Any, device: str) -> Any:
    if isinstance(batch, dict):
        return {k: to_device(v, device) for k, v in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch)(to_device(v, device) for v in batch)
    return batch.to(device) if isinstance(batch, torch.Tensor) else batch


@pattern
def nested_dict_batch() -> Made:
    model = net()
    opt = sgd(model)

    def step(i: int, x: torch.Tensor, y: torch.Tensor) -> Any:
        batch = to_device({"image": x, "target": {"boxes": [y], "id": f"img{i:04d}"}}, "cpu")
        opt.zero_grad()
        loss = F.mse_loss(model(batch["image"]), batch["target"]["boxes"][0])
        loss.backward()
        opt.step()
        return batch["target"]["id"], loss.item()

    return step, lambda: (model, opt)


@pattern
def batch_argument() -> Made:
    model = net()
    opt = sgd(model)

    def training_step(batch: dict[str, torch.Tensor], *, i: int) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(batch["x"]), batch["y"])
        loss.backward()
        opt.step()
        return {"loss": loss.detach(), "batch_idx": i}

    return training_step, lambda: (model, opt)


@pattern
def keyword_arguments() -> Made:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 2)

        def forward(self, x: torch.Tensor, y: torch.Tensor | None = None, **extra: Any) -> dict[str, Any]:
            out = self.linear(x)
            return {"logits": out, "loss": None if y is None else F.mse_loss(out, y)}

    model = Net()
    opt = sgd(model)

    def step(**batch: torch.Tensor) -> Any:
        outputs = model(**batch)
        loss = outputs["loss"] if isinstance(outputs, dict) else outputs[0]
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def step_object() -> Made:
    class TrainStep:
        def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, accumulate: int) -> None:
            self.model, self.optimizer, self.accumulate, self.calls = model, optimizer, accumulate, 0

        def __call__(self, x: torch.Tensor, y: torch.Tensor) -> Any:
            loss = F.mse_loss(self.model(x), y) / self.accumulate
            loss.backward()
            self.calls += 1
            if self.calls % self.accumulate == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
            return loss.item()

    model = net()
    step = TrainStep(model, sgd(model), 2)
    return step, lambda: step


@pattern
def closure_of_helpers() -> Made:
    def make_logger(every: int) -> tuple[Callable[[float], None], list[str]]:
        lines: list[str] = []
        count = 0

        def log(value: float) -> None:
            nonlocal count
            count += 1
            if count % every == 0:
                lines.append(f"{count}: {value:.3f}")

        return log, lines

    model, (x, y) = net(), points()
    opt, (log, lines) = sgd(model), make_logger(5)

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        log(loss.item())

    return step, lambda: (model, opt, lines)


@pattern
def timer_context_manager() -> Made:
    class Section:
        depth: ClassVar[list[str]] = []

        def __init__(self, name: str, counts: dict[str, int]) -> None:
            self.name, self.counts = name, counts

        def __enter__(self) -> Section:
            self.counts[self.name] = self.counts.get(self.name, 0) + 1
            return self

        def __exit__(self, *exc: object) -> None:
            self.counts["left"] = self.counts.get("left", 0) + 1

    model, (x, y), counts = net(), points(), {}
    opt = sgd(model)

    def step() -> Any:
        with Section("forward", counts):
            loss = F.mse_loss(model(x), y)
        with Section("backward", counts):
            opt.zero_grad()
            loss.backward()
            opt.step()
        return loss.item()

    return step, lambda: (model, opt, counts)


@pattern
def evaluation_context() -> Made:
    @contextlib.contextmanager
    def evaluating(model: nn.Module) -> Iterator[None]:
        before = model.training
        model.eval()
        try:
            yield
        finally:
            model.train(before)

    model, (x, y) = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2)), points()
    opt = sgd(model)

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        with evaluating(model), torch.no_grad():
            return F.mse_loss(model(x), y).item()

    return step, lambda: (model, opt)


@pattern
def try_finally() -> Made:
    model, (x, y), state = net(), points(), {"running": False, "done": 0}
    opt = sgd(model)

    def step() -> Any:
        state["running"] = True
        try:
            opt.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            opt.step()
            return loss.item()
        finally:
            state["running"] = False
            state["done"] += 1

    return step, lambda: (model, opt, state)


@pattern
def out_of_memory_is_caught() -> Made:
    model, n = net(), 0
    opt = sgd(model)

    def forward(x: torch.Tensor) -> torch.Tensor:
        if len(x) > 5 and n % 3 == 0:
            raise RuntimeError("CUDA out of memory")
        return model(x)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        nonlocal n
        n += 1
        opt.zero_grad()
        try:
            loss = F.mse_loss(forward(x), y)
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            loss = F.mse_loss(forward(x[:3]), y[:3])
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt, n)


CURRENT_STEP: contextvars.ContextVar[int] = contextvars.ContextVar("current_step", default=0)


@pattern
def context_variable() -> Made:
    CURRENT_STEP.set(0)
    model, (x, y) = net(), points()
    opt = sgd(model)

    def step() -> Any:
        CURRENT_STEP.set(CURRENT_STEP.get() + 1)
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt, CURRENT_STEP.get())


@pattern
def match_on_phase() -> Made:
    model, (x, y) = net(), points()
    opt = sgd(model)

    def step(i: int) -> Any:
        out = model(x)
        match {"phase": "warmup" if i < 6 else "train", "step": i}:
            case {"phase": "warmup"}:
                loss = F.l1_loss(out, y)
            case {"phase": "train", "step": n} if n % 2:
                loss = F.mse_loss(out, y)
            case _:
                loss = F.smooth_l1_loss(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def walrus() -> Made:
    model, (x, y), high = net(), points(), []
    opt = sgd(model)

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        if (value := loss.item()) > 1.0:
            high.append(value)
        return value

    return step, lambda: (model, opt, high)


@pattern
def weight_decay_by_comprehension() -> Made:
    model, (x, y) = net(), points()
    opt = sgd(model)

    def step() -> Any:
        loss = F.mse_loss(model(x), y)
        l2 = sum(p.pow(2).sum() for p in model.parameters())
        l1 = torch.stack([p.abs().sum() for n, p in model.named_parameters() if "bias" not in n]).sum()
        opt.zero_grad()
        (loss + 1e-3 * l2 + 1e-4 * l1).backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def soft_update_of_target() -> Made:
    model, target, tau = net(), net(), 0.05
    opt = sgd(model)

    def step(x: torch.Tensor) -> Any:
        with torch.no_grad():
            wanted = target(x) * 0.9 + 0.1
        loss = F.mse_loss(model(x), wanted)
        opt.zero_grad()
        loss.backward()
        opt.step()
        target_dict, policy_dict = target.state_dict(), model.state_dict()
        for key in policy_dict:
            target_dict[key] = policy_dict[key] * tau + target_dict[key] * (1 - tau)
        target.load_state_dict(target_dict)
        return loss.item()

    return step, lambda: (model, target, opt)


@pattern
def parameters_by_name() -> Made:
    model, (x, y) = net(), points()
    opt = sgd(model)

    def step(i: int) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        for name, p in model.named_parameters():
            if name.startswith("0.") and i < 10 and p.grad is not None:
                p.grad.zero_()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def outputs_by_fstring() -> Made:
    model = nn.ModuleDict({f"layer{k}": nn.Linear(4, 4) for k in range(3)})
    opt = sgd(model)

    def step(x: torch.Tensor) -> Any:
        outs: dict[str, torch.Tensor] = OrderedDict()
        h = x
        for k in range(3):
            h = outs[f"layer{k}"] = torch.tanh(model[f"layer{k}"](h))
        loss = torch.stack([outs[f"layer{k}"].pow(2).mean() / (k + 1) for k in range(3)]).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return {name: out.detach().mean() for name, out in outs.items()}

    return step, lambda: (model, opt)


@pattern
def seen_ids() -> Made:
    model, seen = net(), set()
    opt = sgd(model)

    def step(i: int, x: torch.Tensor, y: torch.Tensor) -> Any:
        ids = [i * 3 % 20, i * 3 % 20 + 1]
        fresh = [k for k in ids if k not in seen]
        seen.update(ids)
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return len(fresh)

    return step, lambda: (model, opt, seen)


@pattern
def sorted_by_length() -> Made:
    rnn = nn.GRU(2, 4, batch_first=True)
    opt = sgd(rnn)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        rows = sorted([x[:2, :2], x[:5, :2], y[:4]], key=len, reverse=True)
        batch = torch.stack([F.pad(row, (0, 0, 0, 5 - len(row))) for row in rows])
        loss = rnn(batch)[0].pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (rnn, opt)


LOSSES: dict[str, Callable[..., torch.Tensor]] = {}


def register(name: str) -> Callable[[Any], Any]:
    def add(function: Any) -> Any:
        LOSSES[name] = function
        return function

    return add


@register("huber")
def huber(out: torch.Tensor, y: torch.Tensor, delta: float = 1.0) -> torch.Tensor:
    return F.huber_loss(out, y, delta=delta)


@register("charbonnier")
def charbonnier(out: torch.Tensor, y: torch.Tensor, eps: float = 1e-3) -> torch.Tensor:
    return ((out - y).pow(2) + eps**2).sqrt().mean()


@pattern
def registry_of_losses() -> Made:
    config = {"losses": [{"name": "huber", "weight": 1.0, "delta": 0.5}, {"name": "charbonnier", "weight": 0.1}]}
    model, (x, y) = net(), points()
    opt = sgd(model)

    def step() -> Any:
        out, total, log = model(x), torch.zeros(()), {}
        for entry in config["losses"]:
            options = {k: v for k, v in entry.items() if k not in ("name", "weight")}
            value = LOSSES[str(entry["name"])](out, y, **options)
            total = total + entry["weight"] * value
            log[f"loss/{entry['name']}"] = value.item()
        opt.zero_grad()
        total.backward()
        opt.step()
        return log

    return step, lambda: (model, opt)


@pattern
def heap_of_hardest() -> Made:
    model, hardest = net(), []
    opt = sgd(model)

    def step(i: int, x: torch.Tensor, y: torch.Tensor) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        heapq.heappush(hardest, (loss.item(), i))
        if len(hardest) > 4:
            heapq.heappop(hardest)

    return step, lambda: (model, opt, hardest)


@pattern
def welford_statistics() -> Made:
    class Welford:
        def __init__(self) -> None:
            self.n, self.mean, self.m2 = 0, torch.zeros(4), torch.zeros(4)

        def update(self, x: torch.Tensor) -> None:
            for row in x:
                self.n += 1
                delta = row - self.mean
                self.mean = self.mean + delta / self.n
                self.m2 = self.m2 + delta * (row - self.mean)

        def normalized(self, x: torch.Tensor) -> torch.Tensor:
            return (x - self.mean) / (self.m2 / max(1, self.n - 1) + 1e-5).sqrt()

    model, statistics = net(), Welford()
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        statistics.update(x)
        loss = F.mse_loss(model(statistics.normalized(x)), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt, statistics)


@pattern
def counts_of_classes() -> Made:
    model, counts = net(), torch.ones(2)
    opt = sgd(model)

    def step(x: torch.Tensor, labels: torch.Tensor) -> Any:
        counts.add_(torch.bincount(labels, minlength=2))
        weight = counts.sum() / (2 * counts)
        loss = F.cross_entropy(model(x), labels, weight=weight)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt, counts)


@pattern
def norms_of_parameters_logged() -> Made:
    model, (x, y), log = net(), points(), {}
    opt = sgd(model)

    def step(i: int) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        if i % 5 == 0:
            for name, p in model.named_parameters():
                log[f"norm/{name}"] = p.detach().norm().item()
                log[f"grad/{name}"] = p.grad.abs().max().item()

    return step, lambda: (model, opt, log)


@pattern
def early_return_in_warmup() -> Made:
    model, n = net(), 0
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        nonlocal n
        n += 1
        if n <= 3:
            return None
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt, n)


@pattern
def asserts_on_shapes() -> Made:
    model = net()
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        b, d = x.shape
        assert d == 4 and x.dtype == torch.float32, f"bad input {tuple(x.shape)}"
        out = model(x)
        assert out.shape == (b, 2) == y.shape, (out.shape, y.shape)
        loss = F.mse_loss(out, y)
        assert loss.ndim == 0 and loss.requires_grad
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def warned_once() -> Made:
    model, warned = net(), False
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        nonlocal warned
        if not warned and len(x) < 8:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                warnings.warn("small batches", stacklevel=2)
            warned = True
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt, warned)


@pattern
def weak_reference() -> Made:
    class Callback:
        def __init__(self, trainer: Any) -> None:
            self.trainer = weakref.ref(trainer)
            self.steps = 0

        def on_step(self) -> None:
            trainer = self.trainer()
            if trainer is not None and trainer.enabled:
                self.steps += 1

    class Trainer:
        def __init__(self) -> None:
            self.model, self.enabled = net(), True
            self.opt, self.callback = sgd(self.model), Callback(self)

        def step(self, x: torch.Tensor, y: torch.Tensor) -> Any:
            self.opt.zero_grad()
            loss = F.mse_loss(self.model(x), y)
            loss.backward()
            self.opt.step()
            self.callback.on_step()
            return loss.item()

    trainer = Trainer()
    return trainer.step, lambda: (trainer.model, trainer.opt, trainer.callback.steps)


@pattern
def properties() -> Made:
    class Trainer:
        def __init__(self) -> None:
            self.model, self._step, self.losses = net(), 0, deque[float](maxlen=4)
            self.opt = sgd(self.model)

        @property
        def lr(self) -> float:
            return self.opt.param_groups[0]["lr"]

        @lr.setter
        def lr(self, value: float) -> None:
            for group in self.opt.param_groups:
                group["lr"] = value

        @property
        def is_warm(self) -> bool:
            return self._step >= 5

        def step(self, x: torch.Tensor, y: torch.Tensor) -> Any:
            self.lr = 0.1 if self.is_warm else 0.01
            self.opt.zero_grad()
            loss = F.mse_loss(self.model(x), y)
            loss.backward()
            self.opt.step()
            self._step += 1
            return loss.item()

    trainer = Trainer()
    return trainer.step, lambda: trainer


@pattern
def partial_step() -> Made:
    def train(model: nn.Module, opt: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor, *, smoothing: float) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y * (1 - smoothing))
        loss.backward()
        opt.step()
        return loss.item()

    model = net()
    opt = sgd(model)
    return functools.partial(train, model, opt, smoothing=0.1), lambda: (model, opt)


class Metric:
    """torchmetrics' and ignite's."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.correct, self.total = torch.tensor(0), 0

    def update(self, out: torch.Tensor, labels: torch.Tensor) -> None:
        self.correct = self.correct + (out.argmax(1) == labels).sum()
        self.total += labels.numel()

    def compute(self) -> torch.Tensor:
        return self.correct.float() / self.total


@pattern
def metric_object() -> Made:
    model, metric = net(), Metric()
    opt = sgd(model)

    def step(i: int, x: torch.Tensor, labels: torch.Tensor) -> Any:
        out = model(x)
        loss = F.cross_entropy(out, labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        metric.update(out.detach(), labels)
        if i % 10 == 9:
            value = metric.compute().item()
            metric.reset()
            return value
        return None

    return step, lambda: (model, opt, metric)


@pattern
def callbacks_by_event() -> Made:
    model, (x, y), events, log = net(), points(), {}, []
    opt = sgd(model)
    for name in ("batch_start", "batch_end"):
        events[name] = []
    events["batch_start"].append(lambda state: state.update(step=state["step"] + 1))
    events["batch_end"].append(lambda state: log.append(state["loss"]) if state["step"] % 5 == 0 else None)
    state = {"step": 0, "loss": 0.0}

    def fire(name: str) -> None:
        for callback in events[name]:
            callback(state)

    def step() -> Any:
        fire("batch_start")
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        state["loss"] = loss.item()
        fire("batch_end")

    return step, lambda: (model, opt, state, log)


@pattern
def uncertainty_weights() -> Made:
    model, log_vars = net(), nn.Parameter(torch.zeros(2))
    opt = torch.optim.Adam([*model.parameters(), log_vars], lr=0.01)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        out = model(x)
        losses = {"l1": F.l1_loss(out, y), "l2": F.mse_loss(out, y)}
        total = sum(torch.exp(-log_vars[k]) * v + log_vars[k] for k, v in enumerate(losses.values()))
        opt.zero_grad()
        total.backward()
        opt.step()
        return {k: v.item() for k, v in losses.items()} | {"sigma": log_vars.detach().exp().tolist()}

    return step, lambda: (model, log_vars, opt)


@pattern
def dynamic_weight_average() -> Made:
    model, history = net(), []
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        if len(history) < 2:
            weights = [1.0, 1.0]
        else:
            ratios = [math.exp(a / b / 2.0) for a, b in zip(history[-1], history[-2])]
            weights = [2 * r / sum(ratios) for r in ratios]
        out = model(x)
        losses = [F.l1_loss(out, y), F.mse_loss(out, y)]
        total = weights[0] * losses[0] + weights[1] * losses[1]
        opt.zero_grad()
        total.backward()
        opt.step()
        history.append([loss.item() for loss in losses])
        return weights

    return step, lambda: (model, opt, history)


@pattern
def labels_to_weights_dict() -> Made:
    model, (x, labels) = net(), labelled()
    opt, table = sgd(model), {"cat": 0.5, "dog": 2.0}

    def step(i: int) -> Any:
        table["dog"] = max(1.0, table["dog"] - 0.05)
        weight = torch.tensor([table[name] for name in ("cat", "dog")])
        opt.zero_grad()
        loss = F.cross_entropy(model(x), labels, weight=weight)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt, table)


# -- recurrent layers of varying length ------------------------------------------------------------------------------------


@pattern
def lstm_of_varying_length() -> Made:
    """The sentences of a batch are as long as its longest, and the last batch is smaller."""
    rnn, head = nn.LSTM(4, 6, num_layers=2, batch_first=True), nn.Linear(6, 2)
    opt = sgd(nn.ModuleList([rnn, head]))

    def step(i: int, x: torch.Tensor, labels: torch.Tensor) -> Any:
        length, rows = 3 + (i * 5) % 7, 6 - i % 3
        opt.zero_grad()
        out, _ = rnn(x[:rows, None].expand(rows, length, 4))
        loss = F.cross_entropy(head(out[:, -1]), labels[:rows])
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (rnn, head, opt)


@pattern
def gru_of_varying_length_with_dropout() -> Made:
    rnn, head = nn.GRU(4, 6, num_layers=2, dropout=0.3, bidirectional=True), nn.Linear(12, 2)
    opt = sgd(nn.ModuleList([rnn, head]))

    def step(i: int, x: torch.Tensor, y: torch.Tensor) -> Any:
        opt.zero_grad()
        _, state = rnn(x.repeat(2 + i % 5, 1, 1))
        loss = F.mse_loss(head(torch.cat([state[-2], state[-1]], dim=-1)), y)
        loss.backward()
        nn.utils.clip_grad_norm_(rnn.parameters(), 1.0)
        opt.step()
        return loss.item()

    return step, lambda: (rnn, head, opt)


@pattern
def truncated_backward_of_the_last_part() -> Made:
    """The state goes from window to window, and the last window of a text is shorter."""
    rnn, head = nn.LSTM(4, 6), nn.Linear(6, 2)
    opt, state = sgd(nn.ModuleList([rnn, head])), {"hidden": (torch.zeros(1, 2, 6), torch.zeros(1, 2, 6))}
    text = torch.randn(26, 2, 4)

    def step(i: int) -> Any:
        start = i % 4 * 7
        window = text[start : start + 7]
        hidden = tuple(h.detach() for h in state["hidden"])
        opt.zero_grad()
        out, state["hidden"] = rnn(window, hidden)
        loss = head(out).pow(2).mean()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (rnn, head, opt, [h.detach() for h in state["hidden"]])

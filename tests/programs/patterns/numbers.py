"""Numbers of the program: counters, averages, rates and best values, wherever a program keeps them."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import json
import logging
import math
import random
import time
from collections import Counter, defaultdict, deque
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

from tests.programs.patterns.pattern import Made, labelled, net, pattern, points, sgd

# -- counters ----------------------------------------------------------------------------------------------------------


@pattern
def counter_in_list() -> Made:
    model, (x, y), n = net(), points(), [0]
    opt = sgd(model)

    def step() -> Any:
        loss = F.mse_loss(model(x), y)
        loss.backward()
        n[0] += 1
        if n[0] % 4 == 0:
            opt.step()
            opt.zero_grad()
        return loss.item()

    return step, lambda: (model, opt, n)


@pattern
def counter_in_attribute() -> Made:
    class Trainer:
        def __init__(self) -> None:
            self.model = net()
            self.opt = sgd(self.model)
            self.x, self.y = points()
            self.iteration = 0

        def step(self) -> Any:
            self.opt.zero_grad()
            loss = F.mse_loss(self.model(self.x), self.y)
            loss.backward()
            self.opt.step()
            self.iteration += 1
            return {"loss": loss.item(), "iteration": self.iteration}

    trainer = Trainer()
    return trainer.step, lambda: trainer


@pattern
def counter_in_dict() -> Made:
    model, (x, y) = net(), points()
    opt, state = sgd(model), {"step": 0, "loss": 0.0}

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        state["step"] += 1
        state["loss"] += loss.item()
        if state["step"] % 10 == 0:
            print(f"step {state['step']}: {state['loss'] / 10:.4f}")
            state["loss"] = 0.0

    return step, lambda: (model, opt, state)


@pattern
def counter_nonlocal() -> Made:
    model, (x, y) = net(), points()
    opt, seen = sgd(model), 0

    def step() -> Any:
        nonlocal seen
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        seen += x.size(0)
        return loss.detach(), seen

    return step, lambda: (model, opt, seen)


GLOBAL_STEP = 0


@pattern
def counter_global() -> Made:
    global GLOBAL_STEP
    GLOBAL_STEP = 0
    model, (x, y) = net(), points()
    opt = sgd(model)

    def step() -> Any:
        global GLOBAL_STEP
        loss = F.mse_loss(model(x), y) / 2
        loss.backward()
        GLOBAL_STEP += 1
        if GLOBAL_STEP % 2 == 0:
            opt.step()
            opt.zero_grad()
        return loss.item()

    return step, lambda: (model, opt, GLOBAL_STEP)


@pattern
def counter_class_attribute() -> Made:
    class Trainer:
        count = 0

    model, (x, y) = net(), points()
    opt = sgd(model)

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        Trainer.count += 1
        return loss.item() if Trainer.count % 5 else 0.0

    return step, lambda: (model, opt, Trainer.count)


@pattern
def counter_in_dataclass() -> Made:
    @dataclasses.dataclass
    class TrainState:
        step: int = 0
        total: float = 0.0
        best: float = math.inf

    model, (x, y) = net(), points()
    opt, state = sgd(model), TrainState()

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        state.step += 1
        state.total += loss.item()
        state.best = min(state.best, loss.item())
        return state.total / state.step

    return step, lambda: (model, opt, state)


@dataclasses.dataclass(frozen=True)
class Progress:
    epoch: int = 0
    step: int = 0


@pattern
def counter_dataclass_replace() -> Made:
    model, (x, y) = net(), points()
    opt, progress = sgd(model), Progress()

    def step() -> Any:
        nonlocal progress
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        progress = dataclasses.replace(progress, step=progress.step + 1, epoch=(progress.step + 1) // 10)
        return loss.detach()

    return step, lambda: (model, opt, progress)


class Counts(NamedTuple):
    step: int = 0
    samples: int = 0


@pattern
def counter_namedtuple_replace() -> Made:
    model, (x, y) = net(), points()
    opt, counts = sgd(model), Counts()

    def step() -> Any:
        nonlocal counts
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        counts = counts._replace(step=counts.step + 1, samples=counts.samples + len(x))
        return loss.item()

    return step, lambda: (model, opt, counts)


@pattern
def counter_in_namespace() -> Made:
    model, (x, y) = net(), points()
    opt, args = sgd(model), SimpleNamespace(accumulate=3, step=0)

    def step() -> Any:
        loss = F.mse_loss(model(x), y) / args.accumulate
        loss.backward()
        if (args.step + 1) % args.accumulate == 0:
            opt.step()
            opt.zero_grad()
        args.step += 1
        return loss.item()

    return step, lambda: (model, opt, args)


@pattern
def counter_numpy_scalar() -> Made:
    model, (x, y) = net(), points()
    opt, state = sgd(model), {"step": np.int64(0)}

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        state["step"] += 1
        return loss.detach()

    return step, lambda: (model, opt, state)


@pattern
def losses_in_numpy_array() -> Made:
    model, (x, y) = net(), points()
    opt, losses = sgd(model), np.zeros(100)

    def step(i: int) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        losses[i] = loss.item()

    return step, lambda: (model, opt, losses)


@pattern
def mean_of_numpy_window() -> Made:
    model, (x, y) = net(), points()
    opt, window, n = sgd(model), np.zeros(5), 0

    def step() -> Any:
        nonlocal n
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        window[n % 5] = loss.item()
        n += 1
        return float(np.mean(window[: min(n, 5)]))

    return step, lambda: (model, opt, window, n)


@pattern
def counter_update() -> Made:
    model, (x, labels) = net(), labelled()
    opt, seen = sgd(model), Counter[str]()

    def step() -> Any:
        opt.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out, labels)
        loss.backward()
        opt.step()
        seen.update(correct=int((out.argmax(1) == labels).sum()), total=len(labels))
        return seen["correct"] / seen["total"]

    return step, lambda: (model, opt, seen)


@pattern
def defaultdict_of_int() -> Made:
    model, (x, y) = net(), points()
    opt, counts = sgd(model), defaultdict[str, int](int)

    def step(i: int) -> Any:
        phase = "warmup" if i < 5 else "main"
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        counts[phase] += 1
        return loss.item()

    return step, lambda: (model, opt, counts)


@pattern
def itertools_counter() -> Made:
    model, (x, y) = net(), points()
    opt, steps = sgd(model), itertools.count()

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        n = next(steps)
        return loss.item() if n % 10 == 0 else None

    return step, lambda: (model, opt, steps)


@pattern
def enumerate_micro_batches() -> Made:
    model, (x, y), seen = net(), points(), [0]
    opt = sgd(model)

    def step() -> Any:
        opt.zero_grad()
        total = 0.0
        for k, (a, b) in enumerate(zip(x.chunk(4), y.chunk(4))):
            loss = F.mse_loss(model(a), b) / 4
            loss.backward()
            total += loss.item()
            seen[0] += k
        opt.step()
        return total

    return step, lambda: (model, opt, seen)


@pattern
def epochs_and_iterations() -> Made:
    model, (x, y) = net(), points()
    opt, state = sgd(model), {"epoch": 0, "iter": 0, "iters_per_epoch": 8}

    def step() -> Any:
        k = state["iter"] % 4
        opt.zero_grad()
        loss = F.mse_loss(model(x[2 * k : 2 * k + 2]), y[2 * k : 2 * k + 2])
        loss.backward()
        opt.step()
        state["iter"] += 1
        if state["iter"] == state["iters_per_epoch"]:
            state["epoch"] += 1
            state["iter"] = 0
        return loss.item()

    return step, lambda: (model, opt, state)


@pattern
def global_step_in_config() -> Made:
    config: dict[str, Any] = {"train": {"lr": 0.05, "warmup": 10, "global_step": 0}, "log_every": 5}
    model, (x, y) = net(), points()
    opt, log = sgd(model), []

    def step() -> Any:
        config["train"]["global_step"] += 1
        n = config["train"]["global_step"]
        for group in opt.param_groups:
            group["lr"] = config["train"]["lr"] * min(1.0, n / config["train"]["warmup"])
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        if n % config["log_every"] == 0:
            log.append((n, loss.item()))

    return step, lambda: (model, opt, config, log)


@pattern
def nested_epoch_loop() -> Made:
    model, (x, y) = net(), points()
    opt, epoch, seen = sgd(model), 0, 0

    def train_epoch() -> Any:
        nonlocal epoch, seen
        running = 0.0
        for k in range(2):
            opt.zero_grad()
            loss = F.mse_loss(model(x[4 * k : 4 * k + 4]), y[4 * k : 4 * k + 4])
            loss.backward()
            opt.step()
            running += loss.item() * 4
            seen += 4
        epoch += 1
        return running / len(x)

    return train_epoch, lambda: (model, opt, epoch, seen)


# -- indices computed from a counter ---------------------------------------------------------------------------------


@pattern
def slice_by_counter() -> Made:
    model, (x, y), i = net(), points(160), 0
    opt = sgd(model)

    def step() -> Any:
        nonlocal i
        a, b = x[i * 4 : (i + 1) * 4], y[i * 4 : (i + 1) * 4]
        i += 1
        opt.zero_grad()
        loss = F.mse_loss(model(a), b)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt, i)


@pattern
def batch_by_modulo() -> Made:
    model, batches, n = net(), [points(4) for _ in range(3)], [0]
    opt = sgd(model)

    def step() -> Any:
        x, y = batches[n[0] % len(batches)]
        n[0] += 1
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt, n)


@pattern
def row_of_tensor_by_modulo() -> Made:
    model, data = net(), torch.randn(8, 5, 4)
    opt = sgd(model)

    def step(i: int) -> Any:
        x = data[i % 8]
        opt.zero_grad()
        loss = (model(x) - x[:, :2]).pow(2).mean()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def text_window_by_pointer() -> Made:
    text, model = torch.randint(10, (200,)), torch.nn.Sequential(torch.nn.Embedding(10, 8), torch.nn.Linear(8, 10))
    opt, state = torch.optim.AdamW(model.parameters(), lr=0.01), {"p": 0}

    def step() -> Any:
        p = state["p"]
        if p + 7 >= len(text):
            p = 0
        inputs, targets = text[p : p + 6], text[p + 1 : p + 7]
        state["p"] = p + 6
        opt.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(inputs), targets)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt, state)


@pattern
def curriculum_length() -> Made:
    table = torch.nn.Embedding(10, 8)
    rnn, tokens = torch.nn.GRU(8, 8, batch_first=True), torch.randint(10, (3, 12))
    opt = torch.optim.SGD([*table.parameters(), *rnn.parameters()], lr=0.05)

    def step(i: int) -> Any:
        length = min(12, 4 + i // 4)
        opt.zero_grad()
        out, _ = rnn(table(tokens[:, :length]))
        loss = out.pow(2).mean()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (table, rnn, opt)


# -- averages --------------------------------------------------------------------------------------------------------


class AverageMeter:
    """Computes and stores the average and current value."""

    def __init__(self, name: str, fmt: str = ":f") -> None:
        self.name, self.fmt = name, fmt
        self.reset()

    def reset(self) -> None:
        self.val = self.avg = self.sum = 0.0
        self.count = 0

    def update(self, val: float, n: int = 1) -> None:
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self) -> str:
        fmtstr = "{name} {val" + self.fmt + "} ({avg" + self.fmt + "})"
        return fmtstr.format(**self.__dict__)


class ProgressMeter:
    def __init__(self, num_batches: int, meters: list[AverageMeter], prefix: str = "") -> None:
        self.batch_fmtstr = "[{:" + str(len(str(num_batches))) + "d}/" + str(num_batches) + "]"
        self.meters, self.prefix = meters, prefix

    def display(self, batch: int) -> None:
        entries = [self.prefix + self.batch_fmtstr.format(batch)]
        entries += [str(meter) for meter in self.meters]
        print("\t".join(entries))


@pattern
def imagenet_meters() -> Made:
    model, (x, labels) = net(), labelled()
    opt, losses, top1 = sgd(model), AverageMeter("Loss", ":.4e"), AverageMeter("Acc@1", ":6.2f")

    def step() -> Any:
        out = model(x)
        loss = F.cross_entropy(out, labels)
        correct = out.argmax(1).eq(labels).float().sum() * (100.0 / len(labels))
        losses.update(loss.item(), x.size(0))
        top1.update(correct.item(), x.size(0))
        opt.zero_grad()
        loss.backward()
        opt.step()
        return losses.avg

    return step, lambda: (model, opt, losses, top1)


@pattern
def imagenet_progress() -> Made:
    model, (x, y) = net(), points()
    opt, losses = sgd(model), AverageMeter("Loss", ":.4e")
    progress = ProgressMeter(30, [losses], prefix="Epoch: [0]")

    def step(i: int) -> Any:
        loss = F.mse_loss(model(x), y)
        losses.update(loss.item(), x.size(0))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if i % 10 == 0:
            progress.display(i + 1)

    return step, lambda: (model, opt, losses)


class SmoothedValue:
    """Track a series of values and provide access to smoothed values over a window or the global series average."""

    def __init__(self, window_size: int = 20, fmt: str = "{median:.4f} ({global_avg:.4f})") -> None:
        self.deque: deque[float] = deque(maxlen=window_size)
        self.total, self.count, self.fmt = 0.0, 0, fmt

    def update(self, value: float, n: int = 1) -> None:
        self.deque.append(value)
        self.count += n
        self.total += value * n

    @property
    def median(self) -> float:
        return torch.tensor(list(self.deque)).median().item()

    @property
    def avg(self) -> float:
        return torch.tensor(list(self.deque), dtype=torch.float32).mean().item()

    @property
    def global_avg(self) -> float:
        return self.total / self.count

    def __str__(self) -> str:
        return self.fmt.format(median=self.median, global_avg=self.global_avg)


class MetricLogger:
    def __init__(self, delimiter: str = "\t") -> None:
        self.meters: defaultdict[str, SmoothedValue] = defaultdict(SmoothedValue)
        self.delimiter = delimiter

    def update(self, **kwargs: Any) -> None:
        for k, v in kwargs.items():
            if isinstance(v, torch.Tensor):
                v = v.item()
            assert isinstance(v, (float, int))
            self.meters[k].update(v)

    def __str__(self) -> str:
        return self.delimiter.join(f"{name}: {meter!s}" for name, meter in self.meters.items())


@pattern
def torchvision_smoothed_value() -> Made:
    model, (x, y) = net(), points()
    opt, meter = sgd(model), SmoothedValue(window_size=5)

    def step() -> Any:
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        meter.update(loss.item(), n=len(x))
        return meter.global_avg

    return step, lambda: (model, opt, meter)


@pattern
def torchvision_metric_logger() -> Made:
    model, (x, y) = net(), points()
    opt, logger = sgd(model), MetricLogger(delimiter="  ")

    def step() -> Any:
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        logger.update(loss=loss, lr=opt.param_groups[0]["lr"])

    return step, lambda: (model, opt, logger)


@pattern
def torchvision_metric_logger_printed() -> Made:
    model, (x, y) = net(), points()
    opt, logger = sgd(model), MetricLogger(delimiter="  ")

    def step(i: int) -> Any:
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        logger.update(loss=loss.item(), lr=opt.param_groups[0]["lr"])
        if i % 10 == 0:
            print(f"[{i}/30]  {logger}")

    return step, lambda: (model, opt, logger)


@pattern
def mean_of_growing_list() -> Made:
    model, (x, y) = net(), points()
    opt, losses = sgd(model), []

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        losses.append(loss.item())
        return sum(losses) / len(losses)

    return step, lambda: (model, opt, losses)


@pattern
def numpy_mean_of_list() -> Made:
    model, (x, y) = net(), points()
    opt, losses = sgd(model), []

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        losses.append(loss.item())
        return float(np.mean(losses[-10:]))

    return step, lambda: (model, opt, losses)


@pattern
def mean_of_deque() -> Made:
    model, (x, y) = net(), points()
    opt, recent = sgd(model), deque[float](maxlen=8)

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        recent.append(loss.item())
        return sum(recent) / len(recent)

    return step, lambda: (model, opt, recent)


@pattern
def running_mean() -> Made:
    model, (x, y), running = net(), points(), None
    opt = sgd(model)

    def step() -> Any:
        nonlocal running
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        running = loss.item() if running is None else 0.9 * running + 0.1 * loss.item()
        return running

    return step, lambda: (model, opt, running)


@pattern
def running_loss_printed() -> Made:
    model, (x, y), running_loss = net(), points(), 0.0
    opt = sgd(model, momentum=0.9)

    def step(i: int) -> Any:
        nonlocal running_loss
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        running_loss += loss.item()
        if i % 5 == 4:
            print(f"[{1}, {i + 1:5d}] loss: {running_loss / 5:.3f}")
            running_loss = 0.0

    return step, lambda: (model, opt, running_loss)


@pattern
def bias_corrected_average() -> Made:
    model, (x, y), state = net(), points(), {"avg": 0.0, "n": 0}
    opt = sgd(model)

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        state["n"] += 1
        state["avg"] = 0.98 * state["avg"] + 0.02 * loss.item()
        return state["avg"] / (1 - 0.98 ** state["n"])

    return step, lambda: (model, opt, state)


@pattern
def best_loss_so_far() -> Made:
    model, (x, y), best = net(), points(), float("inf")
    opt = sgd(model)

    def step() -> Any:
        nonlocal best
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        best = min(best, loss.item())
        return best

    return step, lambda: (model, opt, best)


# -- rates and weights that depend on the step -----------------------------------------------------------------------


@pattern
def warmup_by_hand() -> Made:
    model, (x, y), n = net(), points(), 0
    opt = torch.optim.AdamW(model.parameters(), lr=0.01)

    def step() -> Any:
        nonlocal n
        n += 1
        if n <= 10:
            for group in opt.param_groups:
                group["lr"] = 0.01 * n / 10
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss.detach()

    return step, lambda: (model, opt, n)


def get_lr(it: int) -> float:
    """nanoGPT's."""
    warmup, decay, most, least = 5, 25, 0.05, 0.005
    if it < warmup:
        return most * (it + 1) / (warmup + 1)
    if it > decay:
        return least
    ratio = (it - warmup) / (decay - warmup)
    return least + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (most - least)


@pattern
def nanogpt_cosine() -> Made:
    model, (x, y), iter_num = net(), points(), 0
    opt = torch.optim.AdamW(model.parameters(), lr=0.05)

    def step() -> Any:
        nonlocal iter_num
        lr = get_lr(iter_num)
        for group in opt.param_groups:
            group["lr"] = lr
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        iter_num += 1
        return loss.detach()

    return step, lambda: (model, opt, iter_num)


@pattern
def noam_rate() -> Made:
    class NoamOpt:
        """The Annotated Transformer's."""

        def __init__(self, size: int, warmup: int, optimizer: torch.optim.Optimizer) -> None:
            self.optimizer, self.size, self.warmup = optimizer, size, warmup
            self._step, self._rate = 0, 0.0

        def step(self) -> None:
            self._step += 1
            self._rate = self.size**-0.5 * min(self._step**-0.5, self._step * self.warmup**-1.5)
            for p in self.optimizer.param_groups:
                p["lr"] = self._rate
            self.optimizer.step()

    model, (x, y) = net(), points()
    opt = NoamOpt(64, 8, torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98)))

    def step() -> Any:
        opt.optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def learning_rate_logged() -> Made:
    model, (x, y) = net(), points()
    opt, rates = sgd(model), []

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        opt.param_groups[0]["lr"] *= 0.95
        rates.append(opt.param_groups[0]["lr"])
        print(f"lr={rates[-1]:.6f}")

    return step, lambda: (model, opt, rates)


@pattern
def ema_decay_from_step() -> Made:
    model, ema, (x, y), n = net(), net(), points(), 0
    ema.load_state_dict(model.state_dict())
    opt = sgd(model)

    def step() -> Any:
        nonlocal n
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        n += 1
        decay = min(0.999, (1 + n) / (10 + n))
        with torch.no_grad():
            for e, p in zip(ema.parameters(), model.parameters()):
                e.mul_(decay).add_(p, alpha=1 - decay)
        return loss.item()

    return step, lambda: (model, ema, opt, n)


@pattern
def yolo_ema() -> Made:
    class ModelEMA:
        def __init__(self, model: torch.nn.Module, decay: float = 0.9999, tau: int = 20) -> None:
            self.ema = net()
            self.ema.load_state_dict(model.state_dict())
            self.updates = 0
            self.decay = lambda x: decay * (1 - math.exp(-x / tau))

        def update(self, model: torch.nn.Module) -> None:
            self.updates += 1
            d = self.decay(self.updates)
            msd = model.state_dict()
            for k, v in self.ema.state_dict().items():
                if v.dtype.is_floating_point:
                    v *= d
                    v += (1 - d) * msd[k].detach()

    model, (x, y) = net(), points()
    opt, ema = sgd(model), ModelEMA(model)

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        ema.update(model)
        return loss.item()

    return step, lambda: (model, opt, ema)


@pattern
def kl_annealing() -> Made:
    encoder, decoder = net(8), torch.nn.Linear(4, 4)
    opt, x, n = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.01), torch.randn(8, 4), 0

    def step() -> Any:
        nonlocal n
        mu, logvar = encoder(x).chunk(2, 1)
        out = decoder(mu + torch.randn_like(mu) * (0.5 * logvar).exp())
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).mean()
        beta = min(1.0, n / 20)
        loss = F.mse_loss(out, x) + beta * kl
        opt.zero_grad()
        loss.backward()
        opt.step()
        n += 1
        return loss.item(), kl.item(), beta

    return step, lambda: (encoder, decoder, opt, n)


@pattern
def sigmoid_annealing() -> Made:
    model, (x, y) = net(), points()
    opt = sgd(model)

    def step(i: int) -> Any:
        weight = float(1 / (1 + np.exp(-0.25 * (i - 15))))
        out = model(x)
        loss = F.mse_loss(out, y) + weight * out.pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def temperature_annealing() -> Made:
    model, x = net(4), torch.randn(8, 4)
    opt, state = sgd(model), SimpleNamespace(temperature=1.0, step=0)

    def step() -> Any:
        state.step += 1
        if state.step % 5 == 0:
            state.temperature = max(0.5, math.exp(-0.03 * state.step))
        out = F.gumbel_softmax(model(x), tau=state.temperature)
        loss = F.mse_loss(out, x)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt, state)


@pattern
def epsilon_decay() -> Made:
    model, (x, y), eps = net(), points(), 1.0
    opt = sgd(model)

    def step() -> Any:
        nonlocal eps
        eps = max(0.05, eps * 0.9)
        loss = F.mse_loss(model(x + eps * torch.randn_like(x)), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt, eps)


@pattern
def accumulate_zero_based() -> Made:
    model, accumulate = net(), 4
    opt = sgd(model)

    def step(i: int, x: torch.Tensor, y: torch.Tensor) -> Any:
        loss = F.mse_loss(model(x), y) / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0 or i + 1 == 30:
            opt.step()
            opt.zero_grad()
        return loss.item() * accumulate

    return step, lambda: (model, opt)


@pattern
def accumulate_counting_down() -> Made:
    model, left = net(), 3
    opt = sgd(model)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        nonlocal left
        loss = F.mse_loss(model(x), y) / 3
        loss.backward()
        left -= 1
        if not left:
            opt.step()
            opt.zero_grad()
            left = 3
        return loss.detach()

    return step, lambda: (model, opt, left)


@pattern
def accumulate_with_flag() -> Made:
    model, (x, y), micro_step = net(), points(), 0
    opt = sgd(model)

    def step() -> Any:
        nonlocal micro_step
        is_update = micro_step % 2 == 1
        loss = F.mse_loss(model(x), y) / 2
        loss.backward()
        if is_update:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            opt.zero_grad(set_to_none=True)
        micro_step += 1
        return loss.item()

    return step, lambda: (model, opt, micro_step)


@pattern
def growing_loss_scale() -> Made:
    model, (x, y), state = net(), points(), {"scale": 16.0, "good": 0}
    opt = sgd(model)

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        (loss * state["scale"]).backward()
        for p in model.parameters():
            if p.grad is not None:
                p.grad.div_(state["scale"])
        opt.step()
        state["good"] += 1
        if state["good"] % 7 == 0:
            state["scale"] *= 2
        return loss.item()

    return step, lambda: (model, opt, state)


@pattern
def dynamic_loss_scaler() -> Made:
    class Scaler:
        def __init__(self) -> None:
            self.cur_scale, self.cur_iter, self.last_overflow, self.window = 2.0**10, 0, -1, 8

        def update(self, overflow: bool) -> None:
            if overflow:
                self.cur_scale = max(self.cur_scale / 2, 1)
                self.last_overflow = self.cur_iter
            elif (self.cur_iter - self.last_overflow) % self.window == 0:
                self.cur_scale *= 2
            self.cur_iter += 1

    model, (x, y), scaler = net(), points(), Scaler()
    opt = sgd(model)

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        (loss * scaler.cur_scale).backward()
        overflow = any(not torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)
        if not overflow:
            for p in model.parameters():
                if p.grad is not None:
                    p.grad.mul_(1.0 / scaler.cur_scale)
            opt.step()
        scaler.update(overflow)
        return loss.item()

    return step, lambda: (model, opt, scaler)


@pattern
def clip_norm_logged() -> Made:
    model, (x, y) = net(), points()
    opt, norms = sgd(model), []

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        opt.step()
        norms.append(norm.item())
        return loss.item()

    return step, lambda: (model, opt, norms)


@pattern
def adam_with_own_step() -> Made:
    model, (x, y) = net(), points()
    state: dict[str, Any] = {"step": 0}
    m, v = [[torch.zeros_like(p) for p in model.parameters()] for _ in range(2)]

    def step() -> Any:
        loss = F.mse_loss(model(x), y)
        grads = torch.autograd.grad(loss, list(model.parameters()))
        state["step"] += 1
        t = state["step"]
        with torch.no_grad():
            for p, g, a, b in zip(model.parameters(), grads, m, v):
                a.mul_(0.9).add_(g, alpha=0.1)
                b.mul_(0.999).addcmul_(g, g, value=0.001)
                p.addcdiv_(a / (1 - 0.9**t), (b / (1 - 0.999**t)).sqrt().add_(1e-8), value=-0.01)
        return loss.item()

    return step, lambda: (model, state, m, v)


@pattern
def own_optimizer_class() -> Made:
    class Lars(torch.optim.Optimizer):
        def __init__(self, params: Any, lr: float) -> None:
            super().__init__(params, {"lr": lr, "momentum": 0.9})

        @torch.no_grad()
        def step(self, closure: Any = None) -> None:  # type: ignore[override]
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state = self.state[p]
                    if len(state) == 0:
                        state["step"], state["mu"] = 0, torch.zeros_like(p)
                    state["step"] += 1
                    state["mu"].mul_(group["momentum"]).add_(p.grad)
                    p.add_(state["mu"], alpha=-group["lr"] / math.sqrt(state["step"]))

    model, (x, y) = net(), points()
    opt = Lars(model.parameters(), lr=0.05)

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


# -- replay buffers --------------------------------------------------------------------------------------------------


@pattern
def dqn_replay_memory() -> Made:
    memory: deque[Any] = deque(maxlen=12)
    policy, target, steps_done = net(), net(), 0
    opt = sgd(policy)

    def step(x: torch.Tensor, y: torch.Tensor) -> Any:
        nonlocal steps_done
        memory.append((x[:1], int(y[0, 0] > 0), y[1, 0]))
        steps_done += 1
        if len(memory) < 4:
            return None
        states, actions, rewards = zip(*random.sample(memory, 4))
        q = policy(torch.cat(states)).gather(1, torch.tensor(actions)[:, None]).squeeze(1)
        with torch.no_grad():
            wanted = torch.stack(rewards) + 0.9 * target(torch.cat(states)).max(1).values
        loss = F.smooth_l1_loss(q, wanted)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if steps_done % 5 == 0:
            target.load_state_dict(policy.state_dict())
        return loss.item()

    return step, lambda: (policy, target, opt, steps_done, list(memory))


@pattern
def ring_buffer_tensor() -> Made:
    class Buffer:
        def __init__(self, size: int) -> None:
            self.data, self.size, self.pos, self.full = torch.zeros(size, 4), size, 0, False

        def add(self, row: torch.Tensor) -> None:
            self.data[self.pos] = row
            self.pos = (self.pos + 1) % self.size
            self.full = self.full or self.pos == 0

        def sample(self, n: int) -> torch.Tensor:
            return self.data[torch.randint(self.size if self.full else self.pos, (n,))]

    model, buffer = net(), Buffer(8)
    opt = sgd(model)

    def step(x: torch.Tensor) -> Any:
        buffer.add(x[0])
        batch = buffer.sample(4)
        loss = (model(batch) - batch[:, :2]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt, buffer)


@pattern
def epsilon_greedy() -> Made:
    model, steps_done = net(), 0
    opt, chosen = sgd(model), []

    def step(x: torch.Tensor) -> Any:
        nonlocal steps_done
        threshold = 0.05 + 0.85 * math.exp(-1.0 * steps_done / 10)
        steps_done += 1
        if random.random() > threshold:
            with torch.no_grad():
                action = model(x[:1]).max(1).indices.item()
        else:
            action = random.randrange(2)
        chosen.append(action)
        loss = -model(x)[:, action].mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt, steps_done, chosen)


# -- text, logs and clocks -------------------------------------------------------------------------------------------


@pattern
def fstring_of_loss() -> Made:
    model, (x, y) = net(), points()
    opt, lines = sgd(model), []

    def step(i: int) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        lines.append(f"Step {i:03d} | loss {loss.item():.4f} | lr {opt.param_groups[0]['lr']:.2e}")

    return step, lambda: (model, opt, lines)


@pattern
def format_and_percent() -> Made:
    model, (x, y), n = net(), points(), 0
    opt = sgd(model)

    def step() -> Any:
        nonlocal n
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        n += 1
        done = "Train Epoch: {} [{}/{} ({:.0f}%)]".format(1, n * len(x), 240, 100.0 * n / 30)
        return "%s\tLoss: %.6f" % (done, loss.item())

    return step, lambda: (model, opt, n)


@pattern
def json_lines() -> Made:
    model, (x, y), out = net(), points(), []
    opt = sgd(model)

    def step(i: int) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        out.append(json.dumps({"step": i, "loss": round(loss.item(), 5)}))

    return step, lambda: (model, opt, out)


class Bar:
    """What tqdm is to its callers."""

    def __init__(self, total: int) -> None:
        self.n, self.total, self.postfix, self.desc = 0, total, "", ""

    def update(self, n: int = 1) -> None:
        self.n += n

    def set_postfix(self, ordered_dict: Any = None, refresh: bool = True, **kwargs: Any) -> None:
        values = dict(ordered_dict or {}, **kwargs)
        for key, value in values.items():
            if not isinstance(value, str):
                values[key] = f"{value:.3g}"
        self.postfix = ", ".join(key + "=" + values[key].strip() for key in values)

    def set_description(self, desc: str) -> None:
        self.desc = desc + ": "


@pattern
def bar_postfix() -> Made:
    model, (x, y), bar = net(), points(), Bar(30)
    opt = sgd(model)

    def step() -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        bar.set_postfix(loss=loss.item())
        bar.update(1)

    return step, lambda: (model, opt, bar)


@pattern
def bar_description() -> Made:
    model, (x, y), bar = net(), points(), Bar(30)
    opt, epoch = sgd(model), 3

    def step(i: int) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        if i % 3 == 0:
            bar.set_description(f"epoch {epoch + 1} iter {i}: train loss {loss.item():.5f}. lr {0.05:e}")

    return step, lambda: (model, opt, bar)


@pattern
def throughput() -> Made:
    model, (x, y) = net(), points()
    opt, speeds = sgd(model), []

    def step() -> Any:
        start = time.time()
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        speeds.append(x.size(0) / max(1e-9, time.time() - start))
        return loss.item()

    return step, lambda: (model, opt, len(speeds))


@pattern
def batch_time_meter() -> Made:
    model, (x, y) = net(), points()
    opt, batch_time, losses, end = sgd(model), AverageMeter("Time"), AverageMeter("Loss"), time.time()

    def step() -> Any:
        nonlocal end
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        losses.update(loss.item(), x.size(0))
        batch_time.update(time.time() - end)
        end = time.time()
        return losses.avg

    return step, lambda: (model, opt, losses, batch_time.count)


@pattern
def log_every_k() -> Made:
    model, (x, y) = net(), points()
    opt, history = sgd(model), []

    def step(i: int) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        if i % 10 == 0:
            history.append({"step": i, "loss": loss.item(), "lr": opt.param_groups[0]["lr"]})

    return step, lambda: (model, opt, history)


@pattern
def csv_rows() -> Made:
    model, (x, y), file = net(), points(), io.StringIO()
    opt, writer = sgd(model), csv.writer(file)

    def step(i: int) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        writer.writerow([i, f"{loss.item():.5f}"])

    return step, lambda: (model, opt, file)


@pattern
def logging_to_list() -> Made:
    lines: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    logger = logging.Logger("train", logging.INFO)
    logger.addHandler(Lines())
    model, (x, y) = net(), points()
    opt = sgd(model)

    def step(i: int) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        if i % 5 == 0:
            logger.info("step %d loss %.4f", i, loss.item())

    return step, lambda: (model, opt, lines)


@pattern
def logging_debug_is_off() -> Made:
    logger = logging.getLogger("tests.patterns.quiet")
    logger.setLevel(logging.WARNING)
    model, (x, y) = net(), points()
    opt = sgd(model)

    def step(i: int) -> Any:
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        logger.debug("step %d loss %.4f", i, loss.item())
        return loss.detach()

    return step, lambda: (model, opt)


@pattern
def summary_writer() -> Made:
    class SummaryWriter:
        def __init__(self) -> None:
            self.scalars: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)

        def add_scalar(self, tag: str, value: Any, global_step: int) -> None:
            self.scalars[tag].append((global_step, float(value)))

    model, (x, y), writer, n = net(), points(), SummaryWriter(), 0
    opt = sgd(model)

    def step() -> Any:
        nonlocal n
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        writer.add_scalar("loss/train", loss.item(), n)
        writer.add_scalar("lr", opt.param_groups[0]["lr"], n)
        n += 1

    return step, lambda: (model, opt, writer.scalars, n)


@pattern
def perplexity_printed() -> Made:
    model, (x, labels), total = net(), labelled(), 0.0
    opt = sgd(model)

    def step(i: int) -> Any:
        nonlocal total
        opt.zero_grad()
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        opt.step()
        total += loss.item()
        if i % 6 == 5:
            print(f"| {i:5d} batches | loss {total / 6:5.2f} | ppl {math.exp(total / 6):8.2f}")
            total = 0.0

    return step, lambda: (model, opt, total)


@pattern
def milestones_by_comparison() -> Made:
    model, (x, y) = net(), points()
    opt = sgd(model)

    def step(i: int) -> Any:
        if i in (10, 20):
            for group in opt.param_groups:
                group["lr"] /= 10
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        return loss.item()

    return step, lambda: (model, opt)


@pattern
def critic_every_n() -> Made:
    critic, actor, counter = net(1), net(4), [0]
    c_opt, a_opt = sgd(critic), sgd(actor)

    def step(x: torch.Tensor) -> Any:
        counter[0] += 1
        c_opt.zero_grad()
        c_loss = (critic(x) - x.sum(1, keepdim=True)).pow(2).mean()
        c_loss.backward()
        c_opt.step()
        if counter[0] % 2 == 0:  # TD3's delayed updates
            a_opt.zero_grad()
            a_loss = -critic(actor(x)).mean()
            a_loss.backward()
            a_opt.step()
        return c_loss.item()

    return step, lambda: (critic, actor, c_opt, a_opt, counter)


@pattern
def evaluate_every_k() -> Made:
    model, (x, labels), (vx, vl) = net(), labelled(), labelled()
    opt, accuracies, n = sgd(model), [], 0

    def step() -> Any:
        nonlocal n
        model.train()
        opt.zero_grad()
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        opt.step()
        n += 1
        if n % 5 == 0:
            model.eval()
            with torch.no_grad():
                accuracies.append((model(vx).argmax(1) == vl).float().mean().item())
        return loss.item()

    return step, lambda: (model, opt, accuracies, n)

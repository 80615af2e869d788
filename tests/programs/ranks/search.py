"""A bounded search: random programs of several processes, plainly and under every mode.

``python -m tests.programs.ranks.search [--seed N] [--minutes N] [--ranks N] [--modes A,B]`` prints each program that
differs, hangs or fails, and the count; ``--show N`` prints the program of a seed. Key function: program.
"""

from __future__ import annotations

import argparse
import functools
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.programs.ranks.matrix import EXACT, MODES, Command, Failed, difference, monitored, plain

TRAININGS = 4  # in one program, because its start takes longer than they do
STEPS = 10

_BEGIN = """\
import contextlib, copy, hashlib, json, os, sys
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel as DDP

out = sys.argv[1]
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, processes = dist.get_rank(), dist.get_world_size()
mesh = init_device_mesh("cpu", (processes,))
losses, digest, total, metrics = [], hashlib.sha256(), 0.0, []


def finish(model):
    global total
    for p in model.parameters():
        p = p.detach()
        p = p.to_local() if hasattr(p, "to_local") else p
        digest.update(p.float().contiguous().numpy().tobytes())
        total += p.double().abs().sum().item()


class Plain(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4))


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 4)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.last(F.gelu(self.norm(self.first(x))))


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.twice, self.last, self.spare = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.spare(self.last(self.twice(torch.relu(self.twice(torch.relu(self.first(x)))))))


class Attends(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.mix, self.norm, self.last = nn.Linear(2, 8), nn.Linear(8, 24), nn.LayerNorm(8), nn.Linear(32, 4)

    def forward(self, x):
        h = self.first(x.view(-1, 4, 2))
        q, k, v = self.mix(h).chunk(3, -1)
        return self.last(self.norm(h + F.scaled_dot_product_attention(q, k, v)).flatten(1))


class Drops(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
        self.last = nn.Linear(8, 4)

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = x + F.dropout(torch.sigmoid(layer(x)), 0.1 * i, self.training)
        return self.last(x)
"""
_END = """
with open(f"{out}{rank}", "w") as file:
    json.dump({"losses": losses, "bits": digest.hexdigest(), "total": total, "world": os.environ.get("WORLD_SIZE")}, file)
dist.barrier()
dist.destroy_process_group()
"""
_MODELS = ("Plain", "Normed", "Shared", "Attends", "Drops")


def program(seed: int) -> str:
    """A program of some trainings, each with another model, wrapper, optimizer and shape of the loop."""
    draw = random.Random(seed)
    return _BEGIN + "".join(_training(draw, i) for i in range(TRAININGS)) + _END


def _training(draw: random.Random, number: int) -> str:
    wrapper = draw.choice(("ddp", "ddp", "fsdp", "fsdp", "tensor", "manual", "manual", "alone"))
    model = "Plain" if wrapper == "tensor" else draw.choice(_MODELS)
    held = draw.choice((False, True)) and wrapper in ("ddp", "fsdp", "manual")
    lines = [f"torch.manual_seed({number})", f"net = {model}()", *_wrapped(draw, wrapper)]
    lines += _optimizer(draw, wrapper, model)
    lines += _step(draw, wrapper, model, held)
    name = f"training_{number}"
    return f"\n\ndef {name}():\n" + "".join(f"    {line}\n" if line else "\n" for line in lines) + f"\n\n{name}()\n"


def _wrapped(draw: random.Random, wrapper: str) -> list[str]:
    if wrapper == "ddp":
        options = [f"bucket_cap_mb={draw.choice(('0.001', '25'))}"]
        options += draw.sample(
            ("find_unused_parameters=True", "gradient_as_bucket_view=True", "broadcast_buffers=False"), draw.randrange(3)
        )
        return [f"model = DDP(net, {', '.join(options)})"]
    if wrapper == "fsdp":
        options = [f"mesh=mesh, reshard_after_forward={draw.choice((True, False))}"]
        if draw.random() < 0.3:
            options.append("mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)")
        layers = draw.choice(("[m for m in net.modules() if isinstance(m, nn.Linear)]", "[]"))
        return [f"for layer in {layers}:", f"    fully_shard(layer, {', '.join(options)})",
                f"model = fully_shard(net, {', '.join(options)})"]  # fmt: skip
    if wrapper == "tensor":
        return ['model = parallelize_module(net, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})']
    return ["model = net"]


def _optimizer(draw: random.Random, wrapper: str, model: str) -> list[str]:
    kinds = ["torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, foreach=False)"]
    if wrapper != "tensor":
        others = ("AdamW(model.parameters(), lr=1e-2)", "Adam(model.parameters(), lr=1e-2, amsgrad=True)",
                  "RMSprop(model.parameters(), lr=1e-3)")  # fmt: skip
        kinds += [f"torch.optim.{one}" for one in others]
    if wrapper == "ddp":
        kinds.append("ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=1e-2)")
    lines = [f"optimizer = {draw.choice(kinds)}"]
    schedule = draw.choice(("", "", "StepLR(optimizer, 3, 0.5)", "CosineAnnealingLR(optimizer, 10)"))
    return [*lines, f"scheduler = torch.optim.lr_scheduler.{schedule}" if schedule else "scheduler = None"]


def _step(draw: random.Random, wrapper: str, model: str, held: bool) -> list[str]:
    """The data, the step, and the loop, with the step as a function of it or inline."""
    body = _body(draw, wrapper, held)
    after = []
    if draw.random() < 0.3:
        evaluated = ["    with torch.no_grad():", "        metrics.append(model(x).sum().item())"]
        after += ["if i % 4 == 3:", "    model.eval()", *evaluated, "    model.train()"]
    if draw.random() < 0.3:
        after += ["shown = loss.detach().clone()", "dist.all_reduce(shown)", "metrics.append(shown.item())"]
    if draw.random() < 0.3:
        after += ["if rank == 0:", '    metrics.append(f"{i}: {loss.item():.3f}")']
    rows = draw.choice(("6", "6", "4 + 2 * rank", "6 if i < 6 else 4"))
    data = [f"x, y = torch.randn({rows}, 8), torch.randn({rows}, 4)"]
    if wrapper == "tensor":
        data = ["x, y = torch.randn(6, 8), torch.randn(6, 4)"]  # each process needs the same
    seed = f"torch.manual_seed({'5' if wrapper == 'tensor' else '5 + rank'})"
    loop = [f"for i in range({STEPS}):"]
    if draw.random() < 0.5:
        step = ["def train_step(x, y, i):", *(f"    {line}" for line in body), "    return loss", ""]
        inside = [*data, "loss = train_step(x, y, i)", *after, "losses.append(loss.item())"]
    else:
        step, inside = [], [*data, *body, *after, "losses.append(loss.item())"]
    return [*step, seed, *loop, *(f"    {line}" for line in inside), "finish(model)"]


def _body(draw: random.Random, wrapper: str, held: bool) -> list[str]:
    loss = draw.choice(("F.mse_loss(model(x), y)", "F.smooth_l1_loss(model(x), y)", "(model(x) - y).abs().mean()"))
    work = [f"loss = {loss}", "loss.backward()"]
    if wrapper == "ddp" and held:
        work = ["with model.no_sync() if i % 2 == 0 else contextlib.nullcontext():", *(f"    {line}" for line in work)]
    if wrapper == "fsdp" and held:
        work = ["model.set_requires_gradient_sync(i % 2 == 1)", *work]
    update = ["optimizer.step()"]
    if wrapper == "manual":
        update = [*draw.choice(_AVERAGES), *update]
    if draw.random() < 0.3 and wrapper != "tensor":
        update = ["nn.utils.clip_grad_norm_(model.parameters(), 1.0)", *update]
    update += ["if scheduler is not None:", "    scheduler.step()", "optimizer.zero_grad()"]
    if held:
        update = ["if i % 2 == 1:", *(f"    {line}" for line in update)]
    return [*work, *update]


_AVERAGES = (
    ["for p in model.parameters():", "    dist.all_reduce(p.grad)", "    p.grad /= processes"],
    ["flat = torch.cat([p.grad.flatten() for p in model.parameters()])", "dist.all_reduce(flat)", "flat /= processes",
     "for p, g in zip(model.parameters(), flat.split([p.numel() for p in model.parameters()])):",
     "    p.grad.copy_(g.view_as(p))"],
    ["work = [dist.all_reduce(p.grad, async_op=True) for p in model.parameters()]", "for one in work:", "    one.wait()",
     "for p in model.parameters():", "    p.grad.div_(processes)"],
    ["for p in model.parameters():", "    parts = [torch.empty_like(p.grad) for _ in range(processes)]",
     "    dist.all_gather(parts, p.grad)", "    p.grad = torch.stack(parts).mean(0)"],
)  # fmt: skip


def _command(script: Path, out: str) -> list[str]:
    return [str(script), out]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--show", type=int)
    given = parser.parse_args()
    if given.show is not None:
        print(program(given.show))
        return 0
    seed, end, programs, runs, bad = given.seed, time.monotonic() + 60 * given.minutes, 0, 0, 0
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory() as name:
            folder, script = Path(name), Path(name) / "train.py"
            script.write_text(program(seed))
            command: Command = functools.partial(_command, script)
            try:
                expected = plain(folder, given.ranks, command)
            except Failed as error:
                print(seed, "not a program:", error, flush=True)
                seed += 1
                continue
            programs += 1
            for mode in given.modes.split(","):
                runs += 1
                try:
                    text = difference(expected, monitored(folder, given.ranks, command, mode)[0], exact=mode in EXACT)
                except Failed as error:
                    text = str(error)
                if text:
                    bad += 1
                    print(seed, mode, text, flush=True)
        seed += 1
    print(
        f"seeds {given.seed} to {seed - 1}: {programs} programs, {programs * TRAININGS} trainings, {runs} runs, {bad} differ"
    )
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())

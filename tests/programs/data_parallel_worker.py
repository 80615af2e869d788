"""One of two processes that train under DistributedDataParallel, plainly and captured; they must agree after every step.

``python -m tests.programs.data_parallel_worker RANK FILE BACKEND CASE...``; prints a line for each case, then "done".
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint

import magpy_core
from magpy_core._compat.torch import data_parallel as compat
from magpy_core._compat.torch.data_parallel import HAS_BUCKETS, all_reduced, broadcast
from magpy_core.regions.api import region_of

STEPS = 20


@dataclass
class Case:
    """``mixed``: the second process runs in eager mode. ``hits``: calls that captures serve at least; 0: none may."""

    hits: int = 14
    optimizer: Callable[[Any], Any] = lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9)
    norm: bool = False
    mixed: bool = False
    step: str = "usual"
    options: dict[str, Any] = field(default_factory=dict)
    averages: bool = True
    """Whether the gradients are averaged in the graph."""


SMALL = {"bucket_cap_mb": 0.005}  # several buckets
CASES = {
    "usual": Case(),
    "adamw": Case(optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=0.01), options=SMALL),
    "norm": Case(norm=True),
    "mixed": Case(norm=True, mixed=True, options=SMALL),
    "clipped": Case(step="clipped", options=SMALL),
    "accumulate": Case(step="accumulate", hits=10),
    "accumulate_mixed": Case(step="accumulate", hits=10, norm=True, mixed=True, options=SMALL),
    "evaluated": Case(step="evaluated", norm=True, hits=8),
    "twice": Case(step="twice", hits=14),
    # what is refused
    "unused": Case(0, step="unused", options={"find_unused_parameters": True}, averages=False),
    "views": Case(0, options={"gradient_as_bucket_view": True}, averages=False),
    "static": Case(0, options={"static_graph": True}, averages=False),
    "outside": Case(0, step="outside", averages=False),
    "hooked": Case(0, step="hooked", averages=False),
    "hooked_natively": Case(0, step="hooked_natively", averages=False),
    "two": Case(0, step="two", averages=False),
    "hooked_later": Case(10, step="hooked_later"),
    "decides_late": Case(0, step="decides_late", averages=False),
    "checkpointed": Case(0, step="checkpointed", averages=False),
    "sharded": Case(0, step="sharded", averages=False),
}


class Net(nn.Module):
    def __init__(self, *, norm: bool) -> None:
        super().__init__()
        self.first, self.middle = nn.Linear(4, 64), nn.Linear(64, 64)
        self.norm = nn.BatchNorm1d(64) if norm else nn.LayerNorm(64)
        self.last, self.unused = nn.Linear(64, 2), nn.Linear(2, 2)

    def forward(self, x: torch.Tensor, *, use_all: bool = True) -> torch.Tensor:
        x = self.last(self.norm(torch.relu(self.middle(torch.relu(self.first(x))))))
        return self.unused(x) if use_all else x


class Training:
    def __init__(self, case: Case) -> None:
        torch.manual_seed(0)
        self.case, self.calls = case, 0
        net = Net(norm=case.norm)
        self.model: Any = fully_shard(net) if case.step == "sharded" else DDP(net, **case.options)
        self.optimizer = case.optimizer(self.model.parameters())
        self.other = DDP(nn.Linear(2, 2)) if case.step == "two" else nn.Identity()
        if case.step == "hooked":
            self.model.register_comm_hook(None, _halved)
        elif case.step == "hooked_natively":
            self.model._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)

    def step(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        self.calls += 1
        if self.case.step == "accumulate" and self.calls % 2:
            with self.model.no_sync():
                F.mse_loss(self.model(x), y).backward()
            return None
        if self.case.step == "twice":
            F.mse_loss(self.model(-x), y).backward()
        if self.case.step == "checkpointed":
            F.mse_loss(checkpoint(self.model, x, use_reentrant=False), y).backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            return None
        loss = F.mse_loss(self.other(self.model(x, use_all=self.case.step != "unused")), y)
        if self.case.step == "outside":
            return loss
        loss.backward()
        if self.case.step == "decides_late" and loss > 1.2:  # in some of the calls
            loss = loss * 2
        if self.case.step == "clipped":
            nn.utils.clip_grad_norm_(self.model.parameters(), 0.1)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()

    def train(self, call: Callable[..., Any], i: int, x: torch.Tensor, y: torch.Tensor) -> None:
        if self.case.step == "evaluated" and i % 5 == 4:
            self.model.eval()
            with torch.no_grad():
                self.model(x)
            self.model.train()
        if self.case.step == "hooked_later" and i == 15:
            self.model.register_comm_hook(None, _halved)
        loss = call(x, y)
        if self.case.step == "outside":
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()

    def state(self) -> list[torch.Tensor | None]:
        parameters = list(self.model.parameters())
        tensors = [*parameters, *self.model.buffers(), *(p.grad for p in parameters)]
        return [t.to_local() if isinstance(t, DTensor) else t for t in tensors]


def _halved(state: Any, bucket):  # type: ignore[no-untyped-def]
    """A communication hook."""
    halved = bucket.buffer() / 2
    return dist.all_reduce(halved, async_op=True).get_future().then(lambda done: done.value()[0])


_halved.__annotations__ = {"bucket": dist.GradBucket}  # which torch checks


def run(case: Case, backend: str, rank: int) -> str:
    plain, ours = Training(case), Training(case)
    is_plain = case.mixed and rank == 1
    step = ours.step if is_plain else magpy_core.compile(ours.step, backend=backend, wait=True)
    for i in range(STEPS):
        torch.manual_seed(100 * rank + i)
        x, y = torch.randn(6, 4), torch.randn(6, 2)
        plain.train(plain.step, i, x, y)
        ours.train(step, i, x, y)
        for a, b in zip(plain.state(), ours.state(), strict=True):
            assert (a is None) is (b is None), i
            if a is not None and b is not None:
                same = torch.equal(a, b) if backend == "eager" else torch.allclose(a, b, rtol=1e-3, atol=1e-4)
                assert same, (i, (a - b).abs().max())
    if is_plain:
        return "plain"
    region = region_of(step)
    findings = [f"{f.code} {f.message}" for f in region.findings.values() if f.code[:3] in ("MP1", "MP9")]
    assert region.hits >= case.hits if case.hits else (region.hits == 0 and findings), (region.hits, findings)
    served = [capture for capture in region.captures if capture.hits]
    assert all(capture.is_complete for capture in served), findings
    targets = {node.target for capture in served for node in capture.nodes}
    assert (all_reduced in targets) is case.averages and (broadcast in targets) is (case.norm and case.averages)
    return f"{region.hits} hits, {findings}"


def parts() -> None:
    """What a plain module communicates, and its hooks when they are disabled for a while."""
    module: Any = DDP(Net(norm=True), **SMALL)
    arranged = []
    for _ in range(3):
        arranged.append(vars(module)[HAS_BUCKETS])
        module(torch.randn(3, 4)).sum().backward()
    assert arranged == [False, False, True]
    replica = compat.replica(module)
    assert replica.processes == 2 and len(replica.buckets) > 1
    assert sorted(id(p) for bucket in replica.buckets for p in bucket) == sorted(map(id, module.parameters()))
    assert [[b.dtype for b in together] for together in replica.buffers] == [[torch.float32] * 2, [torch.int64]]
    idle = compat.disable_hooks(replica)
    result = module(torch.full((3, 4), dist.get_rank() + 1.0)).sum()
    compat.restore_hooks(replica, idle)
    module.zero_grad()
    result.backward()  # with the hooks
    gradients = [torch.zeros_like(module.module.first.weight.grad) for _ in range(2)]
    dist.all_gather(gradients, module.module.first.weight.grad)
    assert torch.equal(*gradients) and gradients[0].any()
    compat.restore_hooks(replica, compat.disable_hooks(replica))
    module(torch.randn(3, 4)).sum().backward()  # raises if the reducer still waits for a pass


def main() -> None:
    rank, file, backend, *names = sys.argv[1:]
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{file}", rank=int(rank), world_size=2, timeout=timedelta(seconds=60)
    )
    parts()
    for name in names:
        print(name, run(CASES[name], backend, int(rank)), flush=True)
    print("done", flush=True)
    dist.barrier()  # a process that ends while the other still talks to it takes that one down
    os._exit(0)  # without gloo's own end, whose threads may abort a process that is done


if __name__ == "__main__":
    main()

"""A program of several processes: ``train.py KIND SHAPE OUT [STEPS]``, with the step as a function or inline in the loop.

Each process writes its losses and the bits of its parameters to ``OUT`` and its rank.
"""

import contextlib
import hashlib
import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel as DDP

kind, shape, out, *rest = sys.argv[1:]
steps = int(rest[0]) if rest else 12
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, processes = dist.get_rank(), dist.get_world_size()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.middle, self.last = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 4)
        self.spare = nn.Linear(4, 4)
        self.use_spare = True

    def forward(self, x):
        x = self.last(torch.relu(self.middle(torch.relu(self.first(x)))))
        return self.spare(x) if self.use_spare else x


torch.manual_seed(0)
net = Net()
model, accumulates = net, kind.endswith("accumulate")
synchronised = contextlib.nullcontext
if kind.startswith("ddp"):
    net.use_spare = kind != "ddp-unused"
    model = DDP(net, find_unused_parameters=kind == "ddp-unused", bucket_cap_mb=0.001)
elif kind.startswith("fsdp"):
    mesh = init_device_mesh("cpu", (processes,))
    options = {"mesh": mesh, "reshard_after_forward": kind != "fsdp-keep"}
    if kind == "fsdp-mixed":
        options["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    if kind == "fsdp-2d":
        shape_of_mesh = (2, processes // 2) if processes % 2 == 0 else (1, processes)
        options["mesh"] = init_device_mesh("cpu", shape_of_mesh, mesh_dim_names=("replicate", "shard"))
    for layer in (net.first, net.middle, net.last):
        fully_shard(layer, **options)
    fully_shard(net, **options)
elif kind == "tensor":
    mesh = init_device_mesh("cpu", (processes,))
    parallelize_module(net, mesh, {"first": ColwiseParallel(), "middle": RowwiseParallel()})
elif kind == "manual":  # the program averages the gradients itself
    pass
elif kind == "zero":
    model = DDP(net)

if kind == "zero":
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=1e-2)
elif kind == "tensor":
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, foreach=False)
else:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)


def held_back(i):
    """Whether the gradients of step ``i`` are only added up."""
    return accumulates and i % 2 == 0


def context(i):
    if kind == "ddp-accumulate" and held_back(i):
        return model.no_sync()
    if kind == "fsdp-accumulate":
        model.set_requires_gradient_sync(not held_back(i))
    return contextlib.nullcontext()


def train_step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    if kind == "manual":
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= processes
    optimizer.step()
    return loss


def train_part(x, y, i):
    with context(i):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
    if not held_back(i):
        optimizer.step()
        optimizer.zero_grad()
    return loss


torch.manual_seed(1 if kind == "tensor" else rank + 1)
losses = []
if shape == "function":
    for i in range(steps):
        x, y = torch.randn(6, 8), torch.randn(6, 4)
        losses.append((train_part(x, y, i) if accumulates else train_step(x, y)).item())
else:
    for i in range(steps):
        x, y = torch.randn(6, 8), torch.randn(6, 4)
        with context(i):
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
        if kind == "manual":
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= processes
        if not held_back(i):
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())

local = [p.to_local() if hasattr(p, "to_local") else p for p in (p.detach() for p in model.parameters())]
bits = hashlib.sha256(b"".join(p.float().contiguous().numpy().tobytes() for p in local)).hexdigest()
total = sum(p.double().abs().sum().item() for p in local)
with open(f"{out}{rank}", "w") as file:
    json.dump({"losses": losses, "bits": bits, "total": total, "world": os.environ.get("WORLD_SIZE")}, file)
dist.barrier()  # a process that ends while the other still talks to it takes that one down
dist.destroy_process_group()

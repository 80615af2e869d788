"""Kernels of a whole step: what ``magpy_core.kernels`` says of the device without it, and what is loaded and runs there.

Key functions: compared (both, by the kernel's name), kernels (the table).
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import ProfilerActivity, profile

import magpy_core
from benchmarks.gpu.clock import finished
from benchmarks.gpu.table import Table
from magpy_core.findings import Kernel

os.environ["MAGPY_COMPILE"] = "foreground"  # otherwise calls alternate with eager mode, to be compared

_NUMBER = re.compile(r"_\d+$")
_CALLS = 10


@dataclass(frozen=True)
class Loaded:
    """A Triton kernel in this process, with the configuration that Inductor has chosen."""

    registers: int
    warps: int


@dataclass(frozen=True)
class Compared:
    """A kernel's name without its number, with what was said and what was found. ``us``: microseconds of a launch."""

    name: str
    said: Kernel | None
    loaded: Loaded | None
    us: float | None

    @property
    def has_same_registers(self) -> bool | None:
        """None if they can't be compared: one is missing, or another configuration was chosen."""
        code = None if self.said is None else self.said.code
        if code is None or self.loaded is None or code.num_warps != self.loaded.warps:
            return None
        return code.registers == self.loaded.registers


def target_of(device: torch.device) -> str:
    """As ``--target`` has it."""
    return "cuda:sm_{}{}".format(*torch.cuda.get_device_capability(device))


def step(device: torch.device, *, rows: int = 4096, width: int = 512) -> Callable[[], torch.Tensor]:
    """A step whose kernels are of several kinds: elementwise, rows with reductions, an optimizer's."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU(), nn.Linear(width, 64)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x, y = torch.randn(rows, width, device=device), torch.randint(64, (rows,), device=device)

    def train_step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return train_step


def _modules() -> list[Any]:
    """What Inductor has generated and loaded in this process."""
    from torch._inductor.codecache import PyCodeCache

    return list(PyCodeCache.modules)


def loaded_since(before: int) -> dict[str, Loaded]:
    """The Triton kernels of modules after the first ``before``, by name."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    found: dict[str, Loaded] = {}
    for module in _modules()[before:]:
        for value in vars(module).values():
            if isinstance(value, CachingAutotuner) and len(value.launchers) == 1:  # it has run, so one is chosen
                launcher = value.launchers[0]
                name = value.inductor_meta.get("kernel_name") or value.fn.__name__
                found[name] = Loaded(launcher.n_regs, launcher.config.num_warps)
    return found


def durations(call: Callable[[], Any], device: torch.device) -> dict[str, float]:
    """Microseconds per launch of each kernel that runs, by name."""
    finished(device)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for _ in range(_CALLS):
            call()
        finished(device)
    averages = [event for event in profiler.key_averages() if event.device_type.name == "CUDA"]
    return {event.key: event.self_device_time_total / event.count for event in averages if event.count}


def compared(device: torch.device, backend: str = "inductor") -> list[Compared]:
    """Each Triton kernel of the step. Those with the same name but for the number are compared in the order of numbers."""
    before = len(_modules())
    call = magpy_core.compile(step(device), backend=backend, wait=True)
    for _ in range(4):
        call()
    finished(device)
    loaded, times = loaded_since(before), durations(call, device)
    capture = magpy_core.captures(call)[0]
    return paired([kernel for kernel in magpy_core.kernels(capture, target_of(device)) if kernel.code], loaded, times)


def paired(said: list[Kernel], loaded: dict[str, Loaded], times: dict[str, float]) -> list[Compared]:
    """Kernels have the same name on both sides but for the number, which counts all kernels of a module."""
    ours, theirs = defaultdict[str, list[Kernel]](list), defaultdict[str, list[str]](list)
    for kernel in sorted(said, key=lambda kernel: _number(kernel.name)):
        ours[_NUMBER.sub("", kernel.name)].append(kernel)
    for name in sorted(loaded, key=_number):
        theirs[_NUMBER.sub("", name)].append(name)
    found = []
    for name in sorted(ours.keys() | theirs.keys()):
        for i in range(max(len(ours[name]), len(theirs[name]))):
            one = ours[name][i] if i < len(ours[name]) else None
            other = theirs[name][i] if i < len(theirs[name]) else None
            at = None if other is None else loaded[other]
            found.append(Compared(name, one, at, None if other is None else times.get(other)))
    return found


def _number(name: str) -> int:
    match = _NUMBER.search(name)
    return int(match[0][1:]) if match else 0


def kernels(device: torch.device) -> Table:
    """Registers as said and as loaded, and the least time by published figures beside the measured one."""
    columns = ["kernel", "registers, said", "loaded", "warps, said", "loaded ", "least µs, said", "measured µs"]
    table = Table(f"Kernels of a step: as said for {target_of(device)} without it, and on it", columns)
    for one in compared(device):
        code = None if one.said is None else one.said.code
        said = ["-", "-", "-"] if one.said is None or code is None else [
            str(code.registers), str(code.num_warps), f"{one.said.us:.1f}"
        ]  # fmt: skip
        found = ["-", "-"] if one.loaded is None else [str(one.loaded.registers), str(one.loaded.warps)]
        measured = "-" if one.us is None else f"{one.us:.1f}"
        table.rows.append([one.name, said[0], found[0], said[1], found[1], said[2], measured])
    return table

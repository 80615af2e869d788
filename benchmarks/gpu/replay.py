"""A call of a captured module on the device, against its bare compiled graph, eager and torch.compile. Key function: replay.

The host's time is shown beside the device's: with small kernels, it is what a call waits for.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import magpy_core
from benchmarks.gpu.clock import timed_on
from benchmarks.gpu.graphed import Graphed, NotGraphable
from benchmarks.gpu.table import Table, milliseconds
from benchmarks.models import MLP, sequential
from benchmarks.timing import interleave, ratio_of

os.environ["MAGPY_COMPILE"] = "foreground"  # otherwise calls alternate with eager mode, to be compared

_ROUNDS = 21
_MODELS: dict[str, Callable[[int], nn.Module]] = {
    "50-layer MLP, ModuleList": lambda width: MLP(50, width),
    "50-layer MLP, Sequential": lambda width: sequential(50, width),
    "3-layer MLP": lambda width: MLP(3, width),
}
NAMES = tuple(_MODELS)
_BARE, _REPLAY, _THEIRS, _REDUCED, _EAGER, _GRAPHED = (
    "bare graph",
    "MagPy",
    "torch.compile",
    "reduce-overhead",
    "eager",
    "bare graph as a CUDA graph",
)


def replay(name: str, device: torch.device, backend: str = "inductor", *, width: int = 256, batch: int = 64) -> Table:
    """One row: milliseconds of a call of each contender, in turns."""
    columns = [_BARE, _REPLAY, _THEIRS, _REDUCED, _EAGER, _GRAPHED]
    heads = [*columns, "host, MagPy", "host, torch.compile", "MagPy / torch.compile"]
    table = Table(f"Calls of a captured module, ms per call on {device.type}", ["module", *heads])
    torch.manual_seed(0)
    plain = _MODELS[name](width).eval().to(device)
    x = torch.randn(batch, width, device=device)

    def twin() -> nn.Module:
        module = _MODELS[name](width).eval().to(device)
        module.load_state_dict(plain.state_dict())
        return module

    with torch.no_grad():
        module = magpy_core.compile(twin(), backend=backend, wait=True)
        calls: dict[str, Callable[[], Any]] = {_EAGER: lambda: plain(x), _REPLAY: lambda: module(x)}
        theirs = torch.compile(twin(), backend=backend)
        calls[_THEIRS] = lambda: theirs(x)
        if device.type == "cuda" and backend == "inductor":
            reduced = torch.compile(twin(), mode="reduce-overhead")
            calls[_REDUCED] = lambda: reduced(x)
        expected = plain(x)
        for call in calls.values():
            for _ in range(24):
                torch.testing.assert_close(call(), expected, rtol=1e-2, atol=1e-3)
        (capture,) = magpy_core.captures(module)
        bare, inputs = capture.bare_callable, capture.gather_inputs((module, x), {})
        calls[_BARE] = lambda: bare(*inputs)
        if device.type == "cuda":
            try:
                calls[_GRAPHED] = Graphed(bare, inputs)
            except (NotGraphable, RuntimeError) as error:
                table.problems.append(f"{name}: no CUDA graph of MagPy's graph: {str(error).splitlines()[0]}")
        samples = interleave(calls, rounds=_ROUNDS, timed=timed_on(device))
    times = [milliseconds(min(samples[who].wall)) if who in samples else "-" for who in columns]
    hosts = [milliseconds(min(samples[who].cpu)) for who in (_REPLAY, _THEIRS)]
    ratio = ratio_of(samples[_REPLAY], samples[_THEIRS]).wall_median
    table.rows.append([name, *times, *hosts, f"{ratio:.2f}"])
    table.samples = {f"{name}: {who}": of.to_json() for who, of in samples.items()}
    return table

"""Replay of a captured region against its graph, compiled by torch's `compile_fx` and called directly, and torch.compile on
the same module."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch._inductor.compile_fx import compile_fx

import magpy_core
from benchmarks.models import MLP, sequential
from benchmarks.result import Result, Row
from benchmarks.timing import interleave, ratio_of

os.environ["MAGPY_COMPILE"] = "foreground"  # otherwise calls alternate with eager mode, to be compared

WIDTH, BATCH = 64, 16


def _compare(name: str, make: Callable[[], nn.Module], target: float) -> Result:
    """The module replayed, its graph alone, and torch.compile on a twin with the same weights."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    module, twin, plain = make().eval(), make().eval(), make().eval()
    twin.load_state_dict(module.state_dict())
    x = torch.randn(BATCH, WIDTH)
    with torch.no_grad():
        expected = module(x)
        compiled = magpy_core.compile(module, backend="inductor", wait=True)
        torch_compiled = torch.compile(twin)
        for _ in range(3):
            torch.testing.assert_close(compiled(x), expected)
            torch.testing.assert_close(torch_compiled(x), expected)
        (capture,) = magpy_core.captures(compiled)
        bare, inputs = capture.bare_callable, capture.gather_inputs((module, x), {})
        graph: Callable[..., Any] = compile_fx(capture.operator_graph, list(inputs))  # type: ignore[assignment]
        torch.testing.assert_close(graph(*inputs)[0], expected)
        samples = interleave(
            {
                "graph": lambda: graph(*inputs),
                "unguarded": lambda: bare(*inputs),
                "replay": lambda: compiled(x),
                "torch.compile": lambda: torch_compiled(x),
                "eager": lambda: plain(x),
            },
            rounds=41,
        )
    replay = ratio_of(samples["replay"], samples["graph"])
    unguarded = ratio_of(samples["replay"], samples["unguarded"])
    theirs = ratio_of(samples["torch.compile"], samples["graph"])
    against = ratio_of(samples["replay"], samples["torch.compile"])
    against_eager = ratio_of(samples["replay"], samples["eager"])
    micro = 1e6 * min(samples["graph"].cpu)
    return Result(
        [
            Row(f"{name}: replay / graph by compile_fx", replay.cpu_median, "x", target, f"{replay}; graph {micro:.0f} µs"),
            Row(f"{name}: replay / our code, unguarded", unguarded.cpu_median, "x", None, str(unguarded)),
            Row(f"{name}: replay / eager", against_eager.cpu_median, "x", None, str(against_eager)),
            Row(f"{name}: torch.compile / graph by compile_fx", theirs.cpu_median, "x", None, str(theirs)),
            Row(f"{name}: replay / torch.compile", against.cpu_median, "x", 1.0, str(against)),
        ],
        {f"{name}: {key}": value.to_json() for key, value in samples.items()},
    )


def replay_mlp50() -> Result:
    """50-layer MLP over a ModuleList."""
    return _compare("50-layer MLP, ModuleList", lambda: MLP(50, WIDTH), 1.15)


def replay_sequential50() -> Result:
    """50-layer nn.Sequential with 50 ReLU modules."""
    return _compare("50-layer MLP, Sequential", lambda: sequential(50, WIDTH), 1.15)


def replay_mlp3() -> Result:
    """3-layer MLP: the overhead dominates the call."""
    return _compare("3-layer MLP", lambda: MLP(3, WIDTH), 1.25)

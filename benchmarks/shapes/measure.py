"""One architecture in this process: eager, torch.compile and MagPy over inputs of ten shapes. Prints one line of JSON."""

from __future__ import annotations

import copy
import json
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import magpy_core
from benchmarks.shapes.architectures import ARCHITECTURES, SHAPES
from magpy_core.regions.api import region_of

os.environ["MAGPY_COMPILE"] = "foreground"  # otherwise calls alternate with eager mode, to be compared

_ROUNDS = 7


class Contender:
    """The network under one compiler. ``seconds``: of training steps over all shapes, a round each."""

    def __init__(self, model: nn.Module, call: Callable[..., Any]) -> None:
        self.model, self.call = model, call
        self.seconds: list[float] = []

    def step(self, inputs: tuple[Any, ...]) -> list[Tensor]:
        """Results and gradients of a forward and a backward pass."""
        self.model.zero_grad(set_to_none=True)
        results = self.call(*inputs)
        results = list(results) if isinstance(results, tuple) else [results]
        sum(result.float().mean() for result in results).backward()
        return [result.detach() for result in results] + [p.grad for p in self.model.parameters() if p.grad is not None]

    def round(self, inputs: list[tuple[Any, ...]]) -> None:
        start = time.perf_counter()
        for arguments in inputs:
            self.step(arguments)
        self.seconds.append(time.perf_counter() - start)


def contenders(name: str, backend: str) -> tuple[dict[str, Contender], Callable[[], int]]:
    """Three copies of the network, and how many graphs torch.compile has compiled so far."""
    torch.manual_seed(0)
    model = ARCHITECTURES[name].build()
    graphs = 0

    def counted(gm: Any, example_inputs: Any) -> Any:
        nonlocal graphs
        graphs += 1
        from torch._inductor.compile_fx import compile_fx

        return compile_fx(gm, example_inputs) if backend == "inductor" else gm.forward

    theirs, ours = copy.deepcopy(model), copy.deepcopy(model)
    torch._dynamo.config.recompile_limit = SHAPES + 1
    made = {
        "eager": Contender(model, model),
        "torch.compile": Contender(theirs, torch.compile(theirs, backend=counted)),
        "MagPy": Contender(ours, magpy_core.compile(ours, backend=backend, wait=True)),
    }
    return made, lambda: graphs


def measure(name: str, backend: str = "inductor") -> dict[str, Any]:
    """Recompiles and captures, the largest relative difference from eager, and seconds over eager's."""
    made, graphs = contenders(name, backend)
    torch.manual_seed(1)
    inputs = [ARCHITECTURES[name].inputs(i) for i in range(SHAPES)]
    found: dict[str, Any] = {"name": name}
    for key, contender in made.items():
        start = time.perf_counter()
        errors = [0.0]
        for _ in range(3):
            for arguments in inputs:
                results = contender.step(arguments)
                expected = made["eager"].step(arguments) if key != "eager" else results
                errors += [_error(one, other) for one, other in zip(results, expected, strict=True)]
        found[key] = {"error": max(errors), "warm_s": time.perf_counter() - start}
    found["torch.compile"]["graphs"] = graphs()
    region = region_of(made["MagPy"].model)
    assert region is not None
    found["MagPy"] |= {
        "graphs": region.recordings,
        "served": region.hits / region.calls,
        "findings": sorted({f.code for f in region.findings.values()}),
    }
    for _ in range(_ROUNDS):
        for contender in made.values():
            contender.round(inputs)
    base = min(made["eager"].seconds)
    for key in ("torch.compile", "MagPy"):
        found[key]["ratio"] = min(made[key].seconds) / base
    found["eager"]["ms"] = 1e3 * base / SHAPES
    return found


def _error(one: Tensor, other: Tensor) -> float:
    scale = max(float(other.abs().max()), 1e-3) if other.numel() else 1.0
    return float((one - other).abs().max()) / scale if other.numel() else 0.0


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    print(json.dumps(measure(sys.argv[1], *sys.argv[2:])))

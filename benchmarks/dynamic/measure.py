"""One program in this process: eager, torch.compile and MagPy by turns over inputs of varied paths. Key type: Contender."""

from __future__ import annotations

import copy
import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import torch
from torch import nn

import magpy_core
from magpy_core.regions.api import region_of
from magpy_core.regions.region import Region
from tests.programs.dynamic import build, seed

INPUTS = 8  # timed over and over, with other random numbers each time
_FEWEST_PASSES = 3  # of the warm-up: recorded, guards hold once more, compiled
_ROUNDS = 5
_FEWEST_ROUNDS = 2


class Contender:
    """The program under one compiler, None for eager. ``failure``: the exception that it raised, if any."""

    def __init__(self, name: str, compiler: Callable[[Any], Any] | None) -> None:
        self.program = build(name)
        self.call = self.program.call
        self.compiled: list[Any] = []
        self.failure = ""
        self.seconds: list[float] = []
        modules = [region for region in self.program.regions if isinstance(region, nn.Module)]
        self._first = [(module, copy.deepcopy(module.state_dict())) for module in modules]
        for region in self.program.regions if compiler is not None else ():
            assert compiler is not None
            self.compiled.append(compiler(region))
            if region is self.program.call:
                self.call = self.compiled[-1]

    def reset(self) -> None:
        """Parameters and buffers as at first: a program that has trained longer may take other paths."""
        for module, state in self._first:
            module.load_state_dict(state)

    def run(self, i: int, turn: int) -> float:
        """Seconds of the call for input ``i``; random numbers depend on ``i`` and ``turn``."""
        argument = self.program.input(i)
        seed(1000 * turn + i)
        start = time.perf_counter()
        try:
            self.call(argument)
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}".splitlines()[0]
        return time.perf_counter() - start

    def warm(self, seconds: float, compilations: Callable[[], int], is_settled: Callable[[], bool] = lambda: True) -> bool:
        """Pass over the inputs until nothing more is compiled, or to be found out. Whether the time was enough."""
        end, turn = time.perf_counter() + seconds, 0
        while not self.failure:
            before = compilations()
            self.reset()
            for i in range(INPUTS):
                self.run(i, turn)
                if self.failure or time.perf_counter() > end:
                    return False
            turn += 1
            if turn >= _FEWEST_PASSES and compilations() == before and is_settled():
                return True
        return False


def _in_place(target: Any) -> Any:
    """``torch.compile`` with its defaults; a module in place, so that the program's own references are compiled too."""
    if isinstance(target, nn.Module):
        target.compile()
        return target
    return torch.compile(target)


def _timed(contenders: list[Contender], seconds: float) -> None:
    """All calls in turns, in rotating order, for at most about ``seconds`` but two rounds."""
    end, order = time.perf_counter() + seconds, list(contenders)
    gc.collect()
    for contender in contenders:
        contender.seconds = []
        contender.reset()
    for turn in range(_ROUNDS):
        if turn >= _FEWEST_ROUNDS and time.perf_counter() > end:
            break
        for i in range(INPUTS):
            for contender in order:
                contender.seconds.append(contender.run(i, 100 + turn))
            order.append(order.pop(0))


def _ratio(contender: Contender, base: Contender) -> dict[str, Any]:
    """Of all calls together, and the median of the ratios per call."""
    if contender.failure:
        return {"failure": contender.failure}
    ratios = [x / y for x, y in zip(contender.seconds, base.seconds, strict=True)]
    return {"total": sum(contender.seconds) / sum(base.seconds), "median": median(ratios)}


def _parts(regions: list[Region]) -> list[Region]:
    """The regions, those of stretches in place of those that were cut."""
    return [part for region in regions for part in (getattr(region.policy.fragments, "regions", None) or [region])]


def _is_decided(regions: list[Region]) -> bool:
    """Whether everything is compiled that is worth it, and it is known whether it pays."""
    captures = [capture for part in _parts(regions) for capture in part.captures]
    compiles = any(capture.is_due for capture in captures)  # not those of stretches that run in eager mode by now
    return not compiles and None not in _pay(regions) and all(region.times.trial is None for region in regions)


def _pay(regions: list[Region]) -> list[bool | None]:
    """Whether stretches pay, of each region that was cut; None: not known yet."""
    cut = [region.policy.fragments for region in regions if region.policy.fragments is not None]
    return [getattr(stretches, "pays", None) for stretches in cut]


def _state(regions: list[Region]) -> str:
    """Why they run in eager mode, and what of their stretches is known."""
    pay = _pay(regions)
    if pay:
        return "stretches pay" if all(pay) else "stretches are undecided" if None in pay else "stretches don't pay"
    if any(capture.is_retired for region in regions for capture in region.captures):
        return "captures don't pay"
    return next((region.disabled for region in regions if region.disabled), "")


def _served(regions: list[Region]) -> tuple[int, int]:
    """Calls of regions, or of their stretches, and how many of them were served by captures."""
    parts = _parts(regions)
    return sum(part.calls for part in parts), sum(part.hits for part in parts)


def measure(name: str, seconds: float, *, waits: bool, alone: bool) -> Iterator[dict[str, Any]]:
    """First eager and MagPy, whose calls wait for compilers if it ``waits``; then eager and torch.compile, unless MagPy is
    ``alone``. Each compiler warms up for at most about ``seconds``."""
    from torch._dynamo import utils

    torch.set_num_threads(1)
    eager = Contender(name, None)
    eager.warm(seconds, lambda: 0)
    ours = Contender(name, lambda target: magpy_core.compile(target, backend="inductor", wait=waits))
    regions = [region_of(compiled) for compiled in ours.compiled]
    warmed = {
        "MagPy": ours.warm(seconds, lambda: sum(part.recordings for part in _parts(regions)), lambda: _is_decided(regions))
    }

    def timed() -> dict[str, Any]:
        calls_before, hits_before = _served(regions)
        _timed([eager, *([] if ours.failure else [ours])], seconds / 2)
        calls, hits = _served(regions)
        if calls >= calls_before:  # otherwise regions were cut meanwhile, into parts that are counted from their beginning
            calls, hits = calls - calls_before, hits - hits_before
        return {
            "eager_ms": 1e3 * median(eager.seconds),
            "MagPy": _ratio(ours, eager),
            "captures": sum(len(region.captures) for region in regions),
            "recordings": sum(region.recordings for region in regions),
            "plain": _state(regions),
            "findings": sorted({finding.code for region in regions for finding in region.findings.values()}),
            "served": hits / max(1, calls),
            "warmed": warmed,
        }

    found = timed()
    yield found
    if alone:
        return
    # torch.compile comes second, and is timed beside eager alone: where the program uses it, nothing is cut into stretches
    utils.set_compilation_metrics_limit(100_000)
    utils.clear_compilation_metrics()
    utils.counters.clear()
    theirs = Contender(name, _in_place)
    warmed["torch.compile"] = theirs.warm(seconds, lambda: len(utils.get_compilation_metrics()))
    _timed([eager, *([] if theirs.failure else [theirs])], seconds / 2)
    frames = [str(metrics.compile_id).strip("[]") for metrics in utils.get_compilation_metrics()]
    yield found | {
        "torch.compile": _ratio(theirs, eager),
        "graphs": utils.counters["stats"]["unique_graphs"],
        "recompiles": sum(not frame.endswith("/0") for frame in frames),
        "breaks": sum(utils.counters["graph_break"].values()),
    }


if __name__ == "__main__":
    for found in measure(sys.argv[1], float(sys.argv[2]), waits="--wait" in sys.argv, alone="--alone" in sys.argv):
        print(json.dumps(found), flush=True)

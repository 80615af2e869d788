"""Whole training steps as one region, against torch.compile (model and optimizer), their parts as regions, and eager."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

import magpy_core
from benchmarks.result import Result, Row
from benchmarks.timing import interleave, ratio_of
from benchmarks.whole_step.programs import PROGRAMS, Program

os.environ["MAGPY_COMPILE"] = "foreground"  # otherwise calls alternate with eager mode, to be compared

_WARM_UP = 4
_FEWEST_SPEEDUP = 1.0  # of torch.compile
_MOST_MEMORY = 1.05  # of eager


def _made(name: str) -> Program:
    torch.manual_seed(0)
    return PROGRAMS[name]()


def _peak(step: Callable[[], Any]) -> int:
    """Bytes of tensors that one step has allocated at most, beyond those before it."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step()
    now = most = 0
    for event in sorted(profiler.profiler.kineto_results.events(), key=lambda event: event.start_ns()):
        if event.name() == "[memory]":
            now += event.nbytes()
            most = max(most, now)
    return most


def _measure(name: str) -> Result:
    """One program: ms per step, contenders in turns; how much memory a step takes."""
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    plain, theirs, whole = _made(name), _made(name), _made(name)
    theirs.compile_parts(functools.partial(torch.compile, dynamic=False))
    ours = magpy_core.compile(whole.train_step(), backend="inductor", wait=True)
    contenders: dict[str, Callable[[], object]] = {
        "eager": plain.train_step(),
        "torch.compile": theirs.train_step(),
        "MagPy, whole step": ours,
    }
    for call in contenders.values():
        for _ in range(_WARM_UP):
            call()
    for one, other in zip(whole.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-2, atol=2e-3)
    captures = magpy_core.captures(ours)
    assert captures and all(capture.is_complete for capture in captures), f"the step of {name} is no complete graph"
    hits = sum(capture.hits for capture in captures)
    samples = interleave(contenders, rounds=15, slice_s=0.2)
    assert sum(capture.hits for capture in captures) > hits + 15, f"the compiled step of {name} is not used"
    rows = [Row(f"{name}: {contender}", 1e3 * min(s.wall), "ms") for contender, s in samples.items()]
    ratio = ratio_of(samples["MagPy, whole step"], samples["torch.compile"])
    rows.append(Row(f"{name}: MagPy / torch.compile", ratio.wall_median, "x", 1 / _FEWEST_SPEEDUP, str(ratio)))
    ratio = ratio_of(samples["MagPy, whole step"], samples["eager"])
    rows.append(Row(f"{name}: MagPy / eager", ratio.wall_median, "x", None, str(ratio)))
    peaks = {contender: _peak(contenders[contender]) for contender in contenders}
    detail = ", ".join(f"{contender} {peak / 2**20:.1f} MB" for contender, peak in peaks.items())
    rows.append(Row(f"{name}: peak memory / eager", peaks["MagPy, whole step"] / peaks["eager"], "x", _MOST_MEMORY, detail))
    return Result(rows, {f"{name}: {key}": value.to_json() for key, value in samples.items()})


for _name in PROGRAMS:
    globals()[f"whole_step_{_name}"] = functools.partial(_measure, _name)

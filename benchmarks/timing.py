"""Interleaved timing of callables and of commands. Key types: Samples, ratio_of.

The machine is assumed to be shared and noisy. The contenders take turns in each round, in rotating order, so that a slow
second affects all of them; ratios are computed per round before any statistics over rounds.
"""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median


@dataclass
class Samples:
    """Seconds per call, one entry per round."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def add(self, wall: float, cpu: float) -> None:
        self.wall.append(wall)
        self.cpu.append(cpu)

    def to_json(self) -> dict[str, list[float]]:
        return {"wall_s": self.wall, "cpu_s": self.cpu}


@dataclass(frozen=True)
class Ratio:
    """Compares two contenders: the ratio of the minima, and the median of the ratios per round."""

    wall_min: float
    wall_median: float
    cpu_min: float
    cpu_median: float

    def __str__(self) -> str:
        return f"cpu {self.cpu_min:.2f} / {self.cpu_median:.2f}, wall {self.wall_min:.2f} / {self.wall_median:.2f}"

    def to_json(self) -> dict[str, float]:
        return dict(vars(self))


def ratio_of(samples: Samples, base: Samples) -> Ratio:
    def rounds(a: list[float], b: list[float]) -> float:
        return median(x / y for x, y in zip(a, b, strict=True))

    return Ratio(
        wall_min=min(samples.wall) / min(base.wall),
        wall_median=rounds(samples.wall, base.wall),
        cpu_min=min(samples.cpu) / min(base.cpu),
        cpu_median=rounds(samples.cpu, base.cpu),
    )


def timed(call: Callable[[], object], times: int) -> tuple[float, float]:
    """Wall and process CPU seconds per call, averaged over ``times`` calls."""
    repeat = range(times)
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in repeat:
        call()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return wall / times, cpu / times


def interleave(
    contenders: dict[str, Callable[[], object]],
    *,
    rounds: int = 21,
    slice_s: float = 0.02,
    timed: Callable[[Callable[[], object], int], tuple[float, float]] = timed,
) -> dict[str, Samples]:
    """Times the contenders in turns of about ``slice_s`` and at least one call, after a warm-up of all. ``timed``: how some
    calls are timed; another one for work on a device, where calls return before it is done."""
    times: dict[str, int] = {}
    for name, call in contenders.items():
        call()
        wall = min(timed(call, 3)[0], timed(call, 3)[0])
        times[name] = max(1, round(slice_s / wall))
    samples = {name: Samples() for name in contenders}
    order = list(contenders)
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name in order:
                samples[name].add(*timed(contenders[name], times[name]))
            order.append(order.pop(0))
    finally:
        gc.enable()
    return samples


def user_environment() -> dict[str, str]:
    """The environment with bytecode caching enabled: without it (in some CI images) every start would compile MagPy."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def run_command(command: Sequence[str], *, cwd: str | None = None) -> tuple[float, float]:
    """Wall and CPU seconds (including children) of a command; raises with its output if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=cwd, env=user_environment())
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} exited with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def interleave_commands(commands: dict[str, Sequence[str]], *, rounds: int, cwd: str | None = None) -> dict[str, Samples]:
    """Times whole processes in turns. The first round warms the file cache and is discarded."""
    samples = {name: Samples() for name in commands}
    order = list(commands)
    for done in range(rounds + 1):
        for name in order:
            wall, cpu = run_command(commands[name], cwd=cwd)
            if done:
                samples[name].add(wall, cpu)
        order.append(order.pop(0))
    return samples

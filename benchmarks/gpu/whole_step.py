"""Whole training steps on the device: eager, torch.compile (default and reduce-overhead), and MagPy's one graph.

Key functions: whole_step (one row of the table), warm (fills the compilers' caches on disk for it).
"""

from __future__ import annotations

import functools
import gc
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import magpy_core
from benchmarks.gpu.clock import finished, peak_bytes, timed_on
from benchmarks.gpu.graphed import Graphed, NotGraphable, make_capturable
from benchmarks.gpu.table import Table, milliseconds
from benchmarks.timing import Samples, interleave, ratio_of
from benchmarks.whole_step.programs import LARGE, PROGRAMS, Program
from magpy_core.regions.api import region_of

os.environ["MAGPY_COMPILE"] = "foreground"  # otherwise calls alternate with eager mode, to be compared

COMPARED_STEPS = 4
_DECIDED_STEPS = 24  # until it is known whether the CUDA graph is faster
_MORE_STEPS = 8  # of torch.compile: what changes from call to call has been compiled anew after these
_MORE_S = 25.0  # that they may take
_MOST_DIFFERENT = 0.05  # of what the steps have changed, or three times torch.compile's difference
_ROUNDS, _SLICE_S = 11, 0.1
EAGER, THEIRS, REDUCED, OURS, LAUNCHED, GRAPHED = (
    "eager",
    "torch.compile",
    "reduce-overhead",
    "MagPy, whole step",
    "without CUDA graphs",
    "its graph alone",
)


@dataclass
class Contender:
    """A program of its own and the call that makes its step."""

    program: Program
    call: Callable[[], Any]


def _made(name: str, device: torch.device) -> Program:
    torch.manual_seed(0)
    return (PROGRAMS | LARGE)[name]().to(device)


def _plain(name: str, device: torch.device) -> Contender:
    program = _made(name, device)
    return Contender(program, program.train_step())


def _compiled_parts(name: str, device: torch.device, backend: str, mode: str | None) -> Contender:
    """Model and optimizer with ``torch.compile``, as users do."""
    program = _made(name, device)
    program.compile_parts(functools.partial(torch.compile, backend=backend, mode=mode))
    step = program.train_step()

    def call() -> Any:
        torch.compiler.cudagraph_mark_step_begin()  # results of the last step may be overwritten
        return step()

    return Contender(program, call if mode else step)


def _whole(
    name: str, device: torch.device, backend: str, *, capturable: bool = False, cuda_graphs: bool | None = None
) -> Contender:
    program = _made(name, device)
    if capturable:
        make_capturable(list(program.optimizers.values()))
    return Contender(program, magpy_core.compile(program.train_step(), backend=backend, wait=True, cuda_graphs=cuda_graphs))


def _contenders(name: str, device: torch.device, backend: str) -> dict[str, Callable[[], Contender]]:
    """Makers of all contenders but the CUDA graph, in the order of the columns."""
    makers = {
        EAGER: lambda: _plain(name, device),
        OURS: lambda: _whole(name, device, backend),
        THEIRS: lambda: _compiled_parts(name, device, backend, None),
    }
    if device.type == "cuda" and backend == "inductor":
        makers[LAUNCHED] = lambda: _whole(name, device, backend, cuda_graphs=False)
        makers[REDUCED] = lambda: _compiled_parts(name, device, backend, "reduce-overhead")
    return makers


def flat(program: Program) -> torch.Tensor:
    """All parameters as one vector, in float64."""
    return torch.cat([parameter.detach().flatten().double() for parameter in program.parameters()])


def difference(found: torch.Tensor, wanted: torch.Tensor, start: torch.Tensor) -> float:
    """The length of the difference, as a share of what the steps have changed."""
    change = float((wanted - start).norm())
    return float((found - wanted).norm()) / change if change else float((found - wanted).norm())


def _graphed(ours: Contender) -> Graphed:
    """Raises NotGraphable."""
    captures = magpy_core.captures(ours.call)
    if not captures or not captures[0].is_complete:
        raise NotGraphable("the step is not one graph")
    capture = captures[0]
    return Graphed(capture.bare_callable, capture.gather_inputs((), {}))


def warm(name: str, device: torch.device, backend: str) -> None:
    """Compile what ``whole_step`` will need, so that it finds it in the caches on disk."""
    for who, make in _contenders(name, device, backend).items():
        try:
            contender = make()
            for _ in range(2):
                contender.call()
        except Exception as error:
            if who in (EAGER, OURS):
                raise
            print(f"{name}: {who} fails: {_first_line(error)}")
    finished(device)


def whole_step(name: str, device: torch.device, backend: str = "inductor") -> Table:
    """One row: milliseconds of a step of each contender, in turns."""
    table = Table(
        f"Whole training steps, ms per step on {device.type}",
        [
            "step",
            EAGER,
            THEIRS,
            REDUCED,
            OURS,
            LAUNCHED,
            GRAPHED,
            "MagPy / torch.compile",
            "memory / eager",
            "differs from eager by",
        ],
    )
    torch.set_float32_matmul_precision("high")  # for all of them: what a user of tensor cores sets
    start = flat(_made(name, device))
    contenders: dict[str, Contender] = {}
    differs: dict[str, float] = {}
    for who, make in _contenders(name, device, backend).items():
        try:
            contenders[who] = _started(make, device)
        except Exception as error:
            if who in (EAGER, OURS):
                raise
            table.problems.append(f"{name}: {who} fails: {_first_line(error)}")
            continue
        differs[who] = difference(flat(contenders[who].program), flat(contenders[EAGER].program), start)
    captures = magpy_core.captures(contenders[OURS].call)
    if not captures or not all(capture.is_complete for capture in captures):
        table.problems.append(f"{name}: MagPy's step is not one graph.")
    if differs[OURS] > max(_MOST_DIFFERENT, 3 * differs.get(THEIRS, 0.0)):
        table.problems.append(f"{name}: MagPy's parameters differ from eager's by {differs[OURS]:.1%} of their change.")
    for who in (THEIRS, REDUCED):
        if who in contenders and not _settled(contenders[who], device):
            table.problems.append(f"{name}: {who} was still compiling when it was timed.")
    for _ in range(_DECIDED_STEPS):  # torch.compile has changed functions that the step calls: it may be captured anew
        contenders[OURS].call()
    finished(device)
    contenders[OURS].call()
    table.problems += [f"{name}: {reason}" for reason in _not_replayed(contenders[OURS])]
    calls: dict[str, Callable[[], Any]] = {who: contender.call for who, contender in contenders.items()}
    if device.type == "cuda":
        try:
            calls[GRAPHED] = _graphed(_started(lambda: _whole(name, device, backend, capturable=True), device))
        except Exception as error:
            table.problems.append(f"{name}: no CUDA graph of MagPy's graph: {_first_line(error)}")
    region = region_of(contenders[OURS].call)
    hits = region.hits
    samples = interleave(calls, rounds=_ROUNDS, slice_s=_SLICE_S, timed=timed_on(device))
    if region.hits < hits + _ROUNDS:
        table.problems.append(f"{name}: MagPy's compiled step was not used while it was timed.")
    peaks = {who: peak_bytes(device, calls[who]) for who in (EAGER, OURS)}
    table.rows.append(_row(name, table.columns, samples, peaks, differs[OURS]))
    table.samples = {f"{name}: {who}": of.to_json() for who, of in samples.items()}
    return table


def _started(make: Callable[[], Contender], device: torch.device) -> Contender:
    contender = make()
    for _ in range(COMPARED_STEPS):
        contender.call()
    finished(device)
    gc.collect()
    return contender


def _not_replayed(ours: Contender) -> list[str]:
    """Why no CUDA graph is used, if none is."""
    used = [one for capture in magpy_core.captures(ours.call) if capture.hits for one in capture.replayed]
    return [f"no CUDA graph is used: {one.reason or 'it is no faster'}" for one in used if one.reason or one.is_slower]


def _settled(contender: Contender, device: torch.device) -> bool:
    """Make more steps; whether the time for them was enough."""
    end = time.monotonic() + _MORE_S
    for _ in range(_MORE_STEPS):
        if time.monotonic() > end:
            return False
        contender.call()
        finished(device)
    return True


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def _row(
    name: str, columns: list[str], samples: dict[str, Samples], peaks: dict[str, int | None], differs: float
) -> list[str]:
    times = [milliseconds(min(samples[who].wall)) if who in samples else "-" for who in columns[1:7]]
    ratio = f"{ratio_of(samples[OURS], samples[THEIRS]).wall_median:.2f}" if THEIRS in samples else "-"
    eager, ours = peaks[EAGER], peaks[OURS]
    memory = f"{ours / eager:.2f}" if eager and ours is not None else "-"
    return [name, *times, ratio, memory, f"{differs:.1e}"]

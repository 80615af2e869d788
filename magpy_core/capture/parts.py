"""What a capture shows of itself: when it is valid, and what it does to the outside. Key types: Guards, Replay.

Beside them, what its generated code calls: the check of a backend's shapes, and putting an input back."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from magpy_core._compat.torch.tensor_guards import global_reason, keep_version
from magpy_core.backends.fakes import guard_namespace
from magpy_core.findings import Location
from magpy_core.guards.explain import Failure, read_failure, tensor_failure
from magpy_core.monitor.positions import site_location
from magpy_core.recording.trace import Trace
from magpy_core.replay.ir import Effect, Plan


class CaptureFailed(Exception):
    """A capture turned out not to run (its backend failed, or its graph raised); carries the finding's text."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Guards:
    """When a capture is valid. ``code`` is the generated Python; ``len`` the number of checks."""

    def __init__(self, trace: Trace, code: str, count: int) -> None:
        self._trace = trace
        self.code = code
        self._count = count
        self._global_reason = global_reason()

    def __len__(self) -> int:
        return self._count

    def __str__(self) -> str:
        return self.code

    def explain(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, global_ok: bool = True) -> list[Failure]:
        """Every guard that does not hold for a call, with old value, new value and position. Empty when all hold."""
        out: list[Failure] = []
        if not global_ok:
            name, old, new = self._global_reason()
            out.append(Failure("MP201", f"torch's {name}", old, new, None))
        places = self._trace.places
        for read in self._trace.refgraph.reads:
            try:
                failure = read_failure(read, args, kwargs, _where)
            except Exception as error:  # the path itself no longer exists: user objects may raise anything
                name = read.source.describe()
                failure = Failure("MP201", name, "reachable", f"not reachable ({type(error).__name__})", _where(read.site))
            if failure is not None:
                place = places.of(read.source, [read.site])
                if place is not None:
                    failure = replace(failure, location=place.location, path=place.path)
                out.append(failure)
        for tensor in self._trace.tensors:
            try:
                failure = tensor_failure(tensor.source, tensor.facts, args, kwargs, tensor.dims, None)
            except Exception as error:  # as above
                failure = Failure(
                    "MP201",
                    tensor.source.describe(),
                    tensor.facts.describe(),
                    f"not reachable ({type(error).__name__})",
                    None,
                )
            if failure is not None:
                out.append(failure)
        return out


class Replay:
    """What happens after the graph ran. ``code`` is the generated Python; ``effects`` the changes to the outside."""

    def __init__(self, plan: Plan, code: str) -> None:
        self.plan = plan
        self.effects: list[Effect] = plan.effects
        self.code = code

    def __str__(self) -> str:
        return self.code


def _where(site: Any) -> Location | None:
    return site_location(site) if site is not None else None


# Random numbers are drawn before it is known whether the capture fits: if it does not, the streams are put back.
DRAWING = """
def run(args, kwargs, run_drawing=run_drawing):
    before = []
    try:
        result = run_drawing(args, kwargs, before)
    except CaptureFailed:
        put_back(before)
        raise
    if result is MISS or result is AGAIN:
        put_back(before)
    return result

def gather(args, kwargs, gather_drawing=gather_drawing):
    before = []
    try:
        return gather_drawing(args, kwargs, before)
    finally:
        put_back(before)
"""


def shape_check(checks: list[tuple[Any, list[int]]]) -> Callable[[Any], bool]:
    compiled = [
        (eval(f"lambda L: {' and '.join(f'({g.expression})' for g in guards)}", dict(guard_namespace())), positions)
        for guards, positions in checks
    ]

    def check(inputs: Any) -> bool:
        return all(fn([inputs[p] for p in positions]) for fn, positions in compiled)

    return check


def restore_input(tensor: torch.Tensor, backup: torch.Tensor) -> None:
    with torch.no_grad(), keep_version(tensor):
        if tensor.shape != backup.shape:  # an operation with ``out=`` resized it
            tensor.resize_(backup.shape)
        for dim in range(tensor.dim()):
            if tensor.stride(dim) == 0 and tensor.shape[dim] > 1:  # expanded: its rows are one
                tensor, backup = tensor.narrow(dim, 0, 1), backup.narrow(dim, 0, 1)
        try:
            tensor.copy_(backup)
        except RuntimeError:  # windows that overlap: what is in two of them is the same in both
            for place in itertools.product(*map(range, tensor.shape)):
                tensor[place].copy_(backup[place])


def restore_history(tensor: torch.Tensor, required: bool) -> None:
    """A leaf again, that requires a gradient or does not, as before."""
    if tensor.grad_fn is not None:
        tensor.detach_()
    tensor.requires_grad_(required)

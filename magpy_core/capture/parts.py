"""The inspectable parts of a capture: when it is valid, and its effects on the outside. Key types: Guards, Replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from magpy_core._compat.torch.tensor_guards import global_reason
from magpy_core._compat.torch.torch_state import get_modes
from magpy_core.findings import Location
from magpy_core.guards.explain import read_failure, tensor_failure
from magpy_core.monitor.positions import site_location
from magpy_core.recording.trace import GuardedTensor, Trace
from magpy_core.refgraph.failure import UNASSIGNED, Failure
from magpy_core.refgraph.guard_kind import Read
from magpy_core.refgraph.source import Source
from magpy_core.replay.ir import Effect


class Guards:
    """When a capture is valid. ``code`` is the generated Python; ``len`` the number of checks."""

    def __init__(self, trace: Trace, code: str, count: int) -> None:
        self._trace = trace
        self.code = code
        self._count = count
        self._global_reason = global_reason()
        self.modes = get_modes()  # of the recorded call, which has just returned

    def __len__(self) -> int:
        return self._count

    def __str__(self) -> str:
        return self.code

    def explain(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, global_ok: bool = True) -> list[Failure]:
        """Every guard that does not hold for a call, with old value, new value and position; empty if all hold."""
        out: list[Failure] = []
        if not global_ok:
            name, old, new = self._global_reason()
            out.append(Failure("MP201", f"torch's {name}", old, new, None))
        reads, tensors = self._trace.refgraph.reads, self._trace.tensors
        out += self._failures(
            [r for r in reads if not r.counted], [t for t in tensors if not t.source.counted], args, kwargs
        )
        if self._trace.counts and not out:  # otherwise the guard did not come to those that a cache counts
            counted = [t for t in tensors if t.source.counted]
            out += self._failures([r for r in reads if r.counted], counted, args, kwargs)
        return out

    def _failures(
        self, reads: Sequence[Read], tensors: Sequence[GuardedTensor], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> list[Failure]:
        out: list[Failure] = []
        places = self._trace.places
        for read in reads:
            if _is_drawn(read.source):
                continue
            failure = _failure(read.source, "reachable", partial(read_failure, read, args, kwargs, _where))
            if failure is not None:
                place = places.of(read.source, [read.site])
                known = failure.location or _where(read.site)
                out.append(replace(failure, location=place.location if place else known, path=place.path if place else ()))
        for t in tensors:
            if _is_drawn(t.source):
                continue
            find = partial(tensor_failure, t.source, t.facts, args, kwargs, t.dims)
            failure = _failure(t.source, t.facts.describe(), find)
            out += [failure] if failure is not None else []
        return out


@dataclass(frozen=True)
class Replay:
    """What runs after the graph. ``code`` is the generated Python; ``effects`` are the changes to the outside."""

    effects: list[Effect]
    code: str

    def __str__(self) -> str:
        return self.code


def _failure(source: Source, old: str, find: Callable[[], Failure | None]) -> Failure | None:
    try:
        return find()
    except Exception as error:  # the access path no longer exists; user objects may raise anything
        is_unbound = source.kind == "cell" and isinstance(error, ValueError)
        new = UNASSIGNED if is_unbound else f"not reachable ({type(error).__name__})"
        return Failure("MP201", source.describe(), old, new)


def _is_drawn(source: Source) -> bool:
    """Whether it was made for the call, of random numbers."""
    return any(step.kind == "computed" and step.key.is_of_draws for step in source.chain())


def _where(site: Any) -> Location | None:
    return site_location(site) if site is not None else None

"""What a capture shows of itself: when it is valid, and what it does to the outside. Key types: Guards, Replay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from magpy_core._compat.torch.tensor_guards import global_reason
from magpy_core.findings import Location
from magpy_core.guards.explain import Failure, read_failure, tensor_failure
from magpy_core.monitor.positions import site_location
from magpy_core.recording.trace import Trace
from magpy_core.replay.ir import Effect, Plan


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

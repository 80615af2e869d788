"""A region under torch.compile, and its figures. Key type: DynamoRegion."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from statistics import median
from types import CodeType
from typing import Any, Protocol

import torch

from magpy_core._compat.torch import dynamo_watch as watch
from magpy_core.findings import CaptureSummary, Location, Recompile, RegionSummary
from magpy_core.products.dynamo.wording import Change
from magpy_core.regions.options import Options

_WARM_UP_STEPS = 3


@dataclass
class DynamoLog:
    """What torch.compile did with a region. ``late``: its recompiles after the warm-up."""

    breaks: set[tuple[str, Location]] = field(default_factory=set)
    given_up: set[CodeType] = field(default_factory=set)
    recompiles: list[Recompile] = field(default_factory=list)
    compiled: list[watch.Compiled] = field(default_factory=list)
    late: int = 0


class Owner(Protocol):
    """The session, as a region sees it: the region that each thread calls, and the program's current step."""

    backend: str
    current_step: int
    on_region: Callable[[Any], None]

    def in_region(self) -> bool: ...
    def calling(self, region: DynamoRegion) -> AbstractContextManager[None]: ...


class DynamoRegion:
    """Calls ``target`` compiled by torch.compile. A module that the program compiles itself is called directly."""

    def __init__(
        self, session: Owner, id: str, kind: str, name: str, location: Location, target: Callable[..., Any]
    ) -> None:
        self.session, self.id, self.kind, self.name, self.location = session, id, kind, name, location
        self.target = target
        self.options = Options(mode="compiled", backend=session.backend, measure=True)
        self.calls = 0
        self.recordings = 0  # how often the compiler ran
        self.log = DynamoLog()
        self._call_seconds: list[float] = []
        self._changes: set[tuple[str, str, str]] = set()
        self._compiled_target: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.session.in_region():
            return self.target(*args, **kwargs)
        self.calls += 1
        self._changes.clear()
        call = self._callable(args)
        before, start = self.recordings, time.perf_counter()
        with self.session.calling(self):
            result = call(*args, **kwargs)
        if self.recordings == before:
            self._call_seconds.append(time.perf_counter() - start)
        else:
            self.session.on_region(self)
        return result

    def _callable(self, args: tuple[Any, ...]) -> Callable[..., Any]:
        if self.kind == "module" and args and watch.compiled_by_program(args[0]):
            return self.target
        if self.kind == "function" and self.calls == 1:
            return self.target  # eager mode: its optimizer steps are counted, which compiled code would prevent
        if self._compiled_target is None:
            self._compiled_target = torch.compile(self.target, backend=self.session.backend)
        return self._compiled_target

    @property
    def hits(self) -> int:
        """Calls without compilation."""
        return len(self._call_seconds)

    # -- events

    def is_new(self, change: Change) -> bool:
        """Whether ``change`` is new in this call: functions after a graph break report it again."""
        known = (change.name.rpartition(".")[2], change.old, change.new)
        new = known not in self._changes
        self._changes.add(known)
        return new

    def recompiled(self, change: Change, place: Location) -> None:
        self.log.recompiles.append(
            Recompile(self.calls, change.name, change.old, change.new, place.file, place.range.start.line + 1)
        )
        if self.session.current_step > _WARM_UP_STEPS:
            self.log.late += 1

    def compiled(self, event: watch.Compiled) -> None:
        self.recordings += 1
        self.log.compiled.append(event)

    # -- summary

    def summary(self) -> RegionSummary:
        newest: dict[CodeType, watch.Compiled] = {event.code: event for event in self.log.compiled}
        graphs = sum(1 for event in newest.values() if event.graphs)
        times = [event.guard_seconds for event in newest.values() if event.guard_seconds is not None]
        breaks = len(self.log.breaks)
        return RegionSummary(
            id=self.id,
            kind=self.kind,
            name=self.name,
            file=self.location.file,
            line=self.location.range.start.line + 1,
            calls=self.calls,
            captures=sum(event.graphs for event in self.log.compiled),
            complete=graphs == 1 and not breaks and not self.log.given_up,
            graph_breaks=breaks,
            guards=sum(event.guards for event in newest.values()),
            guard_ms=round(sum(times) * 1e3, 4) if times else None,
            compiled_ms=round(median(self._call_seconds) * 1e3, 4) if self._call_seconds else None,
            compile_s=round(sum(event.seconds for event in self.log.compiled), 3) if self.log.compiled else None,
            hits=self.hits,
            captures_after_step_3=self.log.late,
            engine="dynamo",
            graphs=graphs,
            recompiles=list(self.log.recompiles),
            per_capture=[
                CaptureSummary(e.guards, round(e.guard_seconds * 1e3, 4) if e.guard_seconds is not None else None, 0,
                               not breaks, round(e.seconds, 4))
                for e in reversed(self.log.compiled)
            ],
        )  # fmt: skip

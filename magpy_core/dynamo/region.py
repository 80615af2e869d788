"""A region under torch.compile, with TorchDynamo's findings. Key type: DynamoRegion."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median
from types import CodeType
from typing import TYPE_CHECKING, Any

import torch

from magpy_core._compat.torch import dynamo_watch as watch
from magpy_core.dynamo import explain
from magpy_core.dynamo.wording import Change, read_reason
from magpy_core.findings import CaptureSummary, Finding, Location, RegionSummary
from magpy_core.findings import Recompile as Recompiled
from magpy_core.regions.region import Options

if TYPE_CHECKING:
    from magpy_core.dynamo.session import DynamoSession

_WARM_UP_STEPS = 3


class DynamoRegion:
    """Calls ``target`` compiled by torch.compile. A module that the program compiles itself is called directly."""

    def __init__(
        self, session: DynamoSession, id: str, kind: str, name: str, location: Location, target: Callable[..., Any]
    ) -> None:
        self.session, self.id, self.kind, self.name, self.location = session, id, kind, name, location
        self.target = target
        self.options = Options(mode="compiled", backend=session.backend, measure=True)
        self.calls = 0
        self.findings: dict[Any, Finding] = {}
        self.recompiles: list[Recompiled] = []
        self.compiled: list[watch.Compiled] = []
        self.late = 0
        self._breaks: set[tuple[str, Location]] = set()
        self._given_up: set[CodeType] = set()
        self._call_seconds: list[float] = []
        self._events = 0
        self._changes: set[tuple[str, str, str]] = set()
        self._recompiling: dict[CodeType, Any] = {}  # code being recompiled, and the identity of the finding that says why
        self._costs: dict[Any, list[float]] = {}
        self._compiled_target: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.session.in_region:
            return self.target(*args, **kwargs)
        self.calls += 1
        self._changes.clear()
        call = self._callable(args)
        before, start = self._events, time.perf_counter()
        with self.session.calling(self):
            result = call(*args, **kwargs)
        if self._events == before:
            self._call_seconds.append(time.perf_counter() - start)
        else:
            self.session.changed(self)
        return result

    def _callable(self, args: tuple[Any, ...]) -> Callable[..., Any]:
        if self.kind == "module" and args and watch.compiled_by_program(args[0]):
            return self.target
        if self.kind == "function" and self.calls == 1:
            return self.target  # plain Python: its optimizer steps are counted, which a graph would not do
        if self._compiled_target is None:
            self._compiled_target = torch.compile(self.target, backend=self.session.backend)
        return self._compiled_target

    @property
    def recordings(self) -> int:
        """How often the compiler ran."""
        return self._events

    @property
    def hits(self) -> int:
        """Calls without compilation."""
        return len(self._call_seconds)

    # -- events

    def broke(self, event: watch.Break) -> None:
        finding = explain.graph_break(event, self.id, self.location)
        if finding.code == "MPD101":
            self._breaks.add((event.kind, finding.location))
        self._add(finding)

    def recompiled(self, event: watch.Recompile) -> None:
        reason = event.reasons[0] if event.reasons else ""
        change = read_reason(reason, event.variables) if reason else Change("a guard", "", "")
        known = (change.name.rpartition(".")[2], change.old, change.new)
        if known in self._changes:
            return  # the same change shows again after a graph break, and in the functions called there
        self._changes.add(known)
        finding = explain.recompile(event.code, change, len(event.reasons), self.id, self.location)
        place = finding.location
        self.recompiles.append(
            Recompiled(self.calls, change.name, change.old, change.new, place.file, place.range.start.line + 1)
        )
        if self.session.current_step > _WARM_UP_STEPS:
            self.late += 1
        self._add(finding)
        self._recompiling[event.code] = explain.identity(finding)

    def done(self, event: watch.Compiled) -> None:
        self._events += 1
        self.compiled.append(event)
        if (key := self._recompiling.pop(event.code, None)) is not None:
            times = self._costs.setdefault(key, [])
            times.append(event.seconds)
            known = self.findings[key] = replace(self.findings[key], cost_ms=round(sum(times) / len(times) * 1e3, 4))
            self.session.report(known)

    def gave_up(self, event: watch.GivenUp) -> None:
        self._events += 1
        if event.kind and explain.of_torch(event.code.co_filename):
            return  # torch skips it deliberately, or its graph break has been reported
        self._given_up.add(event.code)
        self._add(explain.skipped_function(event, self.id, self.location))

    def _add(self, finding: Finding) -> None:
        """Adds a finding, or counts a repeated one: only the count rises for a value that keeps changing."""
        key = explain.identity(finding)
        known = self.findings.get(key)
        if known is not None:
            if finding.code != "MPD201":
                return
            finding = known.repeated()
        self.findings[key] = finding
        self.session.report(finding)

    # -- summary

    def summary(self) -> RegionSummary:
        newest: dict[CodeType, watch.Compiled] = {event.code: event for event in self.compiled}
        graphs = sum(1 for event in newest.values() if event.graphs)
        times = [event.guard_seconds for event in newest.values() if event.guard_seconds is not None]
        breaks = len(self._breaks)
        return RegionSummary(
            id=self.id,
            kind=self.kind,
            name=self.name,
            file=self.location.file,
            line=self.location.range.start.line + 1,
            calls=self.calls,
            captures=sum(event.graphs for event in self.compiled),
            complete=graphs == 1 and not breaks and not self._given_up,
            graph_breaks=breaks,
            guards=sum(event.guards for event in newest.values()),
            guard_ms=round(sum(times) * 1e3, 4) if times else None,
            compiled_ms=round(median(self._call_seconds) * 1e3, 4) if self._call_seconds else None,
            compile_s=round(sum(event.seconds for event in self.compiled), 3) if self.compiled else None,
            hits=self.hits,
            captures_after_step_3=self.late,
            engine="dynamo",
            graphs=graphs,
            recompiles=list(self.recompiles),
            per_capture=[
                CaptureSummary(e.guards, round(e.guard_seconds * 1e3, 4) if e.guard_seconds is not None else None, 0,
                               not breaks, round(e.seconds, 4))
                for e in reversed(self.compiled)
            ],
        )  # fmt: skip

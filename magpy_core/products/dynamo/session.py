"""DynamoSession: a running program's regions under torch.compile. Key type: DynamoSession.

It replaces ``regions.session.Session``, so discovery, the step clock and the report are the same for both engines.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import CodeType
from typing import TYPE_CHECKING, Any

import torch

from magpy_core._compat.torch import dynamo_watch as watch
from magpy_core.backends import UnknownBackend
from magpy_core.findings import Finding, Location, Position, Range
from magpy_core.products.dynamo import explain
from magpy_core.products.dynamo.region import DynamoRegion
from magpy_core.products.dynamo.wording import Change, read_reason
from magpy_core.regions.lines import line_location

if TYPE_CHECKING:
    from magpy_core.findings.details import RegionDetail


class _Local(threading.local):
    region: DynamoRegion | None = None
    """The region that this thread calls."""


class DynamoSession:
    """Regions by key; assigns TorchDynamo's events to the region that this thread calls."""

    def __init__(
        self,
        *,
        backend: str = "eager",
        on_finding: Callable[[Finding], None] = lambda finding: None,
        on_region: Callable[[Any], None] = lambda region: None,
        **_: Any,  # MagPy's own options
    ) -> None:
        known = torch.compiler.list_backends(exclude_tags=())
        if backend not in known:
            raise UnknownBackend(backend, known)
        self.backend = backend
        self.current_step = 0
        self._on_finding, self.on_region = on_finding, on_region
        self._regions: dict[Hashable, DynamoRegion] = {}
        self._names: dict[str, int] = {}
        self._found: dict[Any, Finding] = {}
        self._recompiling: dict[CodeType, Any] = {}  # code being recompiled -> key of the finding with the cause
        self._costs: dict[Any, list[float]] = {}
        self._local = _Local()
        watch.watch(self)
        for package in ("magpy_core.runner", "magpy_core.products.dynamo"):
            watch.hide(package)

    def region(
        self, key: Hashable, *, kind: str, name: str, file: str, line: int, target: Callable[..., Any]
    ) -> DynamoRegion:
        """The region of ``key``, created on first use."""
        return self._regions.get(key) or self._make(key, kind, name, line_location(file, line, name), target)

    def _make(self, key: Hashable, kind: str, name: str, location: Location, target: Callable[..., Any]) -> DynamoRegion:
        n = self._names[name] = self._names.get(name, 0) + 1
        made = DynamoRegion(self, name if n == 1 else f"{name}#{n}", kind, name, location, target)
        self._regions[key] = made
        return made

    def attach(self, region: Any) -> None:
        """Calls a function of ``magpy_core.compile`` through torch.compile instead."""
        key = ("compile", id(region))
        region.target = self._make(key, region.kind, region.name, region.location, region.target)
        region.disabled = "it runs under torch.compile"

    def stepped(self, n: int, *, whole: bool = False, optimizer: Hashable = None) -> None:
        """Counts step ``n``, which has ended."""
        self.current_step = n

    def compile_progress(self) -> dict[str, list[str]]:
        """Nothing: torch.compile makes the program wait."""
        return {}

    def step_report(self) -> None:
        """Nothing: only MagPy's own regions are timed."""

    def finish(self) -> None:
        """Stops listening: the program has ended."""
        watch.watch(None)

    def graph_times(self, region: DynamoRegion) -> list[tuple[float, float]]:
        """None: torch.compile runs its graphs itself."""
        return []

    def release(self) -> None:
        """Forgets the regions. The program has ended."""
        self._regions = {}

    def details(self) -> list[RegionDetail]:
        """None: torch.compile shows its own graphs and code (``TORCH_LOGS``)."""
        return []

    @property
    def regions(self) -> list[DynamoRegion]:
        return list(self._regions.values())

    @property
    def findings(self) -> list[Finding]:
        return list(self._found.values())

    def in_region(self) -> bool:
        """Whether this thread is already in a region: inner regions are part of it."""
        return self._local.region is not None

    # -- for the regions

    @contextmanager
    def calling(self, region: DynamoRegion) -> Iterator[None]:
        self._local.region = region
        try:
            yield
        finally:
            self._local.region = None

    # -- events

    def broke(self, event: watch.Break) -> None:
        finding = explain.graph_break(event, *self._around(event.spots[0].code))
        region = self._local.region
        if region is not None and finding.code == "MPD101":
            region.log.breaks.add((event.kind, finding.location))
        self._add(finding)

    def recompiled(self, event: watch.Recompile) -> None:
        region = self._local.region
        if region is None and (not event.reasons or explain.of_torch(event.code.co_filename)):
            return
        change = read_reason(event.reasons[0], event.variables) if event.reasons else Change("a guard", "", "")
        if region is not None and not region.is_new(change):
            return
        finding = explain.recompile(event.code, change, len(event.reasons), *self._around(event.code))
        if region is not None:
            region.recompiled(change, finding.location)
        self._recompiling[event.code] = self._add(finding)

    def compiled(self, event: watch.Compiled) -> None:
        region = self._local.region
        if region is not None:
            region.compiled(event)
        if (key := self._recompiling.pop(event.code, None)) is not None:
            times = self._costs.setdefault(key, [])
            times.append(event.seconds)
            self._keep(key, replace(self._found[key], cost_ms=round(sum(times) / len(times) * 1e3, 4)))

    def gave_up(self, event: watch.GivenUp) -> None:
        region = self._local.region
        if region is not None:
            region.recordings += 1
            if event.kind and explain.of_torch(event.code.co_filename):
                return  # torch skips it deliberately, or its graph break has been reported
            region.log.given_up.add(event.code)
        self._add(explain.skipped_function(event, *self._around(event.code)))

    def listener_failed(self, exc: Exception) -> None:
        """Reports only the first failure."""
        if "listener_failed" not in self._found:
            region = self._local.region
            place = region.location if region is not None else Location("/", Range(Position(0, 0), Position(0, 0)))
            text = f"MagPy could not process an event of torch.compile ({type(exc).__name__}: {exc}); please report it."
            self._keep("listener_failed", Finding("MP901", text, place))

    def _around(self, code: CodeType) -> tuple[str | None, Location]:
        """The region being called, and its location; outside of regions, the location of ``code``."""
        region = self._local.region
        if region is not None:
            return region.id, region.location
        return None, line_location(code.co_filename, code.co_firstlineno, code.co_name)

    def _add(self, finding: Finding) -> Any:
        """Adds a finding, or counts another recompile for the same value. Returns the finding's key; that of a recompile has
        only the name of the value."""
        recompile = finding.code == "MPD201"
        key = (finding.code, finding.region, finding.location, finding.values[0].name) if recompile else finding.key
        known = self._found.get(key)
        if known is None or recompile:
            self._keep(key, finding if known is None else known.repeated())
        return key

    def _keep(self, key: Any, finding: Finding) -> None:
        self._found[key] = finding
        self._on_finding(finding)

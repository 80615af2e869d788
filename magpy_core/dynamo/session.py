"""DynamoSession: a running program's regions under torch.compile. Key type: DynamoSession.

It replaces ``regions.session.Session``, so discovery, the step clock and the report are the same for both engines.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from magpy_core._compat.torch import dynamo_watch as watch
from magpy_core.backends import UnknownBackend
from magpy_core.dynamo import explain
from magpy_core.dynamo.region import DynamoRegion
from magpy_core.dynamo.wording import read_reason
from magpy_core.findings import Finding, Location, Position, Range
from magpy_core.regions.region import line_location

if TYPE_CHECKING:
    from magpy_core.findings.details import RegionDetail


class DynamoSession:
    """Regions by key; assigns TorchDynamo's events to the region that this thread calls."""

    def __init__(
        self,
        *,
        mode: Literal["observe", "compiled"] = "compiled",
        backend: str = "eager",
        cache_limit: int = 8,
        on_finding: Callable[[Finding], None] | None = None,
        on_region: Callable[[Any], None] | None = None,
        measure: bool = True,
    ) -> None:
        known = sorted(watch.backend_names())
        if backend not in known:
            raise UnknownBackend(backend, known)
        self.backend = backend
        self.current_step = 0
        self._on_finding, self._on_region = on_finding, on_region
        self._regions: dict[Hashable, DynamoRegion] = {}
        self._names: dict[str, int] = {}
        self._outside: dict[Any, Finding] = {}
        self._local = threading.local()
        self._trouble: Finding | None = None
        watch.watch(self)
        for package in ("magpy_core.runner", "magpy_core.dynamo"):
            watch.hide(package)

    def region(
        self, key: Hashable, *, kind: str, name: str, file: str, line: int, target: Callable[..., Any]
    ) -> DynamoRegion:
        """The region of ``key``, created on first use."""
        found = self._regions.get(key)
        if found is None:
            location = line_location(file, line, name)
            found = self._regions[key] = DynamoRegion(self, self._id(name), kind, name, location, target)
        return found

    def _id(self, name: str) -> str:
        n = self._names[name] = self._names.get(name, 0) + 1
        return name if n == 1 else f"{name}#{n}"

    def attach(self, region: Any) -> None:
        """Calls a function of ``magpy_core.compile`` through torch.compile instead."""
        own = DynamoRegion(self, self._id(region.name), region.kind, region.name, region.location, region.target)
        self._regions[("compile", id(region))] = own
        region.target = own
        region.disabled = "it runs under torch.compile"

    def stepped(self, n: int) -> None:
        """Counts step ``n``, which has ended."""
        self.current_step = n

    def finish(self) -> None:
        """Stops listening: the program has ended."""
        watch.watch(None)

    def details(self) -> list[RegionDetail]:
        """None: torch.compile shows its own graphs and code (``TORCH_LOGS``)."""
        return []

    @property
    def regions(self) -> list[DynamoRegion]:
        return list(self._regions.values())

    @property
    def findings(self) -> list[Finding]:
        found = [f for region in self._regions.values() for f in region.findings.values()]
        return [*found, *self._outside.values(), *([self._trouble] if self._trouble else [])]

    @property
    def in_region(self) -> bool:
        """Whether this thread is already in a region: inner regions are part of it."""
        return self._current() is not None

    # -- for the regions

    @contextmanager
    def calling(self, region: DynamoRegion) -> Iterator[None]:
        self._local.region = region
        try:
            yield
        finally:
            self._local.region = None

    def report(self, finding: Finding) -> None:
        if self._on_finding is not None:
            self._on_finding(finding)

    def changed(self, region: DynamoRegion) -> None:
        if self._on_region is not None:
            self._on_region(region)

    # -- events

    def broke(self, event: watch.Break) -> None:
        region = self._current()
        if region is not None:
            region.broke(event)
        else:
            self._add_outside(explain.graph_break(event, None, _nowhere(event.spots[0].code)))

    def recompiled(self, event: watch.Recompile) -> None:
        region = self._current()
        if region is not None:
            region.recompiled(event)
        elif event.reasons and not explain.of_torch(event.code.co_filename):
            change = read_reason(event.reasons[0], event.variables)
            self._add_outside(explain.recompile(event.code, change, len(event.reasons), None, _nowhere(event.code)))

    def compiled(self, event: watch.Compiled) -> None:
        region = self._current()
        if region is not None:
            region.done(event)

    def gave_up(self, event: watch.GivenUp) -> None:
        region = self._current()
        if region is not None:
            region.gave_up(event)
        else:
            self._add_outside(explain.skipped_function(event, None, _nowhere(event.code)))

    def trouble(self, exc: Exception) -> None:
        """Reports only the first failure."""
        if self._trouble is None:
            region = self._current()
            place = region.location if region is not None else Location("/", Range(Position(0, 0), Position(0, 0)))
            text = f"MagPy could not process an event of torch.compile ({type(exc).__name__}: {exc}); please report it."
            self._trouble = Finding("MP901", text, place)
            self.report(self._trouble)

    def _current(self) -> DynamoRegion | None:
        region: DynamoRegion | None = getattr(self._local, "region", None)
        return region

    def _add_outside(self, finding: Finding) -> None:
        """Adds a finding in a function that the program compiles itself and calls outside all regions."""
        key = explain.identity(finding)
        known = self._outside.get(key)
        if known is not None and finding.code != "MPD201":
            return
        self._outside[key] = finding if known is None else known.repeated()
        self.report(self._outside[key])


def _nowhere(code: Any) -> Location:
    return line_location(code.co_filename, code.co_firstlineno, code.co_name)

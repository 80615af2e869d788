"""Session: the regions of one running program, with one set of options and listeners. Key type: Session."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from magpy_core.backends import get_backend
from magpy_core.backends.background import waits_by_default
from magpy_core.backends.tuning import DEFAULT, tuned
from magpy_core.findings import Finding
from magpy_core.regions.log import Listeners
from magpy_core.regions.overhead import Overhead
from magpy_core.regions.region import Options, Region, busy, line_location

if TYPE_CHECKING:
    from magpy_core.findings.details import RegionDetail


class Session:
    """Regions by key. ``on_finding`` is called for new findings and for one seen again (its count raised); ``on_region``
    after a capture. Raises UnknownBackend for a backend that does not exist."""

    def __init__(
        self,
        *,
        mode: Literal["observe", "compiled"],
        backend: str = "inductor",
        cache_limit: int = 8,
        on_finding: Callable[[Finding], None] | None = None,
        on_region: Callable[[Region], None] | None = None,
        measure: bool = False,
        background: bool = False,
        compile_mode: str = "default",
    ) -> None:
        get_backend(backend)
        backend, tuning = tuned(backend, compile_mode)
        background = background and not waits_by_default()
        overhead = Overhead() if background else None
        self.options = Options(
            mode, backend, cache_limit, measure=measure, background=background, overhead=overhead, tuning=tuning
        )
        self.current_step = 0
        self._listeners = Listeners(on_finding, on_region, lambda: self.current_step)
        self._regions: dict[Hashable, Region] = {}
        self._names: dict[str, int] = {}

    def region(self, key: Hashable, *, kind: str, name: str, file: str, line: int, target: Callable[..., Any]) -> Region:
        """The region of ``key``, created on first use."""
        found = self._regions.get(key)
        if found is None:
            location = line_location(file, line, name)
            found = Region(self._new_id(name), kind, name, location, target, self.options, self._listeners)
            self._regions[key] = found
        return found

    def _new_id(self, name: str) -> str:
        n = self._names[name] = self._names.get(name, 0) + 1
        return name if n == 1 else f"{name}#{n}"

    def attach(self, region: Region) -> None:
        """Make a region of the program's own ``magpy_core.compile`` one of this session's, with its options and listeners.
        ``fullgraph`` raises nothing then: the findings say why the region is not one graph."""
        region.id = self._new_id(region.name)
        tuning = self.options.tuning if region.options.tuning == DEFAULT else region.options.tuning
        region.options = replace(self.options, fullgraph=False, tuning=tuning, dynamic=region.options.dynamic)
        region.log.listeners = self._listeners
        self._regions[("compile", id(region))] = region

    def stepped(self, n: int) -> None:
        """Step ``n`` of the program has ended."""
        self.current_step = n
        for region in self.regions:
            region.stepped()

    def finish(self) -> None:
        """The program has ended: report what its timings show (MP4xx)."""
        for region in self.regions:
            region.finish()

    def details(self) -> list[RegionDetail]:
        """Every capture in full."""
        from magpy_core.regions.details import region_detail

        return [region_detail(region) for region in self.regions]

    @property
    def regions(self) -> list[Region]:
        return list(self._regions.values())

    @property
    def findings(self) -> list[Finding]:
        return [f for region in self._regions.values() for f in region.findings.values()]

    @property
    def in_region(self) -> bool:
        return busy()

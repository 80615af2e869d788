"""Session: the regions of one running program, with one set of options and listeners. Key type: Session."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from magpy_core.backends.registry import get_backend
from magpy_core.findings import Finding
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
    ) -> None:
        get_backend(backend)
        self.options = Options(mode=mode, backend=backend, cache_limit=cache_limit, measure=measure)
        self.current_step = 0
        self._on_finding, self._on_region = on_finding, on_region
        self._regions: dict[Hashable, Region] = {}
        self._names: dict[str, int] = {}

    def region(self, key: Hashable, *, kind: str, name: str, file: str, line: int, target: Callable[..., Any]) -> Region:
        """The region of ``key``, made when it is new."""
        found = self._regions.get(key)
        if found is None:
            n = self._names[name] = self._names.get(name, 0) + 1
            region_id = name if n == 1 else f"{name}#{n}"
            found = self._regions[key] = Region(
                region_id, kind, name, line_location(file, line, name), target, self.options,
                self._on_finding, self._on_region, lambda: self.current_step,
            )  # fmt: skip
        return found

    def adopt(self, region: Region) -> None:
        """Make a region of the program's own ``magpy_core.compile`` one of this session's: its options, its listeners.
        While observing, ``fullgraph`` raises nothing: the findings say what it would have said."""
        n = self._names[region.name] = self._names.get(region.name, 0) + 1
        region.id = region.name if n == 1 else f"{region.name}#{n}"
        region.join(replace(self.options, fullgraph=False), self._on_finding, self._on_region, lambda: self.current_step)
        self._regions[("compile", id(region))] = region

    def stepped(self, n: int) -> None:
        """Step ``n`` of the program has ended."""
        self.current_step = n
        for region in self.regions:
            region.stepped()

    def finish(self) -> None:
        """The program has ended: say what its timings show (MP4xx)."""
        for region in self.regions:
            region.judge()

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

"""RegionView: a region, as reports see it. Key type: RegionView."""

from __future__ import annotations

from typing import Any, Protocol

from magpy_core.findings import Finding, Location, Unused
from magpy_core.recording.ledger import Learned
from magpy_core.regions.log import RegionLog
from magpy_core.regions.options import Options
from magpy_core.regions.timing.region_times import RegionTimes, Timed


class RegionView(Timed, Protocol):
    """What it is, what became of its calls, and what was found."""

    id: str
    kind: str
    name: str
    location: Location
    options: Options
    calls: int
    learned: Learned
    log: RegionLog
    times: RegionTimes

    def report(self, code: str, text: str, hint: str = "") -> None:
        """A finding about the region as a whole."""

    @property
    def serves_most(self) -> bool: ...

    @property
    def waits(self) -> Unused: ...

    @property
    def is_cut(self) -> bool: ...

    @property
    def takes_turns(self) -> bool: ...

    @property
    def findings(self) -> dict[Any, Finding]: ...

"""What a region runs that can't be captured whole, or not worth it: plain Python, or stretches. Key type: Fallback."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from magpy_core.capture.build import Capture
from magpy_core.findings import Location, Unused
from magpy_core.limits import LIMITS
from magpy_core.regions.policy.path_sampling import Exploration, path_of
from magpy_core.regions.region_protocol import RegionView
from magpy_core.stretches.seam_clock import SeamClock

_FEWEST_CALLS = 8  # of a region that is worth cutting
_MOST_VARIED = 3  # more captures of a stretch because of one value


class Replacement(Protocol):
    """What calls of a region go to. ``timed_seams``: the times of what is in no stretch."""

    @property
    def timed_seams(self) -> SeamClock | None: ...

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any], /) -> Any: ...


@dataclass
class Fallback:
    """``reason``: why the region can't be captured, or empty; ``failure``: what is raised instead, under ``fullgraph``;
    ``stretches``: what its calls go to, if its functions were cut; ``exploration``: whether captures are compiled;
    ``waits``: why the last call that no capture fitted was not recorded."""

    reason: str = ""
    failure: Exception | None = None
    stretches: Replacement | None = None
    exploration: Exploration = field(default_factory=Exploration)
    waits: Unused = ""
    _is_chosen: bool = False

    def may_record(self, region: RegionView) -> bool:
        """Whether a call of ``region`` that no captures serve can be recorded, and the program can afford it now."""
        self.replaces_plain(region)
        if self.reason:
            self.exploration.end(region.captures)
            return False
        overhead = region.options.overhead
        if overhead is None or overhead.affords_recording(region.id):
            return True
        self.exploration.shorten()
        self.waits = "budget"
        return False

    def replaces_plain(self, region: RegionView) -> bool:
        """Whether calls of ``region``, if it is plain Python now, go to stretches from now on."""
        if self.reason and region.calls >= _FEWEST_CALLS and not region.serves_most:
            return self._choose(region)
        return False

    def replaces_captures(self, region: RegionView, place: Location | None) -> bool:
        """Whether calls of ``region`` go to stretches from now on, instead of one more capture. Captures of other paths
        start with equal graphs, which run once for each capture that is tried. ``place``: where the value was read that
        makes the capture necessary; None: the call takes another path."""
        if region.options.cut is None:
            return False
        paths = len({path_of(capture.trace) for capture in region.captures if not capture.is_complete})
        if paths + (place is None) > LIMITS.paths:
            return self._choose(region, f"more than {LIMITS.paths} paths")
        if region.kind == "stretch" and region.log.varied[place] > _MOST_VARIED and not region.serves_most:
            return self._choose(region, "captured too often because of one value")
        return False

    def explores(self, region: RegionView, capture: Capture) -> None:
        """``capture`` is new: whether it is worth compiling may be found out first, if the region can be cut instead."""
        options = region.options
        compiles = options.mode == "compiled" and options.backend == "inductor"
        if compiles and options.cut is not None and not options.fullgraph:
            self.exploration.holds(capture)

    def _choose(self, region: RegionView, reason: str = "") -> bool:
        """Cut the functions of ``region``, once. ``reason``: why, if it is not plain Python yet."""
        options = region.options
        if not self._is_chosen and options.cut is not None and options.mode == "compiled" and not options.fullgraph:
            self._is_chosen = True
            self.stretches = options.cut(region)
            if self.stretches is not None:
                self.reason = self.reason or reason
        return self.stretches is not None

"""What a region runs that can't be captured whole, or not worth it: plain Python, or stretches. Key type: Fallback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from magpy_core.findings import Location
from magpy_core.regions.view import RegionView

if TYPE_CHECKING:
    from magpy_core.capture.build import Capture

_FEWEST_CALLS = 8  # of a region that is worth cutting
_MOST_PATHS = 2  # whose graphs are captured whole; each that is tried in vain runs up to the decision
_MOST_VARIED = 3  # more captures of a stretch because of one value


@dataclass
class Fallback:
    """``reason``: why the region can't be captured, or empty; ``failure``: what is raised instead, under ``fullgraph``;
    ``stretches``: what its calls go to, if its functions were cut."""

    reason: str = ""
    failure: Exception | None = None
    stretches: Callable[[tuple[Any, ...], dict[str, Any]], Any] | None = None
    _is_chosen: bool = False

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
        paths = len({_path(capture) for capture in region.captures if not capture.is_complete})
        if paths + (place is None) > _MOST_PATHS:
            return self._choose(region, f"more than {_MOST_PATHS} paths")
        if region.kind == "stretch" and region.log.varied[place] > _MOST_VARIED and not region.serves_most:
            return self._choose(region, "captured too often because of one value")
        return False

    def _choose(self, region: RegionView, reason: str = "") -> bool:
        """Cut the functions of ``region``, once. ``reason``: why, if it is not plain Python yet."""
        options = region.options
        if not self._is_chosen and options.cut is not None and options.mode == "compiled" and not options.fullgraph:
            self._is_chosen = True
            self.stretches = options.cut(region)
            if self.stretches is not None:
                self.reason = self.reason or reason
        return self.stretches is not None


def _path(capture: Capture) -> tuple[Any, ...]:
    """The decisions on data that cut its graph."""
    return tuple((cut.place, repr(cut.outcome)) for cut in capture.trace.decisions if cut.place is not None)

"""A call of what is on trial: compiled or in plain Python, whichever its turn is. Key type: Tried; key function: call."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from magpy_core.regions.timing.autograd_hooks import has_history
from magpy_core.regions.timing.comparison import Trial
from magpy_core.regions.timing.device_clock import when_done

if TYPE_CHECKING:
    from magpy_core.regions.region_protocol import RegionView


class Tried(Protocol):
    """What is on trial: a region with its captures, or with its stretches."""

    @property
    def regions(self) -> Iterable[RegionView]:
        """Those whose captures serve its calls."""

    def compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...
    def plain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...

    def decided(self, trial: Trial) -> None:
        """It is known now whether it pays."""

    def failed(self, error: Exception) -> None:
        """An error of ours: it is plain Python from now on."""


def call(tried: Tried, trial: Trial, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of ``tried``. A call inside of it goes the same way; other threads' calls are compiled until it is decided."""
    if trial.pays is not None or not trial.is_of_this_thread:
        is_compiled = trial.pays is not False
        return tried.compiled(args, kwargs) if is_compiled else tried.plain(args, kwargs)
    if trial.is_inside is not None:
        return tried.compiled(args, kwargs) if trial.is_inside else tried.plain(args, kwargs)
    return _take_turn(tried, trial, args, kwargs)


def _take_turn(tried: Tried, trial: Trial, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        state = _state(tried.regions)
        trial.is_inside = trial.begin(when_done(), state)
        if trial.pays is not None:
            tried.decided(trial)
    except Exception as error:  # it must never take the program down
        trial.pays = trial.is_inside = False
        tried.failed(error)
    was_open = trial.pays is None
    try:
        result = tried.compiled(args, kwargs) if trial.is_inside else tried.plain(args, kwargs)
    finally:
        trial.is_inside = None
    try:
        if was_open:
            trial.returned(when_done(), has_history=has_history(result))
            if trial.pays is not None:
                tried.decided(trial)
    except Exception as error:
        trial.pays = False
        tried.failed(error)
    return result


def _state(regions: Iterable[RegionView]) -> Hashable:
    """Changes with each recording, and with each call while some are plain by turns. None while code for some is on its
    way."""
    regions = list(regions)
    captures = [capture for region in regions for capture in region.captures]
    if any(capture.is_due for capture in captures):
        return None
    turns = sum(region.times.turn for region in regions if region.takes_turns)
    return sum(region.recordings for region in regions), sum(capture.is_ready for capture in captures), turns

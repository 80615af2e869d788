"""A logging Observer for the monitor's tests: every event as a short tuple. Key function: :func:`events_of`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from magpy_core._compat.torch.eval_frame import Frame
from magpy_core.monitor.events import Observer, Site
from magpy_core.monitor.hooks import EVENTS
from magpy_core.monitor.record import record

RESULTS = ("return_", "compare_result", "item_read_result", "iterate_result", "attr_result")


class Log(Observer):
    """Keeps (event, site.name, operands...) of everything, and the sites."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []
        self.sites: list[Site] = []

    def enter_frame(self, frame: Frame) -> bool:
        self.events.append(("enter", frame.f_code.co_name))
        return True


def _logger(name: str) -> Callable[..., Any]:
    def event(self: Log, site: Site, *operands: Any) -> Any:
        self.sites.append(site)
        self.events.append((name, site.name, *operands))
        return operands[-1] if name.endswith("_result") else None

    return event


for _name in EVENTS:
    setattr(Log, _name, _logger(_name))


def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, Log]:
    """Call a function in a recording; its result and the log. The recording must not have failed."""
    log = Log()
    with record(log) as recording:
        result = function(*args, **kwargs)
    assert recording.observer_failure is None, recording.failure_traceback
    return result, log


def events_of(function: Callable[..., Any], *args: Any, without: str = "", **kwargs: Any) -> list[tuple[Any, ...]]:
    """The events of one call, less those whose names are in ``without`` (separated by spaces), and less those that tell
    what an operation gave (but for arithmetic and identity) unless ``without`` is "nothing"."""
    _, log = run(function, *args, **kwargs)
    left_out = [] if without == "nothing" else [*without.split(), *RESULTS]
    return [event for event in log.events if event[0] not in left_out]

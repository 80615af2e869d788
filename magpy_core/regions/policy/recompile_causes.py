"""Why no capture fits a call, and what becomes symbolic because of it. Key functions: closest_failures,
lasting_failure, generalise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from magpy_core.capture.build import Capture
from magpy_core.recording.ledger import Learned
from magpy_core.refgraph.failure import Failure

DECISION = Failure("MP201", "a branch on tensor data or a random number", "as captured", "the other way", None)
"""What is known when every guard holds."""


def closest_failures(
    captures: Iterable[Capture], args: tuple[Any, ...], kwargs: dict[str, Any], learned: Learned
) -> list[Failure]:
    """The failed guards of the capture that has fewest of them; where all guards of one hold, a decision went the other way.
    One that only numbers and dimensions keep from fitting that are not known to vary yet comes first: with these varying, no
    other path need be captured."""
    found = [capture.guards.explain(args, kwargs, global_ok=capture.globals_hold()) for capture in captures]

    def distance(failures: Sequence[Failure]) -> tuple[bool, int]:
        return not (failures and all(_is_news(failure, learned) for failure in failures)), len(failures)

    return min(found, key=distance, default=[]) or [DECISION]


def lasting_failure(newest: Capture, args: tuple[Any, ...], kwargs: dict[str, Any], learned: Learned) -> Failure | None:
    """The first failed guard of the newest capture, except those of numbers and dimensions that are not known to vary yet:
    what was known to vary when it was made could not be symbolic."""
    failures = newest.guards.explain(args, kwargs, global_ok=newest.globals_hold())
    return next((failure for failure in failures if not _is_news(failure, learned)), None)


def _is_news(failure: Failure, learned: Learned) -> bool:
    """Whether ``failure`` is about a number or dimensions that may vary, and are not known to."""
    if failure.source is None:
        return False
    path = failure.source.path
    if failure.number:
        return path not in learned.numbers and path not in learned.exact
    return bool(failure.dims) and not set(failure.dims) <= learned.dims.get(path, set())


def generalise(learned: Learned, failures: Sequence[Failure], *, sizes: bool = True) -> list[Failure]:
    """Add to ``learned`` the numbers and dimensions that vary; returns the failures that this explains. ``sizes``: False if
    dimensions are not to vary. Those of a module's inputs don't if the module is another one."""
    sizes = sizes and not any(failure.other_parameter for failure in failures)
    out = []
    for failure in failures:
        if failure.source is None:
            continue
        if failure.number and failure.source.path not in learned.exact:
            learned.numbers.add(failure.source.path)
        elif failure.dims and sizes:
            learned.dims.setdefault(failure.source.path, set()).update(failure.dims)
        else:
            continue
        out.append(failure)
    return out

"""Why no capture fits a call, and what becomes symbolic because of it. Key functions: closest_failures,
lasting_failure, are_news, generalise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from magpy_core.capture.build import Capture
from magpy_core.findings import Location
from magpy_core.guards.kinds import OUTCOME
from magpy_core.opgraph.scalars import Sym
from magpy_core.recording.ledger import Learned
from magpy_core.refgraph.failure import Failure

DECISION = Failure("MP201", "a branch on tensor data or a random number", "as before", "the other way", None)
"""What is known when every guard holds."""


def closest_failures(
    captures: Sequence[Capture], args: tuple[Any, ...], kwargs: dict[str, Any], learned: Learned
) -> list[Failure]:
    """The failed guards of the capture that has fewest of them; where all guards of one hold, a decision went the other way.
    One that only numbers and dimensions keep from fitting that were not known to vary when it was made comes first: with
    these varying, no other path need be captured."""
    explained = []
    for one in captures:
        failures = one.guards.explain(args, kwargs, global_ok=one.globals_hold())
        if not failures and (fixed := one.fits_but_for(args, kwargs)) is not None:
            failures = [fixed]  # its compiled code is for one value of a number, or a size, that may vary
        explained.append(failures)

    fits = not all(explained)  # where all guards of one hold, what is outdated in another is not the reason

    def distance(failures: Sequence[Failure]) -> tuple[bool, int]:
        could_vary = [_is_news(failure, learned) or (_is_outdated(failure, learned) and not fits) for failure in failures]
        return not (failures and all(could_vary)), len(failures)

    found = zip(explained, captures, strict=True)
    closest, capture = min(found, key=lambda pair: distance(pair[0]), default=([], None))
    if closest or capture is None:
        return closest or [DECISION]
    return [replace(DECISION, branches=_branches(capture))]


def _branches(capture: Capture) -> tuple[Location, ...]:
    """The branches of a capture that no guard decides: on tensor data, and on random numbers."""
    trace = capture.trace
    drawn = [read for read in trace.refgraph.reads if read.kind is OUTCOME and _is_drawn(read.expected[0])]
    places = [trace.places.of(read.source, [read.site]) for read in drawn]
    places += [trace.places.of(None, [decision.site]) for decision in trace.decisions if decision.site is not None]
    return tuple(dict.fromkeys(place.location for place in places if place is not None))


def _is_drawn(sym: Any) -> bool:
    return isinstance(sym, Sym) and any(leaf.kind == "source" and leaf.payload.kind == "draw" for leaf in sym.leaves())


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
    return bool(failure.dims) and path not in learned.exact and not set(failure.dims) <= learned.dims.get(path, set())


def _is_outdated(failure: Failure, learned: Learned) -> bool:
    """Whether ``failure`` is about a number that is known to vary, and was not when the capture was made."""
    return failure.number and failure.source is not None and failure.source.path in learned.numbers - learned.exact


def are_news(failures: Sequence[Failure], learned: Learned) -> bool:
    """Whether one more capture would be for what is not known to vary yet, and nothing else."""
    return bool(failures) and all(_is_news(failure, learned) for failure in failures)


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
        elif failure.dims and sizes and failure.source.path not in learned.exact:
            learned.dims.setdefault(failure.source.path, set()).update(failure.dims)
        else:
            continue
        out.append(failure)
    return out

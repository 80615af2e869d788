"""What a region does with a call that no capture serves: record it, run it in eager mode, or cut the region's functions.

One region has one policy, which alone writes the region's phase (``phase.py``). `decide` asks the rules of ``_RULES`` in
order; the first that refuses says why. What may be spent is the budget's to know (``budget/``), and how many paths
there are the samples' (``path_sampling.py``).
Key types: Policy, Miss.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from torch import nn
from torch.nn.parameter import is_lazy

from magpy_core._compat.torch.surroundings import foreign, in_cuda_graph
from magpy_core.capture.build import Capture
from magpy_core.findings import Location, Recompile, Unused
from magpy_core.limits import LIMITS
from magpy_core.monitor.positions import is_user_file
from magpy_core.recording.trace import Trace
from magpy_core.refgraph.failure import Failure
from magpy_core.regions.budget.guard_backoff import GuardBackoff
from magpy_core.regions.policy.path_sampling import PathSampling, path_of
from magpy_core.regions.policy.phase import NEXT, Phase
from magpy_core.regions.policy.recompile_causes import DECISION, are_news, closest_failures, generalise, lasting_failure
from magpy_core.regions.region_protocol import RegionView
from magpy_core.regions.reports.captures import recompile_finding
from magpy_core.stretches.seam_clock import SeamClock


class Replacement(Protocol):
    """What calls of a region go to. ``timed_seams``: the times of what is in no stretch."""

    @property
    def timed_seams(self) -> SeamClock | None: ...

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any], /) -> Any: ...


@dataclass(frozen=True)
class Miss:
    """A call of ``region`` that no capture serves. ``held``: the capture that fits it, but is held."""

    region: RegionView
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    held: Capture | None = None


_KEEP_IT_OUT = "Keep what differs on every call in a tensor or outside the region. MP204 names the lines that need it."


class Sampled(Enum):
    """What a call shows that a held capture fits, and that was recorded once more."""

    KNOWN = "it takes a path that is compiled"
    NEW = "it takes a path that no graph has"
    VARYING = "which path it takes changes from call to call: compiled code that holds its writes would fit few"


class Policy:
    """``phase``: the region's, written here only. ``reason``: why nothing more is recorded, or empty. ``waits``: why the
    last call that no capture fitted was not recorded. ``fragments``: what calls go to, if the functions were cut;
    ``failure``: what they raise instead, under ``fullgraph``. ``spent``: the first capture, if the recorded call has itself
    changed what the capture's guards require. ``missed``: calls in a row that no capture has served."""

    def __init__(self) -> None:
        self.phase = Phase.WARM_UP
        self.reason = ""
        self.waits: Unused = ""
        self.fragments: Replacement | None = None
        self.spent: Capture | None = None
        self.failure: Exception | None = None
        self.missed = 0
        self.backoff = GuardBackoff()
        self.paths = PathSampling()
        self._refused_branches = 0
        self._looks_again_at = 0  # the number of a call
        self._was_cut = False  # or there was nothing to cut

    def _enter(self, phase: Phase) -> None:
        if phase is not self.phase:
            assert phase in NEXT[self.phase], f"{phase} does not follow {self.phase}"
            self.phase = phase

    # -- a call that no capture serves --------------------------------------------------------------------------

    def decide(self, miss: Miss) -> bool:
        """Whether to record the call. If so, it is known from now on what varies."""
        for refuse in _RULES:
            if (why := refuse(self, miss)) is not None:
                self.waits = why
                return False
        return True

    def _closed(self, miss: Miss) -> Unused | None:
        """Nothing more is recorded; from some call on, fragments may be instead."""
        if not self.reason:
            return None
        region = miss.region
        if region.calls >= LIMITS.calls_before_cut and not region.serves_most:
            self._cut(region)
        self._end_sampling(region.captures)
        return self.waits

    def _over_budget(self, miss: Miss) -> Unused | None:
        budget = miss.region.options.budget
        if budget is not None and budget.is_too_short:
            return "costly"
        if budget is None or budget.affords_recording(miss.region.id):
            return None
        self.paths.shorten()
        return "budget"

    def _observed_by_others(self, miss: Miss) -> Unused | None:
        """The program would see the monitor's own operations."""
        around = foreign()
        if not around:
            return None
        region = miss.region
        text = f"{region.name} was called with {around} active, which would see MagPy's own operations: "
        early = "Call it a few times before the program records a CUDA graph, so that it is compiled by then."
        hint = early if in_cuda_graph() else "Remove it around the call, or compile what is inside."
        region.report("MP106", text + "the call ran in eager mode.", hint)
        return "surroundings"

    def _not_initialized(self, miss: Miss) -> Unused | None:
        """The call makes the module's parameters."""
        module = miss.args[0] if miss.args else None
        return self.waits if isinstance(module, nn.Module) and any(map(is_lazy, module.parameters())) else None

    def _first_call(self, miss: Miss) -> Unused | None:
        if self.phase is Phase.WARM_UP and miss.region.calls == 1 and miss.region.options.budget is not None:
            return "called once"
        if self.phase is Phase.WARM_UP:
            self._enter(Phase.RECORD)
        return None

    def _after_refused_branch(self, miss: Miss) -> Unused | None:
        """A call was refused on a branch: the next one may take it, too, unless it is known why captures don't fit it."""
        region = miss.region
        if region.calls >= self._looks_again_at:
            return None
        failures = closest_failures(region.captures, miss.args, miss.kwargs, region.learned)
        return None if are_news(failures, region.learned) else "not recorded"

    def _too_many(self, miss: Miss) -> Unused | None:
        region = miss.region
        if miss.held is not None:
            return None
        fixed = region.recordings > 1 and any(_is_for_other_sizes(c, miss) for c in region.captures)
        if not fixed and region.recordings < region.options.cache_limit:
            return None
        newest = region.log.recompiles[-1] if region.log.recompiles else None
        last = f"; last changed: `{newest.name}` in line {newest.line}" if newest is not None else ""
        why = ": each size of its inputs needs its own code. Other sizes" if fixed else ". Calls that fit none of them"
        self.close(f"{region.recordings} captures")
        count = f"{region.recordings} graph{'' if region.recordings == 1 else 's'}"
        text = f"MagPy stopped compiling {region.name} after {count}{why} run in eager mode{'' if fixed else last}."
        region.report("MP203", text, _KEEP_IT_OUT)
        return self.waits

    def _over_budget_with_sizes(self, miss: Miss) -> Unused | None:
        region, budget = miss.region, miss.region.options.budget
        if miss.held is not None or budget is None:
            return None

        def other_sizes() -> bool:
            return any(f.dims for f in closest_failures(region.captures, miss.args, miss.kwargs, region.learned))

        return None if budget.affords_recording(region.id, other_sizes) else "budget"

    def _on_another_path(self, miss: Miss) -> Unused | None:
        """Learns what varies. The region is cut instead, where it takes too many paths."""
        region = miss.region
        if miss.held is None and self.spent is not None:
            first = closest_failures([self.spent], miss.args, miss.kwargs, region.learned)
            generalise(region.learned, first, sizes=region.options.dynamic is not False)
        if miss.held is not None or not region.captures:
            return None
        failures = closest_failures(region.captures, miss.args, miss.kwargs, region.learned)
        lasting = lasting_failure(region.captures[0], miss.args, miss.kwargs, region.learned)
        learned = generalise(region.learned, failures, sizes=region.options.dynamic is not False)
        return None if self._explain_recompile(region, failures, learned, lasting) else self.waits

    def _explain_recompile(
        self, region: RegionView, failures: list[Failure], learned: list[Failure], lasting: Failure | None = None
    ) -> bool:
        """Report why there is one more capture: ``failures``, of which what has been ``learned`` fails no more. False: the
        region is cut instead. ``lasting``: of the newest capture."""
        others = [f for f in failures if f not in learned]
        first = (others or failures)[0]
        if lasting is not None and any(
            (known.name, known.old, known.new) == (first.name, first.old, first.shown_new) for known in region.log.recompiles
        ):
            first = lasting  # a capture for the other value was made then: what keeps that from fitting is the reason
            others = [lasting]
        place = next(iter(first.branches), first.location)
        if place is None or not is_user_file(place.file):
            place = region.location
        cause = lasting or first
        log = region.log
        log.varied[next(iter(cause.branches), cause.location)] += bool(lasting or others)
        if self._cut_instead(region, cause.location):
            return False
        log.recompiles.append(
            Recompile(region.calls, first.name, first.old, first.shown_new, place.file, place.range.start.line + 1)
        )
        for failure in learned + others[:1]:
            found = recompile_finding(region, failure, failure in learned, region.recordings, len(others) - 1)
            log.causes.append(log.add(found))
        return True

    # -- what has happened --------------------------------------------------------------------------------------

    def captured(self, region: RegionView, capture: Capture) -> None:
        """``capture`` is new. Whether it is worth compiling is found out first, if the region can be cut instead."""
        options = region.options
        compiles = options.mode == "compiled" and options.backend == "inductor"
        if compiles and options.cut is not None and not options.fullgraph:
            self.paths.add(capture)
        if self.phase in (Phase.WARM_UP, Phase.RECORD, Phase.SAMPLE, Phase.SERVE):
            if self.phase is Phase.WARM_UP:
                self._enter(Phase.RECORD)
            self._enter(Phase.SAMPLE if capture.is_held else Phase.SERVE)

    def sampled(self, region: RegionView, trace: Trace | None, held: Capture) -> Sampled:
        """A call that the ``held`` capture fits was recorded. ``trace`` None: it can't be captured."""
        has_arrived = held.needs_path_check
        if self.paths.sampled():
            self._end_sampling(region.captures)
        if trace is not None and self.paths.is_known(trace, [held] if has_arrived else region.captures):
            return Sampled.KNOWN
        if trace is not None and held.holds_writes and (has_arrived or self.paths.is_one_too_many(region.captures)):
            return Sampled.VARYING
        return Sampled.NEW

    def other_path(self, region: RegionView) -> bool:
        """A sampled call took a path of its own. Whether it is captured as well; the region is cut instead, where it takes
        too many."""
        return self._explain_recompile(region, [DECISION], [])

    def code_arrived(self, capture: Capture) -> None:
        """Code for a path that is in doubt: one more call is recorded before it is loaded."""
        capture.hold()
        if self.phase is Phase.SERVE:
            self._enter(Phase.SAMPLE)

    def may_take_another_branch(self, region: RegionView) -> bool:
        """A call was refused on a branch that others may not take: whether one is recorded later, after twice as many calls
        each time. Not under `run`, which cuts the branch out of the step."""
        if region.options.budget is not None or region.options.fullgraph or region.options.mode != "compiled":
            return False
        self._refused_branches += 1
        self._looks_again_at = region.calls + 2**self._refused_branches
        return bool(region.captures) or self._refused_branches < LIMITS.refused_branches

    def dropped(self, captures: Sequence[Capture]) -> None:
        """A capture can't run, or all were given up: ``captures`` are left."""
        if not captures and self.phase in (Phase.SAMPLE, Phase.SERVE):
            self._enter(Phase.RECORD)

    def close(self, reason: str) -> None:
        """Nothing more is recorded."""
        self.reason = reason
        if self.phase is not Phase.FRAGMENTS:
            self._enter(Phase.EAGER)

    def cut_into(self, fragments: Replacement, reason: str) -> None:
        """The region's functions are cut: its calls go to ``fragments``."""
        self.reason = self.reason or reason
        self._enter(Phase.FRAGMENTS)
        self.fragments = fragments

    def _end_sampling(self, captures: Iterable[Capture]) -> None:
        """Captures are compiled from now on."""
        self.paths.end(captures)
        if self.phase is Phase.SAMPLE:
            self._enter(Phase.SERVE)

    def _cut_instead(self, region: RegionView, place: Location | None) -> bool:
        """Whether calls of ``region`` go to fragments from now on, instead of one more capture. Captures of other paths
        start with equal graphs, which run once for each capture that is tried. ``place``: where the value was read that
        makes the capture necessary; None: the call takes another path."""
        if region.options.cut is None:
            return False
        paths = len({path_of(capture.trace) for capture in region.captures if not capture.is_complete})
        if paths + (place is None) > LIMITS.paths:
            return self._cut(region, f"more than {LIMITS.paths} paths")
        if place is not None and self._unrolls(region, place):
            region.log.unrolled.append(place)
            return self._cut(region, "a loop with another number of rounds again and again")
        if region.kind == "stretch" and region.log.varied[place] > LIMITS.captures_for_one_value and not region.serves_most:
            return self._cut(region, "compiled too often because of one value")
        return False

    def _unrolls(self, region: RegionView, place: Location) -> bool:
        """Whether captures of ``region`` differ in the rounds of the loop at ``place``, and are large: each takes a minute
        to compile. What runs in a round is one graph for all rounds."""
        if region.log.varied[place] < LIMITS.numbers_of_rounds:
            return False
        operations = sum(len(list(capture.nodes)) for capture in region.captures)
        header = linecache.getline(place.file, place.range.start.line + 1).split(maxsplit=1)[:1]
        return operations >= LIMITS.unrolled_operations and header in (["for"], ["while"])

    def _cut(self, region: RegionView, reason: str = "") -> bool:
        """Cut the functions of ``region``, once. ``reason``: why, if nothing is yet. Returns whether they were cut."""
        options = region.options
        if not self._was_cut and options.cut is not None and options.mode == "compiled" and not options.fullgraph:
            self._was_cut = True
            fragments = options.cut(region)
            if fragments is not None:
                self.cut_into(fragments, reason)
        return self.fragments is not None


def _is_for_other_sizes(capture: Capture, miss: Miss) -> bool:
    """Whether it would serve the call, but for a size that its compiled code has fixed."""
    found = capture.fits_but_for(miss.args, miss.kwargs)
    return found is not None and found.source is not None


_RULES: tuple[Callable[[Policy, Miss], Unused | None], ...] = (
    Policy._closed,
    Policy._over_budget,
    Policy._observed_by_others,
    Policy._not_initialized,
    Policy._first_call,
    Policy._after_refused_branch,
    Policy._too_many,
    Policy._over_budget_with_sizes,
    Policy._on_another_path,
)
"""Each returns why the call is not recorded, or None. Later ones cost more, and learn from the call."""

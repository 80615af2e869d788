"""Step functions: functions that run a whole training step, as regions in place of the modules and optimizers they call.

Such a region is on trial until a capture of it has served a call. If it can't be captured it was never there, except for a
finding that says what keeps the step from being one graph. Key types: StepFunctions, StepFunction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from magpy_core.findings import NO_ACTION, Finding, Severity
from magpy_core.opgraph.backward import FROM_OUTSIDE
from magpy_core.regions.log import Listeners
from magpy_core.regions.timing.costs import cost_of_seams
from magpy_core.stretches.seam_clock import SeamClock

if TYPE_CHECKING:
    from magpy_core.regions.region import Region

_UNRECORDED = "MP105"


@dataclass(eq=False)
class StepFunction:
    """``parts``: the regions that were called inside before it was a region, with their calls then."""

    region: Region
    parts: Sequence[tuple[Region, int]]
    is_on_trial: bool = True
    failed: Sequence[Finding] = ()
    """What keeps it from being one graph."""
    is_replaced: bool = False
    obstacles: Sequence[Finding] | None = None
    """The findings that count, of a part of a function that can't be cut any more; None: all of the region's."""
    may_be_cut: bool = False
    refused_for: Sequence[Finding] = ()
    """What keeps statements out of the part that takes its place."""
    seams: SeamClock | None = None
    """Of these statements."""
    left_out: Sequence[Finding] = ()
    """Of ``refused_for``, what is reported when the program has ended."""

    @property
    def calls_of_parts(self) -> int:
        """The most calls of one of them, before it was a region."""
        return max((calls for _, calls in self.parts), default=0)

    @property
    def is_refused(self) -> bool:
        """Whether it is no region any more: its parts are."""
        return bool(self.region.disabled) and not self.region.serves_most

    @property
    def serves(self) -> bool:
        return not (self.is_on_trial or self.is_replaced or self.is_refused)

    def end(self) -> SeamClock:
        """A part of it takes its place. Returns a clock for the rest."""
        self.is_on_trial, self.is_replaced = False, True
        self.refused_for = list(self.region.log.obstacles)
        self.seams = SeamClock(self.region.log.listeners.step, self.region.monitor_failed)
        self.region.forget()
        return self.seams

    def give_up(self, obstacles: Sequence[Finding] | None) -> None:
        """It can't be cut any more, because of ``obstacles``; None: of all that it was refused for."""
        self.obstacles, self.may_be_cut = obstacles, False

    def cost(self, ms: float) -> None:
        """How much of a step is in no graph."""
        for finding in self.failed[:1]:
            finding.cost_ms = round(ms, 4)


class StepFunctions:
    """The step functions of a session."""

    def __init__(self, listeners: Listeners, regions: Callable[[], Iterable[Region]]) -> None:
        self._listeners, self._regions = listeners, regions
        self._all: list[StepFunction] = []

    def add(self, region: Region, parts: Iterable[Region], *, may_be_cut: bool = False) -> StepFunction:
        """``region`` is on trial from now on, and reports nothing. ``may_be_cut``: until `StepFunction.give_up`."""
        region.log.listeners = Listeners(step=self._listeners.step)
        region.log.doubts_first_call = False  # the first call of the step has been in parts
        found = StepFunction(region, [(part, part.calls) for part in parts], may_be_cut=may_be_cut)
        self._all.append(found)
        return found

    def settle(self, *, finally_: bool = False) -> None:
        """End the trials that are decided. ``finally_``: the program has ended, and a capture is enough, or that no other
        region shows most of its calls."""
        for function in self._all:
            region = function.region
            if not function.is_on_trial:
                continue
            if region.disabled and function.may_be_cut and not finally_:
                continue
            if region.disabled:
                function.is_on_trial = False
                reasons = _reasons(region) if function.obstacles is None else function.obstacles
                failed = [self._why_not(region, finding) for finding in reasons]
                function.failed = list({finding.key: finding for finding in failed}.values())  # one of several paths
                self._without_forward_pass(function)
                self._notify(function.failed)
            elif region.hits or (finally_ and (region.captures or region.calls > function.calls_of_parts)):
                function.is_on_trial = False
                region.log.listeners = self._listeners
                self._notify(region.findings.values())
                if self._listeners.on_region is not None:
                    self._listeners.on_region(region)
        if finally_:
            self._report_seams()

    def _report_seams(self) -> None:
        """What keeps statements out of step regions that serve, with what they cost."""
        if not any(function.serves and function.region.captures for function in self._all):
            return
        for function in self._all:
            if function.seams is None:
                continue
            outside = [self._left_out(finding) for finding in function.refused_for]
            function.left_out = cost_of_seams(outside, function.seams)
            self._notify(function.left_out)

    @staticmethod
    def _left_out(finding: Finding) -> Finding:
        text = f"This runs outside the training step's graph: {finding.message}"
        hint = f"{NO_ACTION}: the step itself is one graph."
        return replace(finding, message=text, hint=hint, region=None, severity_override=Severity.INFORMATION)

    def _notify(self, findings: Iterable[Finding]) -> None:
        if self._listeners.on_finding is not None:
            for finding in findings:
                self._listeners.on_finding(finding)

    @staticmethod
    def _why_not(region: Region, finding: Finding) -> Finding:
        text = f"This keeps the training step `{region.name}` from being one graph: {finding.message}"
        return replace(finding, code="MP406", message=text, region=None, severity_override=None)

    def _without_forward_pass(self, function: StepFunction) -> None:
        """What gets its loss from outside is no whole step. A function with one forward pass in each step could be one; the
        passes of an episode are as many as it has steps, and a loop's forward pass was cut off for another reason."""
        outside = [finding for finding in function.failed if FROM_OUTSIDE in finding.message]
        if not outside:
            return
        name, inside = function.region.name, [part for part, _ in function.parts]
        passes = [r.log.counts.since_step(r.calls) for r in self._regions() if r.kind == "module" and r not in inside]
        if function.region.kind == "step":
            why = f"the forward pass is not in this part of `{name}`"
        elif max(passes, default=0) > 1:
            why = f"a step has many forward passes, outside of `{name}`"
        else:
            for finding in outside:
                finding.hint = f"Run the forward pass in `{name}` as well."
            return
        for finding in function.failed:
            finding.make_fact(why)

    def repeat(self, findings: Iterable[Iterable[Finding]]) -> None:
        """Makes facts of what a finding of a region says at the same place."""
        reported = {f.location: f.code for found in findings for f in found if f.code.startswith("MP1")}
        for finding in self.findings:
            if code := reported.get(finding.location):
                finding.make_fact(f"{code} is about the same cause")
                self._notify([finding])

    def hides(self, region: Region) -> bool:
        """Whether reports leave out ``region``: it is on trial or refused, or called only inside a step function now."""
        for function in self._all:
            if function.region is region and (function.is_on_trial or function.failed or function.is_replaced):
                return True
            if function.serves and any(part is region and part.calls == calls for part, calls in function.parts):
                return True
        return False

    @property
    def findings(self) -> list[Finding]:
        return [finding for function in self._all for finding in (*function.failed, *function.left_out)]


def _reasons(region: Region) -> list[Finding]:
    obstacles = region.log.obstacles
    # what was refused before may well have made the tensor that no recorded operation produced
    causes = [finding for finding in obstacles if finding.code != _UNRECORDED]
    return causes or obstacles or [finding for finding in region.findings.values() if finding.code == "MP203"]

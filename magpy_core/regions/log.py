"""What a region reports: its findings, each once, why it was captured again, and in how many of the program's steps each
finding was true.

A finding is reported when a region is recorded, but it holds in every step that replays its capture, and in every step that
runs in eager mode because of it. Counted at the end of a step, so that calls cost nothing more.
Key types: RegionLog, Listeners, StepCounts.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from magpy_core.findings import Finding, Location, Recompile, RegionSummary, Severity
from magpy_core.findings.secrets import redact
from magpy_core.monitor.positions import is_installed_file, is_user_file

if TYPE_CHECKING:
    from magpy_core.capture.build import Capture
    from magpy_core.verification.beside import Tracing


# What a call does; recompiles, guards and figures are facts about a run.
_COUNTED = ("MP1", "MP3")


@dataclass
class _Held:
    """A capture (not kept alive by being counted), its findings, and its replays when the last step ended."""

    capture: weakref.ref[Capture]
    findings: list[Finding]
    hits: int = 0


class StepCounts:
    """Kept by a region; ``stepped`` is called at the end of each step."""

    def __init__(self) -> None:
        self._fresh: dict[int, Finding] = {}
        self._held: list[_Held] = []
        self._blocking: list[Finding] = []
        self._calls = 0

    def found(self, finding: Finding) -> None:
        """``finding`` was reported in this step."""
        if finding.code.startswith(_COUNTED):
            self._fresh[id(finding)] = finding

    def holds(self, capture: Capture | None, findings: Iterable[Finding]) -> None:
        """Each step that replays ``capture`` has these findings; None: each step from now on, in eager mode."""
        counted = [finding for finding in findings if finding.code.startswith(_COUNTED)]
        if capture is None:
            self._blocking = counted
        else:
            self._held = [held for held in self._held if held.capture() is not None]
            self._held.append(_Held(weakref.ref(capture), counted))

    def since_step(self, calls: int) -> int:
        """How many of ``calls`` calls of the region have been made since the last step ended."""
        return calls - self._calls

    def unwatched(self, calls: int, steps: int, *, plain: bool) -> None:
        """``steps`` steps have ended that nothing has looked at, with ``calls`` calls of the region so far."""
        self._calls = calls
        for finding in self._blocking if plain else ():
            finding.steps += steps

    def stepped(self, calls: int, *, plain: bool) -> list[Finding]:
        """A step has ended, with ``calls`` calls of the region so far: the findings that were true in it."""
        found, self._fresh = self._fresh, {}
        for held in self._held:
            capture = held.capture()
            if capture is not None and capture.hits > held.hits:
                held.hits = capture.hits
                found.update((id(finding), finding) for finding in held.findings)
        if plain and calls > self._calls:
            found.update((id(finding), finding) for finding in self._blocking)
        self._calls = calls
        for finding in found.values():
            finding.steps += 1
        return list(found.values())


class Summarised(Protocol):
    """A region, as its listeners see it."""

    def summary(self) -> RegionSummary: ...


@dataclass(frozen=True)
class Listeners:
    """``on_finding``: a finding is new, or its counts have changed. ``on_region``: a region was recorded. ``step``: the
    program's current step."""

    on_finding: Callable[[Finding], None] | None = None
    on_region: Callable[[Summarised], None] | None = None
    step: Callable[[], int] = lambda: 0


class RegionLog:
    """Findings by key, recompiles in order. ``causes``: what makes the next recording necessary."""

    def __init__(self, listeners: Listeners, *, doubts_first_call: bool = False) -> None:
        self.listeners = listeners
        self.doubts_first_call = doubts_first_call
        """Whether a refusal of the first call is final only if the second call is refused, too: `run` does not record the
        first one, which often makes what later calls find."""
        self.findings: dict[Any, Finding] = {}
        self.recompiles: list[Recompile] = []
        self.causes: list[Finding] = []
        self.obstacles: list[Finding] = []  # what keeps it from being one graph
        self.varied: Counter[Location | None] = Counter()
        self.unrolled: list[Location] = []
        """Loops with another number of rounds again and again."""
        """Where the values were read that made captures necessary, except for what is symbolic now; None: decisions."""
        self.captures_after_step_3 = 0
        self.tracings: list[tuple[Finding, Tracing]] = []  # what looks for the cause of a finding
        self._in_doubt: list[tuple[Finding, int]] = []  # of a first call that was refused, and how often they were found
        self.counts = StepCounts()

    def add(self, finding: Finding) -> Finding:
        """Report ``finding``, or that one like it was found again; returns the one that is kept."""
        finding = in_library(finding)
        known = self.findings.get(finding.key) or next((f for f in self.findings.values() if is_repeat(finding, f)), None)
        if known is None:
            known = self.findings[finding.key] = finding
        else:
            merge(known, finding)
        self.counts.found(known)
        self.notify([known])
        return known

    def notify(self, findings: Iterable[Finding]) -> None:
        if self.listeners.on_finding is not None:
            for finding in findings:
                self.listeners.on_finding(finding)

    def make_facts(self, why: str, *, of_libraries: bool = False) -> None:
        """No one need act on what has been found, because of ``why``. ``of_libraries``: only on what happens in libraries,
        although the user's code may call them."""
        found = [finding for finding in self.findings.values() if finding.is_actionable]
        if of_libraries:
            found = [finding for finding in found if not is_user_file((finding.location, *finding.path)[-1].file)]
        for finding in found:
            finding.make_fact(why)
        self.notify(found)

    def recorded(
        self, capture: Capture | None, findings: Iterable[Finding], *, computes: bool = True, is_in_doubt: bool = False
    ) -> None:
        """A monitored run of the region has become ``capture``, or can't be captured. ``computes``: whether it has tensors;
        a module without, such as a transform of images, has no graph to miss. ``is_in_doubt``: the next run will show
        whether that is so for good."""
        kept = [self.add(finding) for finding in findings]
        self.counts.holds(capture, kept)
        self._resolve(kept, is_captured=capture is not None)
        if is_in_doubt:
            self._in_doubt = [(finding, finding.count) for finding in {id(finding): finding for finding in kept}.values()]
        if not computes:
            self.make_facts("it computes no tensor, so there is nothing to compile")
        if capture is not None and self.listeners.step() >= 3:
            self.captures_after_step_3 += 1

    def _resolve(self, found: Sequence[Finding], *, is_captured: bool) -> None:
        """The call after one in doubt was recorded: what it has in common with that counts once, and what is no longer true
        need not be acted on."""
        in_doubt, self._in_doubt = self._in_doubt, []
        again = set(map(id, found))
        for finding, count in in_doubt:
            if id(finding) in again:
                finding.count = max(count, finding.count - count)
            elif is_captured and finding.is_actionable:
                finding.make_fact("only the first call does this, and later ones are compiled")
                self.notify([finding])

    def take_causes(self) -> None:
        """Completes findings with what is known of their cause."""
        left = []
        for finding, tracing in self.tracings:
            if not tracing.has_ended:  # asked first: it may end meanwhile
                left.append((finding, tracing))
            if (cause := tracing.news()) is not None:
                finding.hint, finding.values = redact(cause.text), cause.values
                self.notify([finding])
        self.tracings = left

    def stepped(self, calls: int, *, plain: bool) -> None:
        """A step of the program has ended."""
        if self.tracings:
            self.take_causes()
        self.notify(finding for finding in self.counts.stepped(calls, plain=plain) if finding.steps > 1)

    def clear(self) -> None:
        self.findings.clear()
        self.tracings = []
        self.recompiles.clear()
        self.obstacles = []
        self.varied.clear()
        self.unrolled.clear()


def in_library(finding: Finding) -> Finding:
    """What happens in the lines of an installed package, which a user can't change, is shown at the user's call, and is
    no warning."""
    if not finding.code.startswith(("MP1", "MP2")) or not _is_of_library(finding):
        return finding
    call = next((place for place in reversed(finding.path) if is_user_file(place.file)), None)
    at = finding.location if call is None or is_user_file(finding.location.file) else call
    severity = max(finding.severity, Severity.INFORMATION, key=lambda severity: severity.rank)
    return replace(finding, location=at, severity_override=severity)


def _is_of_library(finding: Finding) -> bool:
    return is_installed_file((finding.location, *finding.path)[-1].file)


def is_repeat(finding: Finding, known: Finding) -> bool:
    """Whether it has been reported before: a recompile because of the same value, read at the same place, or what is in the
    library that the same statement calls."""
    if finding.code == known.code and _is_of_library(finding) and _is_of_library(known):
        return finding.location == known.location
    return (
        finding.code == known.code == "MP201"
        and finding.location == known.location
        and finding.region == known.region
        and finding.severity == known.severity
        and finding.values[0].name == known.values[0].name
    )


def merge(known: Finding, finding: Finding) -> None:
    """Count ``finding`` as one more of ``known``."""
    new = tuple(v for v in finding.values if v not in known.values)
    if new and finding.code in ("MP101", "MP201"):
        known.values = (*known.values[:3], new[-1])  # how it began, and the last outcome or change
    if finding.severity.rank < known.severity.rank:
        known.severity_override, known.hint = finding.severity_override, finding.hint  # the first was warm-up; it goes on
    known.count += 1

"""In how many of the program's steps each finding of a region was true. Key type: StepCounts.

A finding is reported when a region is recorded, but it holds in every step that replays its capture, and in every step that
runs as plain Python because of it. Counted at the end of a step, so that calls cost nothing more.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from magpy_core.findings import Finding

if TYPE_CHECKING:
    from magpy_core.capture.build import Capture

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
        """Each step that replays ``capture`` has these findings; None: each step from now on, in plain Python."""
        counted = [finding for finding in findings if finding.code.startswith(_COUNTED)]
        if capture is None:
            self._blocking = counted
        else:
            self._held = [held for held in self._held if held.capture() is not None]
            self._held.append(_Held(weakref.ref(capture), counted))

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

"""A stand-in for the engine's session: runs every region plainly and keeps count. The runner's own tests need no more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any

from magpy_core.findings import Finding, Location, Position, Range, RegionSummary


class FakeSession:
    def __init__(self, *, on_finding: Callable[[Finding], None], on_region: Callable[[Any], None], **options: Any) -> None:
        self.options = options
        self.on_finding, self.on_region = on_finding, on_region
        self.regions: list[FakeRegion] = []
        self.findings: list[Finding] = []
        self.current_step = 0
        self.depth = threading.local()
        self._by_key: dict[Hashable, FakeRegion] = {}

    def stepped(self, n: int, *, whole: bool = False, optimizer: Hashable = None) -> None:
        self.current_step = n

    def step_report(self) -> None:
        """Nothing was measured."""

    def compile_progress(self) -> dict[str, list[str]]:
        """Nothing is compiled."""
        return {}

    def finish(self) -> None:
        """Nothing was measured."""

    def graph_times(self, region: FakeRegion) -> list[tuple[float, float]]:
        """Nothing was measured."""
        return []

    def release(self) -> None:
        self.regions, self._by_key = [], {}

    def in_region(self) -> bool:
        return getattr(self.depth, "n", 0) > 0

    def region(self, key: Hashable, *, kind: str, name: str, file: str, line: int, target: Callable[..., Any]) -> FakeRegion:
        if key not in self._by_key:
            summary = RegionSummary(f"r{len(self.regions)}", kind, name, file, line, complete=True)
            self._by_key[key] = FakeRegion(self, target, summary)
            self.regions.append(self._by_key[key])
        return self._by_key[key]


class FakeRegion:
    def __init__(self, session: FakeSession, target: Callable[..., Any], summary: RegionSummary) -> None:
        self.session, self.target, self._summary = session, target, summary

    def summary(self) -> RegionSummary:
        return self._summary

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._summary.calls += 1
        session, summary = self.session, self._summary
        if summary.calls == 1:
            summary.captures = 1
            session.on_region(self)
            where = Location(summary.file, Range(Position(summary.line - 1, 0), Position(summary.line - 1, 1)))
            finding = Finding("MP204", f"region {summary.name} was captured", where, region=summary.id)
            session.findings.append(finding)
            session.on_finding(finding)
        session.depth.n = getattr(session.depth, "n", 0) + 1
        try:
            return self.target(*args, **kwargs)
        finally:
            session.depth.n -= 1


class BrokenSession:
    def __init__(self, **options: Any) -> None:
        raise RuntimeError("no engine today")


class FailingSession(FakeSession):
    def stepped(self, n: int, *, whole: bool = False, optimizer: Hashable = None) -> None:
        raise RuntimeError(f"no step {n} today")


class TracingSession(FakeSession):
    """Has found a difference, whose cause is known after two seconds."""

    is_tracing = True

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.skipped = threading.Event()

    def await_causes(self, seconds: float) -> None:
        self.skipped.wait(min(seconds, 2.0))
        self.is_tracing = False
        for finding in self.findings:
            finding.hint = f"The cause is known after at most {seconds:g} s."
            self.on_finding(finding)

    def skip_causes(self) -> None:
        self.skipped.set()


class EndlessTracingSession(TracingSession):
    """Finds no cause; the difference is in the second line of the program."""

    def await_causes(self, seconds: float) -> None:
        assert self.skipped.wait(120.0), "nobody has ended the search"
        self.is_tracing = False
        for finding in self.findings:
            finding.hint = "The search was ended."
            self.on_finding(finding)

    def region(self, *args: Any, **kwargs: Any) -> FakeRegion:
        region = super().region(*args, **kwargs)
        if not any(finding.code == "MP914" for finding in self.findings):
            at = Location(region.summary().file, Range(Position(1, 0), Position(1, 1)))
            self.findings.append(Finding("MP914", "differs", at))
        return region

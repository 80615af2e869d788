"""The session of a run in eager mode, which is compared with a compiled one. Key type: EagerSession.

It has the same outermost calls and steps as a run under the engine, records nothing and compiles nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any

from magpy_core.findings import Finding, RegionSummary


class EagerSession:
    def __init__(self, **options: Any) -> None:
        self.regions: list[EagerRegion] = []
        self.findings: list[Finding] = []
        self._by_key: dict[Hashable, EagerRegion] = {}
        self.local = threading.local()

    def in_region(self) -> bool:
        return bool(getattr(self.local, "depth", 0))

    def region(
        self, key: Hashable, *, kind: str, name: str, file: str, line: int, target: Callable[..., Any]
    ) -> EagerRegion:
        if key not in self._by_key:
            self._by_key[key] = EagerRegion(self, target, RegionSummary(f"r{len(self.regions)}", kind, name, file, line))
            self.regions.append(self._by_key[key])
        return self._by_key[key]

    def stepped(self, n: int, *, whole: bool = False, optimizer: Hashable = None) -> None: ...

    def step_report(self) -> None:
        """Nothing was measured."""

    def finish(self) -> None: ...

    def graph_times(self, region: EagerRegion) -> list[tuple[float, float]]:
        return []

    def release(self) -> None:
        self.regions, self._by_key = [], {}


class EagerRegion:
    def __init__(self, session: EagerSession, target: Callable[..., Any], summary: RegionSummary) -> None:
        self._session, self._target, self._summary = session, target, summary

    def summary(self) -> RegionSummary:
        return self._summary

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        local = self._session.local
        self._summary.calls += 1
        local.depth = getattr(local, "depth", 0) + 1
        try:
            return self._target(*args, **kwargs)
        finally:
            local.depth -= 1

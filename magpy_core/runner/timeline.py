"""Start, duration and kind of each region call, for reports with details. Key type: Timeline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from magpy_core.findings.details import Call, GraphCall

_CALLS = 20_000  # only the first calls; later ones of a long run are similar


class Timeline:
    """Calls regions and records their times. Threads only append to lists, so they need no lock."""

    def __init__(self) -> None:
        self._origin = time.perf_counter()
        self._calls: list[tuple[Any, float, float, str]] = []

    def call(self, region: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if len(self._calls) >= _CALLS:
            return region(*args, **kwargs)
        recordings, hits = region.recordings, region.hits
        start = time.perf_counter()
        try:
            return region(*args, **kwargs)
        finally:
            end = time.perf_counter()
            if region.recordings > recordings:
                how = "recorded"
            elif region.hits > hits:
                how = "replayed" if region.options.mode == "compiled" else "watched"
            else:
                how = "plain"
            self._calls.append((region, start, end, how))

    def calls(self) -> list[Call]:

        return [Call(region.id, start - self._origin, end - start, how) for region, start, end, how in self._calls]

    def graphs(self, times_of: Callable[[Any], Iterable[tuple[float, float]]]) -> list[GraphCall]:
        """``times_of``: when graphs of a region's calls began and ended, as far as that was measured."""

        return [
            GraphCall(region.id, start - self._origin, end - start)
            for region in dict.fromkeys(region for region, *_ in self._calls)
            for start, end in times_of(region)
        ]

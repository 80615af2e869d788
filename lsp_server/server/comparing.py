"""Runs a program under both engines in turn and compares their figures. Key type: Comparison."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from lsp_server.server.runs import Run, RunState
from lsp_server.server.targets import Target
from magpy_core.findings import Report

# Enough steady calls for timings, as on the command line.
_STEPS = 24
_ENGINES = ("magpy", "dynamo")


class Comparison:
    """Two runs of one program. Their findings are shown as usual; at the end the report channel gets a table.

    ``start`` starts a run, ``wait`` waits for its end, ``output`` shows bytes of a run.
    """

    def __init__(
        self,
        target: Target,
        start: Callable[[Target], Awaitable[Run]],
        wait: Callable[[Run], Awaitable[None]],
        output: Callable[[Run, str, bytes], None],
    ) -> None:
        self._target = target if target.steps is not None else replace(target, steps=_STEPS)
        self._start, self._wait, self._output = start, wait, output
        self._runs: list[Run] = []

    async def run(self) -> dict[str, Any]:
        await self.begin()
        return await self.finish()

    async def begin(self) -> Run:
        """Starts the first of the two runs."""
        self._runs = [await self._start(self._target.with_engine(_ENGINES[0]))]
        return self._runs[0]

    async def finish(self) -> dict[str, Any]:
        """Waits for the end of both runs. A cancelled or failed run ends the comparison."""
        await self._wait(self._runs[0])
        for engine in _ENGINES[1:]:
            if self._runs[-1].state is not RunState.DONE:
                return self._runs[-1].result()
            self._runs.append(await self._start(self._target.with_engine(engine)))
            self._runs[-1].epilogue = self._table
            await self._wait(self._runs[-1])
        return self._runs[-1].result()

    def _table(self, report: Report) -> str:
        """The figures of both runs, after the second has ended."""
        from lsp_server.features.summary import comparison_text  # rich is loaded when it is needed

        regions = [region for run in self._runs[:-1] for region in run.found.regions.values()]
        return comparison_text(Report("", regions=[*regions, *report.regions]))

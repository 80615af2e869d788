"""How a run is going, for a client that shows it while the program runs. Key type: LiveFeed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from lsp_server.server.runs import Run

INTERVAL = 0.5


class LiveFeed:
    """Sends what a run says of itself when that has changed, at most twice a second, and once at the run's end."""

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self._send = send
        self._last: dict[str, Any] = {}

    async def follow(self, run: Run) -> None:
        """Returns when the run has ended."""
        while run.state.active:
            self._tell(run)
            await asyncio.sleep(INTERVAL)
        self._tell(run)

    def _tell(self, run: Run) -> None:
        found = live_json(run)
        if found != self._last:
            self._last = found
            self._send(found)


def live_json(run: Run) -> dict[str, Any]:
    """The params of ``magpy/live``."""
    head = {"runId": run.id, "entrypoint": run.target.entrypoint, "uri": run.target.uri, "label": run.target.label}
    text = run.live.text(ended=not run.state.active)
    return {**head, "state": run.state.value, "doing": run.doing, "failure": run.failure, **text.to_json()}

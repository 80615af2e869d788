"""Monitors the process it is called in, as `check` monitors another one. Key type: Watch."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from magpy_core.runner.discovery import Discovery, ImportHook
from magpy_core.runner.monitoring import Monitoring
from magpy_core.runner.request import RunRequest
from magpy_core.runner.steps import StepClock

if TYPE_CHECKING:
    from magpy_core.findings import Report


class _Nobody:
    """A channel without a parent."""

    open = True

    def send(self, message: Any) -> None:
        """Nobody is told: the report has everything."""

    def abandon(self) -> None:
        self.open = False


class Watch:
    """From now on, outermost calls of modules and optimizers are regions of one session. The program stays plain Python."""

    def __init__(self, request: RunRequest) -> None:
        clock = StepClock(0)
        self._monitoring = Monitoring(request.to_child(), _Nobody(), clock)
        clock.on_step = self._monitoring.stepped
        self._discovery = Discovery(self._monitoring)
        self._entrypoint = request.entrypoint
        os.register_at_fork(after_in_child=self._monitoring.abandon)
        ImportHook(self._discovery.install).install()

    def report(self) -> Report:
        """What has been found so far."""
        return self._monitoring.report(self._entrypoint)

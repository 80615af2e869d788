"""Monitors the process it is called in, as `check` monitors another one. Key type: Watch."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from magpy_core.runner.discovery import Discovery
from magpy_core.runner.import_hook import ImportHook
from magpy_core.runner.monitoring import Monitoring
from magpy_core.runner.protocol import Message
from magpy_core.runner.request import RunRequest
from magpy_core.runner.steps import StepClock

if TYPE_CHECKING:
    from magpy_core.findings import Finding, Report


class _Changes:
    """A channel without a parent, that knows whether a region or a finding is new or has changed."""

    any = False

    def send(self, message: Message) -> None:
        self.any |= message["type"] in ("finding", "region")

    def abandon(self) -> None:
        """There is nobody to lose."""


class Watch:
    """From now on, outermost calls of modules and optimizers are regions of one session. The program stays in eager mode."""

    def __init__(self, request: RunRequest) -> None:
        clock = StepClock(0)
        self._changes = _Changes()
        self._monitoring = Monitoring(request.to_child(), self._changes, clock)
        clock.on_step = self._monitoring.stepped
        self._discovery = Discovery(self._monitoring)
        self._entrypoint = request.entrypoint
        os.register_at_fork(after_in_child=self._monitoring.abandon)
        ImportHook(self._discovery.install).install()

    @property
    def regions(self) -> int:
        """How many there are."""
        return self._monitoring.regions

    def findings(self) -> list[Finding]:
        """Those so far."""
        return self._monitoring.findings()

    def changed(self) -> bool:
        """Whether there may be other findings or regions than at the last call."""
        self._monitoring.flush()
        changed, self._changes.any = self._changes.any, False
        return changed

    def report(self) -> Report:
        """What has been found so far."""
        return self._monitoring.report(self._entrypoint)

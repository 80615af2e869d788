"""What a part of the report tells while it runs: JSON lines on a pipe. Key type: Events (the writing side).

``{"test": ID}``: a test begins. ``{"test": ID, "outcome": ..., "seconds": ..., "message": ...}``: it has ended.
``{"tests": [ID, ...]}``: those that will run. ``{"table": {...}}``: a table, or rows to add to the one with that title.
``{"device": {...}}``: what the device and the libraries are. Imports only the standard library.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

DESCRIPTOR = "MAGPY_REPORT_FD"
"""The environment variable that names the pipe's descriptor."""


class Events:
    """Writes to the pipe; does nothing in a process that was started without one."""

    def __init__(self) -> None:
        number = os.environ.get(DESCRIPTOR)
        self._descriptor = None if number is None else int(number)
        if self._descriptor is not None:
            os.set_inheritable(self._descriptor, False)  # the pipe ends with this process, not with its last child

    def send(self, event: Mapping[str, Any]) -> None:
        if self._descriptor is None:
            return
        data = (json.dumps(event) + "\n").encode()
        while data:
            data = data[os.write(self._descriptor, data) :]


def parsed(line: bytes) -> dict[str, Any]:
    """An event; empty for what is none, since a child that is killed may stop within a line."""
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}

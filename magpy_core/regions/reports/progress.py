"""What is being compiled, for who watches the run. Key function: compile_progress."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from magpy_core.regions.region_protocol import RegionView

State = Literal["running", "waiting", "ready"]


def compile_progress(regions: Iterable[RegionView]) -> dict[State, list[str]]:
    """Names of regions whose code is being compiled beside the program, waits for that, or runs compiled."""
    found: dict[State, list[str]] = {"running": [], "waiting": [], "ready": []}
    for region in regions:
        states = {state for capture in region.captures if (state := capture.progress)}
        for state in found:  # what is being done now says more than what was done before
            if state in states:
                found[state].append(region.name)
                break
    return found

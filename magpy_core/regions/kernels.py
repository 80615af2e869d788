"""The kernels of regions on a device that they are compiled for. Key functions: kernels_of_regions, kernels_of_capture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from magpy_core.findings import TargetProblem, TargetReport
from magpy_core.targets.devices import parse_target

if TYPE_CHECKING:
    from magpy_core.capture.build import Capture
    from magpy_core.regions.region import Region


class TargetFailed(RuntimeError):
    """Graphs that don't compile for the target. ``problems`` say which, and why."""

    def __init__(self, problems: Sequence[TargetProblem]) -> None:
        super().__init__("\n".join(f"{problem.region}: {problem.message}" for problem in problems))
        self.problems = tuple(problems)


def kernels_of_regions(regions: Iterable[Region], target: str) -> TargetReport:
    """What one call of each region launches: of its capture with gradients, and of that without. Raises UnknownTarget,
    MissingTriton."""
    from magpy_core.targets.lowering import Captured, kernels_of

    captured = [Captured(region.id, region.kind, capture) for region in regions for capture in _chosen(region.captures)]
    return kernels_of(captured, parse_target(target))


def kernels_of_capture(capture: Capture, target: str) -> TargetReport:
    """What one call that the capture serves launches. Raises UnknownTarget, MissingTriton."""
    from magpy_core.targets.lowering import Captured, kernels_of

    name = capture.title.removeprefix("magpy capture of ")
    return kernels_of([Captured(name, "function", capture)], parse_target(target))


def _chosen(captures: Sequence[Capture]) -> list[Capture]:
    """The capture that served most calls, once per grad mode: others are the same program for other values."""
    best: dict[bool, Capture] = {}
    for capture in captures:  # newest first
        with_gradients = capture.modes[0]
        if with_gradients not in best or capture.hits > best[with_gradients].hits:
            best[with_gradients] = capture
    return sorted(best.values(), key=lambda capture: not capture.modes[0])

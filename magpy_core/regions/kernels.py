"""The kernels of regions on a device that they are compiled for, and what they show.

Key functions: kernels_of_regions, kernels_of_capture, kernel_findings.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from magpy_core.findings import Finding, Kernel, TargetProblem, TargetReport, Value
from magpy_core.findings.kernels import total_launches
from magpy_core.regions.region import Region, line_location
from magpy_core.regions.reporting import fused_loss_finding
from magpy_core.targets.devices import parse_target
from magpy_core.targets.roofline import FEW_US

if TYPE_CHECKING:
    from magpy_core.capture.build import Capture

_MANY = 20  # launches of a graph: fewer cost little, however short they are
_MOST_SHORT = 0.8  # of the launches


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


def kernel_findings(region: Region, report: TargetReport) -> Iterator[Finding]:
    """What a region's kernels show: registers that don't suffice (MP407), more launches than work (MP408), losses
    without logits (MP410)."""
    kernels = [kernel for kernel in report.kernels if kernel.region == region.id]
    for kernel in kernels:
        if kernel.code is not None and kernel.code.spill_bytes and kernel.lines:
            yield _spills(region, kernel, report.device)
        if kernel.work.saved_bytes and kernel.lines:
            where = line_location(kernel.lines[0].file, kernel.lines[0].line)
            yield fused_loss_finding(region.id, where, kernel.work.saved_bytes, report.device)
    used = [kernel for kernel in kernels if kernel.graph != "inference"]
    launches, short = total_launches(used), total_launches(kernel for kernel in used if kernel.us < FEW_US)
    if launches >= _MANY and short >= _MOST_SHORT * launches:
        yield _launch_bound(region, launches, short, report.device)


def _spills(region: Region, kernel: Kernel, device: str) -> Finding:
    assert kernel.code is not None
    where = line_location(kernel.lines[0].file, kernel.lines[0].line)
    text = linecache.getline(where.file, kernel.lines[0].line).strip()
    quoted = f"`{text}`" if text else "this line"
    spilled, registers = kernel.code.spill_bytes, kernel.code.registers
    message = f"The {kernel.graph} kernel of {quoted} spills {spilled} bytes per thread on {device}: {registers} registers"
    values = (Value("kernel", kernel.name), Value("registers", str(registers)), Value("spilled", f"{spilled} bytes"))
    return Finding("MP407", f"{message} don't suffice.", where, region=region.id, values=values)


def _launch_bound(region: Region, launches: int, short: int, device: str) -> Finding:
    took = f"{short} of them can take less than {FEW_US:g} µs"
    text = f"A call of {region.name} launches {launches} kernels on {device}; {took}, about as long as a launch from Python."
    values = (Value("launches", str(launches)), Value("short", str(short)))
    return Finding("MP408", text, region.location, region=region.id, values=values)

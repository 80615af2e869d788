"""The kernels of regions on a device that they are compiled for, and what they show.

Key functions: kernels, session_kernels, kernel_findings.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from magpy_core.capture.build import Capture
from magpy_core.findings import NO_ACTION, Finding, Kernel, KernelLine, TargetProblem, TargetReport, Unfused, Value
from magpy_core.findings.kernel_lines import line_costs
from magpy_core.findings.kernels import of_a_call, total_launches
from magpy_core.products.targets.devices import parse_target
from magpy_core.products.targets.lowering import Captured, kernels_of
from magpy_core.products.targets.roofline import FEW_US
from magpy_core.regions.api import Monitored, region_of
from magpy_core.regions.lines import line_location
from magpy_core.regions.region_protocol import RegionView
from magpy_core.regions.session import Session

_MANY = 20  # launches of a graph: fewer cost little, however short they are
_MOST_SHORT = 0.8  # of the launches


class TargetFailed(RuntimeError):
    """Graphs that don't compile for the target. ``problems`` say which, and why."""

    def __init__(self, problems: Sequence[TargetProblem]) -> None:
        super().__init__("\n".join(f"{problem.region}: {problem.message}" for problem in problems))
        self.problems = tuple(problems)


def kernels(of: Any, target: str = "cuda:sm_90") -> tuple[Kernel, ...]:
    """The kernels that ``of`` launches on a device that this machine need not have: Inductor's Triton kernels with their
    registers, and calls of libraries, each with the lines of the program that it computes and the least time it can take.

    ``of``: a capture, the result of ``monitor(f)(...)``, or something that ``compile`` returned and that has been called.
    ``target``: ``cuda:sm_80`` (A100), ``cuda:sm_90`` (H100) or ``cuda:sm_100`` (B200). Compiles in forked processes, in
    seconds to minutes; nothing runs on a device. Raises UnknownTarget, MissingTriton (an ImportError) without the
    ``triton`` package, TargetFailed if a graph does not compile, TypeError for anything else than these.
    """
    if isinstance(of, Capture):
        report = kernels_of_capture(of, target)
    elif isinstance(of, Monitored):
        return tuple(kernel for capture in of.captures for kernel in kernels(capture, target))
    else:
        report = kernels_of_regions([region_of(of)], target)
    if report.problems:
        raise TargetFailed(report.problems)
    return tuple(report.kernels)


def session_kernels(
    session: Session, target: str, line: tuple[str, int] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> TargetReport:  # fmt: skip
    """What the captures of a run launch on ``target``, compiled in other processes; what that shows is reported (MP407 to
    MP409). ``line`` and ``on_progress``: as for `lowering.kernels_of`. Raises UnknownTarget, MissingTriton."""
    report = kernels_of_regions(session.regions, target, line, on_progress)
    steps = max(session.current_step, 1)
    report.lines = line_costs(report.kernels, {region.id: region.calls / steps for region in session.regions})
    for region in session.regions:
        for finding in kernel_findings(region, report):
            region.log.add(finding)
    return report


def kernels_of_regions(
    regions: Iterable[RegionView], target: str, line: tuple[str, int] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> TargetReport:  # fmt: skip
    """What one call of each region launches: of its capture with gradients, and of that without. ``line`` and
    ``on_progress``: as for `lowering.kernels_of`. Raises UnknownTarget, MissingTriton."""
    captured = [Captured(region.id, region.kind, capture) for region in regions for capture in _chosen(region.captures)]
    return kernels_of(captured, parse_target(target), line, on_progress)


def kernels_of_capture(capture: Capture, target: str) -> TargetReport:
    """What one call that the capture serves launches. Raises UnknownTarget, MissingTriton."""
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


def kernel_findings(region: RegionView, report: TargetReport) -> Iterator[Finding]:
    """What a region's kernels show: registers that don't suffice (MP407), more launches than work (MP408), results that go
    through memory to a single other kernel (MP409)."""
    kernels = [kernel for kernel in report.kernels if kernel.region == region.id]
    for kernel in kernels:
        if kernel.code is not None and kernel.code.spill_bytes and kernel.lines:
            yield _spills(region, kernel, report.device)
    used = [kernel for kernel in kernels if kernel.graph != "inference"]
    launches, short = total_launches(used), total_launches(kernel for kernel in used if kernel.us < FEW_US)
    if launches >= _MANY and short >= _MOST_SHORT * launches:
        yield _launch_bound(region, launches, short, report.device)
    graphs = {kernel.graph for kernel in of_a_call(kernels)}
    for pair in report.unfused:
        if pair.region == region.id and pair.graph in graphs:
            yield _unfused(region, pair, report.device)


def _spills(region: RegionView, kernel: Kernel, device: str) -> Finding:
    assert kernel.code is not None
    where = line_location(kernel.lines[0].file, kernel.lines[0].line)
    quoted = _quoted(kernel.lines[0]) or "this line"
    spilled, registers = kernel.code.spill_bytes, kernel.code.registers
    message = f"The {kernel.graph} kernel of {quoted} spills {spilled} bytes per thread on {device}: {registers} registers"
    values = (Value("kernel", kernel.name), Value("registers", str(registers)), Value("spilled", f"{spilled} bytes"))
    return Finding("MP407", f"{message} don't suffice.", where, region=region.id, values=values)


def _launch_bound(region: RegionView, launches: int, short: int, device: str) -> Finding:
    took = f"{short} of them can take less than {FEW_US:g} µs"
    text = f"A call of {region.name} launches {launches} kernels on {device}; {took}, about as long as a launch from Python."
    values = (Value("launches", str(launches)), Value("short", str(short)))
    return Finding("MP408", text, region.location, region=region.id, values=values)


def _unfused(region: RegionView, pair: Unfused, device: str) -> Finding:
    where = line_location(pair.read.file, pair.read.line)
    reader = _quoted(pair.read) or "This line"
    size = f"{pair.saved_bytes / 1e6:,.1f} MB"
    subject = f"{reader} reads back {size} that {_quoted(pair.written) or 'an earlier line'} has just written"
    if pair.written == pair.read:
        subject = f"{reader} is computed by two kernels: one reads back {size} that the other has just written"
    cost = f"{pair.share:.0%} of the lower bound of {pair.graph} on {device}"
    why, hint = _WINDOW if pair.is_window else _explained(pair.reason)
    if pair.graph == "backward" and pair.written == pair.read:
        hint = f"{NO_ACTION}: both are the gradient of this line, which PyTorch computes in these steps."
    values = (
        Value("kernels", f"{pair.producer}, {pair.consumer}"), Value("pairs", str(pair.times)),
        Value("saved at most", f"{pair.saved_us:,.1f} µs"), Value("reason", pair.reason or "none given"),
    )  # fmt: skip
    path = () if pair.written == pair.read else (line_location(pair.written.file, pair.written.line),)
    text = f"{subject} and nothing else uses ({cost}). Inductor keeps two kernels, {why}."
    return Finding("MP409", text, where, hint, region=region.id, values=values, path=path)


def _quoted(at: KernelLine) -> str:
    text = linecache.getline(at.file, at.line).strip()
    return f"`{text}`" if text else ""


_SIZES = (
    "because they loop over different sizes",
    "Reduce over the same dimensions in both, or let the second use the first one's statistics instead of its result.",
)
_ORDER = (
    "because they go through it in different orders",
    "Keep one order: compute both along the same dimension; transpose or permute before the first or after the second.",
)
_WINDOW = (
    "because each result of the second needs several elements of the first's",
    f"{NO_ACTION}: so it is with a window (pooling, differences of neighbours).",
)
_REASONS = {
    "numel/rnumel mismatch": _SIZES,
    "nodes numel": _SIZES,
    "no shared data": _ORDER,
    "memory deps did not match": _ORDER,
    "tiling mismatch": _ORDER,
    "invalid tiling": _ORDER,
    "Split scan": (
        "because a scan in several parts can't share a kernel with a reduction",
        "Scan over a shorter dimension, so that one block does all of it.",
    ),
    "exceeds max fusion": (
        "because the kernel would have more operations than Inductor allows",
        "`torch._inductor.config.max_fusion_size` is the limit; a shorter expression needs no higher one.",
    ),
}
"""What the beginning of Inductor's reason means to the program, and what to do."""


def _explained(reason: str) -> tuple[str, str]:
    for beginning, explained in _REASONS.items():
        if reason.startswith(beginning):
            return explained
    return (f"and says: {reason}" if reason else "and gives no reason"), ""

"""What the lines of a program cost on a device, by its kernels. Key function: line_costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from magpy_core.findings.kernels import Kernel, KernelLine, LineCost, of_a_call

_NOWHERE = (KernelLine("", 0),)


def line_costs(kernels: Iterable[Kernel], calls: Mapping[str, float]) -> list[LineCost]:
    """Hottest first. ``calls``: how often a step calls each region; a region that is also called without gradients counts
    once, because its calls aren't told apart."""
    by_region: dict[str, list[Kernel]] = {}
    for kernel in kernels:
        by_region.setdefault(kernel.region, []).append(kernel)
    costs: list[LineCost] = []
    for region, of_region in by_region.items():
        used = of_a_call(of_region)
        times = max(round(calls.get(region, 1)), 1) if len(used) == len(of_region) else 1
        us: dict[KernelLine, float] = {}
        launches: dict[KernelLine, int] = {}
        for kernel in used:
            lines = kernel.lines or _NOWHERE
            for at in lines:
                us[at] = us.get(at, 0.0) + times * kernel.total_us / len(lines)
                launches[at] = launches.get(at, 0) + times * kernel.launches
        costs += [LineCost(region, at.file, at.line, round(us[at], 3), launches[at]) for at in us]
    return sorted(costs, key=lambda cost: (-cost.us, cost.region, cost.file, cost.line))

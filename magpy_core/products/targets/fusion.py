"""What more fusion would save: the least traffic of a graph, and neighbouring kernels that are not one.

Key functions: graph, unfused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from magpy_core._compat.torch.fusion import Apart, Place
from magpy_core._compat.torch.triton_lowering import LoweredGraph
from magpy_core.findings.kernels import Kernel, KernelLine, TargetGraph, Unfused, total_bytes, total_us
from magpy_core.products.targets.devices import Device
from magpy_core.products.targets.roofline import estimate

NOTABLE_SHARE = 0.05
"""Of a graph's time: pairs that cost less are not worth a change of the program."""

Lowered = Sequence[tuple[LoweredGraph, Sequence[Kernel]]]
"""The graphs of one name, each with its kernels on the device, by position."""


def graph(region: str, name: str, of: Lowered) -> TargetGraph:
    least = sum(min(lowered.least_bytes, total_bytes(kernels)) for lowered, kernels in of)
    return TargetGraph(region, name, least)


def unfused(region: str, name: str, of: Lowered, device: Device) -> Iterator[Unfused]:
    """Pairs by their lines, those that cost most first; blocks of one kind that a model repeats count together."""
    total = total_us([kernel for _, kernels in of for kernel in kernels])
    alike: dict[_Pair, list[tuple[int, float]]] = {}
    for lowered, kernels in of:
        for each in lowered.apart:
            if (pair := _pair(each, kernels)) is not None:
                alike.setdefault(pair, []).append((each.bytes_written + each.bytes_read, saved_us(each, kernels, device)))
    found = []
    for pair, savings in alike.items():
        size, us = sum(size for size, _ in savings), sum(us for _, us in savings)
        if total and us >= NOTABLE_SHARE * total:
            written, read = KernelLine(*pair.written_at), KernelLine(*pair.read_at)
            names = pair.producer, pair.consumer
            share = round(us / total, 3)
            found.append(
                Unfused(
                    region, name, *names, written, read, len(savings), size, round(us, 3), share, pair.reason, pair.is_window
                )
            )
    yield from sorted(found, key=lambda pair: -pair.saved_us)


def saved_us(each: Apart, kernels: Sequence[Kernel], device: Device) -> float:
    """How much less two kernels can take at least if one does not write, and the other does not read, what they exchange:
    nothing where arithmetic or the launch bounds them."""
    producer, consumer = kernels[each.producer], kernels[each.consumer]
    without = (
        replace(producer.work, bytes_written=producer.work.bytes_written - each.bytes_written),
        replace(consumer.work, bytes_read=consumer.work.bytes_read - each.bytes_read),
    )
    return producer.us + consumer.us - sum(estimate(device, work)[0] for work in without)


@dataclass(frozen=True)
class _Pair:
    producer: str
    consumer: str
    written_at: Place
    read_at: Place
    reason: str
    is_window: bool


def _pair(each: Apart, kernels: Sequence[Kernel]) -> _Pair | None:
    """None: not of lines of the program, which could change nothing."""
    if each.written_at is None or each.read_at is None:
        return None
    names = kernels[each.producer].name, kernels[each.consumer].name
    return _Pair(*names, each.written_at, each.read_at, each.reason, each.is_window)

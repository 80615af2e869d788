"""Times of work on a device, where a call returns before its kernels have run. Key functions: timed_on, peak_bytes."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from benchmarks.timing import timed

Timed = Callable[[Callable[[], object], int], tuple[float, float]]


def timed_on(device: torch.device) -> Timed:
    """How to time some calls: with events of the device's current stream, or with the host's clock on the CPU."""
    return _timed_by_events if device.type == "cuda" else timed


def _timed_by_events(call: Callable[[], object], times: int) -> tuple[float, float]:
    """Seconds per call between two events on the device, and the process' CPU seconds. The device is idle before: the gaps
    between kernels that the host's launches leave belong to the time."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    cpu = time.process_time()
    begin.record()
    for _ in range(times):
        call()
    end.record()
    cpu = time.process_time() - cpu
    end.synchronize()
    return begin.elapsed_time(end) / 1e3 / times, cpu / times


def finished(device: torch.device) -> None:
    """Waits for what has been launched; an error of a kernel is raised here."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peak_bytes(device: torch.device, call: Callable[[], object]) -> int | None:
    """The most device memory that a call has at once, beyond that before it; None on the CPU."""
    if device.type != "cuda":
        return None
    finished(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    call()
    finished(device)
    return torch.cuda.max_memory_allocated(device) - before

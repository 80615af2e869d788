"""The clock for code that may run on a device, where a call returns before its kernels have run. Key function: when_done."""

from __future__ import annotations

from contextlib import suppress
from time import perf_counter

from magpy_core._compat.torch.surroundings import in_cuda_graph
from magpy_core._compat.torch.torch_state import accelerator_in_use


def when_done() -> float:
    """The time, once the device has done what it was given; without a device, now.

    Only for steps and calls that are timed: a program that never waits keeps its device busy while Python goes on."""
    device = accelerator_in_use()
    if device is not None and not in_cuda_graph():
        with suppress(RuntimeError):  # of a kernel of the program's: its own next operation on the device raises it
            device.synchronize()
    return perf_counter()

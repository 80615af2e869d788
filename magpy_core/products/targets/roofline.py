"""The least time that a kernel can take on a device: a roofline. Key function: estimate.

A kernel takes at least as long as moving its bytes at the device's bandwidth, as its arithmetic at the peak rate, and as a
launch. Real kernels take longer: this is an estimate of what is possible, not a measurement.
"""

from __future__ import annotations

from magpy_core.findings.kernels import KernelWork
from magpy_core.products.targets.devices import Device

LAUNCH_US = 2.5
"""Microseconds from the start of one small kernel to the start of the next: about what kernels that do nothing take, one
after the other, on the devices that we know. Starting them from Python takes longer (`FEW_US`)."""

FEW_US = 5.0
"""Microseconds that starting a kernel from Python takes: a device runs kernels that are shorter faster than they come."""


def estimate(device: Device, work: KernelWork) -> tuple[float, str]:
    """Microseconds, and what bounds them: ``memory``, ``compute`` or ``launch``."""
    memory = work.bytes_moved / device.bandwidth * 1e6
    compute = work.flops / peak(device, work.dtype) * 1e6
    if max(memory, compute) <= LAUNCH_US:
        return LAUNCH_US, "launch"
    return (memory, "memory") if memory >= compute else (compute, "compute")


def peak(device: Device, dtype: str) -> float:
    """Floating-point operations per second; for a type that the device has no rate for, that of float32."""
    return device.peaks.get(dtype, device.peaks["float32"])

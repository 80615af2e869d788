"""Lets Triton specialize the kernel as a launch does, for a device that is not there. `test_row_kernel.py` runs this in a
process of its own, because functions of torch are replaced. Prints a line for each kernel."""

from __future__ import annotations

import torch
import triton.language as tl

from magpy_core._compat.torch import triton_device
from magpy_core.fused import row_kernel
from magpy_core.fused.chunks import precision_of, row_stride
from magpy_core.targets.devices import DEVICES


def main() -> None:
    device = DEVICES["cuda:sm_90"]
    triton_device.stand_in(triton_device.DeviceFigures(
        device.title, device.capability, device.multiprocessors, device.registers, device.threads, device.warp,
        device.shared_bytes, device.memory_bytes,
    ))  # fmt: skip
    for vocabulary, dtype in ((50_257, torch.bfloat16), (1, torch.float32), (5000, torch.float64), (64, torch.float16)):
        block, warps = row_kernel.configuration(vocabulary)
        number = precision_of(dtype)
        made = row_kernel.loss_rows.warmup(
            dtype, torch.int64, number, number, vocabulary, row_stride(vocabulary), -100, SMOOTHING=0.1, GRADIENT=True,
            NUMBER=tl.float64 if number is torch.float64 else tl.float32, BLOCK=block, num_warps=warps, grid=(4,),
            **row_kernel.OPTIONS,
        )  # fmt: skip
        print(vocabulary, "checks targets" if "assertfail" in made.asm["ptx"] else "checks nothing")


if __name__ == "__main__":
    main()

"""MagPy's own kernels (`fused/`) on a target: their code, and what their operators save.

Inductor sees an operator, which is listed as one: its products by a library, and the kernel that it launches between them.
Key functions: is_own, code_of, saved_bytes.
"""

from __future__ import annotations

from typing import Any

import torch.fx

from magpy_core._compat.torch import triton_device
from magpy_core._compat.torch.kernel_work import value_of
from magpy_core.findings.kernels import KernelCode
from magpy_core.fused import operators
from magpy_core.targets import ptxas
from magpy_core.targets.devices import Device

operators.register_flops()


def is_own(node: Any) -> bool:
    """Whether a node of a graph calls one of these operators."""
    return isinstance(node, torch.fx.Node) and node.target in operators.ALL


def saved_bytes(node: torch.fx.Node) -> int:
    """The memory of the logits that an operator does not have, without that of the chunks that it has."""
    rows, vocabulary, dtype = _logits(node)
    return max(rows * vocabulary * dtype.itemsize - operators.chunk_bytes(rows, vocabulary, dtype.itemsize), 0)


def _logits(node: torch.fx.Node) -> tuple[int, int, torch.dtype]:
    """The shape and the type of the logits that an operator does not have."""
    given: Any = node.args
    hidden, weight = value_of(given[0]), value_of(given[1])
    return int(hidden.shape[0]), int(weight.shape[0]), hidden.dtype


def code_of(node: torch.fx.Node, device: Device, figures: triton_device.DeviceFigures) -> KernelCode:
    """The kernel that an operator launches for each chunk of rows. Raises what Triton raises, AssemblerFailed."""
    from magpy_core.fused import row_kernel

    rows, vocabulary, dtype = _logits(node)
    smoothing: Any = node.args[5]
    gradient = node.target is not operators.LOSSES
    launched = row_kernel.specialization(vocabulary, dtype, smoothing=smoothing, gradient=gradient)
    made = triton_device.compile_function(row_kernel.loss_rows, launched, figures)
    used = ptxas.resources(made.ptx, triton_device.assembler(device.capability), device.architecture)
    grid = (operators.chunk_of(rows, vocabulary, dtype.itemsize), 1, 1)
    return KernelCode(
        row_kernel.source(), made.ptx, used.registers, used.spill_bytes, made.shared_bytes, made.num_warps, grid
    )

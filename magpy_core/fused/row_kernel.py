"""Cross entropy of rows of logits, in Triton: one program for a row. Key functions: launch, loss_rows.

Importing this module imports Triton: only what runs or compiles the kernel does.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
import triton
import triton.language as tl

from magpy_core._compat.torch.triton_device import Specialization

_LARGEST_BLOCK = 4096
_NAMES = {torch.float64: "fp64", torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}


@triton.jit(do_not_specialize=["vocabulary", "ignored"])  # type: ignore[untyped-decorator, unused-ignore]
def loss_rows(  # type: ignore[no-untyped-def]
    logits,
    target,
    scale,
    losses,
    vocabulary,
    row_stride,
    ignored,
    SMOOTHING: tl.constexpr,
    GRADIENT: tl.constexpr,
    NUMBER: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """``losses[row]``; with GRADIENT, the row of ``logits`` becomes the gradient of ``scale[row] * losses[row]``.

    A row has memory for ``row_stride`` elements, a multiple of 16: whole vectors are loaded and stored, and what is beyond
    the vocabulary does not count. NUMBER is the type of the arithmetic."""
    row = tl.program_id(0).to(tl.int64)
    logits += row * row_stride
    columns = tl.arange(0, BLOCK)
    wanted = tl.load(target + row)
    counts = wanted != ignored
    is_class = (wanted >= 0) & (wanted < vocabulary)
    tl.device_assert(is_class | (counts == 0), "a target of cross_entropy is out of bounds")
    picked = tl.load(logits + wanted, mask=is_class, other=float("nan")).to(NUMBER)
    tl.debug_barrier()  # every thread has read it before any thread writes the row

    highest = tl.full((), float("-inf"), NUMBER)
    total = tl.full((), 0.0, NUMBER)
    plain = tl.full((), 0.0, NUMBER)
    shift = tl.full((), 0.0, NUMBER)
    for start in range(0, vocabulary, BLOCK):
        at = start + columns
        x = tl.load(logits + at, mask=at < row_stride, other=0.0).to(NUMBER)
        x = tl.where(at < vocabulary, x, float("-inf"))
        above = tl.maximum(highest, tl.max(x, 0))
        shift = tl.where(above == float("-inf"), 0.0, above)  # -inf - -inf would be NaN in rows that begin with -inf
        total = total * tl.exp(highest - shift) + tl.sum(tl.exp(x - shift), 0)
        highest = above
        if SMOOTHING > 0:
            plain += tl.sum(tl.where(at < vocabulary, x, 0.0), 0)
    log_sum = shift + tl.log(total)
    loss = log_sum - picked
    if SMOOTHING > 0:
        loss = (1.0 - SMOOTHING) * loss + SMOOTHING * (log_sum - plain / vocabulary)
    tl.store(losses + row, tl.where(counts, loss, 0.0))

    if GRADIENT:
        factor = tl.load(scale + row)
        sure = tl.full((), 1.0 - SMOOTHING, NUMBER)  # `tl.where` makes float32 of Python's numbers
        for start in range(0, vocabulary, BLOCK):
            at = start + columns
            x = tl.load(logits + at, mask=at < row_stride, other=0.0).to(NUMBER)
            expected = tl.where(at == wanted, sure, 0.0)
            if SMOOTHING > 0:
                expected += SMOOTHING / vocabulary.to(NUMBER)
            change = (tl.exp(x - log_sum) - expected) * factor
            tl.store(logits + at, change.to(logits.dtype.element_ty), mask=at < row_stride)


def configuration(vocabulary: int) -> tuple[int, int]:
    """The elements of a block, and the warps that share them."""
    block = min(triton.next_power_of_2(max(vocabulary, 16)), _LARGEST_BLOCK)
    return block, 8 if block >= 2048 else 4


#: Targets are checked, as eager's kernel does; additions of integers, which Triton would check as well, are not.
OPTIONS = {"debug": True, "sanitize_overflow": False}


def specialization(vocabulary: int, dtype: torch.dtype, *, smoothing: float, gradient: bool) -> Specialization:
    """How `launch` specializes the kernel for logits of this type."""
    block, warps = configuration(vocabulary)
    number = tl.float64 if dtype is torch.float64 else tl.float32
    types = {"logits": f"*{_NAMES[dtype]}", "target": "*i64", "scale": f"*{number.name}", "losses": f"*{number.name}"}
    types |= dict.fromkeys(("vocabulary", "row_stride", "ignored"), "i32")
    constants = {"SMOOTHING": smoothing, "GRADIENT": gradient, "NUMBER": number, "BLOCK": block}
    aligned = ("logits", "target", "scale", "losses", "row_stride")
    return Specialization(types, constants, aligned, {"num_warps": warps, **OPTIONS})


def source() -> str:
    """The kernel's text."""
    return f"@triton.jit\n{loss_rows.src}"


def launch(
    logits: torch.Tensor, vocabulary: int, target: torch.Tensor, scale: torch.Tensor | None, losses: torch.Tensor,
    ignore_index: int, smoothing: float,
) -> None:  # fmt: skip
    """As `reference.compute_rows`, on the device of ``logits``."""
    rows = logits.size(0)
    if not rows:
        return
    block, warps = configuration(vocabulary)
    number = tl.float64 if losses.dtype is torch.float64 else tl.float32
    options: dict[str, Any] = OPTIONS if isinstance(loss_rows, triton.JITFunction) else {}  # else: interpreted
    with torch.cuda.device(logits.device) if logits.is_cuda else nullcontext():
        loss_rows[(rows,)](
            logits, target, losses if scale is None else scale, losses, vocabulary, logits.stride(0), ignore_index,
            SMOOTHING=smoothing, GRADIENT=scale is not None, NUMBER=number, BLOCK=block, num_warps=warps, **options,
        )  # fmt: skip

"""What Triton's interpreter does to blocks otherwise than a GPU: reductions and scans, for which it combines one pair of
elements after the other, slowly; casts to bfloat16, which it cuts off where Triton rounds.

Key function: supply. Private Triton: only these tests run kernels by the interpreter.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime.interpreter import InterpreterBuilder, ReduceOps, ScanOps, TensorHandle, _get_np_dtype

Arrays = list[Any]


def supply() -> None:
    """Replaces methods of the interpreter in this process."""
    ReduceOps.generic_reduce = _reduce
    ScanOps.generic_scan = _scan
    InterpreterBuilder.cast_impl = functools.partialmethod(_cast, InterpreterBuilder.cast_impl)
    InterpreterBuilder.create_fp_to_fp = functools.partialmethod(_cast, InterpreterBuilder.create_fp_to_fp)


def _cast(self: Any, own: Callable[..., Any], value: Any, to: Any, *rounding: Any) -> Any:
    """To and from bfloat16, whose bits the interpreter keeps as integers, by PyTorch; ``own``: the interpreter's."""
    source, target = value.dtype.scalar, to.scalar
    if (source == tl.bfloat16) == (target == tl.bfloat16):
        return own(self, value, to, *rounding)
    if target == tl.bfloat16:
        rounded = torch.from_numpy(np.array(value.data, dtype=np.float32)).bfloat16()
        return TensorHandle(rounded.view(torch.int16).numpy().view(np.uint16), target)
    wide = torch.from_numpy(np.array(value.data).view(np.int16)).view(torch.bfloat16).float()
    return TensorHandle(wide.numpy().astype(_get_np_dtype(to)), target)


def _reduce(self: Any, inputs: Sequence[Any]) -> list[Any]:
    """Neighbours are combined, and their results, and so on, as threads do."""
    rank = inputs[0].handle.data.ndim
    arrays = [np.moveaxis(each.handle.data, self.axis, 0) if self.axis is not None else each.handle.data.reshape(-1)
              for each in inputs]  # fmt: skip
    while len(arrays[0]) > 1:  # a power of two
        arrays = _combine(self, inputs, [a[::2] for a in arrays], [a[1::2] for a in arrays])
    results = [array[0] for array in arrays]
    if self.keep_dims:
        axes = self.axis if self.axis is not None else tuple(range(rank))
        results = [np.expand_dims(each, axes) for each in results]
    return [self.to_tensor(each, tensor.dtype) for each, tensor in zip(results, inputs, strict=True)]


def _scan(self: Any, inputs: Sequence[Any]) -> list[Any]:
    """Each element is combined with the one 1, 2, 4, ... before it."""
    arrays = [np.moveaxis(each.handle.data, self.axis, 0) for each in inputs]
    distance = 1
    while distance < len(arrays[0]):
        combined = _combine(self, inputs, [np.roll(a, distance, 0) for a in arrays], arrays)
        arrays = [np.concatenate([old[:distance], new[distance:]]) for new, old in zip(combined, arrays, strict=True)]
        distance *= 2
    moved = [np.moveaxis(array, 0, self.axis) for array in arrays]
    return [self.to_tensor(each, tensor.dtype) for each, tensor in zip(moved, inputs, strict=True)]


def _combine(ops: Any, inputs: Sequence[Any], left: Arrays, right: Arrays) -> Arrays:
    given = [_block(array, tensor.dtype) for side in (left, right) for array, tensor in zip(side, inputs, strict=True)]
    results = ops.combine_fn.fn(*given)
    return [each.handle.data for each in (results if isinstance(results, tuple) else (results,))]


def _block(array: Any, dtype: Any) -> Any:
    return tl.tensor(TensorHandle(np.ascontiguousarray(array), dtype.scalar), tl.block_type(dtype.scalar, list(array.shape)))

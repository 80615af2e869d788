"""Cross entropy of a linear layer in chunks of rows: products, and a kernel for the rows of a chunk.

No buffer has all rows and the whole vocabulary. Nothing is added up atomically: results don't depend on the order in which a
device works. Key functions: losses_of, gradients_of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch

from magpy_core.fused.reference import compute_rows

#: A chunk of logits takes at most so many bytes: more rows would not make its products faster.
CHUNK_BYTES = 256 << 20
#: The float32 product that is added to a gradient in half precision is made in parts of so many bytes, which caches hold.
PART_BYTES = 32 << 20
_ROWS = 128  # what matrix products take at a time
_ALIGNED = 64  # elements: rows of a chunk begin where tensor cores load whole vectors

Rows = Callable[[torch.Tensor, int, torch.Tensor, "torch.Tensor | None", torch.Tensor, int, float], None]


class Head(NamedTuple):
    """A linear layer and its loss: ``hidden`` [rows, width], ``weight`` [vocabulary, width], ``bias`` [vocabulary] or None,
    ``target`` [rows]."""

    hidden: torch.Tensor
    weight: torch.Tensor
    bias: torch.Tensor | None
    target: torch.Tensor
    ignore_index: int
    smoothing: float

    @property
    def precision(self) -> torch.dtype:
        """Of losses and sums."""
        return precision_of(self.hidden.dtype)


def precision_of(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype is torch.float64 else torch.float32


def row_stride(vocabulary: int) -> int:
    return _rounded_up(vocabulary, _ALIGNED)


def chunk_rows(rows: int, vocabulary: int, itemsize: int) -> int:
    """The rows of a chunk: as many as fit, in chunks of about the same size."""
    fitting = max(CHUNK_BYTES // (row_stride(vocabulary) * itemsize) // _ROWS, 1) * _ROWS
    chunks = max(math.ceil(rows / fitting), 1)
    return max(_rounded_up(math.ceil(rows / chunks), _ROWS), _ROWS)


def _rounded_up(number: int, multiple: int) -> int:
    return math.ceil(number / multiple) * multiple


def losses_of(head: Head, rows: Rows | None = None) -> torch.Tensor:
    """The loss of each row; 0 where it is ignored."""
    losses = head.hidden.new_empty(head.hidden.size(0), dtype=head.precision)
    with _without_autocast(head):
        for part, logits in _chunks(head):
            (rows or _rows(head))(
                logits, head.weight.size(0), head.target[part], None, losses[part], head.ignore_index, head.smoothing
            )
    return losses


def gradients_of(
    head: Head, scale: torch.Tensor, wanted: tuple[bool, bool, bool], rows: Rows | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The losses, and the gradients of ``(scale * losses).sum()`` with respect to hidden, weight and bias. What is not
    ``wanted`` has no elements."""
    hidden, weight = head.hidden, head.weight
    scale = torch.where(head.target != head.ignore_index, scale, 0)
    losses = hidden.new_empty(hidden.size(0), dtype=head.precision)
    of_hidden = hidden.new_empty(hidden.shape if wanted[0] else (0,))
    of_weight = hidden.new_zeros(weight.shape if wanted[1] else (0,), dtype=head.precision)
    of_bias = hidden.new_zeros(weight.shape[:1] if wanted[2] else (0,), dtype=head.precision)
    with _without_autocast(head):
        for part, chunk in _chunks(head):
            (rows or _rows(head))(
                chunk, weight.size(0), head.target[part], scale[part], losses[part], head.ignore_index, head.smoothing
            )
            change = chunk[:, : weight.size(0)]
            if wanted[0]:
                torch.mm(change, weight, out=of_hidden[part])
            if wanted[1]:
                _add_product(of_weight, change, hidden[part])
            if wanted[2]:
                of_bias += change.sum(0, dtype=head.precision)
            del chunk, change  # the memory of the last one is free when the sums are rounded
    return losses, of_hidden, of_weight.to(weight.dtype), of_bias.to(weight.dtype)


def _chunks(head: Head) -> Iterator[tuple[slice, torch.Tensor]]:
    """The rows and the logits of each chunk, all in the same memory."""
    rows, vocabulary = head.hidden.size(0), head.weight.size(0)
    size = chunk_rows(rows, vocabulary, head.hidden.element_size())
    memory = head.hidden.new_empty(min(size, rows), row_stride(vocabulary))
    for start in range(0, rows, size):
        part = slice(start, min(start + size, rows))
        chunk = memory[: part.stop - start]
        logits, weight = chunk[:, :vocabulary], head.weight.t()
        if head.bias is None:
            torch.mm(head.hidden[part], weight, out=logits)
        else:
            torch.addmm(head.bias, head.hidden[part], weight, out=logits)
        yield part, chunk


def _add_product(total: torch.Tensor, change: torch.Tensor, hidden: torch.Tensor) -> None:
    """``total += change.t() @ hidden``, in the precision of ``total``."""
    if total.dtype == change.dtype:
        total.addmm_(change.t(), hidden)
        return
    step = max(PART_BYTES // (total.size(1) * total.element_size()), 1)
    for start in range(0, total.size(0), step):
        part = change[:, start : start + step].t()
        if change.is_cuda:
            total[start : start + step] += torch.mm(part, hidden, out_dtype=total.dtype)
        else:  # torch has that product on CUDA only
            total[start : start + step].addmm_(part.to(total.dtype), hidden.to(total.dtype))


def _rows(head: Head) -> Rows:
    if head.hidden.is_cuda:
        from magpy_core.fused.row_kernel import launch

        return launch
    return compute_rows


def _without_autocast(head: Head) -> torch.autocast:
    """The caller has cast; autocast would cast the sums as well."""
    return torch.autocast(head.hidden.device.type, enabled=False)

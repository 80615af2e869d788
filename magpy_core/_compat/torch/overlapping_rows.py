"""Which tensors in the same memory overlap, for AOTAutograd and Inductor. Key function: overlaps_found.

torch (2.11 to 2.15) decides that two matrices do not overlap if the rows of the one end before a row of the other, although
the other's rows may be wide: ``x[1:3, 1:3]`` does not overlap ``x``. AOTAutograd then lets an input be written beside one
that shows the same elements, and Inductor writes a result into memory that is read later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import torch


@contextmanager
def overlaps_found() -> Iterator[None]:
    """In the block, overlapping matrices are found. Needs the compile lock: it replaces functions of torch for all
    threads."""
    from torch._functorch._aot_autograd import input_output_analysis
    from torch._inductor.fx_passes import reinplace

    name = "compute_overlapping_tensors"
    before: list[tuple[Any, Any]] = [
        (one, vars(one)[name]) for one in (input_output_analysis, reinplace) if name in vars(one)
    ]
    for module, original in before:
        setattr(module, name, _with_rows(original))
    try:
        yield
    finally:
        for module, original in before:
            setattr(module, name, original)


def _with_rows(find: Callable[..., set[int]]) -> Callable[..., set[int]]:
    def compute_overlapping_tensors(tensors: Sequence[torch.Tensor], *args: Any, **kwargs: Any) -> set[int]:
        found = set(find(tensors, *args, **kwargs))
        for (i, one), (j, other) in combinations(enumerate(tensors), 2):
            if not found.issuperset((i, j)) and _rows_overlap(one, other):
                found |= {i, j}
        return found

    return compute_overlapping_tensors


def _rows_overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors in the same memory are matrices whose rows, equally far apart, have elements in common, or may
    have: their sizes vary."""
    if not (one.dim() == other.dim() == 2):
        return False
    numbers = [*one.shape, *other.shape, *one.stride(), *other.stride(), one.storage_offset(), other.storage_offset()]
    if any(type(number) is not int for number in numbers):
        return True
    step = one.stride(0)
    if one.stride() != other.stride() or one.stride(1) != 1 or step < 1 or not one.numel() or not other.numel():
        return False  # torch compares these as they are
    first, second = sorted((one, other), key=torch.Tensor.storage_offset)
    apart = second.storage_offset() - first.storage_offset()
    if apart >= (first.shape[0] - 1) * step + first.shape[1]:
        return False  # the second begins after the end of the first
    column = apart % step
    return column < first.shape[1] or column + second.shape[1] > step

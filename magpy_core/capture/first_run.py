"""The first run of a compiled graph that changes its inputs: what a compiler got wrong may come to light there, too late.

Operations that only ever raise for what a guard watches need no copies of what they change. The code around a compiled graph
is another matter: where torch's wrapper raises (a view of an output that it can't make again, say), the inputs have been
changed already. Key function: first_run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from magpy_core.capture.parts import CaptureFailed, restore_input


def first_run(fn: Callable[[list[Any]], Any], inputs: list[Any], written: Sequence[torch.Tensor]) -> Any:
    """``fn(inputs)``. If it raises, ``written`` hold again what they held, and CaptureFailed (MP902) is raised."""
    try:
        saved = [(tensor, tensor.detach().clone()) for tensor in written]
    except torch.OutOfMemoryError:
        saved = []  # memory is tight, and a compiler's mistake is unlikely: without the copies, as in every later run
    try:
        return fn(inputs)
    except Exception as error:
        for tensor, backup in saved:
            restore_input(tensor, backup)
        what = f"{type(error).__name__}: {str(error)[:160]}"
        raise CaptureFailed("MP902", f"The compiled graph of the region failed in its first run ({what}).") from error

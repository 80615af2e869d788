"""The first run of a compiled graph that changes its inputs: if it raises, the inputs are put back.

Recorded operations that raise only for what a guard checks need no copies of what they change. Compiled code does: where
torch's wrapper around it raises (it can't rebuild a view of an output, say), the inputs have been changed already.
Key function: first_run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from magpy_core.capture.outcome import CaptureFailed
from magpy_core.capture.undo import restore_input


def first_run(fn: Callable[[list[Any]], Any], inputs: list[Any], written: Sequence[torch.Tensor]) -> Any:
    """``fn(inputs)``. If it raises, ``written`` hold again what they held, and CaptureFailed (MP902) is raised."""
    try:
        saved = [(tensor, tensor.detach().clone()) for tensor in written]
    except torch.OutOfMemoryError:
        saved = []  # memory is short and the graph hardly ever raises: no copies, as in every later run
    try:
        return fn(inputs)
    except Exception as error:
        for tensor, backup in saved:
            restore_input(tensor, backup)
        what = f"{type(error).__name__}: {str(error)[:160]}"
        raise CaptureFailed("MP902", f"The compiled graph of the region failed in its first run ({what}).") from error

"""Results that are differentiated twice (a gradient penalty: ``autograd.grad(..., create_graph=True)``), or one after the
other (``a.backward(); b.backward()``).

No graph of AOTAutograd supports either: it is one node for all results, and the second backward pass raises. A program that
does it does so from its first step on, so the results of recorded calls, computed in eager mode, are watched.
Key function: `watch`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch

from magpy_core._compat.torch.surroundings import backward_pass
from magpy_core.regions.timing.autograd_hooks import on_backward

TWICE, APART = "twice", "one after the other"
HINTS = {
    TWICE: "Compiled graphs don't support `create_graph=True`. Compile only parts outside the gradient penalty.",
    APART: "The first `backward()` through a compiled graph frees the graph of all its results. Use one pass: "
    "`torch.autograd.backward([a, b])`.",
}


def watch(result: Any, callback: weakref.WeakMethod[Callable[[str], None]]) -> None:
    """Calls ``callback`` with TWICE whenever a backward pass through ``result`` is part of a graph itself, with APART when
    another pass follows one that has freed what the graph saved."""
    freed_by: set[int] = set()

    def before_backward(gradients: Any) -> None:
        number, keeps = backward_pass()
        how = TWICE if torch.is_grad_enabled() else APART if freed_by - {number} else ""
        if not keeps:
            freed_by.add(number)
        if how and (report := callback()) is not None:
            report(how)

    on_backward(result, before_backward)

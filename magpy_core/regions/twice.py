"""Results that are differentiated twice (a gradient penalty: ``autograd.grad(..., create_graph=True)``), or one after the
other (``a.backward(); b.backward()``).

No graph of AOTAutograd supports either: it is one node for all results, and the second backward pass raises. A program that
does it does so from its first step on, so the results of recorded calls, computed in plain Python, are watched.
Key function: `watch`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch

from magpy_core._compat.torch.surroundings import backward_pass
from magpy_core._compat.torch.tensor_guards import no_torch_function
from magpy_core.refgraph import natives
from magpy_core.refgraph.kinds import is_a

TWICE, APART = "twice", "one after the other"
HINTS = {
    TWICE: "Compiled graphs don't support `create_graph=True`. Compile only parts outside the gradient penalty.",
    APART: "The first `backward()` through a compiled graph frees the graph of all its results. Use one pass: "
    "`torch.autograd.backward([a, b])`.",
}
_DEPTH = 4


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

    with no_torch_function():
        for tensor in _tensors(result, _DEPTH):
            try:
                node = tensor.grad_fn
            except RuntimeError:  # a view that may not be used any more
                continue
            if node is not None:
                node.register_prehook(before_backward)


def has_history(result: Any) -> bool:
    """Whether a tensor of ``result`` takes part in autograd."""
    with no_torch_function():
        return any(tensor.requires_grad for tensor in _tensors(result, _DEPTH))


def _tensors(value: Any, depth: int) -> Iterator[torch.Tensor]:
    if is_a(value, torch.Tensor):
        yield value
    elif depth and is_a(value, (list, tuple, dict)):
        for part in dict.values(value) if is_a(value, dict) else natives.elements(value):
            yield from _tensors(part, depth - 1)

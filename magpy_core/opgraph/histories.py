"""Which graph inputs a backward pass through the region reaches. Key function: `out_of_reach`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


def out_of_reach(inputs: Iterable[torch.Tensor], made: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """Those of ``inputs`` that take part in autograd, while nothing in ``made`` has them in its history."""
    tracked = [t for t in inputs if t.requires_grad]
    if not tracked:
        return []
    ends = {t.grad_fn for t in tracked if t.grad_fn is not None}
    left: list[Any] = [t.grad_fn for t in made if t.grad_fn is not None and t.grad_fn not in ends]
    seen, leaves, met = set(left), set(), set()
    while left:
        for node, _ in left.pop().next_functions:
            if node is None or node in seen:
                continue
            seen.add(node)
            if type(node).__name__ == "AccumulateGrad":
                leaves.add(id(node.variable))
            elif node in ends:
                met.add(node)
            else:
                left.append(node)
    return [t for t in tracked if (id(t) not in leaves if t.grad_fn is None else t.grad_fn not in met)]

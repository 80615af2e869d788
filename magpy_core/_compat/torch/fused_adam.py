"""torch's own kernel for the updates of Adam and AdamW, for all parameters at once. Key function: `fused_adam`.

``torch._fused_adam_`` and ``torch._fused_adamw_`` are what ``fused=True`` uses; they have CPU kernels since torch 2.4.
Private, and can go when ``torch.optim`` has public functions that update lists of tensors so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

Tensors = Sequence[torch.Tensor]
Number = float | torch.Tensor
"""Also as a 0-d tensor."""


def has_fused_adam() -> bool:
    """Whether this torch has both kernels."""
    return hasattr(torch, "_fused_adam_") and hasattr(torch, "_fused_adamw_")


def fused_adam(
    params: Tensors, gradients: Tensors, averages: Tensors, squares: Tensors, steps: Tensors, rate: Number,
    kept: Number | None, beta1: float, beta2: float, decay: float, eps: float,
) -> None:  # fmt: skip
    """One step, in place, which autograd sees as a write of each tensor. ``params``, ``averages`` and ``squares``:
    contiguous, of equal shapes and float32; ``steps``: 0-d float32, counted up here; ``rate``: the learning rate; ``kept``:
    AdamW's ``1 - rate * decay``, None for Adam's decay."""
    learning_rate = float(rate)
    update: Any = torch._fused_adam_ if kept is None else torch._fused_adamw_
    if kept is not None:
        decay = (1 - float(kept)) / learning_rate if learning_rate else 0.0
    count: Any = torch._foreach_add_
    with torch.no_grad():
        count(steps, torch.ones(()), alpha=1.0)  # a number would be made a tensor for each of them
        update(
            params, [one if one.is_contiguous() else one.contiguous() for one in gradients], averages, squares, [], steps,
            lr=learning_rate, beta1=beta1, beta2=beta2, weight_decay=decay, eps=eps, amsgrad=False, maximize=False,
        )  # fmt: skip
        # The kernel counts no version: a backward pass of an older graph would silently use the new parameters.
        torch.autograd.graph.increment_version((*params, *averages, *squares))

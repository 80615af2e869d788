"""Cross entropy of rows of logits by ATen's operators: what the kernel computes, for devices without it.

Key function: compute_rows.
"""

from __future__ import annotations

import torch


def compute_rows(
    logits: torch.Tensor, vocabulary: int, target: torch.Tensor, scale: torch.Tensor | None, losses: torch.Tensor,
    ignore_index: int, smoothing: float,
) -> None:  # fmt: skip
    """Writes ``losses``, in their precision; 0 for ignored rows. With ``scale``, the rows of ``logits`` become the gradient
    of ``(scale * losses).sum()``. ``logits``: rows of more elements than ``vocabulary``, of which the first ones count.
    Raises RuntimeError for a target that is no class."""
    logits = logits[:, :vocabulary]
    numbers = logits.to(losses.dtype)
    counts = target != ignore_index
    position = torch.where(counts, target, 0)[:, None]
    highest = numbers.amax(1)
    shift = torch.where(highest == float("-inf"), 0, highest)  # not `logsumexp`: infinity is NaN, as in `log_softmax`
    log_sum = shift + (numbers - shift[:, None]).exp().sum(1).log()
    loss = log_sum - numbers.gather(1, position)[:, 0]
    if smoothing:
        loss = (1 - smoothing) * loss + smoothing * (log_sum - numbers.mean(1))
    losses.copy_(torch.where(counts, loss, 0))
    if scale is not None:
        change = (numbers - log_sum[:, None]).exp()
        change.scatter_add_(1, position, change.new_full((), smoothing - 1).expand_as(position))
        logits.copy_((change - smoothing / vocabulary) * scale[:, None])

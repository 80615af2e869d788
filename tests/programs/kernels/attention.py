"""Memory-efficient attention on the CPU, where ATen has none: by products and a softmax, with the results that the CUDA
operator has. Key function: supply.
"""

from __future__ import annotations

import math
from typing import Any

import torch

_LIBRARY = torch.library.Library("aten", "IMPL")


def supply() -> None:
    """Registers the operator and its backward pass in this process."""
    _LIBRARY.impl("_scaled_dot_product_efficient_attention", _forward, "CPU")
    _LIBRARY.impl("_scaled_dot_product_efficient_attention_backward", _backward, "CPU")


def _scores(
    query: torch.Tensor, key: torch.Tensor, bias: torch.Tensor | None, is_causal: bool, scale: float | None
) -> torch.Tensor:
    scores = query @ key.transpose(-2, -1) * (scale if scale is not None else 1 / math.sqrt(query.size(-1)))
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
    return scores if bias is None else scores + bias


def _forward(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: torch.Tensor | None, with_logsumexp: bool,
    dropout_p: float = 0.0, is_causal: bool = False, *, scale: float | None = None,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    assert not dropout_p
    scores = _scores(query, key, bias, is_causal, scale)
    result = (scores.softmax(-1) @ value).transpose(1, 2).contiguous().transpose(1, 2)
    # the CUDA operator pads its rows to a multiple of 32
    rows = (query.size(2) + 31) // 32 * 32 if with_logsumexp else 0
    logsumexp = torch.full((*query.shape[:2], rows), math.inf)
    if with_logsumexp:
        logsumexp[..., : query.size(2)] = scores.logsumexp(-1)
    return result, logsumexp, torch.zeros((), dtype=torch.int64), torch.zeros((), dtype=torch.int64)


def _backward(
    grad_out: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: torch.Tensor | None,
    out: torch.Tensor, logsumexp: torch.Tensor, seed: torch.Tensor, offset: torch.Tensor, dropout_p: float,
    mask: Any, is_causal: bool = False, *, scale: float | None = None,
) -> tuple[torch.Tensor | None, ...]:  # fmt: skip
    scores = _scores(query, key, bias, is_causal, scale)
    weights = (scores - logsumexp[..., : query.size(2), None]).exp()
    factor = scale if scale is not None else 1 / math.sqrt(query.size(-1))
    of_weights = grad_out @ value.transpose(-2, -1)
    of_scores = weights * (of_weights - (grad_out * out).sum(-1, keepdim=True))
    gradients = (
        of_scores @ key * factor,
        of_scores.transpose(-2, -1) @ query * factor,
        weights.transpose(-2, -1) @ grad_out,
    )
    laid_out = [each.transpose(1, 2).contiguous().transpose(1, 2) for each in gradients]
    return *laid_out, of_scores if bias is not None and mask[3] else None

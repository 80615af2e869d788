"""Losses and embeddings, with their backward passes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.kernels.program import Case, leaf, program


@program()
def cross_entropy() -> Case:
    def region(x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(x, labels, ignore_index=3)

    return Case(region, lambda i: (leaf(12, 65), torch.randint(0, 65, (12,)).index_fill(0, torch.tensor([2]), 3)))


@program()
def smoothed_cross_entropy() -> Case:
    def region(x: torch.Tensor, labels: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(x, labels, weight, label_smoothing=0.1)

    return Case(region, lambda i: (leaf(9, 20), torch.randint(0, 20, (9,)), torch.rand(20)))


@program()
def other_losses() -> Case:
    def region(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            F.mse_loss(x, y), F.smooth_l1_loss(x, y), F.binary_cross_entropy_with_logits(x, y.sigmoid()),
            F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction="batchmean"), F.huber_loss(x, y, delta=0.5),
        )  # fmt: skip

    return Case(region, lambda i: (leaf(8, 30), torch.randn(8, 30)))


@program()
def embedding() -> Case:
    """Its gradient is added up by atomic operations."""
    model = nn.Embedding(20, 24, padding_idx=4)
    return Case(lambda words: model(words).tanh(), lambda i: (torch.randint(0, 20, (5, 11)),), {"model": model})


@program()
def summed_embeddings() -> Case:
    words, places = nn.Embedding(30, 16), nn.Embedding(10, 16)

    def region(x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(words(x) + places(torch.arange(x.shape[1])), (16,))

    return Case(region, lambda i: (torch.randint(0, 30, (3, 10)),), {"words": words, "places": places})


@program()
def tied_weights() -> Case:
    table = nn.Embedding(33, 16)

    def region(x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(F.linear(table(x).relu(), table.weight), labels)

    return Case(region, lambda i: (torch.randint(0, 33, (14,)), torch.randint(0, 33, (14,))), {"table": table})

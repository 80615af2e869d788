"""Convolutions, whose products ATen computes, with what is fused after them; pooling; resizing."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.programs.kernels.program import Case, leaf, program


@program()
def convolution_bias_relu() -> Case:
    model = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU())
    return Case(lambda x: model(x), lambda i: (leaf(2, 3, 8, 9),), {"model": model})


@program(tolerance=(1e-4, 1e-4))
def residual_block() -> Case:
    first, second = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.Conv2d(4, 4, 3, padding=1)
    norm = nn.BatchNorm2d(4)

    def region(x: torch.Tensor) -> torch.Tensor:
        return F.relu(x + second(F.relu(norm(first(x)))))

    return Case(region, lambda i: (leaf(2, 4, 7, 7),), {"first": first, "second": second, "norm": norm})


@program()
def pooling() -> Case:
    def region(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return F.max_pool2d(x, 2), F.avg_pool2d(x, 3, 2, 1), F.adaptive_avg_pool2d(x, 1), F.max_pool2d(x, 3, 2, 1)

    return Case(region, lambda i: (leaf(2, 3, 8, 10),))


@program()
def resizing() -> Case:
    def region(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            F.interpolate(x, scale_factor=2.0), F.interpolate(x, size=(9, 11), mode="bilinear"),
            F.pixel_shuffle(x, 2),
        )  # fmt: skip

    return Case(region, lambda i: (leaf(2, 4, 5, 6),))


@program()
def depthwise_and_transposed() -> Case:
    first, kernel = nn.Conv1d(6, 6, 3, groups=6), leaf(6, 3, 4)

    def region(x: torch.Tensor) -> torch.Tensor:
        return F.conv_transpose1d(F.gelu(first(x)), kernel, stride=2)

    return Case(region, lambda i: (leaf(2, 6, 12),), {"first": first, "kernel": kernel})

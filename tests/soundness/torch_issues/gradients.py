"""Gradients of results: right results whose derivatives are wrong, or are lost."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.soundness.torch_issues.case import Made, case


def _leaf(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, requires_grad=True)


@case(
    182012, "The gradient of a tensor into whose diagonal something is put is 0 everywhere.", compiled="right", ours="right"
)
def diagonal_scatter() -> Made:
    return lambda x, s: torch.diagonal_scatter(x, s, 0).sum(), lambda: (_leaf(8, 8), _leaf(8))


@case(180164, "The gradient of a tensor into which a slice is put, summed along it, is 0.", compiled="right", ours="right")
def slice_scatter_summed() -> Made:
    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.slice_scatter(x, y, dim=1, start=0, end=6).sum(dim=1)

    return step, lambda: (_leaf(4, 13, 33), _leaf(4, 6, 33))


@case(180771, "The gradient of a tensor into which a slice is put is 0 beside it, too.", compiled="right", ours="right")
def slice_scatter() -> Made:
    return lambda x, y: torch.slice_scatter(x, y, dim=0, start=0, end=2).sum(), lambda: (_leaf(5), _leaf(2))


@case(
    185509,
    "The gradients of interpolation, convolution and pooling with a mask are far off.",
    compiled="right",
    ours="right",
)
def interpolated_convolution() -> Made:
    def step(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        y = F.interpolate(x, scale_factor=(1.5, 1.25), mode="bilinear", align_corners=False)[:, :, 1:7, 1:8]
        conv = F.conv2d(y, w, b, padding=1)
        pool = F.max_pool2d(conv, kernel_size=3, stride=1, padding=1)
        return torch.where(conv > pool.mean(dim=(2, 3), keepdim=True), conv, pool)

    return step, lambda: (_leaf(2, 3, 8, 8), _leaf(4, 3, 3, 3), _leaf(4))


@case(152309, "The gradient of attention with equal weights is not 0 where it should be.", compiled="right", ours="right")
def attention_of_equals() -> Made:
    def step(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        q, k, v = (x @ w).chunk(3, -1)
        return torch.softmax(q @ k.transpose(-1, -2) / 8, -1) @ v

    return step, lambda: (torch.randn(2, 6, 16), torch.full((16, 48), 0.1, requires_grad=True))


@case(181581, "A gradient that is to be differentiated again has no history.", ours="right")
def gradient_of_gradient() -> Made:
    def step(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        (g,) = torch.autograd.grad((x @ w).relu().square().sum(), x, create_graph=True)
        return g.square().sum()

    return step, lambda: (_leaf(3, 4), _leaf(4, 2))


@case(128035, "The gradient of an argument that is written after it was detached is 0.", compiled="right", ours="right")
def written_after_detach() -> Made:
    def step(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        kept = y.detach()
        y.mul_(2)
        return y.sum() + kept.sum()

    return step, lambda: (_leaf(3),)


@case(194760, "Views that have a gradient lose it if their base is returned detached.")
def detached_sibling() -> Made:
    def step(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        h = x * 2
        return h[0], h[1], h.detach()

    return step, lambda: (_leaf(2, 3),)


@case(114344, "Of two equal results, one computed without gradients, both have none.", compiled="right", ours="right")
def equal_with_and_without() -> Made:
    def step(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        with torch.no_grad():
            a = x + 1
        return a, x + 1

    return step, lambda: (_leaf(10),)


@case(176854, "Detaching a tensor in place leaves it as it was.", compiled="right", ours="right")
def detached_in_place() -> Made:
    def step(x: torch.Tensor) -> tuple[torch.Tensor, bool]:
        y = x * 2.0
        y.detach_()
        return y + 1.0, y.requires_grad

    return step, lambda: (_leaf(4),)


@case(100793, "The gradient of a reflection with a negative side is wrong.", compiled="right", ours="right")
def reflection_gradient() -> Made:
    return lambda x: F.pad(x, [-1, 0, 6, 6], mode="reflect"), lambda: (_leaf(2, 3, 7, 2),)

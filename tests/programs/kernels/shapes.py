"""Joined, split, padded and transposed tensors, and views with unusual strides."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.programs.kernels.program import Case, leaf, program


@program()
def cat_and_split() -> Case:
    def region(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        joined = torch.cat([x.sin(), y, x * 2], 1)
        first, second = joined.split([9, joined.shape[1] - 9], 1)
        return first.exp(), second * 3, torch.stack([x, x + 1], 2)

    return Case(region, lambda i: (leaf(4, 7), leaf(4, 5)))


@program()
def padding() -> Case:
    def region(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return F.pad(x, (1, 2, 3, 0), value=0.5) * 2, F.pad(x, (2, 2, 1, 1), mode="reflect"), F.pad(x, (-1, 1))

    return Case(region, lambda i: (leaf(2, 3, 6, 7),))


@program()
def transposed() -> Case:
    def region(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.t() + y, (x.t() * y).contiguous().sum(1), x.t().reshape(-1)[::3].exp()

    return Case(region, lambda i: (leaf(33, 21), leaf(21, 33)))


@program()
def unusual_strides() -> Case:
    def region(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x * y + 1, x.unfold(0, 4, 3).sum(-1), x.flip(0) - y, x.roll(2, 1), y.expand(2, -1, -1) * 2

    def args(i: int) -> tuple[torch.Tensor, ...]:
        return torch.randn(26, 30)[::2, 1::3], torch.randn(10, 13).t()

    return Case(region, args)


@program()
def windows() -> Case:
    def region(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        left, right = x.chunk(2, -1)
        return F.silu(left) * right, x.unfold(1, 6, 2).amax(-1), x.repeat(2, 1), x.repeat_interleave(3, 0)

    return Case(region, lambda i: (leaf(5, 22),))


@program()
def rotary() -> Case:
    def region(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
        even, odd = x[..., ::2], x[..., 1::2]
        cos, sin = angles.cos(), angles.sin()
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)

    return Case(region, lambda i: (leaf(2, 3, 7, 8), torch.randn(7, 4)))


@program()
def writes_through_views() -> Case:
    def region(x: torch.Tensor) -> torch.Tensor:
        x[:, 1::2] = x[:, ::2] * 2
        x.t()[3].add_(1)
        x.view(-1)[5:20].mul_(0.5)
        return x.sum(1)

    return Case(region, lambda i: (torch.randn(6, 8),))

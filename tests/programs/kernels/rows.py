"""Reductions, and what is computed row by row."""

from __future__ import annotations

import torch

from tests.programs.kernels.program import Case, leaf, program


@program()
def sums() -> Case:
    def region(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.sum(), x.sum(0), x.mean(1), x.square().sum((0, 2)), x.amax(2), x.amin((0, 1))

    return Case(region, lambda i: (leaf(4, 9, 35),))


@program()
def long_rows() -> Case:
    def region(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.exp().sum(1), x.amax(1), (x * 2).mean(1)

    return Case(region, lambda i: (leaf(3, 5003),))


@program(tolerance=(1e-4, 1e-4))
def whole_tensor() -> Case:
    """Reduced in two kernels."""

    def region(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (x * x).sum(), x.max()

    return Case(region, lambda i: (torch.randn(300, 301),))


@program()
def columns() -> Case:
    def region(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.sum(0), x.amax(0), x.softmax(0)

    return Case(region, lambda i: (leaf(130, 12),))


@program()
def variance() -> Case:
    def region(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        variance, mean = torch.var_mean(x, 1)
        return variance, mean, x.std(), x.norm(dim=1)

    return Case(region, lambda i: (leaf(6, 70),))


@program()
def softmax() -> Case:
    return Case(lambda x: torch.softmax(x * 3, -1), lambda i: (leaf(11, 67),))


@program()
def long_softmax() -> Case:
    return Case(lambda x: torch.softmax(x, -1), lambda i: (leaf(2, 3000),))


@program()
def log_softmax() -> Case:
    return Case(lambda x: (torch.log_softmax(x, 1), torch.logsumexp(x, 0)), lambda i: (leaf(8, 100),))


@program()
def cumulative() -> Case:
    return Case(lambda x: (x.cumsum(1), x.cumsum(0), (x.sigmoid() + 0.5).cumprod(1)), lambda i: (leaf(5, 40),))


@program(tolerance=(1e-3, 1e-3))
def long_cumulative() -> Case:
    """Its blocks wait for the sums of those before."""
    return Case(lambda x: x.cumsum(0), lambda i: (torch.randn(9000),))


@program()
def logcumsumexp() -> Case:
    return Case(lambda x: torch.logcumsumexp(x, 1), lambda i: (torch.randn(5, 40),))


@program()
def positions_of_extremes() -> Case:
    def region(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values, places = x.max(1)
        return x.argmax(1), x.argmin(0), values, places, x.argmax()

    return Case(region, lambda i: (torch.randn(13, 41).round(decimals=1),))


@program()
def product_and_logic() -> Case:
    def region(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (x.abs() + 0.5).prod(1), (x > 2).any(1), (x > -2).all(0), (x > 0).sum(1)

    return Case(region, lambda i: (torch.randn(9, 20),))

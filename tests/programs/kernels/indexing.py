"""Elements that are chosen by other tensors."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.programs.kernels.program import Case, leaf, program


@program()
def gather() -> Case:
    return Case(lambda x, at: x.gather(1, at).exp(), lambda i: (leaf(6, 15), torch.randint(0, 15, (6, 8))))


@program()
def scatter_add() -> Case:
    def region(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return torch.zeros(6, 15).scatter_add(1, at, x.sin()) * 2

    return Case(region, lambda i: (leaf(6, 20), torch.randint(0, 15, (6, 20))))


@program()
def index_add() -> Case:
    def region(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return torch.zeros(7, 5).index_add(0, at, x)

    return Case(region, lambda i: (leaf(18, 5), torch.randint(0, 7, (18,))))


@program()
def select_rows() -> Case:
    def region(x: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x[at] * 2, x.index_select(1, at.abs() % 9), x[at, at], x[:, -3]

    return Case(region, lambda i: (leaf(9, 9), torch.randint(-9, 9, (5,))))


@program()
def index_put() -> Case:
    def region(x: torch.Tensor, at: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        x[at] = values.sin()
        x[0, 2:4] += 1
        return x * 2

    return Case(region, lambda i: (torch.randn(9, 6), torch.tensor([7, 2, 5]), torch.randn(3, 6)))


@program()
def index_put_that_adds() -> Case:
    def region(x: torch.Tensor, at: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        return x.index_put((at,), values.cos(), accumulate=True)

    return Case(region, lambda i: (leaf(9, 6), torch.randint(0, 9, (20,)), leaf(20, 6)))


@program()
def one_hot_and_triangles() -> Case:
    def region(x: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return F.one_hot(at, 8).float() @ x, x.tril(), x.triu(1), x.diagonal() + 1

    return Case(region, lambda i: (leaf(8, 8), torch.randint(0, 8, (5,))))


@program()
def bucketize() -> Case:
    def region(x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        return torch.bucketize(x * 2, edges) + 1

    return Case(region, lambda i: (torch.randn(30), torch.linspace(-2, 2, 9)))


@program()
def sorting() -> Case:
    def region(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values, places = (x * 2).sort(1)
        return values, places

    return Case(region, lambda i: (torch.randn(5, 24),))


@program(tolerance=(2e-2, 2e-2))
def sums_in_bfloat16() -> Case:
    """By ATen: there are no atomic operations on bfloat16 that Inductor uses."""

    def region(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return torch.zeros(7, 5, dtype=torch.bfloat16).index_add(0, at, x)

    return Case(region, lambda i: (leaf(18, 5, dtype=torch.bfloat16), torch.randint(0, 7, (18,))))


@program()
def guarded_indices() -> Case:
    """The kernel checks that they are inside."""

    def region(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return x[at * 2 - 9].sum(1)

    return Case(region, lambda i: (leaf(11, 6), torch.randint(0, 9, (5, 7))))


@program()
def largest() -> Case:
    def region(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values, places = (x * 2).topk(3, 1)
        return values + 1, places

    return Case(region, lambda i: (leaf(5, 24),))

"""Results of graphs that differentiate require a gradient exactly where eager mode's do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import magpy_core
from magpy_core.regions.api import region_of

WEIGHT = torch.ones(4, 6, requires_grad=True)


def _leaf_and_gradient(x: torch.Tensor, *, again: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    leaf = x.detach().requires_grad_()
    (gradient,) = torch.autograd.grad((leaf * WEIGHT).sin().sum(), leaf, create_graph=again)
    return leaf, gradient


def the_leaf(x: torch.Tensor) -> torch.Tensor:
    return _leaf_and_gradient(x)[0]


def a_part_of_the_leaf(x: torch.Tensor) -> torch.Tensor:
    return _leaf_and_gradient(x)[0][:2]


def computed_from_the_leaf(x: torch.Tensor) -> torch.Tensor:
    leaf, gradient = _leaf_and_gradient(x)
    return leaf + 0.1 * gradient.sign()


def written_after(x: torch.Tensor) -> torch.Tensor:
    leaf, gradient = _leaf_and_gradient(x)
    x.copy_(gradient)
    return leaf.split(2)[0]


def detached(x: torch.Tensor) -> torch.Tensor:
    return computed_from_the_leaf(x).detach()


def penalty(x: torch.Tensor) -> torch.Tensor:
    return _leaf_and_gradient(x, again=True)[1].square().sum()


@pytest.mark.parametrize(
    ("program", "served"),
    [(the_leaf, 0), (a_part_of_the_leaf, 0), (computed_from_the_leaf, 0), (written_after, 0), (detached, 2), (penalty, 2)],
)
def test_a_leaf_that_is_made_inside(program: Callable[[torch.Tensor], torch.Tensor], served: int) -> None:
    compiled = magpy_core.compile(program, backend="aot_eager", wait=True)
    for _ in range(3):
        plain = torch.rand(4, 6)
        ours = plain.clone()
        expected, found = program(plain), compiled(ours)
        assert found.requires_grad == expected.requires_grad and found.is_leaf == expected.is_leaf
        assert torch.equal(found, expected) and torch.equal(ours, plain)
        shares = [
            one.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
            for one, x in ((expected, plain), (found, ours))
        ]
        assert shares[0] == shares[1]
        if program is penalty:
            gradients = [torch.autograd.grad(one, WEIGHT)[0] for one in (expected, found)]
            assert torch.allclose(*gradients)
    assert region_of(compiled).hits == served

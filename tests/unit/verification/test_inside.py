"""Rounding inside of one operation: results that are nearly zero may differ by more than their last place."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.fx
import torch.nn.functional as F

from magpy_core.verification.first_call import Verdict, check

ROWS, CLASSES = 32, 10


def graph_of(function: Callable[..., Any], count: int) -> torch.fx.GraphModule:
    graph = torch.fx.Graph()
    inputs = [graph.placeholder(f"x{i}") for i in range(count)]
    graph.output((graph.call_function(function, tuple(inputs)),))
    return torch.fx.GraphModule({}, graph)


def verdict(function: Callable[..., Any], compiled: Callable[..., Any], *inputs: torch.Tensor) -> Verdict:
    found = check(graph_of(function, len(inputs)), lambda given: [compiled(*given)], inputs, [], same_random=True)
    assert not found.unchecked
    return found


def nearly_certain(margin: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores of classes, of which one is larger than the others by about ``margin``, and that class."""
    scores = torch.randn(ROWS, CLASSES, generator=torch.Generator().manual_seed(0))
    labels = scores.argmax(1)
    return (scores + margin * F.one_hot(labels, CLASSES)).requires_grad_(), labels


def loss_in_steps(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """As Inductor computes it: the sum of the exponentials one after the other."""
    shifted = scores - scores.amax(1, keepdim=True)
    total = shifted[:, 0].exp()
    for one in range(1, CLASSES):
        total = total + shifted[:, one].exp()
    return -(shifted - total.log().unsqueeze(1)).gather(1, labels.unsqueeze(1)).mean()


@pytest.mark.parametrize("margin", [1, 5, 8, 12, 16])
def test_a_loss_that_is_nearly_zero(margin: float) -> None:
    inputs = nearly_certain(margin)
    assert verdict(F.cross_entropy, loss_in_steps, *inputs).difference is None


@pytest.mark.parametrize("margin", [1, 8])
def test_a_wrong_loss_is_found_all_the_same(margin: float) -> None:
    found = verdict(F.cross_entropy, lambda x, y: loss_in_steps(x, y) * 1.001, *nearly_certain(margin))
    assert found.difference is not None


def test_a_gelu_of_numbers_far_below_zero() -> None:
    x = -4.5 - torch.rand(ROWS, generator=torch.Generator().manual_seed(1))
    assert verdict(F.gelu, lambda x: x * 0.5 * (1 + torch.erf(x * 0.7071067811865476)), x).difference is None
    assert verdict(F.gelu, lambda x: F.gelu(x, approximate="tanh"), x).difference is not None


def test_other_operations_have_the_noise_of_their_last_place() -> None:
    x = torch.rand(ROWS, generator=torch.Generator().manual_seed(1))
    found = verdict(operator.mul, lambda x, y: x * y * (1 + 1e-5), x, x).difference
    assert found is not None and found.explained is not None

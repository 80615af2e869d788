"""Which operators a piece of code runs."""

from __future__ import annotations

import torch

from magpy_core._compat.torch.operator_calls import OperatorCalls


def test_operators_are_noted_with_the_tensors_they_get_and_return() -> None:
    x = torch.ones(3)
    with OperatorCalls() as seen:
        y = torch.relu(x)
        y.add_(x, alpha=2)
    (relu, given), (add, written) = seen.calls
    assert relu is torch.ops.aten.relu.default and given[0] is x and given[-1] is y
    assert add is torch.ops.aten.add_.Tensor and any(tensor is y for tensor in written)


def test_nothing_is_noted_once_it_is_left() -> None:
    with OperatorCalls() as seen:
        pass
    torch.ones(3).relu()
    assert not seen.calls

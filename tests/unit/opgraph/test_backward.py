"""Backward passes as operations of the graph: which gradients leaves get, and what is recorded."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from magpy_core.findings import Unsupported
from magpy_core.opgraph.backward import IS_BACKWARD, Backward, new_gradient
from magpy_core.opgraph.operator_graph import OperatorGraph
from magpy_core.opgraph.recorder import OpRecorder
from magpy_core.opgraph.scalars import ScalarTable
from tests.unit.opgraph.test_parts import FakeHost, targets


@pytest.fixture
def ops() -> OperatorGraph:
    host: Any = FakeHost()
    return OperatorGraph(ScalarTable(), host, {})


LEAVES = {
    "plain": lambda: torch.zeros(3, 4),
    "transposed": lambda: torch.zeros(4, 3).t(),
    "gaps": lambda: torch.zeros(3, 8)[:, ::2],
    "one": lambda: torch.zeros(1, 4),
    "empty": lambda: torch.zeros(0, 4),
    "expanded": lambda: torch.zeros(3, 1).expand(3, 4),
}


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("name", LEAVES)
def test_a_first_gradient_has_the_strides_that_autograd_gives_it(name: str, transposed: bool) -> None:
    leaf = LEAVES[name]().requires_grad_()
    gradient = torch.randn(leaf.shape[::-1]).t() if transposed else torch.randn(leaf.shape)
    kept = gradient.clone(memory_format=torch.preserve_format)
    (leaf * 1).backward(gradient.clone(memory_format=torch.preserve_format))
    made = new_gradient(leaf, gradient)
    assert leaf.grad is not None and made.stride() == leaf.grad.stride() and torch.equal(made, leaf.grad)
    assert made.untyped_storage().data_ptr() != gradient.untyped_storage().data_ptr() or not made.numel()
    assert torch.equal(gradient, kept)


def test_a_pass_is_one_gradient_operation_and_what_leaves_get(ops: OperatorGraph) -> None:
    first, second = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    second.grad = before = torch.full((3,), 2.0)
    with OpRecorder(ops):
        (first * second * 3).sum().backward()
    assert first.grad is not None and first.grad.tolist() == [3.0] * 3
    assert second.grad is before and before.tolist() == [5.0] * 3
    called = [name for name in targets(ops) if name in ("grad", "new_gradient", "add_")]
    assert called == ["grad", "new_gradient", "add_"] or called == ["grad", "add_", "new_gradient"]
    assert sum(IS_BACKWARD in node.meta for node in ops.graph.nodes) == 1


def test_a_leaf_that_no_gradient_reaches_stays_as_it_is(ops: OperatorGraph) -> None:
    used, unused = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    with OpRecorder(ops):
        torch.autograd.backward([(used * unused.detach()).sum()])
    assert used.grad is not None and unused.grad is None


def _outside(leaf: torch.Tensor) -> torch.Tensor:
    leaf.register_post_accumulate_grad_hook(lambda leaf: None)
    return leaf


@pytest.mark.parametrize(("make", "options"), [
    (lambda leaf: leaf, {"create_graph": True}),
    (_outside, {}),
    (lambda leaf: torch.ones(3, dtype=torch.complex64, requires_grad=True), {"gradient": torch.ones(())}),
    (lambda leaf: leaf, {"inputs": [torch.ones(3, requires_grad=True)]}),
])  # fmt: skip
def test_what_is_more_than_a_value_is_refused(ops: OperatorGraph, make: Any, options: Any) -> None:
    leaf = make(torch.ones(3, requires_grad=True))
    loss = (leaf * leaf).sum()
    with pytest.raises(Unsupported):
        Backward.prepare(ops, torch.Tensor.backward, (loss,), options)

"""Nodes of autograd's graphs: which are reached, which have hooks, which are freed; and graphs of ATen operations."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

from magpy_core._compat.torch.autograd_nodes import has_hooks, is_freed, is_leaf_node, is_plain_node, reached_nodes
from magpy_core._compat.torch.fake import new_fake_mode
from magpy_core._compat.torch.operators_trace import trace_operators
from magpy_core._compat.torch.torch_state import no_autograd


class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0]


def test_nodes_are_reached_once_and_leaves_are_known() -> None:
    leaf = torch.ones(3, requires_grad=True)
    nodes = reached_nodes([(leaf * leaf + leaf).sum()])
    assert len(set(nodes)) == len(nodes)
    assert [node.variable is leaf for node in nodes if is_leaf_node(node)] == [True]
    assert reached_nodes([leaf])[0].variable is leaf


def test_custom_functions_are_not_plain() -> None:
    leaf = torch.ones(3, requires_grad=True)
    custom: Any = Same.apply(leaf)  # type: ignore[no-untyped-call]
    assert [is_plain_node(node) for node in reached_nodes([custom])] == [False, True]


def test_hooks_of_nodes_are_found_and_none_is_left() -> None:
    leaf = torch.ones(3, requires_grad=True)
    node = torch.autograd.graph.get_gradient_edge(leaf).node
    number = RemovableHandle.next_id
    assert not has_hooks(node) and not has_hooks(node)
    assert RemovableHandle.next_id == number  # a program's next hook has the key that it would have had
    handle = node.register_hook(lambda *gradients: None)
    assert has_hooks(node)
    handle.remove()
    assert not has_hooks(node)
    node.register_prehook(lambda *gradients: None)
    assert has_hooks(node)


def test_a_pass_frees_what_was_saved() -> None:
    leaf = torch.ones(3, requires_grad=True)
    saved, plain = (leaf * leaf).sum(), (leaf + leaf).sum()
    assert not is_freed([saved])
    saved.backward(retain_graph=True)
    assert not is_freed([saved])
    saved.backward()
    plain.backward()
    assert is_freed([saved]) and not is_freed([plain])  # nothing was saved: eager can go through it again


def test_a_trace_has_the_operations_of_autograd_and_makes_its_constants() -> None:
    mode, _ = new_fake_mode(dynamic=False)
    with mode:
        x = torch.ones(3, requires_grad=True)

    def run(x: torch.Tensor) -> Any:
        return torch.autograd.grad((x * x * torch.tensor(3.0)).sum(), x)

    traced = trace_operators(run, [x], mode)
    assert not [node for node in traced.graph.nodes if node.op == "get_attr"]
    with torch.no_grad():
        assert traced(torch.full((3,), 2.0))[0].tolist() == [12.0] * 3


def test_without_autograd_neither_gradients_nor_autocast() -> None:
    with torch.autocast("cpu", torch.bfloat16), no_autograd():
        assert not torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")
        assert torch.mm(torch.ones(2, 2), torch.ones(2, 2)).dtype is torch.float32
    assert torch.is_grad_enabled()

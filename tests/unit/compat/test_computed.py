"""Which tensors of a traced graph an operation has computed: new ones and written ones, no views."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from magpy_core._compat.torch.operator_schemas import computed

aten = torch.ops.aten


def names(*operations: tuple[Any, ...]) -> list[list[tuple[str, str]]]:
    """Of each operation, whose arguments name nodes (``n0``: an input, ``n1``: the first operation), the operation
    that computed, and the node that has it."""
    graph = fx.Graph()
    nodes = [graph.placeholder("n0")]
    for target, *arguments in operations:
        given = torch.fx.node.map_aggregate(
            tuple(arguments), lambda one: nodes[int(one[1:])] if isinstance(one, str) and one.startswith("n") else one
        )
        node = graph.create_node("call_function", target, given, {}, name=f"n{len(nodes)}")  # type: ignore[arg-type]
        nodes.append(node)
    return [[(maker.name, node.name) for maker, node in computed(one)] for one in nodes[1:]]


def test_a_new_tensor_is_computed_and_a_view_is_not() -> None:
    assert names((aten.exp.default, "n0"), (aten.t.default, "n1"), (aten.detach.default, "n2")) == [[("n1", "n1")], [], []]


def test_what_is_written_is_computed() -> None:
    assert names((aten.add_.Tensor, "n0", 1.0), (aten._foreach_add_.Scalar, ["n0", "n1"], 1.0)) == [
        [("n1", "n0")], [("n2", "n0"), ("n2", "n1")]
    ]  # fmt: skip


def test_several_results_are_there_when_they_are_taken_apart() -> None:
    found = names(
        (aten.var_mean.correction, "n0"),
        (operator.getitem, "n1", 0),
        (aten.split.Tensor, "n0", 2),
        (operator.getitem, "n3", 0),
    )
    assert found == [[], [("n1", "n2")], [], []], "a split gives views"


def test_other_calls_compute_nothing_that_is_known() -> None:
    assert names((torch.tensor, 1.0)) == [[]]

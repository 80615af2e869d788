"""The operator graph of a capture: what is recorded, what is an input, where it is cut, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import magpy_core
from magpy_core.opgraph.scalars import COMPARE, ScalarTable
from magpy_core.opgraph.segments import split
from magpy_core.refgraph.source_table import SourceTable
from magpy_core.regions.api import region_of
from tests.unit.engine_pair import code_of, pair, same

X = torch.arange(6.0).reshape(2, 3)


def graph_of(fn: Callable[..., Any], *args: Any) -> torch.fx.Graph:
    c = magpy_core.compile(fn, backend="eager")
    c(*args)
    return code_of(c).operator_graph.graph


def targets(graph: torch.fx.Graph) -> list[str]:
    return [getattr(n.target, "__name__", str(n.target)) for n in graph.nodes if n.op.startswith("call")]


def findings(fn: Callable[..., Any], *args: Any) -> dict[str, str]:
    """Codes and messages of what a run of ``fn`` was refused for; the compiled results must be right all the same."""
    p = pair(fn).calls(args, args)
    return {f.code: f.message for f in p.region.findings.values()}


def test_operations_in_order_with_parameters_as_inputs() -> None:
    lin = nn.Linear(3, 2)
    graph = graph_of(lambda x: torch.relu(lin(x)) * 2, X)
    assert targets(graph) == ["linear", "relu", "mul"]
    assert [n.name for n in graph.nodes if n.op == "placeholder"] == ["x", "lin_weight", "lin_bias"]
    assert not [n for n in graph.nodes if n.op == "get_attr"]


def test_the_graph_gives_what_the_region_computed() -> None:
    c = magpy_core.compile(lambda x: (x.sum(0), x @ x.t()), backend="eager")
    want = c(X)
    assert same(tuple(code_of(c).operator_graph(X)), want)


def test_one_input_used_twice_is_one_placeholder() -> None:
    w = torch.ones(3)
    graph = graph_of(lambda x: x * w + w, X)
    assert sum(n.op == "placeholder" for n in graph.nodes) == 2


def test_what_is_not_needed_by_the_result_is_still_recorded_in_order() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        a = x + 1
        a.mul_(2)
        b = a.view(3, 2)
        b[0, 0] = 9
        return a

    pair(f).calls((X,), (X + 1,))
    assert targets(graph_of(f, X)) == ["add", "mul_", "view", "setitem"]


def test_grad_mode_and_autocast_are_nodes() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            a = x * 2
        with torch.autocast("cpu", torch.bfloat16):
            return a @ x.t()

    names = targets(graph_of(f, X))
    assert names.index("_set_grad_enabled") < names.index("mul") < names.index("_enter_autocast") < names.index("matmul")
    assert names[-1] == "_exit_autocast"


def test_a_tuple_of_results_is_taken_apart() -> None:
    p = pair(lambda x: (x.max(dim=1).values, *x.split(1), torch.topk(x, 2)[1]))
    p.calls((X,), (X * -1,))
    assert p.counts == (1, 1)


def test_numpy_free_python_in_between_leaves_no_trace() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        names = sorted({"b", "a"})
        for _, name in enumerate(names):
            x = x + len(name)
        return x

    assert targets(graph_of(f, X)) == ["add", "add"]


ARRAY = np.ones(3, dtype=np.float32)


def own_function() -> Callable[[torch.Tensor], torch.Tensor]:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            return grad * 10

    return lambda x: Double.apply(x) + 1  # type: ignore[no-any-return]


def test_a_custom_autograd_function_keeps_its_backward() -> None:
    c = magpy_core.compile(own_function(), backend="eager")
    for _ in range(3):
        x = X.clone().requires_grad_()
        c(x).sum().backward()
        assert x.grad is not None and torch.equal(x.grad, torch.full_like(X, 10.0))


@pytest.mark.parametrize(
    "fn, code",
    [
        (lambda x: x + torch.Tensor([x[0, 0], 2.0, 3.0]), "MP105"),
        (lambda x: ((x > 0).tolist(), x)[1], "MP102"),
        (lambda x: (list(x.numpy().flat), x)[1], "MP102"),
        (lambda x: (hash(x.data_ptr()), x)[1], "MP102"),
        (lambda x: (str(x), x)[1], "MP102"),
        (lambda x: torch.rand(2, generator=torch.Generator().manual_seed(1)) + x[0, 0], "MP116"),
    ],
)
def test_what_a_graph_cannot_hold_is_refused_and_right(fn: Callable[..., Any], code: str) -> None:
    found = findings(fn, X)
    assert code in found, found


def test_shapes_that_depend_on_data_stay_in_the_graph_until_python_asks() -> None:
    p = pair(lambda x: x[x > 2].sum() + torch.nonzero(x).sum())
    p.calls((X,), (X - 3,), (X + 9,))
    assert p.counts == (1, 2)
    for reads in (lambda x: x * x[x > 2].shape[0], lambda x: x * x[x > 2].stride()[0]):
        assert "MP109" in findings(reads, X)


def test_a_reduction_of_what_has_such_a_shape_has_one_element() -> None:
    p = pair(
        lambda x: [x * v for v in torch.stack([x[x > 2].std(), torch.max(x[x > 0]), x[x > 1].mean(dtype=torch.float64)])]
    )
    p.calls((X,), (X * 2,), (X + 9,))
    assert p.counts == (1, 2)
    for reads in (lambda x: x * len(x[x > 2].cumsum(0)), lambda x: x * len(x[x[:, 0] > 0].sum(1))):
        assert "MP109" in findings(reads, X)


# -- segments and scalars -------------------------------------------------------------------------------------------------


def test_split_hands_over_what_later_segments_need() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(torch.relu, (x,))
    b = graph.call_method("sum", (a,))
    c = graph.call_function(torch.add, (a, x))
    first, second = split(graph, [b], [[b], [c]])
    assert (first.nodes, first.inputs, first.outputs) == ([a, b], [x], [b, a])
    assert (second.nodes, second.inputs, second.outputs) == ([c], [a, x], [c])
    total, relu = first.module()(torch.ones(2))
    assert total == 2 and torch.equal(second.module()(relu, torch.ones(2))[0], torch.full((2,), 2.0))


def test_a_cut_before_the_first_operation() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(torch.relu, (x,))
    first, second = split(graph, [x], [[], [a]])
    assert not first.nodes and second.nodes == [a]


def test_a_graph_with_two_cuts_runs_segment_by_segment() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        if x.exp().sum() > 3:
            x = x * 2
        if x.exp().max() > 8:
            x = x - 1
        return x + 1

    p = pair(f).calls(*[(X + k,) for k in (0, -9, 3, 0, -9, 3, -1)])
    assert len(p.region.captures[0].segments) == 3
    assert p.region.hits >= 3


def test_symbols_are_found_by_identity_and_described() -> None:
    table, sources = ScalarTable(), SourceTable()
    leaf = table.source(sources.arg(0, "n"), 3)
    n = table.bind(3, leaf)
    assert n == 3 and table.get(n) is leaf and table.get(int("3")) is None
    more = table.call(COMPARE["<"], (leaf, 10), True)
    assert more.describe() == "(n < 10)" and more.on_host and more.leaves() == [leaf]
    assert table.call(COMPARE["<"], (leaf, 10), True) is more
    assert table.leaves() == [leaf]
    with pytest.raises(TypeError):
        table.bind(True, leaf)


class SevenTimes(torch.autograd.Function):
    """Its gradient is not that of what its forward does."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return gradient * 7


def test_a_custom_function_that_native_code_applies_is_refused() -> None:
    """No call event shows it; from torch 2.15 on its `apply` has no frame either."""
    double = magpy_core.compile(lambda x: sum(map(SevenTimes.apply, [x, x])).sum(), backend="eager")
    for _ in range(2):
        x = torch.ones(2, requires_grad=True)
        double(x).backward()
        assert x.grad is not None and x.grad.tolist() == [14.0, 14.0]
    region = region_of(double)
    assert not region.captures
    assert any("A library calls an autograd.Function" in f.message for f in region.findings.values())

"""The parts of the operator recorder, each alone: inputs, values, writes, entry state, arguments, pending calls."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.fx

from magpy_core.findings import Unsupported
from magpy_core.opgraph import reads
from magpy_core.opgraph.autograd import EntryState
from magpy_core.opgraph.host import Finish
from magpy_core.opgraph.operation import Arguments, Operation
from magpy_core.opgraph.operator_graph import OperatorGraph
from magpy_core.opgraph.recorder import OpRecorder, begin
from magpy_core.opgraph.scalars import ScalarTable, Sym
from magpy_core.opgraph.values import Values, tensors_in
from magpy_core.refgraph.source import Source
from magpy_core.refgraph.source_table import SourceTable


class FakeHost:
    """A recording that guards nothing, and keeps what it is told."""

    graph_incomplete = False
    call_keeps_state = False
    is_given_up = False
    site = None

    def __init__(self) -> None:
        self.sources = SourceTable()
        self.told: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: self.told.append((name, *args))

    def paused(self) -> bool:
        return False

    def begin(self, step: Any, *args: Any) -> Any:
        return step(*args)

    def finish(self, pending: Finish, result: Any) -> Any:
        return pending(result)

    def source_of_outside(self, tensor: torch.Tensor) -> Source:
        return self.sources.arg(len(self.told), "x")


@pytest.fixture
def ops() -> OperatorGraph:
    host: Any = FakeHost()
    return OperatorGraph(ScalarTable(), host, {})


def targets(ops: OperatorGraph) -> list[str]:
    return [getattr(n.target, "__name__", str(n.target)) for n in ops.graph.nodes]


def test_placeholders_stand_before_operations_in_order_of_use(ops: OperatorGraph) -> None:
    first = ops.inputs.node(torch.ones(1))
    made = ops.graph.call_method("neg", (first,))
    second = ops.inputs.node(torch.ones(1))
    assert list(ops.graph.nodes) == [first, second, made]


def test_a_tensor_has_one_placeholder_and_one_source(ops: OperatorGraph) -> None:
    x = torch.ones(1)
    assert ops.inputs.node(x) is ops.inputs.node(x)
    assert ops.inputs.guard(x) is ops.inputs.tensors[0][1]
    assert not ops.inputs.is_inside(x)


def test_a_number_that_varies_is_an_input_or_arithmetic_on_what_is_read(ops: OperatorGraph) -> None:
    table = ops.scalars
    rate = table.source(ops.host.sources.arg(0, "rate"), 0.5)
    node = ops.inputs.number(rate)
    assert node is ops.inputs.number(rate) and ops.inputs.numbers == [(node, rate)]
    read = Sym("node", ops.graph.call_method("item", (ops.inputs.node(torch.ones(1)),)), (), 1.0)
    total = table.call(max, (rate, read), 1.0)
    assert ops.inputs.number(total).args == (node, read.payload)


def test_values_of_a_nested_result_have_nodes_of_their_own() -> None:
    graph = torch.fx.Graph()
    values = Values(graph)
    node = graph.call_function(torch.ops.aten.mul, ())
    a, b = torch.ones(1), torch.ones(1)
    values.bind((a, [b]), node, (), from_data=True)
    assert a in values and values.is_shaped_by_data([b])
    assert len(list(graph.nodes)) == 4 and {id(t) for t, _ in values} == {id(a), id(b)}


def test_values_refuse_what_a_graph_can_not_hold() -> None:
    graph = torch.fx.Graph()
    values = Values(graph)
    node = graph.call_method("neg", (graph.placeholder("x"),))
    for result in ((1, 2), 3.0, object()):
        with pytest.raises(Unsupported):
            values.bind(result, node, ())


def test_a_write_reaches_every_input_with_the_same_memory(ops: OperatorGraph) -> None:
    x, other = torch.ones(4), torch.ones(4)
    view = x[:2]
    for t in (x, view, other):
        ops.inputs.node(t)
    node = ops.graph.call_method("add_", (ops.inputs.node(view), 1))
    ops.writes.record(view, node)
    assert ops.writes.mutated.keys() == {id(x), id(view)} and list(ops.writes.operations.values()) == [[node], [node]]
    assert ops.writes.has_touched(x) and not ops.writes.has_touched(other)


def test_entry_state_is_kept_where_requires_grad_changed() -> None:
    entry, x, y = EntryState(), torch.ones(2), torch.ones(2)
    entry.remember(x)
    entry.remember(y)
    x.requires_grad_()
    entry.keep_changed([x, y])
    assert not entry.of(x).requires_grad and entry.of(x).data_ptr() == x.data_ptr()
    assert entry.of(y) is y
    assert entry.has_new_history(x) and not entry.has_new_history(y)


def test_arguments_note_numbers_that_vary(ops: OperatorGraph) -> None:
    size = ops.scalars.source(ops.host.sources.make("size", ops.host.sources.arg(0, "x"), 0), 1000)
    rate = ops.scalars.source(ops.host.sources.arg(1, "rate"), 0.5)
    given = Arguments(ops)
    given.convert([ops.scalars.bind(0.5, rate), slice(None), (1, "text")])
    assert [sym for sym, _ in given.varying] == [rate] and given.vary_beyond_sizes
    only_size = Arguments(ops)
    only_size.varying.append((size, 1000))
    assert not only_size.vary_beyond_sizes


@pytest.mark.parametrize(("func", "args", "kind"), [
    (torch.Tensor.dtype.__get__, (torch.ones(1),), reads.metadata),
    (torch.Tensor.dim, (torch.ones(1),), reads.metadata),
    (torch.Tensor.shape.__get__, (torch.ones(1),), reads.size),
    (torch.Tensor.numel, (torch.ones(1),), reads.size),
    (torch.Tensor.grad.__get__, (torch.ones(1),), reads.field),
    (torch.Tensor.grad.__set__, (torch.ones(1), None), reads.field_set),
    (torch.add, (torch.ones(1), 1), Operation),
])  # fmt: skip
def test_what_a_call_is_to_the_graph(ops: OperatorGraph, func: Any, args: Any, kind: Any) -> None:
    finish = begin(ops, func, (), args, {})
    assert getattr(finish, "func", type(finish)) is kind


@pytest.mark.parametrize("name", ["retain_grad", "resize_", "data_ptr"])
def test_what_no_graph_can_hold_is_refused_before_it_runs(ops: OperatorGraph, name: str) -> None:
    with pytest.raises(Unsupported):
        begin(ops, getattr(torch.Tensor, name), (), (torch.ones(1),), {})


def test_the_recorder_runs_each_operation_once_and_records_it(ops: OperatorGraph) -> None:
    x = torch.ones(3)
    with OpRecorder(ops):
        y = torch.relu(x).add_(1)
        shape = y.shape
    assert y.tolist() == [2.0, 2.0, 2.0] and shape == (3,)
    assert targets(ops)[1:] == ["relu", "add_"] and ops.values.node(y) is list(ops.graph.nodes)[-1]


def test_tensors_in_nested_arguments() -> None:
    a, b = torch.ones(1), torch.ones(1)
    assert {id(t) for t in tensors_in((a, [1, {"k": b}]), None)} == {id(a), id(b)}

"""Operations that are written into a graph run once on fakes for each kind."""

from __future__ import annotations

import torch
import torch.fx
from torch.fx.experimental.proxy_tensor import make_fx

from magpy_core.backends.emitter import Emitter
from magpy_core.backends.fakes import make_fake_inputs
from magpy_core.backends.lowering import Lowering


def _emitter(*tensors: torch.Tensor, reuses: bool = True) -> tuple[Emitter, list[torch.fx.Node]]:
    mode, fakes = make_fake_inputs(tensors, None)
    emit = Emitter(mode, None, reuses=reuses)
    return emit, [emit.placeholder(f"x{i}", fake, {}) for i, fake in enumerate(fakes)]


def test_like_operations_have_one_fake() -> None:
    emit, (a, b, c) = _emitter(torch.ones(2, 3), torch.ones(2, 3), torch.ones(3, 2).t())
    first = emit.fake(emit.call(torch.mul, a, 2.0))
    assert emit.fake(emit.call(torch.mul, b, 2.0)) is first
    for other in (
        emit.call(torch.mul, a, 3.0), emit.call(torch.mul, a, 2), emit.call(torch.mul, c, 2.0), emit.call(torch.add, a, 2.0),
        emit.call(torch.mul, a, b), emit.method("mul", a, 2.0),
    ):  # fmt: skip
        assert emit.fake(other) is not first


def test_an_operation_in_place_returns_its_own_tensor() -> None:
    emit, (a, b) = _emitter(torch.ones(2), torch.ones(2))
    for x in (a, b):
        assert emit.fake(emit.method("add_", x, 1.0)) is emit.fake(x)


def test_an_argument_for_the_result_is_written() -> None:
    emit, (a, b, c) = _emitter(torch.ones(2), torch.ones(0), torch.ones(0))
    for out in (b, c):
        emit.call(torch.add, a, 1.0, out=out)
        assert list(emit.fake(out).shape) == [2]


def test_sizes_that_vary_and_a_layout_that_changes_are_not_shared() -> None:
    emit, (a, b) = _emitter(torch.ones(2), torch.ones(2), reuses=False)
    assert emit.fake(emit.method("neg", a)) is not emit.fake(emit.method("neg", b))

    def turned(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x * 2).t_() + y * 2

    mode, fakes = make_fake_inputs([torch.ones(2, 3), torch.ones(3, 2)], None)
    graph = make_fx(lambda *given: (turned(*given),))(torch.ones(2, 3), torch.ones(3, 2)).graph
    for node in graph.nodes:  # as a program calls them
        if node.op == "call_function":
            node.op, node.target = "call_method", node.target._schema.name.removeprefix("aten::")
    lowering = Lowering(torch.fx.GraphModule({}, graph), fakes, mode, None)
    lowering.run()
    doubled = [node for node in lowering.emit.graph.nodes if node.target == "mul"]
    assert [list(lowering.emit.fake(node).shape) for node in doubled] == [[3, 2], [3, 2]]
    assert lowering.emit.fake(doubled[0]) is not lowering.emit.fake(doubled[1])

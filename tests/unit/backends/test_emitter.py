"""Operations that are written into a graph run once on fakes for each kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.fx
import torch.nn.functional as F
from torch.amp import autocast_mode

import magpy_core
from magpy_core._compat.torch.torch_state import preserve_torch_state
from magpy_core.backends import lowering
from magpy_core.backends.emitter import Emitter
from magpy_core.backends.fakes import make_fake_inputs
from magpy_core.backends.lowering import Lowering
from magpy_core.regions.api import region_of


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


def _numbers_under_autocast(graph: torch.fx.Graph, x: Any, w: Any, s: Any) -> list[Any]:
    """Like operations, on tensors of one kind, whose results have other types inside of autocast."""
    before = graph.call_function(torch.mul, (graph.call_function(F.linear, (x, w)), s))
    entered = graph.call_function(autocast_mode._enter_autocast, ("cpu", torch.bfloat16, True, True))
    inside = graph.call_function(F.linear, (x, w))
    product, total = graph.call_function(torch.mul, (inside, s)), graph.call_function(torch.add, (inside, s))
    graph.call_function(autocast_mode._exit_autocast, (entered,))
    return [before, product, total]


def _results_that_are_resized(graph: torch.fx.Graph, x: Any, w: Any, s: Any) -> list[Any]:
    """Two like tensors, of which one is written with another shape."""
    one, other = (graph.call_function(torch.empty, (0,)) for _ in range(2))
    graph.call_function(torch.mul, (x, 2.0), {"out": one})
    return [graph.call_method("__getitem__", (other, slice(0, 1))), graph.call_function(torch.cat, ([other, other],)),
            graph.call_function(torch.mul, (one, s))]  # fmt: skip


def _turned_in_place(graph: torch.fx.Graph, x: Any, w: Any, s: Any) -> list[Any]:
    one, other = (graph.call_function(torch.mul, (x, 2.0)) for _ in range(2))
    graph.call_method("t_", (one,))
    return [graph.call_function(torch.mul, (one, s)), graph.call_function(torch.mul, (other, s))]


def _updates(graph: torch.fx.Graph, x: Any, w: Any, s: Any) -> list[Any]:
    for tensor in (x, w):
        root = graph.call_method("sqrt", (tensor,))
        graph.call_method("add_", (root, 1e-8))
        graph.call_method("addcdiv_", (tensor, tensor, root), {"value": s})
    return [graph.call_function(torch.mul, (x, s)), graph.call_function(torch.sub, (w, s))]


def _facts(lowering: Lowering) -> list[Any]:
    """The new graph, with what is known of its values."""
    lowering.run()
    fakes = [(node.format_node(), lowering.emit.fake(node)) for node in lowering.emit.graph.nodes if node.op != "output"]
    return [
        (text, fake.dtype, list(fake.shape), fake.stride()) if isinstance(fake, torch.Tensor) else text
        for text, fake in fakes
    ]


@pytest.mark.parametrize("make", [_numbers_under_autocast, _results_that_are_resized, _turned_in_place, _updates])
def test_a_graph_is_lowered_as_if_each_operation_were_run(make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    graph = torch.fx.Graph()
    x, w, s = (graph.placeholder(name) for name in "xws")
    s.meta["magpy_scalar"] = float
    graph.output(tuple(make(graph, x, w, s)))
    gm = torch.fx.GraphModule({}, graph)
    mode, fakes = make_fake_inputs([torch.randn(3, 3), torch.randn(3, 3), 0.5], None)
    with preserve_torch_state():
        found = _facts(Lowering(gm, fakes, mode, None))
    monkeypatch.setattr(lowering, "Emitter", lambda mode, hoist, reuses: Emitter(mode, hoist))
    with preserve_torch_state():
        assert found == _facts(Lowering(gm, fakes, mode, None))


@pytest.mark.slow
def test_a_number_that_varies_beside_autocast() -> None:
    def scaled(x: torch.Tensor, w: torch.Tensor, s: float) -> tuple[torch.Tensor, ...]:
        before = F.linear(x, w) * s
        with torch.autocast("cpu", torch.bfloat16):
            return before, F.linear(x, w) * s, F.linear(x, w) + s

    torch.manual_seed(0)
    x, w = torch.randn(4, 5), torch.randn(3, 5)
    compiled = magpy_core.compile(scaled, wait=True)
    with torch.no_grad():
        for i in range(6):
            for found, wanted in zip(compiled(x, w, 1 + i * 0.37), scaled(x, w, 1 + i * 0.37), strict=True):
                torch.testing.assert_close(found, wanted, rtol=1e-6, atol=0)
    assert region_of(compiled).hits >= 3

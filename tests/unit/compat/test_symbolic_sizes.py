"""Inductor's lowerings while MagPy compiles graphs whose sizes vary."""

from __future__ import annotations

import pytest
import torch
from torch._functorch import partitioners
from torch._functorch._aot_autograd import graph_compile
from torch._inductor import lowering
from torch._inductor.codegen.cpp import CppKernel

from magpy_core._compat.torch.fake import fakify, new_fake_mode
from magpy_core._compat.torch.symbolic_sizes import lowered_for_all_sizes, sizes_stay_symbolic


def tables() -> tuple[object, ...]:
    return (
        dict(lowering.lowerings), CppKernel.need_use_acc_helper, graph_compile._apply_tensorify_python_scalars,
        partitioners.find_symbol_binding_fx_nodes,
    )  # fmt: skip


def test_torch_is_as_before_afterwards() -> None:
    """The program's own `torch.compile` uses the same tables."""
    before = tables()
    with pytest.raises(ZeroDivisionError), lowered_for_all_sizes(), sizes_stay_symbolic(None):
        assert all(one != other for one, other in zip(tables(), before, strict=True))
        _ = 1 // 0
    assert tables() == before


def test_operators_that_are_replaced_exist() -> None:
    pool = torch.ops.aten._adaptive_avg_pool2d.default
    with lowered_for_all_sizes():
        replaced = lowering.lowerings[pool]
    assert replaced is not lowering.lowerings[pool]


def test_a_size_is_that_of_an_input_and_not_of_a_gradient_from_outside() -> None:
    """The forward graph saves the size, before any gradient has come."""
    mode, shape_env = new_fake_mode(dynamic=True)
    fake = fakify(mode, torch.empty(7, 5), "x", {0})
    graph = torch.fx.Graph()
    tangent, primal = graph.placeholder("tangents_1"), graph.placeholder("primals_1")
    longer = graph.call_function(torch.ops.aten.cat.default, ([primal, primal],))
    graph.output(longer)
    tangent.meta["val"] = primal.meta["val"] = fake
    with mode:
        longer.meta["val"] = torch.cat([fake, fake])
    with sizes_stay_symbolic(shape_env):
        found = partitioners.find_symbol_binding_fx_nodes(graph)
    (node,) = found.values()
    assert node.args == (primal, 0)

"""Inductor's lowerings while MagPy compiles graphs whose sizes vary."""

from __future__ import annotations

import pytest
import torch
from torch._functorch._aot_autograd import graph_compile
from torch._inductor import lowering
from torch._inductor.codegen.cpp import CppKernel

from magpy_core._compat.torch.symbolic_sizes import sizes_stay_symbolic


def test_torch_is_as_before_afterwards() -> None:
    """The program's own `torch.compile` uses the same tables."""

    def tables() -> tuple[object, ...]:
        return dict(lowering.lowerings), CppKernel.need_use_acc_helper, graph_compile._apply_tensorify_python_scalars

    before = tables()
    with pytest.raises(ZeroDivisionError), sizes_stay_symbolic(None):
        assert tables() != before
        _ = 1 // 0
    assert tables() == before


def test_operators_that_are_replaced_exist() -> None:
    pool = torch.ops.aten._adaptive_avg_pool2d.default
    with sizes_stay_symbolic(None):
        replaced = lowering.lowerings[pool]
    assert replaced is not lowering.lowerings[pool]

"""Which modes are in force, without MagPy's own; and no mode of MagPy's is seen in a recorded call."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import overrides
from torch.utils import _python_dispatch

import magpy_core
from magpy_core._compat.torch.mode_reads import (
    MODE_READS,
    arguments_of,
    asks_to_dispatch,
    dispatch_modes,
    function_modes,
    is_of_program,
    reads_modes,
)
from magpy_core._compat.torch.torch_state import PlainDispatchMode


class Functions(overrides.BaseTorchFunctionMode):
    pass


class Dispatch(PlainDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Sub(torch.Tensor):
    pass


class Like:
    def __init__(self) -> None:
        self.__torch_function__ = None


PLAIN, OTHERS = torch.ones(1), [torch.nn.Parameter(torch.ones(1)), 3, None, torch.nn.Linear(1, 1)]
OWN = [torch.ones(1).as_subclass(Sub), Like(), torch.nn.UninitializedParameter()]


@pytest.mark.parametrize("outer", [False, True], ids=["", "under a mode of the program"])
@pytest.mark.parametrize("read", MODE_READS, ids=lambda fn: fn.__name__)
def test_each_read_is_as_without_the_mode(read: Any, outer: bool) -> None:
    values: list[tuple[Any, ...]] = [()]
    if read is torch._C._has_torch_function:
        values = [((PLAIN, value),) for value in (*OTHERS, *OWN)] + [([],), ({PLAIN: 1, OWN[1]: 2},)]
    elif read.__name__.startswith("_has_torch_function"):
        values = [(value,) for value in (PLAIN, *OTHERS, *OWN)]
    elif read.__name__.endswith("_at"):
        values = [(0,)] if outer else []
    own = Functions(), Dispatch()
    program = Functions(), Dispatch()
    for args in values:
        with program[0] if outer else overrides._enable_torch_function(), program[1] if outer else torch.no_grad():
            plain = read(*args)
            with own[0], own[1]:
                seen = MODE_READS[read](read, read(*args), args, own)
            assert seen is plain or seen == plain
            assert len(arguments_of(read, args)) <= 2


def test_the_modes_in_force() -> None:
    functions, dispatch = Functions(), Dispatch()
    with functions, dispatch:
        assert (function_modes(), dispatch_modes()) == ([functions], [dispatch])
        assert not _python_dispatch.is_in_torch_dispatch_mode()  # torch's function doesn't count ours
    assert (function_modes(), dispatch_modes()) == ([], [])


def test_which_functions_ask_in_order_to_dispatch() -> None:
    assert asks_to_dispatch(torch.nn.functional.softmax.__code__) and asks_to_dispatch(torch.Tensor.split.__code__)
    assert asks_to_dispatch(overrides.handle_torch_function.__code__)
    assert not asks_to_dispatch(overrides._get_current_function_mode.__code__)
    assert not asks_to_dispatch(torch.nn.MultiheadAttention.forward.__code__)
    assert reads_modes(overrides._get_current_function_mode.__code__)
    assert reads_modes(_python_dispatch._get_current_dispatch_mode.__code__)
    assert not reads_modes(overrides.handle_torch_function.__code__) and not reads_modes(asks_to_dispatch.__code__)
    assert is_of_program(reads_modes) and not is_of_program(torch.nn.functional.softmax) and not is_of_program(torch.add)


def test_a_recorded_call_sees_the_programs_modes_only() -> None:
    def asked(x: torch.Tensor) -> Any:
        y = torch.nn.functional.softmax(x, 0)
        return y, overrides.has_torch_function((x,)), overrides._get_current_function_mode(), Sub(y).shape

    compiled = magpy_core.compile(asked, backend="eager")
    for _ in range(2):
        assert compiled(torch.ones(2))[1:] == (False, None, (2,))

"""Under ``run`` with default settings, a program doesn't see that its calls are recorded, by torch's modes or by
constructors of tensor subclasses."""

from __future__ import annotations

from pathlib import Path

import pytest

from magpy_core.runner.request import SESSIONS
from tests.programs.runner_help import environment, plainly, under_magpy, write

PROGRAM = """
    import functools
    import torch
    import torch.overrides as overrides
    import torch.utils._python_dispatch as dispatch

    class Sub(torch.Tensor):
        pass

    class Passes(torch.Tensor):
        def __new__(cls, *args):
            return super().__new__(cls, *args)

    class Applied(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return (Sub(x) * 2).as_subclass(torch.Tensor)

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    def own(x, seen):
        if overrides.has_torch_function((x,)):
            seen.append("own")
            return overrides.handle_torch_function(own, (x,), x, seen)
        return x * 2

    def passed(x):
        seen = []
        return type(own(x.as_subclass(Sub), seen)).__name__, seen

    ABOUT_MODES = [
        lambda x: overrides.has_torch_function((x,)),
        lambda x: overrides.has_torch_function({"a": x}.values()),
        lambda x: (overrides.has_torch_function_unary(x), overrides.has_torch_function_unary(x.as_subclass(Sub))),
        lambda x: overrides.has_torch_function_variadic(x, torch.nn.Parameter(x)),
        lambda x: functools.partial(overrides.has_torch_function_unary, x)(),
        lambda x: torch._C._is_torch_function_mode_enabled(),
        lambda x: (torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()),
        lambda x: (overrides._get_current_function_mode(), overrides._get_current_function_mode_stack()),
        lambda x: (dispatch._get_current_dispatch_mode(), dispatch._get_current_dispatch_mode_stack()),
        lambda x: (dispatch.is_in_torch_dispatch_mode(), dispatch._is_in_torch_dispatch_mode),
        lambda x: passed(x),
    ]
    FROM_NATIVE_CODE = [lambda x: list(map(overrides.has_torch_function_unary, [x, x]))]
    MADE = [
        lambda x: Sub(x),
        lambda x: Sub([1.0, 2.0]) * 2,
        lambda x: (Sub().shape, Sub(2, 3).shape),
        lambda x: Passes(x) * 2,
        lambda x: torch.Tensor.__new__(Sub, x + 1),
        lambda x: functools.partial(Sub, x)(),
        lambda x: Applied.apply(x),
        lambda x: torch.Tensor([1.0, 2.0]) + torch.FloatTensor(2).zero_(),
    ]
    MADE_BY_NATIVE_CODE = [lambda x: list(map(Sub, [x, x]))]

    class Asks(torch.nn.Module):
        def __init__(self, questions):
            super().__init__()
            self.questions = questions

        def forward(self, x):
            y = torch.nn.functional.softmax(x + 1, 0)  # dispatches to a mode from Python
            return y, [question(x) for question in self.questions]

    with torch.no_grad():
        for questions in (ABOUT_MODES, FROM_NATIVE_CODE, MADE, MADE_BY_NATIVE_CODE):
            asks = Asks(questions)
            for _ in range(4):
                print(asks(torch.ones(2)))
"""


@pytest.mark.slow
def test_a_recorded_call_sees_no_modes_and_makes_tensors_of_subclasses(tmp_path: Path) -> None:
    script = write(tmp_path, PROGRAM)
    plain = plainly(tmp_path, script)
    assert plain.returncode == 0, plain.stderr.decode()
    env = environment()
    del env["MAGPY_COMPILE"]
    ran = under_magpy(
        tmp_path, mode="run", script=script, steps=0, env=env, session_factory=SESSIONS["magpy"], timeout=100.0
    )
    assert ran.outcome.kind == "ok", ran.stderr.decode()
    assert ran.stdout.decode().splitlines() == plain.stdout.decode().splitlines()
    assert [f for f in ran.outcome.report.findings if f.code == "MP901"] == []
    assert any(region.calls for region in ran.outcome.report.regions)

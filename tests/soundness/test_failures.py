"""No error of MagPy's own reaches the program: every function of the engine is made to raise, one at a time.

Each time the same program runs, compiled and plain, with calls that are recorded, explained, replayed and refused. Whatever
function fails, at its first call or at every call, the program's results, state and exceptions are those of eager mode.
"""

from __future__ import annotations

import functools
import gc
import importlib
import multiprocessing
import pkgutil
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest
import torch
from torch import nn
from torch._C._dynamo.eval_frame import get_eval_frame_callback
from torch.overrides import _get_current_function_mode_stack

import magpy_core
from magpy_core.regions.api import region_of
from tests.unit.engine_pair import same

STAGES = ("regions", "stretches", "capture", "recording", "backends", "replay", "guards", "opgraph", "refgraph", "monitor",
          "_compat")  # fmt: skip
ENTRY = {  # they hold the handlers, and do nothing else
    "ModuleCall.__call__", "Region.__call__", "Region._outermost", "Region.dispatch", "Region._miss", "Region.record",
    "Region._monitor_failed", "Region._contain", "Outcome.__init__", "Outcome.take", "FastGuard._waiting",
    "FastGuard._changed", "OpRecorder.__torch_function__", "ShadowRecorder.__torch_dispatch__", "_record", "_contained",
    "PlainDispatchMode.__exit__",  # one call of torch's, which takes the mode away
}  # fmt: skip
SHARES = 12


class Injected(Exception):
    pass


class Injector:
    """What stands in for functions of the engine calls it. ``left``: how often it still raises."""

    left = 0
    raised = 0
    called: ClassVar[set[str]] = set()

    @classmethod
    def enter(cls, name: str) -> None:
        cls.called.add(name)
        if cls.left:
            cls.left -= 1
            cls.raised += 1
            raise Injected


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lin, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)
        self.calls, self.scale, self.log, self.seen = 0, 1.5, [], {"shapes": set()}

    def forward(self, x: torch.Tensor, gain: float = 1.0) -> torch.Tensor:
        self.calls += 1
        self.log.append(x.shape[0])
        self.seen["shapes"].add(tuple(x.shape))
        if x.shape[0] == 5:
            raise ValueError(f"call {self.calls}")
        y = self.norm(self.lin(x)) * self.scale * gain
        return y if y.sum() > -1e9 else -y


def program(net: Any) -> list[Any]:
    """What a program sees of its calls: of a module and of a function, with changes between them."""
    out = []
    for i, rows in enumerate((5, 2, 2, 2, 2, 3, 4, 5, 4)):
        torch.manual_seed(i)
        if i == 8:
            net.scale = 2.5
        x = torch.randn(rows, 3).requires_grad_()
        try:
            result = net(x)
        except Exception as error:
            out.append((type(error), error.args, type(error.__context__)))
        else:
            result.sum().backward()
            out.append((result.detach(), x.grad))
    weight = net.lin.weight.grad
    return [out, net.calls, net.log, sorted(net.seen["shapes"]), net.norm.running_mean, weight]


def functions() -> Iterator[tuple[str, types.FunctionType]]:
    """Every Python function of the stages a call goes through, by its qualified name."""
    seen: set[int] = set()
    for stage in STAGES:
        package = importlib.import_module(f"magpy_core.{stage}")
        for info in pkgutil.walk_packages(package.__path__, f"magpy_core.{stage}."):
            module = importlib.import_module(info.name)
            for value in list(vars(module).values()):
                found = [value]
                if isinstance(value, type) and value.__module__ == info.name:
                    found = list(vars(value).values())
                for one in found:
                    one = getattr(one, "fget", None) or getattr(one, "__func__", one)
                    if isinstance(one, types.FunctionType) and one.__module__ == info.name and id(one) not in seen:
                        seen.add(id(one))
                        yield one.__qualname__, one


REAL: dict[str, types.FunctionType] = {}


@contextmanager
def intercepted(functions: dict[str, types.FunctionType]) -> Iterator[None]:
    """Calls of these tell the injector first; generator functions tell it when they are called."""
    codes = {name: function.__code__ for name, function in functions.items()}
    for name, function in functions.items():
        code = codes[name]
        REAL[name] = types.FunctionType(code, function.__globals__, name, function.__defaults__, function.__closure__)
        REAL[name].__kwdefaults__ = function.__kwdefaults__
        free = ", ".join(code.co_freevars)
        source = f"def outer({free}):\n def {code.co_name if code.co_name.isidentifier() else 'f'}(*args, **kwargs):\n"
        source += f"  ({free + ',' if free else ''})\n  import tests.soundness.test_failures as t\n"
        source += f"  t.Injector.enter({name!r})\n  return t.REAL[{name!r}](*args, **kwargs)\n"
        outer = next(c for c in compile(source, code.co_filename, "exec").co_consts if isinstance(c, types.CodeType))
        function.__code__ = next(c for c in outer.co_consts if isinstance(c, types.CodeType))
    try:
        yield
    finally:
        for name, function in functions.items():
            function.__code__ = codes[name]
        REAL.clear()


def injected(name: str, function: types.FunctionType, times: int, run: Callable[[], Any]) -> Any:
    """What ``run`` returns if so many calls of the function raise; or as text, what it raises."""
    with intercepted({name: function}):
        Injector.left, Injector.raised = times, 0
        try:
            return run()
        except BaseException as error:
            return repr(error)
        finally:
            Injector.left = 0


def state() -> Any:
    """What a failed recording must not leave behind."""
    return gc.isenabled(), len(_get_current_function_mode_stack()), get_eval_frame_callback(), sys.gettrace()


def _tier(share: int) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] if share < 4 else [pytest.mark.slow, pytest.mark.exhaustive]


@pytest.mark.parametrize("share", [pytest.param(share, marks=_tier(share)) for share in range(SHARES)])
def test_an_error_anywhere(share: int) -> None:
    """In a process of its own, as what puts the monitor's own marks back is made to fail, too. It is no fork of this one, in
    which other tests may have started OpenMP's threads."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        problems, raised = pool.apply(inject, (share,))
    assert not problems, "\n".join(problems)
    assert raised > 40


def inject(share: int) -> tuple[list[str], int]:
    """What differs when one of this share of the functions raises, and how many of them did."""
    sys.modules["tests.soundness.test_failures"] = sys.modules[__name__]
    want, before = program(Net()), state()
    problems, raised = [], 0
    every = {f"{function.__module__}.{name}": function for name, function in functions() if name not in ENTRY}
    Injector.called.clear()
    with intercepted(every):
        assert same(program(magpy_core.compile(Net(), backend="eager")), want)
    for name in sorted(Injector.called)[share::SHARES]:
        for times in (1, sys.maxsize):
            net = magpy_core.compile(Net(), backend="eager")
            got = injected(name, every[name], times, functools.partial(program, net))
            raised += bool(Injector.raised)
            if not same(got, want):
                problems.append(f"{name} ({times}): {got if type(got) is str else 'other results'}")
            if state() != before:
                problems.append(f"{name} ({times}): left {state()}")
    net = magpy_core.compile(Net(), backend="eager")
    if not same(program(net), want) or not region_of(net).hits:
        problems.append("regions are no longer captured as before")
    return problems, raised

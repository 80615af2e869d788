"""No error of MagPy's own reaches a program that is run or checked: what times regions, cuts them and counts steps is made
to raise, one function at a time.

As in `test_failures`, whose functions are left out, the program's results, state and exceptions are those of eager mode.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core.regions.fragments import fragments
from magpy_core.regions.session import Session
from magpy_core.stretches.functions import Functions
from tests.soundness import test_failures
from tests.soundness.test_failures import ENTRY, Injected, Injector, Net, functions, injected, intercepted, state
from tests.unit.engine_pair import same

STAGES = ("magpy_core.regions.", "magpy_core.stretches.")
HOLDERS = {  # of handlers
    "RegionTimes.call", "RegionTimes.observed", "BackwardClock._leave", "Region._contain", "Region._rerun",
    "Region._run_uncompiled", "Region._run_plain", "Stretches.__call__", "Stretches.compiled", "Stretches._begun",
    "Stretches._ended", "Stretches.served_for", "_Served.call", "_Served._entry_of", "call", "_take_turn",
    "_Receiver.__matmul__", "_Begin.__matmul__", "_End.__matmul__", "_plain",
}  # fmt: skip
TOO_SMALL = {  # to fail: they compare, count, or move one value
    "GuardBackoff.skip", "GuardBackoff.awaited", "AlternatingCalls.is_of_this_thread", "AlternatingCalls.pays",
    "SeamClock.is_running", "SeamClock.ran_other", "busy",
    "_clock", "GapClock.__enter__", "GapClock.__exit__", "_Watched.begin", "_Watched.end", "_Watched._call", "Moved.call",
    "_move", "_unbind",
}  # fmt: skip
MODES, SHARES = ("run", "check", "background"), 9
ROWS = (5, 2, 2, 2, 2, 3, 4, 5, 4, *[2] * 30)  # as many as it takes until timing is over


class CutNet(nn.Module):
    """It can't be captured whole."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lin, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)
        self.calls, self.log = 0, list[Any]()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        y = self.lin(x) * 1.5
        self.log.append(x.shape[0])
        began = time.time()
        if x.shape[0] == 5:
            raise ValueError(f"call {self.calls}")
        y = self.norm(y) * 2 + 1
        self.log.append(began > 0)
        for v in y.sum(1).tolist():
            self.log.append(v > 0)
        z = y.relu() + y.sigmoid()
        return z * 2 if z.sum() > 20 else z


def program(session: Session | None) -> list[Any]:
    """What a program sees that trains two modules, with what the runner does around its calls."""
    nets = Net(), CutNet()
    optimizer = torch.optim.SGD([*nets[0].parameters(), *nets[1].parameters()], lr=0.01)

    def region(key: str, target: Callable[..., Any]) -> Callable[..., Any]:
        if session is not None:
            with contextlib.suppress(Injected):
                return session.region(key, kind="module", name=key, file=__file__, line=1, target=target)
        return target

    first, second = region("first", lambda x: nets[0](x)), region("second", lambda x: nets[1](x))
    step = region("step", lambda: optimizer.step())
    out: list[Any] = []
    for i, rows in enumerate(ROWS):
        torch.manual_seed(i)
        x = torch.randn(rows, 3)
        optimizer.zero_grad()
        try:
            results = [first(x), second(x)]
        except Exception as error:
            out.append((type(error), error.args, type(error.__context__)))
        else:
            sum(result.sum() for result in results).backward()
            step()
            out += [result.detach() for result in results]
        if session is not None:
            with contextlib.suppress(Injected):
                session.stepped(i + 1, whole=True, optimizer=1)
    weights = [parameter.detach() for net in nets for parameter in net.parameters()]
    return [out, [net.calls for net in nets], [net.log for net in nets], weights]


def session(mode: str) -> Session:
    # a function that was cut for one session is cut for the next
    fragments._functions = Functions(fragments._Receiver, fragments._clock)
    compiles = mode != "check"
    return Session(
        mode="compiled" if compiles else "observe", backend="eager", measure=compiles, background=mode == "background"
    )


def _tier(mode: str, share: int) -> Any:
    marks = [pytest.mark.slow, *([pytest.mark.exhaustive] if mode == "background" else [])]
    return pytest.param(mode, share, marks=marks)


@pytest.mark.parametrize(
    ("mode", "share"), [_tier(mode, i) for mode in ("run", "check", "background") for i in range(SHARES)]
)
def test_an_error_anywhere(mode: str, share: int) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        problems, raised = pool.apply(inject, (mode, share))
    assert not problems, "\n".join(problems)
    assert raised > (3 if mode == "check" else 9)


def inject(mode: str, share: int) -> tuple[list[str], int]:
    """What differs when one of this share of the functions raises that `test_failures` does not call, and how many did."""
    sys.modules["tests.soundness.test_failures"] = test_failures
    want, before = program(None), state()
    left_out = ENTRY | HOLDERS | TOO_SMALL
    every = {f"{one.__module__}.{name}": one for name, one in functions() if name not in left_out}
    every = {name: function for name, function in every.items() if name.startswith(STAGES)}
    with intercepted(every):
        Injector.called.clear()
        test_failures.program(magpy_core.compile(Net(), backend="eager"))
        elsewhere = set(Injector.called)
        assert same(program(session(mode)), want)
    problems, raised = [], 0
    for name in sorted(Injector.called - elsewhere)[share::SHARES]:
        for times in (1, sys.maxsize):
            got = injected(name, every[name], times, functools.partial(program, session(mode)))
            raised += bool(Injector.raised)
            if not same(got, want):
                problems.append(f"{name} ({times}): {got if type(got) is str else 'other results'}")
            if state() != before:
                problems.append(f"{name} ({times}): left {state()}")
    return problems, raised

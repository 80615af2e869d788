"""What is done with the verdict about compiled code: better code that is wrong is reported, and comparing costs time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.backends.tuning import Tuning
from magpy_core.capture import graphs
from magpy_core.findings import REPRODUCER
from magpy_core.regions.api import region_of
from magpy_core.regions.budget.budget import Budget
from magpy_core.verification import Plan
from magpy_core.verification.bisect import Cause


def compiles(monkeypatch: pytest.MonkeyPatch, *, wrong_stage: int) -> None:
    """Compiled code is the recorded graph, which adds one to its results in this stage."""

    def compiled(
        self: graphs.CompiledGraphs, index: int, inputs: tuple[Any, ...], stage: int
    ) -> Callable[[list[Any]], Sequence[Any]]:
        gm = graphs._module(self._structure.segments[index], inputs)
        self._stages[index] = stage + 1
        self.compile_seconds = 0.0
        return lambda given: [one + (stage == wrong_stage) for one in gm(*given)]

    monkeypatch.setattr(graphs.CompiledGraphs, "_compiled", compiled)


def region_after(calls: int) -> tuple[Any, Budget]:
    compiled: Any = magpy_core.compile(lambda x: x.cos() * 3, mode="max", wait=False)
    region, budget = region_of(compiled), Budget(unlimited=True)
    region.options = replace(region.options, on_trial=False, background=True, tuning=Tuning("max"), budget=budget)
    x = torch.randn(8)
    for _ in range(calls):
        assert torch.equal(compiled(x), x.cos() * 3)
    return region, budget


def test_better_code_that_is_wrong_is_reported_and_the_first_code_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    compiles(monkeypatch, wrong_stage=1)
    region, _ = region_after(100)
    (finding,) = (one for one in region.findings.values() if one.code == "MP914")
    assert "`cos`" in finding.message or "`mul`" in finding.message
    assert not region.disabled and region.hits > 90 and region.captures[0].is_final


def test_code_that_is_wrong_at_once_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiles(monkeypatch, wrong_stage=0)
    region, _ = region_after(10)
    assert region.disabled and not region.hits
    assert [one.code for one in region.findings.values() if one.code == "MP914"] == ["MP914"]


def test_comparing_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    compiles(monkeypatch, wrong_stage=2)
    region, budget = region_after(100)
    verdicts = region.captures[0].verdicts
    assert region.hits > 90 and verdicts and not verdicts[0].unchecked
    assert budget.spent > budget.recording, "what comparing took"


def test_a_call_is_not_slower_because_it_was_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else code would be found to be slower than eager mode, as each of its calls runs eager mode as well."""
    compiles(monkeypatch, wrong_stage=2)
    clock = [0.0]
    monkeypatch.setattr(graphs.time, "perf_counter", lambda: clock[0])
    real = graphs.check

    def slow(*args: Any, **options: Any) -> Any:
        clock[0] += 100.0
        return real(*args, **options)

    monkeypatch.setattr(graphs, "check", slow)
    compiled: Any = magpy_core.compile(lambda x: x.cos() * 3, wait=True)
    region = region_of(compiled)
    region.options = replace(region.options, verify=Plan.parse("2"))
    x = torch.randn(8)
    for _ in range(9):
        compiled(x)
    calls = len(region.captures[0].samples)
    assert calls >= 3 and region.times.waited == region.times.steps.now.compared == 100.0 * calls


def test_a_cause_survives_the_page_that_it_is_left_in() -> None:
    cause = Cause("It differs. " * 100, ("aten.cos.default", "aten.mul.Tensor"), 0.25, "Inductor", "/tmp/difference-1.py")
    assert Cause.decoded(cause.encoded(10_000)) == cause
    short = Cause.decoded(cause.encoded(300))
    assert short.reproducer == cause.reproducer and cause.text.startswith(short.text)
    shown = {value.name: value.repr for value in cause.values}
    assert shown == {
        "operations": "aten.cos.default, aten.mul.Tensor", "largest difference": "0.25", "at fault": "Inductor",
        REPRODUCER: "/tmp/difference-1.py",
    }  # fmt: skip

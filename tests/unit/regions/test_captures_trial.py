"""Captures of `magpy_core.compile` on trial: which way calls go, and what becomes of captures that don't pay."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
import torch

import magpy_core
from magpy_core.regions import trial as trials
from magpy_core.regions.api import region_of
from magpy_core.regions.region import Region
from magpy_core.regions.timing.alternating_calls import AlternatingCalls


def double(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) * 2


def on_trial(function: Callable[..., Any] = double) -> Any:
    """Compiled, and on trial; nothing waits for a compiler, so that no clock matters."""
    compiled = magpy_core.compile(function, backend="eager")
    region = region_of(compiled)
    region.options = replace(region.options, on_trial=True)
    return compiled


@pytest.fixture
def turns() -> Iterator[list[bool | None]]:
    """What calls are to be, from the first on: compiled, eager mode (False), or None: it turns out not to pay."""
    decided: list[bool | None] = []

    def begin(trial: AlternatingCalls, now: float, state: Any) -> bool:
        turn = decided.pop(0)
        if turn is None:
            trial.compared.pays, trial.compared.eager, trial.compared.compiled = False, [0.001], [0.002]
        return bool(turn)

    with mock.patch.object(AlternatingCalls, "begin", begin):
        yield decided


def test_calls_take_turns_and_a_capture_that_does_not_pay_serves_no_more(turns: list[bool | None]) -> None:
    turns += [True, False, True, None]
    compiled = on_trial()
    region, x = region_of(compiled), torch.randn(3)
    hits = []
    for _ in range(8):
        assert torch.equal(compiled(x), double(x))
        hits.append(region.hits)
    assert hits == [0, 1, 2, 2, 3, 3, 3, 3] and not turns
    assert region.times.trial is None and all(capture.is_retired for capture in region.captures)
    assert [finding.message for finding in region.findings.values() if finding.code == "MP401"] == [
        f"{region.name}, compiled, is 2x slower than eager mode (2 ms instead of 1 ms). MagPy runs it in eager mode again."
    ]


def test_another_shape_is_tried_for_itself(turns: list[bool | None]) -> None:
    turns += [None]
    compiled = on_trial()
    region = region_of(compiled)
    with mock.patch.object(trials.time, "perf_counter", lambda: 0.0):  # guards that take no time
        for _ in range(4):
            compiled(torch.randn(3))
    assert [capture.is_retired for capture in region.captures] == [True]
    turns += [True, False]
    before = region.hits
    for _ in range(4):
        compiled(torch.randn(3, 4))
    assert region.times.trial is not None and region.hits == before + 2


@pytest.mark.parametrize("compiled_seconds", [0.5, 2.0])
def test_the_faster_way_serves_from_then_on(compiled_seconds: float) -> None:
    now = [0.0]

    def takes(seconds: float, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any) -> Any:
            now[0] += seconds
            return call(*args)

        return timed

    compiled = on_trial()
    region, ways = region_of(compiled), trials._Captures
    with (
        mock.patch.object(trials, "when_done", lambda: now[0]),
        mock.patch.object(ways, "compiled", takes(compiled_seconds, ways.compiled)),
        mock.patch.object(ways, "plain", takes(1.0, ways.plain)),
    ):
        for _ in range(80):
            compiled(torch.ones(3))
    assert region.times.trial is None
    assert [capture.is_retired for capture in region.captures] == [compiled_seconds > 1.0]
    assert {finding.code for finding in region.findings.values()} == ({"MP401"} if compiled_seconds > 1.0 else set())


def test_what_is_on_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    def options(**how: Any) -> Any:
        return region_of(magpy_core.compile(double, **how)).options

    assert options(wait=False).on_trial
    assert not options(wait=True).on_trial  # in tests, where MAGPY_COMPILE is set: no clock matters
    monkeypatch.delenv("MAGPY_COMPILE")
    for waits in (False, True):
        assert options(wait=waits).on_trial
        assert options(wait=waits).background is not waits
        assert not options(wait=waits, fullgraph=True).on_trial
        assert not options(wait=waits, backend="eager").on_trial


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (AlternatingCalls, "begin"),
        (AlternatingCalls, "returned"),
        (trials, "has_history"),
        (trials, "_state"),
        (trials, "slower_on_trial"),
        (Region, "fitting"),
        (Region, "retire"),
    ],
)
def test_an_error_of_ours_leaves_plain_python(owner: Any, name: str) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("ours")

    def begin(trial: AlternatingCalls, now: float, state: Any) -> bool:
        trial.compared.pays = None if name in ("returned", "has_history") else False
        trial.compared.eager, trial.compared.compiled = [0.001], [0.002]
        return False

    with mock.patch.object(AlternatingCalls, "begin", begin), mock.patch.object(owner, name, fails):
        compiled = on_trial()
        for _ in range(5):
            assert torch.equal(compiled(torch.ones(3)), double(torch.ones(3)))
    region = region_of(compiled)
    assert "MP901" in {finding.code for finding in region.findings.values()}
    assert region.times.trial is None


def test_the_program_raises_its_own_exception(turns: list[bool | None]) -> None:
    def picky(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) @ torch.ones(3)

    turns += [True, False, True, False]
    compiled = on_trial(picky)
    compiled(torch.ones(3))
    compiled(torch.ones(3))
    for size in (3, 2, 2, 3):
        if size == 3:
            assert torch.equal(compiled(torch.ones(3)), picky(torch.ones(3)))
        else:
            with pytest.raises(RuntimeError, match="size") as info:
                compiled(torch.ones(size))
            assert info.value.__context__ is None


def test_a_compiled_function_that_is_dropped_is_freed() -> None:
    compiled = on_trial(lambda x: x + 1)
    for _ in range(4):
        compiled(torch.ones(3))
    assert region_of(compiled).times.trial is not None
    gc.disable()
    try:
        region = weakref.ref(region_of(compiled))
        del compiled
        assert region() is None
    finally:
        gc.enable()

"""The parts of a region, each alone: its log, its times, its misses and its summary, without a recording."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from magpy_core.findings import Finding, Location, Position, Range, Severity, Value
from magpy_core.recording.ledger import Learned
from magpy_core.refgraph.failure import Failure
from magpy_core.refgraph.source_table import SourceTable
from magpy_core.regions.log import Listeners, RegionLog, is_repeat, merge
from magpy_core.regions.options import Options
from magpy_core.regions.policy.recompile_causes import DECISION, closest_failures, generalise
from magpy_core.regions.region import Region
from magpy_core.regions.timing.region_times import RegionTimes

HERE = Location("/p/a.py", Range(Position(3, 0), Position(3, 1)))


def recompile(name: str, change: str) -> Finding:
    return Finding("MP201", f"`{name}` changed: {change}", HERE, region="r", values=(Value(name, change),))


def region(**options: Any) -> Region:
    return Region("r", "function", "r", HERE, lambda x: x + 1, Options("compiled", "eager", **options))


# -- log --------------------------------------------------------------------------------------------------------------


def test_a_finding_is_reported_once_and_counted() -> None:
    seen: list[tuple[str, int]] = []
    log = RegionLog(Listeners(lambda f: seen.append((f.code, f.count))))
    finding = Finding("MP103", "m", HERE)
    assert log.add(finding) is finding and log.add(Finding("MP103", "m", HERE)) is finding
    assert seen == [("MP103", 1), ("MP103", 2)] and list(log.findings.values()) == [finding]
    log.clear()
    assert not log.findings


def test_a_recompile_of_the_same_value_is_a_repeat() -> None:
    first, second, other = recompile("k", "1 -> 2"), recompile("k", "2 -> 3"), recompile("m", "1 -> 2")
    assert is_repeat(second, first) and not is_repeat(other, first)
    assert not is_repeat(replace(second, code="MP202"), first)
    merge(first, second)
    assert first.count == 2 and [v.repr for v in first.values] == ["1 -> 2", "2 -> 3"]
    merge(first, recompile("k", "3 -> 4"))
    assert [v.repr for v in first.values] == ["1 -> 2", "2 -> 3", "3 -> 4"]


def test_what_goes_on_is_worse_than_warm_up() -> None:
    first, second = recompile("k", "1 -> 2"), recompile("k", "2 -> 3")
    first.severity_override = Severity.INFORMATION
    merge(first, second)
    assert first.severity == second.severity


def test_listeners_are_asked_for_the_step() -> None:
    log = RegionLog(Listeners(step=lambda: 3))
    log.recorded(None, [])
    assert log.captures_after_step_3 == 0, "nothing was captured"


# -- misses -----------------------------------------------------------------------------------------------------------


def capture_with(*failures: Failure) -> Any:
    guards = SimpleNamespace(explain=lambda args, kwargs, global_ok: list(failures))
    return SimpleNamespace(guards=guards, globals_hold=lambda: True, fits_but_for=lambda args, kwargs: None)


def test_the_closest_capture_explains_a_miss() -> None:
    a, b, c = (Failure("MP201", name, "1", "2") for name in "abc")
    assert closest_failures([capture_with(a, b), capture_with(c), capture_with(a)], (), {}, Learned()) == [c]
    undecided = capture_with()
    undecided.trace = SimpleNamespace(refgraph=SimpleNamespace(reads=[]), decisions=[])
    assert closest_failures([undecided], (), {}, Learned()) == [DECISION], "every guard holds: a decision on data"


def test_what_varies_becomes_symbolic() -> None:
    source = SourceTable().arg(0, "n")
    number = Failure("MP201", "n", "1", "2", source=source, number=True)
    size = Failure("MP201", "x.shape", "(1,)", "(2,)", source=source, dims=(0,))
    text = Failure("MP201", "s", "'a'", "'b'", source=source)
    learned = Learned()
    assert generalise(learned, [number, size, text, DECISION]) == [number, size]
    assert learned.numbers == {source.path} and learned.dims == {source.path: {0}}
    assert generalise(Learned(exact={source.path}), [number]) == [], "the exact number decides what the region does"


# -- times and summary ------------------------------------------------------------------------------------------------


def test_steady_calls_alternate() -> None:
    held = SimpleNamespace(is_compiled=True)
    calls: list[str] = []
    stub: Any = SimpleNamespace(
        hits=0, recordings=1, captures=[held], disabled="", options=Options(), fitting=lambda args, kwargs: held,
        target=lambda: calls.append("plain"),
    )  # fmt: skip

    def dispatch(args: Any, kwargs: Any) -> None:
        calls.append("compiled")
        stub.hits += 1

    stub.dispatch = dispatch
    times = RegionTimes()
    for _ in range(8):
        times.call(stub, (), {})
    assert calls == ["compiled"] * 3 + ["plain", "compiled"] * 2 + ["plain"]
    assert (len(times.calls.eager), len(times.calls.compiled), len(times.guard)) == (3, 2, 3)
    times._uncut = 0
    for _ in range(100):
        times.call(stub, (), {})
    assert len(times.calls.eager) == 11 and len(times.calls.compiled) == 10, (
        "only neighbours are compared: later calls may be larger"
    )


def test_retired_captures_took_time_to_compile() -> None:
    times = RegionTimes()
    assert times.compile_seconds([]) is None
    times.retired.append(SimpleNamespace(compile_seconds=1.5))  # type: ignore[arg-type]
    made: Any = [SimpleNamespace(compile_seconds=0.25), SimpleNamespace(compile_seconds=None)]
    assert times.compile_seconds(made) == 1.75


def test_a_region_that_was_never_called() -> None:
    summary = region().summary()
    assert (summary.calls, summary.captures, summary.complete) == (0, 0, False)
    assert (summary.compile_s, summary.speedup_low) == (None, None)


@pytest.mark.parametrize("limit", [0, 1])
def test_a_region_gives_up_at_its_limit(limit: int) -> None:
    r = region(cache_limit=limit)
    for value in (1, "a"):
        assert r(torch.ones(1) if value == 1 else torch.ones(1, dtype=torch.int64)).numel() == 1
    assert r.disabled == f"{limit} captures" and [f.code for f in r.findings.values()].count("MP203") == 1
    r.forget()
    assert not r.disabled and not r.findings and r.recordings == 0

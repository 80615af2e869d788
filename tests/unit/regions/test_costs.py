"""What findings cost: measured where a clock can tell, left out where it can't."""

from __future__ import annotations

import time
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from magpy_core.findings import Finding, Location, Position, Range, Severity, Value
from magpy_core.regions.session import Session
from magpy_core.regions.timing import costs
from magpy_core.runner.timeline import Timeline

KIND = "a"


def _place(line: int) -> Location:
    return Location("/p/a.py", Range(Position(line, 0), Position(line, 1)))


def _kinds(x: torch.Tensor) -> torch.Tensor:
    return x + 1 if KIND == "a" else x - 1


def _branching(x: torch.Tensor) -> torch.Tensor:
    y = x @ x
    if y.sum() > 0:
        y = y + 1
    return y * 3


def _region(mode: Any, target: Any, **more: Any) -> tuple[Session, Any, list[Finding]]:
    told: list[Finding] = []
    session = Session(mode=mode, backend="eager", on_finding=told.append, **more)
    return session, session.region(1, kind="function", name="r", file=__file__, line=1, target=target), told


@pytest.mark.parametrize("mode", ["observe", "compiled"])
def test_capturing_again_costs_what_it_took_beyond_a_usual_call(mode: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    session, region, told = _region(mode, _kinds, measure=mode == "compiled")
    for step in range(1, 13):
        if step == 7:
            monkeypatch.setattr(f"{__name__}.KIND", "b")
            start = time.perf_counter()
        region(torch.ones(3))
        if step == 7:
            spent = (time.perf_counter() - start) * 1e3
        session.stepped(step)
    (again,) = (f for f in session.findings if f.code == "MP201")
    assert again.cost_ms is None, "known at the end"
    session.finish()
    assert again.cost_ms is not None and 0 < again.cost_ms
    compiling = sum(c.compile_seconds or 0.0 for c in region.captures) * 1e3
    assert again.cost_ms < spent + compiling
    assert [f.cost_ms for f in told if f.code == "MP201"][-1] == again.cost_ms, "told again with it"
    assert all(f.cost_ms is None for f in session.findings if f.code != "MP201")


def test_a_cut_costs_the_time_between_its_graphs_in_a_step() -> None:
    session, region, _ = _region("compiled", _branching, measure=True)
    x = torch.ones(3, 3)
    start = time.perf_counter()
    for step in range(1, 21):
        for _ in range(2):
            assert torch.equal(region(x), _branching(x))
        session.stepped(step)
    spent = (time.perf_counter() - start) * 1e3
    generated = [capture.run for capture in region.captures]
    session.finish()
    (cut,) = (f for f in session.findings if f.code == "MP101")
    assert cut.cost_ms is not None and 0 < cut.cost_ms < spent / 20
    assert [capture.run for capture in region.captures] == generated
    assert not any("noted" in repr(value) for value in region.captures[0].namespace.values()), "as it was generated"


def test_graphs_of_a_cut_are_inside_their_calls() -> None:
    session, region, _ = _region("compiled", _branching, measure=True)
    timeline, x = Timeline(), torch.ones(3, 3)
    for step in range(1, 41):
        timeline.call(region, (x,), {})
        session.stepped(step)
    calls, graphs = timeline.calls(), timeline.graphs(lambda one: one.times.costs.graphs)
    assert graphs and {graph.region for graph in graphs} == {region.id}
    holding = [call for call in calls for graph in graphs if call.start <= graph.start < call.start + call.seconds]
    assert len(holding) == len(graphs) and {call.how for call in holding} == {"replayed"}
    assert all(holding.count(call) == len(region.captures[0].segments) for call in holding)
    assert len(graphs) < len(calls), "of few calls only"


def test_nothing_is_made_up() -> None:
    session, region, _ = _region("observe", _branching)
    for step in range(1, 4):
        region(torch.ones(3, 3))
        session.stepped(step)
    session.finish()
    assert [f.cost_ms for f in session.findings if f.code == "MP101"] == [None], "a check runs no graphs"
    session, region, _ = _region("compiled", lambda x: x * (id(x) % 7), measure=True)
    for step in range(1, 40):
        region(torch.ones(3))
        session.stepped(step)
    session.finish()
    assert {f.cost_ms for f in session.findings} == {None}, "what eager mode costs more is not known"
    known = costs.Costs()
    finding = Finding("MP201", "m", _place(1))
    known.recaptured([finding], 1.0, None)
    assert known.assign([finding], [], 5, 5) == [] and finding.cost_ms is None, "no usual call to compare with"


def test_what_changed_at_once_shares_the_time() -> None:
    first, second = (Finding("MP202", name, _place(1)) for name in "ab")
    known = costs.Costs()
    known.usual(0.25)
    known.recaptured([first, second], 1.25, None)
    known.recaptured([first], 1.25, None)
    assert known.assign([first, second], [], 9, 3) == [first, second]
    assert (first.cost_ms, second.cost_ms) == (750.0, 500.0)


class _Compiled:
    compile_seconds = 0.5
    plain_calls = 7


def test_calls_that_waited_for_the_compiler_are_counted() -> None:
    finding, capture, known = Finding("MP201", "m", _place(1)), _Compiled(), costs.Costs()
    known.usual(0.25)
    known.recaptured([finding], 1.25, capture)  # type: ignore[arg-type]
    known.recaptured([finding], 1.25, None)
    known.assign([finding], [], 9, 3)
    assert finding.cost_ms == 1250.0, "compiling is a part of it"
    assert finding.values == (Value("calls in eager mode meanwhile", "7"),)


def test_gaps_between_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count()
    monkeypatch.setattr(costs, "perf_counter", lambda: float(next(ticks)))
    names: dict[str, Any] = {f"graph{i}": lambda inputs: inputs for i in range(3)}

    def generated(args: Any, kwargs: Any) -> str:
        for i in range(3):
            names[f"graph{i}"]([])
            for _ in range(args[0] * i):
                next(ticks)  # the program thinks
            if args[0] == 9 and i == 1:
                raise KeyError
        return "result"

    places = [_place(1), _place(2)]
    capture: Any = SimpleNamespace(
        segments=[1, 2, 3], is_ready=True, run=generated, full_run=generated, namespace=names, cut_at=places.__getitem__
    )
    untouched, known = dict(names), costs.Costs()
    for thinking in (2, 2, 4):
        with costs.GapClock([capture]) as clock:
            assert capture.run((thinking,), {}) == "result"
        clock.add_to(known)
    with pytest.raises(KeyError), costs.GapClock([capture]) as clock:
        capture.run((9,), {})
    clock.add_to(known)
    assert names == untouched and capture.run is generated
    with costs.GapClock([capture]), costs.GapClock([capture]) as clock:  # of another thread
        capture.run((2,), {})
    clock.add_to(known)
    assert names == untouched and capture.run is generated
    findings = [Finding("MP101", "first", places[0]), Finding("MP102", "second", places[1])]
    known.assign(findings, [], calls=6, steps=3)  # two calls in a step; behind the first graph nothing is thought
    assert [f.cost_ms for f in findings] == [2_000.0, 6_000.0]


def test_what_costs_next_to_nothing_is_a_fact() -> None:
    def cut(cost_ms: float | None, code: str = "MP101") -> Finding:
        return Finding(code, "m", _place(1), hint="Use torch.where.", cost_ms=cost_ms)

    found = [cut(0.007), cut(0.16), cut(None), cut(0.007, "MP201"), cut(0.007, "MP406")]
    assert costs.rate(found, 30.0) == [found[0], found[4]]
    cheap, dear, unknown, recompile, step = found
    assert cheap.severity is step.severity is Severity.INFORMATION and not cheap.is_actionable and not step.is_actionable
    assert cheap.hint == "No action needed: this costs 0.007 ms of a step of 30 ms. Use torch.where."
    assert all(f.severity is Severity.WARNING and f.hint == "Use torch.where." for f in (dear, unknown, recompile))


@pytest.mark.parametrize(
    ("cost_ms", "hint", "severity"),
    [
        (1.5, "Move it.", "warning"),
        (1.4, "Move it.", "information"),
        (20.0, "No action needed: it is known.", "information"),
    ],
)
def test_a_step_in_parts_is_a_warning_if_that_costs_much(cost_ms: float, hint: str, severity: str) -> None:
    """Of what needs no action, it is not."""
    finding = Finding("MP406", "m", _place(1), hint=hint, cost_ms=cost_ms)
    assert costs.rate([finding], 30.0) == ([finding] if severity == "warning" else [])
    assert (finding.severity, finding.hint) == (Severity(severity), hint)

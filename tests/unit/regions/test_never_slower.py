"""What is slower compiled goes back to eager mode, and what capturing costs stays in proportion to the run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from magpy_core.backends import background
from magpy_core.backends.aot import AotBackend
from magpy_core.backends.base import CompiledGraph
from magpy_core.backends.eager import EagerBackend
from magpy_core.backends.tuning import Tuning
from magpy_core.regions.budget import budget as budgets
from magpy_core.regions.budget.budget import Budget
from magpy_core.regions.budget.guard_backoff import GuardBackoff
from magpy_core.regions.budget.history import LastRun
from magpy_core.regions.region import Region
from magpy_core.regions.reports.unused import why_unused
from magpy_core.regions.session import Session


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.delenv("MAGPY_COMPILE", raising=False)
    monkeypatch.setattr(budgets, "symbolic_sizes_imported", lambda: True)  # whatever ran before in this process
    return unhurried(Session(mode="compiled", backend="eager", measure=True, background=True))


def unhurried(session: Session) -> Session:
    """In which recordings cost nothing, however slow the machine is."""
    budget = session.options.budget
    assert budget is not None
    recorded = budget.recorded
    budget.recorded = lambda region, seconds, **more: recorded(region, 0.0, **more)  # type: ignore[method-assign]
    return session


def region_of(session: Session, target: Callable[..., Any]) -> Region:
    return session.region(target, kind="function", name="f", file=__file__, line=1, target=target)


def timed(region: Region, eager: float, compiled: float) -> None:
    """As if each of the calls that are timed had taken so long."""
    region.times.calls.eager = [eager] * 10
    region.times.calls.compiled = [compiled] * 10
    region.times.guard = [eager / 1000] * 10


def steady(region: Region, x: torch.Tensor, eager: float, compiled: float) -> None:
    """All the calls in which the two are timed by turns, and some more."""
    for _ in range(34):
        timed(region, eager, compiled)
        region(x)


def test_a_slower_region_runs_as_plain_python_again(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def f(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x * 2

    region = region_of(session, f)
    monkeypatch.setattr(Budget, "affords_loading", lambda self, *seconds, region="": True)
    monkeypatch.setattr(Budget, "affords_recording", lambda self, region, has_other_sizes=None: True)
    x = torch.ones(3)
    steady(region, x, eager=1.0, compiled=2.0)
    (capture,) = region.captures
    assert capture.is_retired
    hits = region.hits
    for _ in range(5):
        assert torch.equal(region(x), x * 2)
    assert region.hits == hits and len(calls) == region.calls
    assert region(torch.ones(4)).shape == (4,) and len(region.captures) == 2  # another shape is another question
    session.finish()
    (found,) = [finding for finding in session.findings if finding.code == "MP401"]
    assert found.message.endswith("MagPy runs it in eager mode again.")


def test_what_does_not_pay_for_looking_at_the_calls_runs_as_plain_python_again(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Budget, "affords_loading", lambda self, *seconds, region="": True)
    monkeypatch.setattr(Budget, "affords_recording", lambda self, region, has_other_sizes=None: True)
    regions = [region_of(session, lambda x: x * 2), region_of(session, lambda x: x + 2)]
    x = torch.ones(3)
    for region in regions:
        steady(region, x, eager=2.0, compiled=1.0)
    assert not session.begin_window(0.05), "other code runs than before"
    assert not session.begin_window(0.05), "steps are compared by turns"
    for n in range(30):
        session.stepped(n)
    for _ in range(6):
        assert session.begin_window(0.05)
        session.compared(compiled=1e-4, plain=0.9e-4)
    assert not session.begin_window(0.05)
    assert all(capture.is_retired for region in regions for capture in region.captures)
    session.end_sample()
    for region in regions:
        hits = region.hits
        assert region(x).shape == (3,) and region.hits == hits
    assert session.end_sample()
    regions[0].recordings += 1
    assert not session.begin_window(0.05), "other code is compared anew"
    session.finish()
    found = [finding for finding in session.findings if finding.code == "MP401"]
    assert len(found) == 2
    assert "from call to call" in found[0].message and "(0.1 ms instead of 0.09 ms)" in found[0].message


def test_steps_that_are_certainly_faster_are_not_compared_with_unobserved_ones(session: Session) -> None:
    def compared(plain: float) -> bool:
        session._steps.compared.eager = [plain] * 8
        session._steps.compared.compiled = [1.0] * 8
        return session.begin_window(0.05)

    assert not session.begin_window(0.05), "other code runs than before"
    assert session.begin_window(0.05), "no steps were timed"
    assert compared(1.09)
    assert not compared(1.11)


@pytest.mark.parametrize(
    ("compiled", "learns"), [(0.5, False), (2.0, True)], ids=["a faster one", "one with a backward pass"]
)
def test_others_stay_compiled(session: Session, compiled: float, learns: bool) -> None:
    region = region_of(session, lambda x: x * 2)
    steady(region, torch.ones(3, requires_grad=learns), 1.0, compiled)
    assert not any(capture.is_retired for capture in region.captures)


def test_where_guards_are_expensive_they_are_not_looked_at(session: Session) -> None:
    region = region_of(session, lambda x: x * 2)
    for _ in range(4):
        region(torch.ones(3))
    timed(region, 1.0, 2.0)
    region.times.guard = [0.5] * 10
    region.retire()
    region(torch.ones(4))
    assert len(region.captures) == 1


def test_a_retired_capture_stays_so_when_what_its_fast_guard_watches_dies(session: Session) -> None:
    region = region_of(session, lambda m, x: m.weight * x)
    module = torch.nn.Linear(2, 2)
    x = torch.ones(2)
    with torch.no_grad():
        for _ in range(6):
            region(module, x)
        timed(region, 1.0, 2.0)
        region.retire()
        (capture,) = region.captures
        retired = capture.run
        del module
        assert capture.run is retired
        region(torch.nn.Linear(2, 2), x)
    assert capture.run is retired


def test_what_recordings_may_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(budgets.time, "monotonic", lambda: now[0])
    spent = Budget()
    monkeypatch.setattr(budgets, "symbolic_sizes_imported", lambda: imported)
    imported = True
    asked: list[bool] = []

    def other_sizes() -> bool:
        asked.append(True)
        return True

    assert spent.affords_recording("a")  # a program has to begin somehow
    spent.recorded("a", 0.4)
    assert spent.affords_recording("b") and not spent.affords_recording("a")
    now[0] += 5.0
    assert not spent.affords_recording("a", other_sizes)
    now[0] += 3.0
    assert spent.affords_recording("a", other_sizes) and not asked
    imported = False
    assert spent.affords_recording("a") and not spent.affords_recording("a", other_sizes)
    assert not spent.affords_recording("a", other_sizes) and len(asked) == 1, "it is looked up once"


def test_recordings_in_vain_cost_less(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(budgets.time, "monotonic", lambda: now[0])
    known = LastRun(100.0, {"a": 0.01})
    for last, served, expected in ((None, False, 125), (None, True, 63), (known, False, 125), (known, True, 0)):
        now[0] = 0.0
        spent = Budget(last)
        for _ in range(2):
            spent.recorded("a", 1.0)
        if served:
            spent.serves("a")
        while not spent.affords_recording("a"):
            now[0] += 1.0
        assert now[0] == pytest.approx(expected, abs=1), (last, served)


def test_nothing_is_recorded_shortly_before_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(budgets.time, "monotonic", lambda: now[0])
    spent = Budget(LastRun(60.0))
    spent.recorded("a", 1.0)
    affordable = []
    for now[0] in (30.0, 49.0, 51.0, 59.0, 61.0):
        affordable.append(spent.affords_recording("a"))
    assert affordable == [False, True, False, False, True], "the last run took a minute; this one takes longer"


def test_calls_that_cannot_be_recorded_yet_seldom_check_guards(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes that vary have to wait for what torch imports for them."""
    region = region_of(session, lambda x: x * 2)
    region(torch.ones(3))
    region(torch.ones(3))
    (capture,) = region.captures
    monkeypatch.setattr(Budget, "affords_recording", lambda self, region, has_other_sizes=None: has_other_sizes is None)
    checks: list[int] = []
    run = capture.run
    monkeypatch.setattr(capture, "run", lambda args, kwargs: checks.append(1) or run(args, kwargs))
    for n in range(500):
        assert torch.equal(region(torch.full((4,), float(n))), torch.full((4,), 2.0 * n))
    assert 32 < len(checks) < 100 and region.captures == [capture]


def test_code_that_was_compiled_in_vain_delays_other_code() -> None:
    waiting = GuardBackoff()
    assert Budget.is_worthwhile(waiting, 1.0, 5.0)
    waiting.wasted_seconds = 10.0
    waiting.restart()
    assert not Budget.is_worthwhile(waiting, 39.0, 39.0) and not Budget.is_worthwhile(waiting, 0.0, 0.01)
    assert Budget.is_worthwhile(waiting, 41.0, 41.0)


def test_other_sizes_wait_for_what_torch_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(budgets.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(budgets, "symbolic_sizes_imported", lambda: False)

    def recorded_after(last: LastRun | None) -> float:
        now[0] = 0.0
        spent = Budget(last)
        spent.recorded("a", 0.5)
        while not spent.affords_recording("a", lambda: True):
            now[0] += 1.0
        return now[0]

    assert recorded_after(None) == pytest.approx(50, abs=1)
    assert recorded_after(LastRun(60.0, {"a": 0.3})) == 0.0
    assert recorded_after(LastRun(100.0)) == 0.0, "it is a small part of a run that long"
    assert recorded_after(LastRun(80.0)) == pytest.approx(50, abs=1), "code may well come too late"
    assert recorded_after(LastRun(80.0, {"a": 0.0})) == pytest.approx(50, abs=1), "it did not pay"
    assert recorded_after(LastRun(10.0, {"a": 0.3})) == pytest.approx(50, abs=1), "too short a run"


def test_a_run_that_is_known_to_pay_loads_code_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(budgets.time, "monotonic", lambda: now[0])
    spent = Budget(LastRun(100.0, {"a": 0.2}))
    assert not spent.affords_loading(2.5, 0.1) and not spent.affords_loading(2.5, 0.1, "b")
    assert spent.affords_loading(2.5, 0.1, "a")
    spent.add(9.0)
    assert not spent.affords_loading(2.5, 0.1, "a"), "all that is spent has to be saved"
    now[0] = 80.0
    spent.spent = 0.0
    assert not spent.affords_loading(2.5, 0.1, "a"), "the end is near"


def test_what_was_compiled_ahead_of_time_serves_from_the_first_steps_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets.time, "monotonic", lambda: 0.0)
    for last, affords in ((LastRun(), False), (LastRun(ahead=4.0), True), (LastRun(5.0, {"a": 0.0}, ahead=4.0), False)):
        spent = Budget(last)
        spent.recorded("a", 3.5)
        assert spent.affords_recording("a") is affords, last
        assert spent.affords_loading(2.0, 0.1, "a") is affords, last
    spent = Budget(LastRun(ahead=4.0))
    spent.recorded("a", 3.8)
    spent.recorded("a", 0.1)
    assert not spent.affords_recording("a") and not spent.affords_loading(2.0, 0.1, "a"), "it changes all the time"
    assert Budget(LastRun(ahead=0.1)).affords_loading(2.5, 0.1, "a")


def test_to_compile_ahead_of_time_everything_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets.time, "monotonic", lambda: 0.0)
    spent = Budget(LastRun(1.0, {"a": 0.0}), unlimited=True)
    for _ in range(5):
        spent.recorded("a", 100.0)
        spent.add(100.0)
    assert spent.affords_recording("a") and spent.affords_loading(100.0, 0.0, "a")
    assert (spent.recording, spent.spent) == (500.0, 1000.0)


def test_a_region_that_needs_a_capture_at_most_calls_runs_plain_in_between(session: Session) -> None:
    budget = session.options.budget
    assert budget is not None
    region = region_of(session, lambda x, n: x * 2 if n == "a" else x * 3)
    for _ in range(2):  # the first one is not recorded
        assert region(torch.ones(1), "a").item() == 2.0
    affords = budget.affords_recording
    budget.affords_recording = lambda region, other_sizes=None: False  # type: ignore[method-assign]
    assert region(torch.ones(1), "b").item() == 3.0
    assert region.recordings == 1 and not region.disabled
    budget.affords_recording = affords  # type: ignore[method-assign]
    assert region(torch.ones(1), "b").item() == 3.0
    assert region.recordings == 2


def test_calls_that_wait_for_compiled_code_hardly_check_guards() -> None:
    class Fits:
        pass

    capture, waiting = Fits(), GuardBackoff()

    def calls(number: int, fits: Any, check: float, call: float, hits: int = 0) -> list[int]:
        """Those of a number of calls that check."""
        checked = []
        for n in range(number):
            if not waiting.skip():
                checked.append(n)
                waiting.wasted_check(fits, hits, check, call)
            assert waiting.awaited() is fits or (n == 0 and waiting.awaited() is None)
        return checked

    for fits in (capture, None):
        found = calls(400, fits, check=1e-4, call=1e-3)
        assert found[:33] == list(range(33)) and 45 < len(found) < 65
        assert (
            len(calls(100, fits, check=1e-4, call=1e-3, hits=1 if fits else 2)) >= 33
        )  # what served in between may do so again
        waiting.restart()
    assert len(calls(100, None, check=1e-6, call=1.0)) == 100
    waiting.wasted_check(capture, 0, check=1.0, call=0.0)  # type: ignore[arg-type]
    del capture, fits
    assert waiting.skip() and waiting.awaited() is None


def test_calls_without_a_check_do_not_count_for_a_capture_that_fits_few_calls() -> None:
    class Fits:
        pass

    rare, waiting = Fits(), GuardBackoff()
    counted = 0
    for n in range(6300):
        if not waiting.skip():
            waiting.wasted_check(rare if n % 63 == 0 else None, 0, 1e-4, 1e-3)  # type: ignore[arg-type]
        elif waiting.awaited() is rare:
            counted += 1
    assert counted == 0


def test_a_capture_for_one_of_many_shapes_is_not_compiled() -> None:
    class Fits:
        pass

    one, waiting = Fits(), GuardBackoff()
    for shapes, compiled in ((4, True), (40, False)):
        waiting.restart()
        for n in range(80):
            waiting.wasted_check(one if n % shapes == 0 else None, 0, 1e-4, 1e-3)  # type: ignore[arg-type]
        assert Budget.is_worthwhile(waiting, 1.0, 10.0) is compiled
    waiting.restart()
    assert Budget.is_worthwhile(waiting, 1.0, 10.0), "something new was captured"


def test_a_region_that_can_not_afford_a_capture_hardly_checks_guards(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    region = region_of(session, lambda x: x * 2)
    region(torch.ones(1))
    region(torch.ones(1))
    (capture,) = region.captures
    checked, run = [], capture.run
    monkeypatch.setattr(capture, "run", lambda args, kwargs: checked.append(1) or run(args, kwargs))
    monkeypatch.setattr(session.options.budget, "affords_recording", lambda region, other_sizes=None: False)
    for _ in range(1000):
        assert region(torch.ones(2)).tolist() == [2.0, 2.0]
    assert len(checked) < 250 and region.recordings == 1


def test_what_is_called_rarely_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    worthwhile = partial(Budget.is_worthwhile, GuardBackoff())
    assert worthwhile(0.0, 0.05)  # it recurs at once
    assert not worthwhile(0.0, 0.5) and not worthwhile(0.1, 6.0) and worthwhile(0.1, 4.0)
    started: list[str] = []
    monkeypatch.delenv("MAGPY_COMPILE", raising=False)
    monkeypatch.setattr(background, "available", lambda: True)
    monkeypatch.setattr(background.QUEUE, "poll", lambda compilation, work: bool(started.append("started")))
    session = unhurried(Session(mode="compiled", backend="inductor", background=True))
    region = region_of(session, lambda x: x * 2)
    monkeypatch.setattr(Budget, "is_worthwhile", staticmethod(lambda waiting, seconds, elapsed: seconds > 0 and bool(worth)))
    worth: list[bool] = []
    for _ in range(20):
        assert region(torch.ones(1)).item() == 2.0
    assert not started and region.captures[0].plain_calls == 18
    worth.append(True)
    assert region(torch.ones(1)).item() == 2.0
    assert started


def test_better_code_brings_its_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first level of a guard has copied the checks of the code before; better code may have more."""
    ready: list[bool] = []
    served: list[int] = []

    def compile_it(self: Any, gm: Any, fakes: Any, *, tuning: Tuning, **more: Any) -> CompiledGraph:
        made = EagerBackend().compile(gm, fakes)

        def run(*given: torch.Tensor) -> Any:
            served.append(max(map(len, given)))
            return made.fn(*given)

        return CompiledGraph(run, guards=["L[0].size()[0] < 6"]) if tuning.mode == "max" else made

    def add(size: int = 1, calls: int = 0, *, improves: bool = False, learns: bool = False) -> background.Compilation:
        added.append(background.Compilation())
        return added[-1]

    added: list[background.Compilation] = []
    monkeypatch.delenv("MAGPY_COMPILE", raising=False)
    monkeypatch.setenv("MAGPY_DICT_TAGS", "always")
    monkeypatch.setattr(budgets, "symbolic_sizes_imported", lambda: True)  # whatever ran before in this process
    monkeypatch.setattr(background, "available", lambda: True)
    monkeypatch.setattr(background.QUEUE, "add", add)
    monkeypatch.setattr(background.QUEUE, "poll", lambda compilation, work: compilation is added[0] or bool(ready))
    monkeypatch.setattr(background.Compilation, "result", background.Result(1.0, load_seconds=0.5))
    monkeypatch.setattr(Budget, "is_worthwhile", staticmethod(lambda waiting, seconds, elapsed: True))
    affords = Budget.affords_loading  # the second stage, during which no calls are plain, may load by the rule itself
    monkeypatch.setattr(Budget, "affords_loading", lambda self, *seconds, region="": not ready or affords(self, *seconds))
    monkeypatch.setattr(AotBackend, "compile", compile_it)
    session = unhurried(Session(mode="compiled", backend="inductor", background=True, compile_mode="max"))
    net = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(1, 1), torch.nn.ReLU())
    region = region_of(session, lambda x: net(x * 2))
    for n in (2, 3, *[4, 5] * 40):
        region(torch.ones(n, 1))
    assert region.recordings == 2 and region.hits > 40 and not served
    ready.append(True)
    for n in [4, 5] * 40:
        region(torch.ones(n, 1))
    assert served and region.recordings == 2
    assert torch.equal(region(torch.ones(9, 1)), net(torch.full((9, 1), 2.0)))
    assert max(served) == 5 and region.recordings == 3


def test_a_region_that_waits_sees_code_that_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    ready: list[bool] = []
    monkeypatch.delenv("MAGPY_COMPILE", raising=False)
    monkeypatch.setattr(background, "available", lambda: True)
    monkeypatch.setattr(background.QUEUE, "poll", lambda compilation, work: bool(ready))
    monkeypatch.setattr(background.Compilation, "result", background.Result(1.0))
    monkeypatch.setattr(Budget, "is_worthwhile", staticmethod(lambda waiting, seconds, elapsed: True))
    session = unhurried(Session(mode="compiled", backend="inductor", background=True))
    monkeypatch.setattr(AotBackend, "compile", lambda self, gm, fakes, **more: EagerBackend().compile(gm, fakes))
    region = region_of(session, lambda x: x * 2)
    for n in range(200):
        assert region(torch.full((1,), float(n))).item() == 2.0 * n
    (capture,) = region.captures
    assert region.hits == 0 and capture.plain_calls == 198
    ready.append(True)
    calls = next(n for n in range(200) if region(torch.ones(1)).item() == 2.0 and region.hits)
    assert calls <= 64 and capture.is_ready


def test_code_is_due_while_calls_that_are_worth_it_still_come(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(background, "available", lambda: True)
    monkeypatch.setattr(background.time, "monotonic", lambda: now[0])
    monkeypatch.delenv("MAGPY_COMPILE", raising=False)
    monkeypatch.setattr(background.QUEUE, "_is_next", lambda compilation: False)
    worth = [True]
    monkeypatch.setattr(Budget, "is_worthwhile", staticmethod(lambda waiting, seconds, elapsed: worth[0]))
    region = region_of(Session(mode="compiled", backend="inductor", background=True), lambda x: x.sin() + 1)
    for _ in range(2):  # the first one is not recorded
        region(torch.ones(3))
    (capture,) = region.captures
    assert not capture.is_due, "nothing is to be compiled yet"
    region(torch.ones(3))
    assert capture.progress == "waiting" and capture.is_due
    now[0] += 60.0
    assert capture.progress == "waiting" and not capture.is_due, "calls that it fits come no more"
    region(torch.ones(3))
    assert capture.is_due and why_unused(region) == "queued"
    worth[0] = False
    assert not capture.is_due and why_unused(region) == "costly", "they take too little time"
    worth[0] = True
    monkeypatch.setattr(background.Compilation, "state", "running")
    assert capture.is_due and why_unused(region) == "compiling"
    monkeypatch.setattr(background.Compilation, "is_held", True)
    assert not capture.is_due and why_unused(region) == "costly", "what it takes would not be saved"
    region.retire()
    assert not capture.is_due and why_unused(region) != "costly"


@pytest.mark.parametrize("kind", ["step", "optimizer", "module", "function"])
def test_the_call_that_creates_state_is_not_recorded(session: Session, kind: str) -> None:
    state: dict[str, torch.Tensor] = {}

    def step(x: torch.Tensor) -> torch.Tensor:
        if "sum" not in state:
            state["sum"] = torch.zeros(3)
        state["sum"].add_(x)
        return state["sum"] * 2

    region = session.region(step, kind=kind, name="f", file=__file__, line=1, target=step)
    for i in range(1, 5):
        assert torch.equal(region(torch.ones(3)), torch.full((3,), 2.0 * i))
        assert region.recordings == (i > 1)
    waits = Session(mode="compiled", backend="eager")
    region = waits.region(step, kind=kind, name="f", file=__file__, line=1, target=step)
    region(torch.ones(3))
    assert region.recordings == 1, "where the program waits for compiled code, no call is left out"

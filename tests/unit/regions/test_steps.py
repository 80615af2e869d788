"""Whole steps by turns: when they alternate, what a step was, what is summed up, and what a region's passes took."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
import torch

from magpy_core.backends.background import QUEUE
from magpy_core.findings import STEP_KINDS, Report
from magpy_core.regions.region import Region
from magpy_core.regions.session import Session
from magpy_core.regions.timing import alternation, passes, steps
from magpy_core.regions.timing.alternation import Alternation
from magpy_core.regions.timing.passes import BackwardClock, Passes, Sums
from magpy_core.regions.timing.steps import Steps
from magpy_core.runner.steps import StepClock, StepsInside


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(steps, "perf_counter", made)
    monkeypatch.setattr(steps, "when_done", made)
    monkeypatch.setattr(passes, "when_done", made)
    return made


# -- turns ---------------------------------------------------------------------------------------------------------------


def test_turns_alternate_after_a_change_and_end() -> None:
    one = Alternation()
    assert not one.stepped() and not one.is_plain
    one.begin()
    seen = []
    while one.is_open:
        seen.append((one.is_timed, one.is_plain))
        one.stepped()
    assert seen[:2] == [(False, False)] * 2, "compiled code warms up"
    assert seen[2:] == [(True, False), (True, True)] * 12
    assert not one.is_plain and not one.stepped()


def test_a_program_that_keeps_changing_is_not_timed_for_ever() -> None:
    one = Alternation()
    plain = 0
    for step in range(1000):
        if step % 20 == 0:
            one.begin()
        one.stepped()
        plain += one.is_plain
    assert plain <= alternation.LIMITS.alternation_windows * 12


def test_changes_before_anything_was_timed_are_one() -> None:
    one = Alternation()
    for _ in range(50):
        one.begin()
        one.stepped()
    assert one.is_open


# -- steps ---------------------------------------------------------------------------------------------------------------


def test_what_a_step_was(clock: Clock) -> None:
    ended: list[str] = []
    one = Steps(lambda kind, number, enough: ended.append(kind))
    one.are_whole = True
    for plain, compiled, waited in ((1, 0, 0.0), (0, 2, 0.0), (1, 1, 0.0), (0, 1, 0.5), (0, 0, 0.0)):
        one.now.plain, one.now.compiled = plain, compiled
        if waited:
            one.waited_for(waited)
        clock.now += 1.0
        one.stepped()
    assert [s.kind for s in one.times.samples] == ["plain", "compiled", "mixed", "waited", "plain"]
    assert [(s.step, s.ms) for s in one.times.samples] == [(n, 1000.0) for n in range(1, 6)]
    assert one.waited == [(4, 0.5)] and (one.count, one.plain_count, one.compiled_count) == (5, 2, 1)
    assert ended == [""] * 5, "none of them was timed"


def test_a_step_is_not_slower_because_it_was_compared(clock: Clock) -> None:
    one = Steps()
    for compared in (0.0, 0.75, 0.0):
        one.now.compiled, one.now.compared = 1, compared
        clock.now += 0.25 + compared
        one.stepped()
    assert [(s.kind, s.ms) for s in one.times.samples] == [("compiled", 250.0)] * 3


def run_window(one: Steps, clock: Clock, plain: float, compiled: float) -> int:
    """The steps of a window, of so many seconds each; how many there were."""
    one.turns.begin()
    count = 0
    while one.turns.is_open:
        kind = "plain" if one.turns.is_plain else "compiled"
        setattr(one.now, kind, 1)
        clock.now += plain if kind == "plain" else compiled
        one.stepped()
        count += 1
    return count


def test_steps_are_timed_by_turns(clock: Clock) -> None:
    told: list[tuple[str, bool]] = []
    one = Steps(lambda kind, number, enough: told.append((kind, enough)))
    assert one.medians() is None and one.interval() is None
    assert run_window(one, clock, 0.03, 0.02) == 26
    assert one.medians() == (pytest.approx(0.03), pytest.approx(0.02))
    low, high = one.interval() or (0.0, 0.0)
    assert low == pytest.approx(1.5) and high == pytest.approx(1.5)
    assert [timed for _, timed in told] == [False] * 25 + [True]
    assert [kind for kind, _ in told][:4] == ["", "", "compiled", "plain"]


def test_steps_of_several_optimizers_are_timed_together(clock: Clock) -> None:
    """A generator's step takes three times as long as a discriminator's, and only the generator was compiled."""
    numbers: list[int] = []
    one = Steps(lambda kind, number, enough: numbers.append(number))
    for _ in range(4):
        one.stepped("discriminator")
        one.stepped("generator")
    numbers.clear()
    one.turns.begin()
    while one.turns.is_open:
        for optimizer, seconds in (("discriminator", 0.1), ("generator", 0.3)):
            if optimizer == "generator":
                setattr(one.now, "plain" if one.turns.is_plain else "compiled", 1)
                seconds *= 1.0 if one.turns.is_plain else 0.5
            clock.now += seconds
            one.stepped(optimizer)
    assert one.medians() == (pytest.approx(0.2), pytest.approx(0.125))
    assert one.interval() == (pytest.approx(1.6), pytest.approx(1.6))
    assert set(numbers) == {2} and one.count == 8 + 2 * 26


def test_what_is_known_holds_until_the_new_code_has_been_timed(clock: Clock) -> None:
    one = Steps()
    run_window(one, clock, 0.03, 0.02)
    one.changed()
    assert one.medians() == (pytest.approx(0.03), pytest.approx(0.02)) and one.interval() is not None
    run_window(one, clock, 0.03, 0.01)
    assert one.medians() == (pytest.approx(0.03), pytest.approx(0.01))


def test_long_steps_are_timed_until_it_is_clear(clock: Clock) -> None:
    one = Steps(lambda kind, number, enough: one.turns.end() if enough else None)
    assert run_window(one, clock, 3.0, 2.0) == 2 + 12, "six pairs make an interval"
    assert one.medians() == (pytest.approx(3.0), pytest.approx(2.0))


def test_a_step_inside_of_a_region_is_announced_when_its_call_has_returned() -> None:
    announced: list[int] = []
    one = StepClock(0)
    one.on_step = announced.append
    one.optimizer_stepped(inside=True)
    one.optimizer_stepped(inside=True)
    assert not announced
    assert one.announce() == 2 and one.announce() == 0
    one.optimizer_stepped()
    assert announced == [2, 3]


def test_the_timeline_is_thinned_out(clock: Clock) -> None:
    one = Steps()
    for _ in range(10_000):
        clock.now += 0.001
        one.stepped()
    assert one.count == 10_000 and 500 <= len(one.times.samples) <= 1000
    numbers = [s.step for s in one.times.samples]
    assert {b - a for a, b in pairwise(numbers)} == {16}


# -- passes --------------------------------------------------------------------------------------------------------------


def test_passes_of_a_step() -> None:
    one = Passes()
    one.forward, one.backward = 1.0, 2.0
    one.stepped("plain")
    one.forward = 5.0
    one.stepped("")
    one.stepped("compiled")  # a step that does not call the region
    assert one.plain == [Sums(1.0, 2.0)] and one.compiled == [] and one.plain[0].both == 3.0
    assert Passes.medians(one.plain) == (1.0, 2.0) and Passes.medians(one.compiled) is None
    one.restart()
    assert one.plain == []


class _Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, clock: Clock, seconds: float) -> torch.Tensor:
        ctx.clock, ctx.seconds = clock, seconds
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        ctx.clock.now += ctx.seconds
        return gradient * 2, None, None


def test_a_backward_pass_counts_to_the_region_it_starts_from(clock: Clock) -> None:
    """``loss <- outer <- second <- eager mode <- first``: what is between two regions counts to the later one."""
    watch, first, second = BackwardClock(), Passes(), Passes()
    x = torch.ones(2, requires_grad=True)
    a = _Slow.apply(x, clock, 1.0)
    watch.watch(a, first, pytest.fail)
    b = _Slow.apply(_Slow.apply(a, clock, 0.25), clock, 2.0)
    watch.watch({"b": [b]}, second, pytest.fail)
    loss = _Slow.apply(b, clock, 100.0).sum()
    loss.backward()
    assert (first.backward, second.backward) == (1.0, 2.25)
    assert torch.equal(x.grad, torch.full((2,), 16.0))  # type: ignore[arg-type]


def test_a_backward_pass_that_raises_counts_no_further(clock: Clock) -> None:
    watch, one = BackwardClock(), Passes()

    def fail(gradient: torch.Tensor) -> None:
        raise ValueError("the program's own")

    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(fail)
    z = y * 3
    watch.watch(z, one, pytest.fail)
    with pytest.raises(ValueError, match="own"):
        z.sum().backward()
    watch.stepped()
    clock.now += 50
    z = _Slow.apply(x, clock, 1.0)
    watch.watch(z, one, pytest.fail)
    z.sum().backward()
    assert one.backward == 1.0


def test_watching_keeps_nothing_alive() -> None:
    watch, one = BackwardClock(), Passes()
    y = torch.ones(2, requires_grad=True) * 2
    watch.watch(y, one, pytest.fail)
    gone = weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None
    y.sum().backward()


# -- a program -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.delenv("MAGPY_COMPILE", raising=False)
    yield Session(mode="compiled", backend="eager", measure=True, background=True)


def train(session: Session, slower: Callable[[], float], steps: int = 40) -> tuple[Region, torch.nn.Module]:
    """A small program; ``slower()`` seconds are spent in every backward pass of its region."""
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    region = session.region(1, kind="module", name="m", file=__file__, line=1, target=model.forward)
    x = torch.ones(2, 4, requires_grad=True)
    x.register_hook(lambda gradient: time.sleep(slower()))
    for n in range(1, steps + 1):
        out = region(x)
        out.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        session.stepped(n, whole=True)
    return region, model


def test_a_region_whose_backward_pass_is_slower_runs_as_plain_python_again(session: Session) -> None:
    turns_of = session.options.steps
    assert turns_of is not None
    region, _ = train(session, lambda: 0.0 if turns_of.turns.is_plain else 0.02)
    (capture,) = region.captures
    assert capture.is_retired
    report = session.step_report()
    assert report.plain_ms is not None and report.compiled_ms is not None
    assert report.compiled_ms > report.plain_ms + 3 and (report.speedup_high or 9) < 1.0
    assert report.saved_s is not None and report.saved_s < 0 and report.break_even is None
    session.finish()
    (found,) = [finding for finding in session.findings if finding.code == "MP401"]
    assert found.message.startswith("A step of m, forward and backward, is ") and found.message.endswith("again.")


def test_one_whose_backward_pass_is_faster_stays_compiled(session: Session) -> None:
    turns_of = session.options.steps
    assert turns_of is not None
    region, _ = train(session, lambda: 0.02 if turns_of.turns.is_plain else 0.0)
    assert not region.captures[0].is_retired and region.hits >= 20
    report = session.step_report()
    assert (report.speedup or 0) > 2
    assert report.count == 40 and report.plain + report.compiled <= 40
    model, rest = report.parts
    assert (model.name, rest.name, rest.region) == ("m", "the rest", "")
    assert (model.plain_backward_ms or 0) > (model.compiled_backward_ms or 9) + 3
    assert Report("p", step=report).to_json()["step"]["speedup"] == report.speedup
    assert Report.from_json(Report("p", step=report).to_json()).step == report


@pytest.mark.parametrize(("compiled", "plain", "is_mostly"), [(0, 0, False), (5, 5, True), (4, 5, False), (1, 0, True)])
def test_the_next_run_is_granted_more_only_where_most_steps_ran_in_eager_mode(
    session: Session, compiled: int, plain: int, is_mostly: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session._steps.kinds.extend(
        bytes([STEP_KINDS.index("compiled")]) * compiled + bytes([STEP_KINDS.index("plain")]) * plain
    )
    assert session._steps.are_mostly_compiled is is_mostly
    monkeypatch.setattr(QUEUE, "pays_in", lambda seconds: True)
    assert session._shown().unfinished == (0 if is_mostly else 1)
    monkeypatch.setattr(QUEUE, "pays_in", lambda seconds: False)
    assert session._shown().unfinished == 0


def test_a_region_that_is_cut_or_was_hardly_timed_is_no_part(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its fragments are; and one step that waited for a recording would be shown as several steps."""
    region, _ = train(session, lambda: 0.0)
    assert [part.name for part in session.step_report().parts] == ["m", "the rest"]
    few = region.times.passes.plain[:1]
    monkeypatch.setattr(region.times.passes, "plain", few)
    assert [part.name for part in session.step_report().parts] == ["the rest"]
    monkeypatch.setattr(region.times.passes, "plain", few * 20)
    monkeypatch.setattr(Region, "is_cut", True)
    assert [part.name for part in session.step_report().parts] == ["the rest"]


def test_both_kinds_of_steps_train_alike(session: Session) -> None:
    torch.manual_seed(0)
    _, compiled = train(session, lambda: 0.0, steps=30)
    torch.manual_seed(0)
    plain = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.01)
    for _ in range(30):
        plain(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert torch.equal(plain.weight, compiled.weight)  # type: ignore[arg-type]


def test_without_an_optimizer_the_calls_tell_what_was_saved(session: Session) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    region = session.region(1, kind="function", name="f", file=__file__, line=1, target=f)
    for n in range(1, 41):
        region(torch.ones(3))
        session.stepped(n, whole=False)
    report = session.step_report()
    assert report.plain_ms is None and report.parts == [] and report.saved_s is not None
    assert report.compiled >= 10 and report.plain >= 10  # it may have been slower compiled: it is tiny


def test_what_compiled_code_costs_to_load_must_be_affordable(monkeypatch: pytest.MonkeyPatch) -> None:
    from magpy_core.regions.budget import budget as budgets

    now = [0.0]
    monkeypatch.setattr(budgets.time, "monotonic", lambda: now[0])
    budget = budgets.Budget()
    assert budget.affords_loading(0.9, 9.0) and not budget.affords_loading(1.1, 9.0)
    now[0] += 100.0
    assert budget.affords_loading(4.9, 99.0) and not budget.affords_loading(5.1, 99.0)
    budget.add(4.0)
    assert budget.affords_loading(0.9, 99.0) and not budget.affords_loading(1.1, 99.0)
    assert budget.affords_loading(0.9, 1.8) and not budget.affords_loading(0.9, 1.7), (
        "calls that take too little of the time"
    )


def test_what_is_being_compiled_is_told_when_it_changes() -> None:
    from magpy_core.runner.channel import Forwarder

    now = 0.0
    sent: list[Any] = []
    forward = Forwarder(sent.append)
    first: dict[str, list[str]] = {"running": ["m"], "waiting": [], "ready": []}
    for found in ({}, first, first, {**first, "ready": ["o"]}):
        now += 1.0
        forward.progress(now, lambda found=found: found)  # type: ignore[misc]
    forward.progress(now, dict)  # too soon to ask again
    assert sent == [{"type": "compiling", **first}, {"type": "compiling", **first, "ready": ["o"]}]


def test_of_quick_steps_only_some_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    from magpy_core.runner import channel

    now = [0.0]
    monkeypatch.setattr(channel.time, "monotonic", lambda: now[0])
    sent: list[Any] = []
    forward = channel.Forwarder(sent.append)
    for n in range(1, 1001):
        now[0] += 0.001 if n < 900 else 0.06
        forward.step(n)
    steps = [message["n"] for message in sent]
    assert steps[:16] == list(range(1, 17)) and steps[-101:] == list(range(900, 1001)) and len(steps) < 150
    now[0] += 0.001
    forward.step(1001)
    forward.finish()
    forward.finish()
    assert [message["n"] for message in sent[-2:]] == [1000, 1001]


def test_a_sessions_progress(session: Session) -> None:
    region, _ = train(session, lambda: 0.0, steps=3)
    assert session.compile_progress() == {"running": [], "waiting": [], "ready": ["m"]}
    region.retire()
    assert session.compile_progress() == {"running": [], "waiting": [], "ready": []}


class _Capture:
    hits = 0


class _Region:
    recordings = 0

    def __init__(self) -> None:
        self.captures: list[_Capture] = []

    def recorded(self) -> None:
        self.recordings += 1
        self.captures = [_Capture(), *self.captures]


def test_a_replay_makes_the_steps_of_its_recording() -> None:
    """A step at every second call: each outcome has a capture."""
    region, inside = _Region(), StepsInside()
    region.recorded()
    assert inside.replayed(region, 1) == 0
    region.recorded()
    assert inside.replayed(region, 0) == 0
    assert inside.replayed(region, 1) == 0, "a plain call says nothing of a capture"
    without, stepping = region.captures
    without.hits += 1
    assert inside.replayed(region, 0) == 0
    stepping.hits += 1
    assert inside.replayed(region, 0) == 1 and inside.replayed(region, 0) == 0

"""What a region does with calls that no capture serves: every rule and every transition, on a fake clock."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from docs import policy_page
from magpy_core.limits import LIMITS
from magpy_core.regions.budget.budget import Budget
from magpy_core.regions.policy import policy as policies
from magpy_core.regions.policy.phase import NEXT, Phase, mermaid
from magpy_core.regions.policy.policy import Miss, Policy, Sampled


class FakeCapture:
    """``decisions``: the path, of so many decisions on data."""

    def __init__(self, *decisions: bool, writes: bool = False, sizes: bool = False) -> None:
        cuts = [SimpleNamespace(place=f"line {n}", outcome=outcome) for n, outcome in enumerate(decisions)]
        self.trace: Any = SimpleNamespace(decisions=cuts)
        self.is_complete = not decisions
        self.is_held = self.needs_path_check = False
        self.holds_writes, self.sizes = writes, sizes

    def hold(self) -> None:
        self.is_held = True

    def release(self) -> None:
        self.is_held = False

    def require_path_check(self) -> None:
        pass

    def fits_but_for(self, args: Any, kwargs: Any) -> Any:
        return SimpleNamespace(source="its size") if self.sizes else None


class FakeRegion:
    """A region on a clock of its own, with a budget; ``reported``: the codes of its findings."""

    def __init__(self, *, budget: bool = True, cuts: bool = True, cut_to: Any = "fragments") -> None:
        self.now = 0.0
        self.policy = Policy()
        self.reported: list[str] = []
        self.cut_calls = 0
        self.options = SimpleNamespace(
            budget=Budget(now=lambda: self.now) if budget else None, mode="compiled", backend="inductor", fullgraph=False,
            cache_limit=8, dynamic=None, cut=self.cut if cuts else None,
        )  # fmt: skip
        self.cut_to = cut_to
        self.id = self.name = "step"
        self.kind, self.calls, self.hits, self.recordings = "step", 0, 0, 0
        self.captures: list[Any] = []
        self.log = SimpleNamespace(varied=Counter(), recompiles=[], causes=[], add=lambda finding: finding)
        self.location = SimpleNamespace(range=SimpleNamespace(start=SimpleNamespace(line=1)), file="a.py")
        self.learned = None

    @property
    def serves_most(self) -> bool:
        return bool(self.captures) and 2 * self.hits >= self.calls

    def cut(self, region: Any) -> Any:
        self.cut_calls += 1
        return self.cut_to

    def report(self, code: str, text: str, hint: str = "") -> None:
        self.reported.append(code)

    def miss(self, held: Any = None, *args: Any) -> bool:
        self.calls += 1
        return self.policy.decide(Miss(self, args, {}, held))  # type: ignore[arg-type]

    def captured(self, capture: FakeCapture) -> None:
        self.recordings += 1
        self.captures = [capture, *self.captures]
        self.policy.captured(self, capture)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def causes(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = SimpleNamespace(location=None, name="x", old="1", new="2", dims=(), source=None)
    monkeypatch.setattr(policies, "closest_failures", lambda *args: [failure])
    monkeypatch.setattr(policies, "lasting_failure", lambda *args: None)
    monkeypatch.setattr(policies, "generalise", lambda *args, sizes: [])
    monkeypatch.setattr(policies, "recompile_finding", lambda *args: "finding")


def warmed_up(**options: Any) -> FakeRegion:
    region = FakeRegion(**options)
    region.miss()
    assert region.policy.phase is Phase.WARM_UP and region.policy.waits == "called once"
    assert region.miss() and region.policy.phase is Phase.RECORD
    return region


def test_the_first_call_is_recorded_where_nothing_has_to_be_saved() -> None:
    region = FakeRegion(budget=False)
    assert region.miss() and region.policy.phase is Phase.RECORD


def test_a_recording_waits_for_the_budget() -> None:
    region = warmed_up()
    budget = region.options.budget
    budget.recorded("step", 10.0)
    assert not region.miss() and region.policy.waits == "budget"
    region.now = (20.0 - LIMITS.record_at_once) / LIMITS.record_share
    assert region.miss(), "the program has run long enough"


def test_a_capture_without_decisions_serves() -> None:
    region = warmed_up()
    region.captured(FakeCapture())
    assert region.policy.phase is Phase.SERVE and not region.captures[0].is_held


def test_paths_are_sampled_before_anything_is_compiled() -> None:
    region = warmed_up()
    held = FakeCapture(True, False)
    region.captured(held)
    assert region.policy.phase is Phase.SAMPLE and held.is_held
    for n in range(int(LIMITS.path_recordings)):
        assert held.is_held and region.miss(held), n
        assert region.policy.sampled(region, held.trace, held) is Sampled.KNOWN  # type: ignore[arg-type]
    assert region.policy.phase is Phase.SERVE and not held.is_held


def test_a_second_path_is_captured_and_a_third_cuts_the_region() -> None:
    region = warmed_up()
    region.captured(FakeCapture(True, False))
    held, other, third = region.captures[0], FakeCapture(True, True), FakeCapture(False, False)
    assert region.policy.sampled(region, other.trace, held) is Sampled.NEW  # type: ignore[arg-type]
    assert region.policy.other_path(region)  # type: ignore[arg-type]
    region.captured(other)
    assert region.policy.sampled(region, third.trace, held) is Sampled.NEW  # type: ignore[arg-type]
    assert not region.policy.other_path(region), "it is cut instead"  # type: ignore[arg-type]
    assert region.policy.phase is Phase.FRAGMENTS and region.policy.fragments == "fragments"
    assert region.policy.reason == f"more than {LIMITS.paths} paths"


def test_a_capture_that_holds_its_writes_is_dropped_where_paths_vary() -> None:
    region = warmed_up()
    held = FakeCapture(True, False, writes=True)
    region.captured(held)
    region.captured(FakeCapture(True, True))
    other = FakeCapture(False, True)
    assert region.policy.sampled(region, other.trace, held) is Sampled.VARYING  # type: ignore[arg-type]
    region.policy.dropped([])
    assert region.policy.phase is Phase.RECORD, "with graphs that are cut, it may be captured again"


def test_code_that_arrives_for_a_path_in_doubt_is_checked_once_more() -> None:
    region = warmed_up()
    capture = FakeCapture()
    region.captured(capture)
    capture.needs_path_check = True
    region.policy.code_arrived(capture)  # type: ignore[arg-type]
    assert capture.is_held and region.policy.phase is Phase.SAMPLE
    for _ in range(int(LIMITS.path_recordings)):
        region.policy.sampled(region, capture.trace, capture)  # type: ignore[arg-type]
    assert not capture.is_held and region.policy.phase is Phase.SERVE


@pytest.mark.parametrize(("calls", "cut"), [(7, False), (8, True)])
def test_what_is_refused_is_cut_once_it_is_called_often(calls: int, cut: bool) -> None:
    region = warmed_up()
    region.policy.close("it prints")
    assert region.policy.phase is Phase.EAGER
    while region.calls < calls:
        assert not region.miss()
    assert (region.policy.phase is Phase.FRAGMENTS) is cut and region.policy.reason == "it prints"


def test_what_can_not_be_cut_is_tried_once() -> None:
    region = warmed_up(cut_to=None)
    region.policy.close("it prints")
    for _ in range(20):
        assert not region.miss()
    assert region.policy.phase is Phase.EAGER and region.cut_calls == 1


def test_too_many_recordings_end_in_eager_mode_and_captures_still_serve() -> None:
    region = warmed_up(cuts=False)
    for _ in range(8):
        region.captured(FakeCapture())
    region.hits = 100
    assert not region.miss() and region.policy.phase is Phase.EAGER
    assert region.reported == ["MP203"] and region.policy.reason == "8 captures"


def test_code_for_single_sizes_is_not_made_for_each() -> None:
    region = warmed_up(cuts=False)
    region.captured(FakeCapture(sizes=True))
    region.captured(FakeCapture())
    assert not region.miss() and region.policy.phase is Phase.EAGER and region.reported == ["MP203"]


def test_surroundings_that_would_see_the_monitor(monkeypatch: pytest.MonkeyPatch) -> None:
    region = warmed_up()
    monkeypatch.setattr(policies, "foreign", lambda: "a profiler")
    assert not region.miss() and region.policy.waits == "surroundings" and region.reported == ["MP106"]
    monkeypatch.setattr(policies, "foreign", lambda: "")
    assert region.miss() and region.policy.phase is Phase.RECORD


def test_only_what_the_table_allows_follows() -> None:
    """And each phase is reached from the first one."""
    reached, left = {Phase.WARM_UP}, [Phase.WARM_UP]
    while left:
        new = set(NEXT[left.pop()]) - reached
        reached |= new
        left += new
    assert reached == set(Phase)
    policy = Policy()
    with pytest.raises(AssertionError, match="does not follow"):
        policy._enter(Phase.FRAGMENTS)
    policy.close("x")
    policy.cut_into("fragments", "")  # type: ignore[arg-type]
    policy.close("an error")
    assert policy.phase is Phase.FRAGMENTS, "its fragments go on"


def test_the_pages_are_drawn_from_the_code() -> None:
    """If not, run ``python -m docs.policy_page``."""
    assert policy_page.PAGE.read_text(encoding="utf-8") == policy_page.page()
    assert policy_page.PICTURE.read_text(encoding="utf-8") == policy_page.svg()
    assert policy_page.LIMITS_PAGE.read_text(encoding="utf-8") == policy_page.limits_page()
    assert len(policy_page.page().split()) <= 900, "an explanation, no reference"
    assert policy_page.ARCHITECTURE.read_text(encoding="utf-8") == policy_page.architecture()
    assert mermaid().count("-->") == 1 + sum(map(len, NEXT.values()))

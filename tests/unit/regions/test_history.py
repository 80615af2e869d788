"""What a run shows of its compiled code, and the file that keeps it for the next run of the same command."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from magpy_core.backends.background import QUEUE
from magpy_core.limits import LIMITS
from magpy_core.regions.budget.budget import Budget
from magpy_core.regions.budget.history import Kept, LastRun
from magpy_core.regions.policy import savings
from magpy_core.regions.policy.policy import Miss, Policy
from magpy_core.regions.policy.savings import futile_runs, history_of
from magpy_core.regions.timing.steps import Steps


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    return tmp_path / "magpy" / "runs"


def region(
    name: str,
    plain: float,
    compiled: float,
    calls: int = 100,
    hits: int = 90,
    recordings: int = 1,
    *,
    retired: bool = False,
    key: str | None = None,
    compiled_now: bool = True,
) -> Any:
    times = SimpleNamespace(calls=SimpleNamespace(eager=[plain] * 10, compiled=[compiled] * 10))
    captures = [SimpleNamespace(is_retired=retired, key=key, is_compiled=compiled_now, hits=hits)]
    return SimpleNamespace(id=name, calls=calls, hits=hits, times=times, recordings=recordings, captures=captures)


def test_what_compiled_calls_save() -> None:
    regions = [region("a", 0.1, 0.06), region("slower", 0.1, 0.2), region("never", 0.1, 0.01, hits=0),
               region("changes", 0.1, 0.01, hits=0, recordings=5), region("given up", 0.1, 0.06, retired=True)]  # fmt: skip
    run = history_of(regions, Steps(), 20.0, LastRun(5.0, {"slower": 0.5, "gone": 0.25}))
    expected = {"a": pytest.approx(0.2), "gone": 0.25, "slower": 0.0, "changes": 0.0, "given up": 0.0}
    assert run.seconds == 20.0 and run.saves == expected, "calls of a take half of the time"
    assert [run.may_save(name) for name in ("a", "slower", "never")] == [True, False, True]
    assert run.still_saved("a", 10.0) == pytest.approx(2.0) and run.still_saved("a", 30.0) == 0.0
    assert run.still_saved("b", 0.0) == 0.0


def test_a_graph_whose_code_was_slower_is_known_for_some_runs() -> None:
    run = history_of(
        [region("a", 0.1, 0.2, retired=True, key="g"), region("b", 0.1, 0.05, key="h")], Steps(), 9.0, LastRun()
    )
    assert run.slower == {"g": 0} and run.is_slower("g") and not run.is_slower("h")
    for n in range(1, LIMITS.verdict_runs + 1):
        assert run.is_slower("g")
        run = history_of([region("a", 0.1, 0.2, hits=0, retired=True, key="g", compiled_now=False)], Steps(), 9.0, run)
        assert run.slower == {"g": n}
    assert not run.is_slower("g"), "it is compiled and measured once more"
    again = history_of([region("a", 0.1, 0.2, retired=True, key="g")], Steps(), 9.0, run)
    assert again.is_slower("g")
    assert history_of([region("a", 0.1, 0.05, key="g")], Steps(), 9.0, run).slower == {}, "now it serves"
    assert history_of([], Steps(), 9.0, run).slower == run.slower
    many = [region(str(n), 0.1, 0.2, retired=True, key=str(n)) for n in range(100)]
    assert len(history_of(many, Steps(), 9.0, run).slower) == 64 and "g" not in history_of(many, Steps(), 9.0, run).slower


def test_whole_steps_count_where_they_were_timed() -> None:
    steps = Steps()
    steps.are_whole = True
    steps.compared.eager, steps.compared.compiled = [0.1] * 6, [0.08] * 6
    assert history_of([region("a", 0.1, 0.01)], steps, 20.0, LastRun()).saves == {"a": pytest.approx(0.2)}


def test_a_run_keeps_that_its_code_was_compiled_ahead_of_time() -> None:
    assert history_of([], Steps(), 20.0, LastRun(ahead=1.5)) == LastRun(20.0, {}, 1.5)


def test_it_is_kept_by_command(caches: Path) -> None:
    assert Kept("a").read() == LastRun()
    Kept("a").write(LastRun(3.0, {"model: Net": 0.5}))
    assert Kept("a").read() == LastRun(3.0, {"model: Net": 0.5}) and Kept("b").read() == LastRun()
    Kept("b").write(LastRun(ahead=0.25, slower={"g": 2}))
    assert Kept("b").read() == LastRun(ahead=0.25, slower={"g": 2})
    Kept("b").path.write_text('{"seconds": 1, "saves": {}}')  # of an earlier version
    assert Kept("b").read() == LastRun(1.0)
    Kept("b").path.unlink()
    assert [path.suffix for path in caches.iterdir() if path.name != "magpy-pruned"] == [".json"]


def test_the_run_after_one_that_ended_too_soon_is_granted_more_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QUEUE, "pays_in", lambda seconds: True)
    assert LastRun(60.0, processor=100.0).granted == 0.0
    assert LastRun(60.0, processor=100.0, unfinished=1).granted == LIMITS.compile_again * 100.0
    assert LastRun(60.0, processor=100.0, unfinished=2).granted == 0.0
    Kept("a").write(LastRun(60.0, processor=100.0, unfinished=1))
    assert Kept("a").read() == LastRun(60.0, processor=100.0, unfinished=1)
    for last, has_next, grants in ((LastRun(), True, True), (LastRun(), False, False), (LastRun(unfinished=1), True, False)):
        assert Budget(last, has_next=has_next).grants_next is grants
    monkeypatch.setattr(QUEUE, "pays_in", lambda seconds: False)
    assert not Budget(has_next=True).grants_next


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"seconds": 1, "saves": {}, "ahead": []}',
        "{",
        '{"seconds": "x", "saves": {}}',
        '{"seconds": 1, "saves": [1]}',
        '{"seconds": 1}',
        '{"seconds": 1, "saves": {}, "slower": ["g"]}',
        '{"seconds": 1, "saves": {}, "processor": [1]}',
        '{"seconds": 1, "saves": {}, "slower": {"g": "x"}}',
    ],
)
def test_a_damaged_file_says_nothing(caches: Path, text: str) -> None:
    Kept("a").write(LastRun(3.0))
    Kept("a").path.write_text(text)
    assert Kept("a").read() == LastRun()


@pytest.mark.parametrize("imported", [False, True])
def test_where_the_user_keeps_compiled_code_nothing_is_written(
    caches: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imported: bool
) -> None:
    Kept("a").write(LastRun(3.0))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "own"))
    if not imported:
        monkeypatch.delitem(sys.modules, "torch._inductor.runtime.cache_dir_utils", raising=False)
    assert Kept("a").read() == LastRun()
    Kept("b").write(LastRun(3.0))
    assert not Kept("b").path.exists()


def test_a_folder_of_others_is_not_used(caches: Path) -> None:
    Kept("a").write(LastRun(3.0))
    caches.chmod(0o777)
    Kept("b").write(LastRun(3.0))
    assert not Kept("b").path.exists()


def test_clearing_the_cache_forgets_runs(caches: Path) -> None:
    from magpy_core.runner import compiled_code

    Kept("a").write(LastRun(3.0))
    assert compiled_code.clear() > 0 and Kept("a").read() == LastRun()


def test_a_session_keeps_what_its_run_showed(caches: Path) -> None:
    from magpy_core.regions.session import Session

    Kept("train.py").write(LastRun(1e6, {"model: Net": 0.5}))
    session = Session(mode="compiled", measure=True, background=True, command="train.py")
    session.finish()
    found = Kept("train.py").read()
    assert 0.0 < found.seconds < 1000.0 and found.saves == {"model: Net": 0.5}
    for options in ({"mode": "observe"}, {"mode": "compiled", "backend": "eager"}, {"mode": "compiled", "command": ""}):
        Session(**{"command": "other.py", **options}).finish()  # type: ignore[arg-type]
    assert len(list(caches.glob("*.json"))) == 1


def test_compiling_ahead_of_time_says_nothing_of_how_long_a_run_takes(caches: Path) -> None:
    from magpy_core.regions.session import Session

    Kept("train.py").write(LastRun(60.0, {"model: Net": 0.5}))
    session = Session(mode="compiled", measure=True, ahead=True, command="train.py")
    assert session.options.budget is not None and not session.options.background
    session.options.budget.recorded("model: Net", 1.25)
    session.options.budget.add(40.0)  # for the compiler
    session.finish()
    assert Kept("train.py").read() == LastRun(60.0, {"model: Net": 0.5}, 1.25)


def test_the_folder_that_torch_has_set_itself_is_no_folder_of_the_user(
    caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", default_cache_dir())
    Kept("a").write(LastRun(3.0))
    assert Kept("a").read() == LastRun(3.0)


def test_a_run_too_short_for_compiled_code_is_not_tried_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    why = {"costly": "costly", "queued": "queued", "served": ""}
    monkeypatch.setattr(savings, "why_unused", lambda region: why[region.id])
    costly = [region("costly", 0.1, 0.1, hits=0), region("queued", 0.1, 0.1, hits=0)]
    assert futile_runs(costly, 3) == 1, "this run has shown it"
    assert futile_runs([*costly, region("served", 0.1, 0.05)], 3) == 0 == futile_runs(costly[1:], 3)
    nothing_recorded = [region("costly", 0.1, 0.1, hits=0, recordings=0)]
    assert futile_runs(nothing_recorded, 3) == 4

    run = LastRun(60.0, futile=1)
    assert run.is_too_short(119.0, 0.0) and not run.is_too_short(121.0, 0.0), "it takes much longer than the last one"
    assert run.is_too_short(7.0, 100.0) and not run.is_too_short(7.0, 120.0), "its loops show that it takes longer"
    assert run.is_too_short(1.0, 500.0), "the first steps, by which that is reckoned, are slow"
    assert not LastRun(60.0).is_too_short(1.0, 0.0) and not LastRun(60.0, futile=1, ahead=2.0).is_too_short(1.0, 0.0)
    assert LastRun(60.0, futile=LIMITS.verdict_runs).is_too_short(1.0, 0.0)
    assert not LastRun(60.0, futile=LIMITS.verdict_runs + 1).is_too_short(1.0, 0.0), "it is measured once more"


def test_that_a_run_is_too_short_is_kept(caches: Path) -> None:
    Kept("a").write(LastRun(3.0, futile=2))
    assert Kept("a").read() == LastRun(3.0, futile=2)


def test_nothing_is_recorded_in_a_run_that_is_too_short() -> None:
    now = 0.0
    budget = Budget(LastRun(60.0, futile=1), lambda: now)
    policy, found = Policy(), SimpleNamespace(options=SimpleNamespace(budget=budget), calls=1)
    miss = Miss(found, (), {})  # type: ignore[arg-type]
    assert not policy.decide(miss) and policy.waits == "costly"
    now = 121.0
    assert not budget.is_too_short and not Budget(LastRun(60.0, futile=1), lambda: now, unlimited=True).is_too_short
    now = 0.0
    budget = Budget(LastRun(60.0, futile=1), lambda: now)
    budget.expect(200.0)
    assert budget.is_too_short
    now = 7.0
    assert not budget.is_too_short

"""Work in a forked process: what it reports, that it is cut off from the program, and that it ends with it."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from magpy_core.backends import background
from magpy_core.backends.background import Compilation, Queue
from magpy_core.backends.blocks import parts
from magpy_core.backends.fair_share import Account
from magpy_core.findings import Unsupported
from magpy_core.limits import LIMITS, Limits


@pytest.fixture(autouse=True)
def _without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each process would import it: on a busy machine, that takes longer than a test waits."""
    monkeypatch.setattr(background, "inductor_is_imported", lambda: True)
    monkeypatch.setattr(background, "ACCOUNT", Account())  # what other tests have taken is not to count


def until(condition: Callable[[], object], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def started(work: Callable[[], object]) -> Compilation:
    one = Compilation()
    assert one.state == "waiting" and not one.ended()
    one.start(work)
    return one


def test_it_is_done() -> None:
    one = started(lambda: time.sleep(0.3))
    assert one.state == "running" and not one.ended()
    until(one.ended)
    assert one.state == "done" and 0.2 < one.result.seconds < 20


def test_it_tells_how_far_it_has_come(tmp_path: Path) -> None:
    def work() -> None:
        until((tmp_path / "begin").exists)
        parts.count(2, 3)
        until((tmp_path / "on").exists)

    one = started(work)
    assert one.parts == (0, 1)
    (tmp_path / "begin").touch()
    until(lambda: one.parts == (2, 3))
    (tmp_path / "on").touch()
    until(one.ended)
    assert one.parts == (3, 3)


@pytest.mark.parametrize("alone", [True, False])
def test_a_program_waits_for_one_that_is_better_alone(alone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Share(background.FairShare):
        def may_run(self, now: background.Reading) -> bool:
            result = super().may_run(now)
            self.is_better_alone = alone
            return result

    monkeypatch.setattr(background, "FairShare", Share)
    one = started(lambda: time.sleep(0.5))
    if alone:
        until(lambda: one.is_better_alone or one.ended())
    waited = one.wait_for()
    assert one.ended() is alone and (waited > 0.05) is alone
    until(one.ended)
    assert not one.is_better_alone and one.wait_for() < 0.02


def test_what_was_compiled_before_it_ended_is_known() -> None:
    def work() -> None:
        parts.count(1, 4)
        time.sleep(60)

    one = started(work)
    until(lambda: one.parts == (1, 4))
    one.cancel()
    assert one.parts == (1, 4)


def refuse() -> None:
    raise Unsupported("MP902", "The backend can't compile it.")


def fail() -> None:
    raise ValueError("x" * 20_000)


def test_what_it_raises_is_reported() -> None:
    one, other = started(refuse), started(fail)
    until(one.ended)
    until(other.ended)
    assert (one.state, one.result.code, one.result.message) == ("failed", "MP902", "The backend can't compile it.")
    assert other.state == "failed" and other.result.message.startswith("ValueError: xxx")


def test_a_death_is_noticed() -> None:
    one = started(os.abort)
    until(one.ended)
    assert one.state == "failed" and "has died (signal 6)" in one.result.message


def test_the_death_of_its_supervisor_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "LIMITS", replace(LIMITS, silent_compiler=1.0))
    one = started(lambda: os.kill(os.getppid(), 9) or time.sleep(1000))
    until(one.ended)
    assert one.state == "failed" and "has died" in one.result.message


def test_what_compiles_ends_with_its_supervisor(tmp_path: Path) -> None:
    started(lambda: (tmp_path / "pid").write_text(f"{os.getpid()} {os.getppid()}\n") and time.sleep(1000))
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"))
    worker, supervisor = map(int, (tmp_path / "pid").read_text().split())
    os.kill(worker, signal.SIGSTOP)  # it has used up its share
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{worker}").exists())


def test_where_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_more() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", no_more)
    one = started(lambda: None)
    assert one.ended() and one.state == "failed" and "Resource temporarily unavailable" in one.result.message


def test_it_is_cut_off_from_the_program(tmp_path: Path) -> None:
    """No descriptor, no child of the program's, no output, and no finaliser of its garbage."""
    kept = (tmp_path / "written by the program").open("w")
    kept.write("once")

    class Cycle:
        def __del__(self) -> None:
            (tmp_path / f"finalised in {os.getpid()}").touch()

    gc.collect()
    gc.disable()
    try:
        cycle = Cycle()
        cycle.me = cycle  # type: ignore[attr-defined]
        del cycle

        def work() -> None:
            print("not to be seen")
            gc.collect()
            kept.flush()

        children = psutil.Process().children()
        one = started(work)
        assert psutil.Process().children() == children
        until(one.ended)
    finally:
        gc.enable()
    assert "Bad file descriptor" in one.result.message
    gc.collect()
    kept.close()
    assert (tmp_path / "written by the program").read_text() == "once"
    assert [path.name for path in tmp_path.glob("finalised*")] == [f"finalised in {os.getpid()}"]


def test_it_preempts_nothing_and_has_a_process_group_of_its_own(tmp_path: Path) -> None:
    found = tmp_path / "found"
    session = os.getsid(0)

    def work() -> None:
        own = os.getpgid(0) == os.getpid()
        found.write_text(f"{os.sched_getscheduler(0) == os.SCHED_BATCH} {own} {os.getsid(0) == session}")

    one = started(work)
    until(one.ended)
    assert found.read_text() == "True True True"


BUSY = """
import os, sys, time
from magpy_core.backends import background, fair_share
from magpy_core.limits import Limits

background.inductor_is_imported = lambda: True  # the work needs no compiler
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])  # one processor, which the program keeps busy
fair_share.LIMITS = Limits(compile_at_once=0.3, compile_share=0.1, compile_probe=0.1)

def work():
    child = os.fork()  # as a C++ compiler is
    end = time.process_time() + 10
    while time.process_time() < end:
        pass

one = background.Compilation()
one.start(work)
start = time.process_time()
while time.process_time() < start + 3:
    if one.ended():
        print(one.result)
        break
print(background.ACCOUNT.taken)
"""


def test_what_it_takes_from_a_busy_program_is_limited() -> None:
    """It and what it starts get at once what they may take, and then a part of the processor time that the program uses."""
    done = subprocess.run([sys.executable, "-c", BUSY], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    # without a limit, two of three processes that share the processor would take 6 s; checks come late on a busy machine
    assert 0.4 <= float(done.stdout) <= 2.0, "0.3 s at once, a tenth of 3 s, and what it takes between two checks"


def test_no_program_waits_for_a_compiler_whose_supervisor_has_died(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "LIMITS", replace(LIMITS, late_heartbeat=0.5))
    one = started(lambda: os.kill(os.getppid(), 9) or time.sleep(1000))
    assert one._page is not None
    one._page[background._ALONE] = 1
    assert one.wait_for() < 60 and not one.ended(), "it would count as dead after two minutes only"
    one.cancel()


def test_it_ends_when_it_is_cancelled(tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    def work() -> None:
        pid.write_text(str(os.getpid()))
        time.sleep(1000)

    one = started(work)
    until(lambda: pid.exists() and pid.read_text())
    one.cancel()
    assert one.state == "failed"
    until(lambda: not Path(f"/proc/{pid.read_text()}").exists())


PROGRAM = """
import os, sys, time
from magpy_core.backends import background

background.inductor_is_imported = lambda: True  # the work needs no compiler

def work():
    child = os.fork()  # as a compiler is
    with open(sys.argv[1] + ".part", "a") as file:
        file.write(f"{os.getpid()} ")
    time.sleep(1) if child else None
    os.replace(sys.argv[1] + ".part", sys.argv[1]) if child else None
    time.sleep(1000)

one = background.Compilation()
one.start(work)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
if sys.argv[2] == "killed":
    os.kill(os.getpid(), 9)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["ends", "killed"])
def test_it_ends_with_the_program_and_does_not_hold_it_up(tmp_path: Path, how: str) -> None:
    pids = tmp_path / "pids"
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(pids), how], timeout=60)
    assert done.returncode == (-9 if how == "killed" else 0)
    assert time.monotonic() - start < 40
    processes = pids.read_text().split()
    assert len(processes) == 2
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in processes))


def test_what_saves_most_for_its_work_comes_first() -> None:
    small, large = Compilation(50), Compilation(500)
    small.seconds, large.seconds = 1.0, 5.0
    assert small.pays > large.pays
    large.seconds = 10.0
    assert small.pays < large.pays
    tiny, usual = Compilation(1), Compilation(20)
    tiny.seconds = usual.seconds = 1.0
    assert tiny.pays < 2 * usual.pays, "every compilation takes some time"


def test_the_queue_starts_what_saves_most_first(tmp_path: Path) -> None:
    queue = Queue(most=1)
    first, small, large = queue.add(), queue.add(), queue.add()
    go_on = tmp_path / "go on"

    def work() -> None:
        while not go_on.exists():
            time.sleep(0.02)

    assert not queue.poll(first, work) and first.state == "running"
    small.seconds, large.seconds = 1.0, 2.0
    assert not queue.poll(small, work) and not queue.poll(large, work)
    assert small.state == large.state == "waiting" and queue.running() == 1
    go_on.touch()
    until(first.ended)
    queue.poll(small, work)
    assert small.state == "waiting"  # the other one has just been polled
    queue.poll(large, work)
    assert large.state != "waiting"
    until(lambda: queue.poll(large, work))
    until(lambda: queue.poll(small, work))


def test_who_asks_no_more_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "LIMITS", Limits(compile_unasked=0.05))
    queue = Queue(most=1)
    gone, one = queue.add(), queue.add()
    gone.seconds = 100.0
    time.sleep(0.1)
    until(lambda: queue.poll(one, lambda: None))
    assert gone.state == "waiting"


def test_what_will_not_save_its_cost_is_stopped_and_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def spin() -> None:
        while True:
            pass

    monkeypatch.setattr(background.Waits, "seconds", lambda self: None)  # all that it uses counts
    queue = Queue(most=1)
    rare, usual = queue.add(), queue.add()
    until(lambda: queue.poll(rare, spin) or rare.is_held)
    usual.seconds = 1e3
    background.ACCOUNT.expect(1e4)  # the share suffices for both
    until(lambda: queue.poll(usual, lambda: None))
    assert rare.state == "running" and rare.is_held and usual.state == "done"
    rare.seconds = 1e3
    rare.ran_plain(1, 1.0, 1.0)
    until(lambda: not rare.is_held)
    rare.cancel()
    assert not rare.is_held


def test_better_code_is_compiled_although_no_call_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> None:
        end = time.process_time() + 2 * LIMITS.alone_after
        while time.process_time() < end:
            pass

    monkeypatch.setattr(background.Waits, "seconds", lambda self: None)  # all that it uses counts
    queue = Queue(most=1)
    better = queue.add(improves=True)
    until(lambda: queue.poll(better, work))
    assert better.state == "done" and not better.is_held


def test_what_is_being_compiled_pays_in_a_run_that_is_long_enough() -> None:
    queue = Queue(most=1)
    one = queue.add(100, 100)
    until(lambda: queue.poll(one, lambda: time.sleep(60)) or one.state == "running")
    assert not queue.pays_in(1e6), "no call has shown that it saves anything"
    one.ran_plain(10, 1.0, 10 * 100 * LIMITS.operation_seconds)
    assert one.saves == LIMITS.most_gain
    assert queue.pays_in(one.need / LIMITS.most_gain + 0.1) and not queue.pays_in(one.need / LIMITS.most_gain - 0.1)
    one.cancel()
    assert not queue.pays_in(1e6)


def test_all_end_with_the_program() -> None:
    queue = Queue(most=1)
    running, waiting = queue.add(), queue.add()
    running.seconds = 1.0
    until(lambda: queue.poll(running, lambda: time.sleep(60)) or running.state == "running")
    queue.cancel()
    assert running.state == "failed" and waiting.state == "waiting"


def test_it_goes_on_when_a_copy_of_the_program_ends() -> None:
    queue = Queue(most=1)
    one = queue.add()
    until(lambda: queue.poll(one, lambda: time.sleep(60)) or one.state == "running")
    copy = os.fork()
    if not copy:
        try:
            queue.cancel()
        finally:
            os._exit(0)
    os.waitpid(copy, 0)
    assert one.state == "running" and one._page is not None and not one._page[1], "it was not cancelled"
    one.cancel()


def test_a_graph_that_learns_needs_the_compiler_for_longer() -> None:
    graph, learning = Compilation(10), Compilation(10, learns=True)
    assert graph.need == LIMITS.compile_any + 10 * LIMITS.compile_operation
    assert learning.need == pytest.approx(graph.need + LIMITS.compile_backward + 20 * LIMITS.compile_operation)

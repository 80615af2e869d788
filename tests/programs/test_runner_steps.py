"""--steps N ends the program as Ctrl-C would: its own cleaning up runs, and its result is what a Ctrl-C leaves."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.programs.runner_help import Ran, under_magpy, write

pytestmark = pytest.mark.slow  # each of them starts a program

HEAD = """
import atexit, sys
import torch
net = torch.nn.Linear(3, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
done = 0
def step():
    global done
    net(torch.ones(2, 3)).sum().backward()
    opt.step()
    done += 1
"""


def run(folder: Path, rest: str, *, head: str = HEAD, steps: int = 3, **options: object) -> Ran:
    write(folder, head + textwrap.dedent(rest))
    return under_magpy(folder, script="prog.py", steps=steps, **options)


def test_everything_the_program_does_on_ctrl_c_is_done(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        from contextlib import contextmanager
        atexit.register(lambda: print("atexit", done))
        @contextmanager
        def manager():
            try:
                yield
            finally:
                print("manager")
        class Closing:
            def __enter__(self): return self
            def __exit__(self, kind, *rest): print("with", kind.__mro__[1].__name__)
        try:
            with manager(), Closing():
                while True:
                    try:
                        step()
                    except Exception:
                        print("swallowed")
        finally:
            print("finally")
        """,
    )
    assert ran.outcome.kind == "ok" and ran.outcome.exit_code == 0 and ran.stderr == b""
    assert ran.stdout.decode().split("\n") == ["with KeyboardInterrupt", "manager", "finally", "atexit 2", ""]
    assert ran.regions() == {"net: Linear": 3, "opt: SGD": 3}
    assert [m["n"] for m in ran.messages if m["type"] == "step"] == [1, 2, 3]
    assert ran.kinds.count("stopping") == 1 and "MP909" not in ran.codes
    assert ran.outcome.report.to_json()["stopped_after"] == 3
    timings = ran.outcome.report.timings
    assert {"python_start", "import_torch", "startup", "first_step", "later_steps", "program", "total"} <= set(timings)
    assert timings["import_torch"] <= timings["startup"] <= timings["program"] <= timings["total"]


def test_a_program_that_saves_on_ctrl_c_goes_its_own_way(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        try:
            while True:
                step()
        except KeyboardInterrupt as e:
            print("saved", isinstance(e, KeyboardInterrupt))
            sys.exit(130)
        """,
    )
    assert ran.outcome.kind == "ok" and ran.stdout == b"saved True\n" and ran.codes.count("MP905") == 0


def test_a_cleaning_up_that_fails_is_a_failure(tmp_path: Path) -> None:
    ran = run(tmp_path, "try:\n    while True: step()\nfinally:\n    print(undefined)\n")
    assert ran.outcome.kind == "failed" and b"NameError" in ran.stderr and b"magpy_core" not in ran.stderr


def test_a_program_that_goes_on_and_misses_what_later_steps_make_has_been_checked(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        try:
            for epoch in range(2):
                for batch in range(5):
                    step()
                torch.save(net.state_dict(), "best.pt")
        except KeyboardInterrupt:
            print("ended early")
        net.load_state_dict(torch.load("best.pt"))
        """,
    )
    assert (ran.outcome.kind, ran.outcome.exit_code, ran.outcome.message) == ("ok", 0, "")
    assert ran.stdout == b"ended early\n" and ran.stderr == b"" and "MP905" not in ran.codes


def test_a_bare_except_is_interrupted_again_and_ended_in_the_end(tmp_path: Path) -> None:
    ran = run(tmp_path, "while True:\n    try:\n        step()\n    except:\n        print('swallowed', flush=True)\n")
    assert ran.outcome.kind == "ok" and 1 <= ran.stdout.count(b"swallowed") <= 5
    assert ran.kinds[-1] == "done" and ran.regions()["opt: SGD"] <= 9


def test_a_program_that_goes_on_without_steps_is_ended_after_the_grace(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        import threading
        print("buffered", end="")
        try:
            while True: step()
        except KeyboardInterrupt:
            threading.Event().wait()
        """,
        stop_grace=0.5,
    )
    assert ran.outcome.kind == "ok" and ran.stdout == b"buffered" and ran.kinds[-1] == "done"


def test_the_programs_own_handler_is_asked_first(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        import signal
        stop = False
        def handler(number, frame):
            global stop
            stop = True
            print("asked")
        signal.signal(signal.SIGINT, handler)
        while not stop:
            step()
        print("ended by itself", done)
        """,
    )
    assert ran.outcome.kind == "ok" and ran.stdout == b"asked\nended by itself 3\n"


def test_a_handler_that_does_nothing_does_not_keep_it_alive(tmp_path: Path) -> None:
    ran = run(tmp_path, "import signal\nsignal.signal(signal.SIGINT, lambda *a: None)\nwhile True: step()\n")
    assert ran.outcome.kind == "ok" and ran.regions()["opt: SGD"] == 4


def test_asyncio_is_cancelled_as_by_ctrl_c(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        import asyncio
        async def main():
            try:
                while True:
                    step()
                    await asyncio.sleep(0)
            finally:
                print("cancelled")
        asyncio.run(main())
        """,
    )
    assert ran.outcome.kind == "ok" and ran.stdout == b"cancelled\n" and ran.stderr == b""


def test_training_in_a_thread_is_ended_too(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        import threading
        def train():
            try:
                while True: step()
            finally:
                print("thread", flush=True)
        t = threading.Thread(target=train)
        t.start()
        try:
            t.join()
            threading.Event().wait()
        finally:
            print("main")
        """,
    )
    assert ran.outcome.kind == "ok" and ran.stdout == b"thread\nmain\n" and ran.stderr == b""


def test_zero_steps_run_to_the_end(tmp_path: Path) -> None:
    ran = run(tmp_path, "for i in range(5): step()\nprint('end')\n", steps=0)
    assert ran.outcome.kind == "ok" and ran.stdout == b"end\n" and ran.regions()["opt: SGD"] == 5


NO_OPTIMIZER = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
"""


def test_without_an_optimizer_outermost_calls_count(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        "try:\n    while True: net(torch.ones(3))\nfinally:\n    net(torch.ones(3)); print('last')\n",
        head=NO_OPTIMIZER,
    )
    assert ran.outcome.kind == "ok" and ran.regions() == {"net: Sequential": 4} and ran.stdout == b"last\n"
    assert [m["n"] for m in ran.messages if m["type"] == "step"] == [1, 2, 3, 4]


def test_with_an_optimizer_module_calls_do_not_count(tmp_path: Path) -> None:
    rest = """
        for i in range(10): net(torch.ones(2, 3))
        print("before")
        while True: step()
    """
    ran = run(tmp_path, rest, steps=1)
    assert ran.stdout == b"before\n" and ran.regions() == {"net: Linear": 11, "opt: SGD": 1}


SCALER = """
import torch
net = torch.nn.Linear(3, 3)
opt = torch.optim.AdamW(net.parameters())
scaler = torch.amp.GradScaler("cpu")
"""


def test_grad_scaler_steps_count(tmp_path: Path) -> None:
    rest = """
        for i in range(10):
            opt.zero_grad()
            scaler.scale(net(torch.ones(3)).sum()).backward()
            scaler.step(opt)
            scaler.update()
    """
    ran = run(tmp_path, rest, head=SCALER)
    assert ran.outcome.kind == "ok" and ran.regions() == {"net: Linear": 3, "opt: AdamW": 3} and ran.stderr == b""


@pytest.mark.parametrize("when", ["before", "after"])
def test_schedulers_work_without_warnings(tmp_path: Path, when: str) -> None:
    rest = """
        import warnings
        warnings.simplefilter("error")
        sched = torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=10)
        ema = torch.optim.swa_utils.AveragedModel(net)
        rates = []
        try:
            while True:
                step()
                sched.step()
                rates.append(round(sched.get_last_lr()[0], 6))
        finally:
            print(len(rates), rates[0] != rates[1])
    """
    ran = run(tmp_path, rest)
    assert ran.outcome.kind == "ok" and ran.stdout == b"2 True\n" and ran.stderr == b""

"""The whole process tree of a run is gone when it is cancelled, when it ends, and when its parent is killed."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from magpy_core.runner.launch import RunHandle, launch, launch_async
from tests.programs.runner_help import environment, request, under_magpy, write

pytestmark = pytest.mark.slow  # each of them starts a program, which starts others

# Starts processes of every stubborn sort, then tells their ids and waits.
FAMILY = """
    import os, signal, subprocess, sys, threading, time
    def forked(*deeds):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            for deed in deeds:
                deed()
            os.write(write, str(os.getpid()).encode().ljust(8))
            while True:
                time.sleep(1000)
        return int(os.read(read, 8))
    def deaf():
        for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(s, signal.SIG_IGN)
    def orphaned():
        if os.fork():
            os._exit(0)
    pids = [
        os.getpid(),
        forked(),
        forked(deaf),
        forked(os.setsid),
        forked(deaf, os.setsid, orphaned, os.setsid),
        forked(deaf, lambda: os.closerange(3, 2000) if False else None, orphaned),
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"]).pid,
        subprocess.Popen(["sleep", "1000"], start_new_session=True, close_fds=False).pid,
    ]
    print(*pids, flush=True)
"""

WORKERS = """
    import sys, os, threading
    import torch
    from torch.utils.data import DataLoader, Dataset
    class Data(Dataset):
        def __init__(self):
            self.twice = torch.nn.Linear(1, 1)
        def __len__(self):
            return 40
        def __getitem__(self, i):
            self.twice(torch.ones(1))
            return torch.tensor([float(os.getpid())])
    if __name__ == "__main__":
        net = torch.nn.Linear(1, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.0)
        options = dict(num_workers=2, multiprocessing_context=sys.argv[1], persistent_workers=True)
        loader = DataLoader(Data(), batch_size=2, **options)
        pids = set()
        for x in loader:
            pids.update(int(p) for p in x.flatten().tolist())
            net(x).sum().backward()
            if len(pids) == 2 and "hang" in sys.argv:
                print(os.getpid(), *pids, flush=True)
                threading.Event().wait()
            opt.step()
        print(os.getpid(), *pids, flush=True)
"""


class Lines:
    """A sink that can be waited on for its first whole line."""

    def __init__(self) -> None:
        self.data = b""
        self.ready = threading.Event()

    def __call__(self, data: bytes) -> None:
        self.data += data
        if b"\n" in self.data:
            self.ready.set()

    def processes(self) -> list[psutil.Process]:
        assert self.ready.wait(60), self.data
        return [psutil.Process(int(p)) for p in self.data.split(b"\n")[0].split()]


def listen(handle: RunHandle) -> threading.Thread:
    thread = threading.Thread(target=lambda: list(handle))
    thread.start()
    return thread


def assert_gone(processes: list[psutil.Process], within: float) -> None:
    _, alive = psutil.wait_procs(processes, timeout=within)
    alive = [p for p in alive if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
    for p in alive:
        p.kill()
    assert not alive, alive


def test_cancel_ends_everything_within_two_seconds(tmp_path: Path) -> None:
    write(tmp_path, FAMILY.replace("print(", "deaf()\n    print(") + "    threading.Event().wait()\n")
    lines = Lines()
    with launch(request(tmp_path, script="prog.py", stdout=lines)) as handle:
        listener = listen(handle)
        family = lines.processes()
        assert len(family) == 8 and all(p.is_running() for p in family)
        start = time.monotonic()
        handle.cancel()
        assert time.monotonic() - start < 2.0
        assert_gone(family, 0.1)
        listener.join(5)
        assert handle.outcome.kind == "cancelled" and handle.outcome.report.findings == []


def test_cancel_before_anything_has_started(tmp_path: Path) -> None:
    write(tmp_path, "import threading; threading.Event().wait()")
    handle = launch(request(tmp_path, script="prog.py"))
    handle.cancel()
    handle.cancel()
    assert handle.outcome.kind == "cancelled"


def test_cancel_after_the_end_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, "")
    handle = launch(request(tmp_path, script="prog.py"))
    assert handle.outcome.kind == "ok"
    handle.cancel()
    handle.close()
    assert handle.outcome.kind == "ok"


def test_cancel_from_the_loop_that_listens(tmp_path: Path) -> None:
    write(tmp_path, "import threading; threading.Event().wait()")
    handle = launch(request(tmp_path, script="prog.py"))
    for message in handle:
        if message["type"] == "started":
            handle.cancel()
    assert handle.outcome.kind == "cancelled"


def test_nothing_of_a_run_that_has_ended_stays_behind(tmp_path: Path) -> None:
    write(tmp_path, FAMILY)
    lines = Lines()
    processes: list[psutil.Process] = []
    with launch(request(tmp_path, script="prog.py", stdout=lines)) as handle:
        thread = threading.Thread(target=lambda: processes.extend(_alive(lines)))
        thread.start()
        assert handle.outcome.kind == "ok"
        thread.join()
    assert len(processes) >= 1
    assert_gone(processes, 0.1)


def _alive(lines: Lines) -> list[psutil.Process]:
    assert lines.ready.wait(60)
    found = []
    for pid in lines.data.split(b"\n")[0].split():
        try:
            found.append(psutil.Process(int(pid)))
        except psutil.NoSuchProcess:
            continue
    return found


def test_leaving_the_with_block_ends_the_run(tmp_path: Path) -> None:
    write(tmp_path, FAMILY + "    threading.Event().wait()\n")
    lines = Lines()
    with launch(request(tmp_path, script="prog.py", stdout=lines)):
        family = lines.processes()
    assert_gone(family, 0.1)


def test_dropping_the_handle_ends_the_run(tmp_path: Path) -> None:
    write(tmp_path, FAMILY + "    threading.Event().wait()\n")
    lines = Lines()
    handle = launch(request(tmp_path, script="prog.py", stdout=lines))
    family = lines.processes()
    process = handle._process
    del handle
    gc.collect()
    assert_gone(family, 3.0)
    assert process is not None
    process.wait(5)


PARENT = """
    import json, sys
    from magpy_core.runner.launch import RunRequest, launch
    handle = launch(RunRequest(**json.loads(sys.argv[1])))
    print(handle._process.pid, flush=True)
    for message in handle:
        pass
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killing_the_parent_ends_everything(tmp_path: Path, number: int) -> None:
    write(tmp_path, FAMILY.replace("print(", "deaf()\n    print(") + "    threading.Event().wait()\n")
    write(tmp_path, PARENT, "parent.py")
    wanted = json.dumps({"script": "prog.py", "stdin": "null"})
    with subprocess.Popen(
        [sys.executable, "parent.py", wanted], cwd=tmp_path, env=environment(), stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        supervisor = psutil.Process(int(parent.stdout.readline()))
        family = [psutil.Process(int(p)) for p in parent.stdout.readline().split()]
        assert len(family) == 8
        parent.send_signal(number)
        parent.wait(10)
        assert_gone([supervisor, *family], 3.0)


def test_killing_the_supervisor_ends_the_program(tmp_path: Path) -> None:
    write(tmp_path, "import os, threading\nprint(os.getpid(), flush=True)\nthreading.Event().wait()\n")
    lines = Lines()
    with launch(request(tmp_path, script="prog.py", stdout=lines)) as handle:
        listener = listen(handle)
        (program,) = lines.processes()
        assert handle._process is not None
        handle._process.kill()
        assert_gone([program], 3.0)
        listener.join(5)
        assert handle.outcome.kind == "killed" and "supervisor" in handle.outcome.message


@pytest.mark.parametrize(
    "method", ["fork", pytest.param("spawn", marks=pytest.mark.slow), pytest.param("forkserver", marks=pytest.mark.slow)]
)
def test_data_loader_workers_work_and_are_not_monitored(tmp_path: Path, method: str) -> None:
    write(tmp_path, WORKERS)
    ran = under_magpy(tmp_path, script="prog.py", args=[method], steps=0, timeout=120.0)
    assert ran.outcome.kind == "ok" and ran.stderr == b""
    assert ran.regions() == {"net: Linear": 20, "opt: SGD": 20}
    for pid in ran.stdout.split():
        assert not psutil.pid_exists(int(pid))


def test_data_loader_workers_end_quietly_after_the_last_step(tmp_path: Path) -> None:
    write(tmp_path, WORKERS)
    ran = under_magpy(tmp_path, script="prog.py", args=["fork"], steps=3)
    assert ran.outcome.kind == "ok" and ran.stderr == b"" and ran.stdout == b"" and "stopping" in ran.kinds
    assert ran.regions() == {"net: Linear": 3, "opt: SGD": 3}


@pytest.mark.parametrize("method", ["fork", pytest.param("forkserver", marks=pytest.mark.slow)])
def test_data_loader_workers_of_a_hanging_program_are_gone(tmp_path: Path, method: str) -> None:
    write(tmp_path, WORKERS)
    lines = Lines()
    with launch(request(tmp_path, script="prog.py", args=[method, "hang"], steps=0, stdout=lines)) as handle:
        listener = listen(handle)
        family = lines.processes()
        assert len(family) == 3
        start = time.monotonic()
        handle.cancel()
        assert time.monotonic() - start < 2.0
        assert_gone(family, 0.1)
        listener.join(5)


def test_the_end_is_seen_though_workers_still_run(tmp_path: Path) -> None:
    """A forked process does not hold the protocol open, nor does one that was executed with every descriptor."""
    write(tmp_path, FAMILY)
    ran = under_magpy(tmp_path, script="prog.py", timeout=20.0)
    assert ran.outcome.kind == "ok" and ran.outcome.report.timings["total"] < 6.0


def test_asyncio(tmp_path: Path) -> None:
    write(tmp_path, "import torch\nnet = torch.nn.Linear(1, 1)\nfor i in range(9): net(torch.ones(1))\n")

    async def main() -> None:
        handle = launch_async(request(tmp_path, script="prog.py"))
        kinds = [m["type"] async for m in handle]
        assert kinds[:2] == ["hello", "started"] and kinds[-1] == "done" and "step" in kinds
        assert (await handle.wait()).kind == "ok"

    asyncio.run(main())


def test_asyncio_cancel(tmp_path: Path) -> None:
    write(tmp_path, FAMILY + "    threading.Event().wait()\n")
    lines = Lines()

    async def main() -> list[psutil.Process]:
        handle = launch_async(request(tmp_path, script="prog.py", stdout=lines))
        family: list[psutil.Process] = []
        async for message in handle:
            if message["type"] == "started":
                family = await asyncio.to_thread(lines.processes)
                start = time.monotonic()
                handle.cancel()
        assert time.monotonic() - start < 2.5
        assert (await handle.wait()).kind == "cancelled"
        return family

    assert_gone(asyncio.run(main()), 0.1)


def test_asyncio_task_cancelled_while_waiting(tmp_path: Path) -> None:
    write(tmp_path, "import os, threading\nprint(os.getpid(), flush=True)\nthreading.Event().wait()\n")
    lines = Lines()

    async def main() -> list[psutil.Process]:
        handle = launch_async(request(tmp_path, script="prog.py", stdout=lines))
        waiting = asyncio.ensure_future(handle.wait())
        family = await asyncio.to_thread(lines.processes)
        waiting.cancel()
        await handle.aclose()
        return family

    assert_gone(asyncio.run(main()), 0.1)


def test_interrupt_is_ctrl_c(tmp_path: Path) -> None:
    write(
        tmp_path,
        """
        import os, threading
        try:
            print(os.getpid(), flush=True)
            threading.Event().wait()
        except KeyboardInterrupt:
            print("saved")
        """,
    )
    lines = Lines()
    with launch(request(tmp_path, script="prog.py", stdout=lines)) as handle:
        for message in handle:
            if message["type"] == "started":
                lines.processes()
                handle.interrupt()
        assert handle.outcome.kind == "ok"
    assert lines.data.endswith(b"saved\n")


def test_an_interrupt_before_a_message_was_read_is_one(tmp_path: Path) -> None:
    waits = "import os, threading\ntry:\n    print(os.getpid(), flush=True)\n    threading.Event().wait()\n"
    write(tmp_path, f"{waits}except KeyboardInterrupt:\n    print('saved')\n")
    lines = Lines()
    with launch(request(tmp_path, script="prog.py", stdout=lines)) as handle:
        lines.processes()
        thread = threading.Thread(target=handle.interrupt)
        thread.start()
        assert handle.outcome.kind == "ok"
        thread.join()
    assert lines.data.endswith(b"saved\n")


@pytest.mark.parametrize(("ends", "kind", "codes"), [("pass", "cancelled", []), ("1 / 0", "failed", ["MP905"])])
def test_the_users_interrupt_is_no_failure_of_the_program(tmp_path: Path, ends: str, kind: str, codes: list[str]) -> None:
    waits = "import os, threading\ntry:\n    print(os.getpid(), flush=True)\n    threading.Event().wait()\n"
    write(tmp_path, f"{waits}finally:\n    {ends}\n")
    lines = Lines()
    with launch(request(tmp_path, script="prog.py", stdout=lines)) as handle:
        for message in handle:
            if message["type"] == "started":
                lines.processes()
                handle.interrupt()
        outcome = handle.outcome
    assert (outcome.kind, [f.code for f in outcome.report.findings]) == (kind, codes)


def test_no_descriptor_is_leaked(tmp_path: Path) -> None:
    write(tmp_path, "")
    under_magpy(tmp_path, script="prog.py")
    gc.collect()  # what tests before have left in cycles, and would be closed meanwhile
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        under_magpy(tmp_path, script="prog.py")
        under_magpy(tmp_path, script="prog.py", python="/no/such/python")
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_time_of_a_suspended_program_does_not_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "import os\nprint('begun', flush=True)\nwhile not os.path.exists('go'):\n    pass\nprint('end')")
    passed = 0.0
    clock = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: clock() + passed)
    lines: list[bytes] = []
    with launch(request(tmp_path, script="prog.py", stdout=lines.append)) as run:
        assert next(m["type"] for m in run if m["type"] == "started")
        program = psutil.Process(run._programs[0].collector.pid)
        run.suspend()
        deadline = clock() + 60
        while program.status() != psutil.STATUS_STOPPED:
            assert clock() < deadline
        passed = 3600.0
        run.resume()
        (tmp_path / "go").touch()
        assert run.outcome.kind == "ok" and b"".join(lines) == b"begun\nend\n"

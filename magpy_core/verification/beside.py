"""Looks for the cause of a difference beside the program: in a forked process, which has the graph, its inputs, the random
state and the compiler's settings, so that nothing has to be saved.

The process has one thread. It takes as much from the program as compiling in the background may, of the same account,
until the program's code has ended: then nothing holds it up. It leaves what it has found so far in a page that the two
share, and ends with the program. Key types: Tracing, Tracings.
"""

from __future__ import annotations

import mmap
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.fx

from magpy_core._compat.code_cache import CodeCache, differences_folder
from magpy_core._compat.linux import end_with_parent
from magpy_core._compat.torch.compilers import import_inductor
from magpy_core._compat.torch.inductor import compile_alone
from magpy_core._compat.torch.warning_filters import no_warnings
from magpy_core.backends.background import ACCOUNT, available, detach, end_group, start_time, yield_to_others
from magpy_core.backends.cache import prepare
from magpy_core.backends.fair_share import FairShare, Reading
from magpy_core.backends.processor_time import Waits, used_by, used_by_tree
from magpy_core.limits import LIMITS
from magpy_core.verification.bisect import bisect
from magpy_core.verification.cause import Cause
from magpy_core.verification.copies import free_memory

_PAGE = 1 << 16
_HALF = _PAGE // 2  # written in turns: a reader takes the one that is complete
# positions: the count of what was written, ..., and where a half's text begins
_COUNT, _ENDED, _CANCELLED, _AWAITED, _PID, _COMPLETE, _TEXT = 0, 1, 2, 3, slice(4, 8), 8, 9
_LOOK_S = 0.05

Report = Callable[[Cause], object]


class Tracing:
    """The search for one cause."""

    def __init__(self, work: Callable[[Report], Cause]) -> None:
        """Forks a process that does the work. Raises OSError."""
        prepare()
        self._page, self._starter = mmap.mmap(-1, _PAGE), os.getpid()
        self._seen = 0
        me = Path(f"/proc/{os.getpid()}/stat")
        started, slot = start_time(me), ACCOUNT.new_slot()
        with no_warnings():  # about a fork while other threads run: the process needs none of them
            between = os.fork()
        if between == 0:
            _run_detached(self._page, work, me, started, slot)
        with suppress(ChildProcessError):  # one of the program's signal handlers has reaped it
            os.waitpid(between, 0)

    @property
    def has_ended(self) -> bool:
        pid = int.from_bytes(self._page[_PID], "little")
        return bool(self._page[_ENDED]) or (pid > 0 and not os.path.exists(f"/proc/{pid}"))  # killed, for its memory

    def news(self) -> Cause | None:
        """What is known, if that is more than when this was last asked."""
        count, is_complete = self._page[_COUNT], self._page[_COMPLETE]
        if count == self._seen:
            return None
        self._seen = count
        cause = _read(self._page, count)
        return cause if is_complete or cause is None else _unfinished(cause)

    def await_it(self) -> None:
        """The program waits for it."""
        self._page[_AWAITED] = 1

    def wait(self, seconds: float) -> None:
        """Until it has ended, at most so long."""
        self.await_it()
        end = time.monotonic() + seconds
        while not self.has_ended and (left := end - time.monotonic()) > 0:
            time.sleep(min(_LOOK_S, left))

    def cancel(self) -> None:
        """What it finds is no longer needed. A process that the program has forked ends nothing of the program's."""
        if os.getpid() == self._starter:
            self._page[_CANCELLED] = 1


class Tracings:
    """Those of one run."""

    def __init__(self) -> None:
        self._all: list[Tracing] = []
        self._is_skipped = False

    def start(self, gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Tracing | None:
        """Looks for what differs in compiled code of ``gm`` for ``inputs``; None: not beside this program."""
        try:
            if len(self._all) >= LIMITS.bisected or not available() or _resident() > free_memory():
                return None
            folder = CodeCache(differences_folder())
            if folder.refusal():
                return None
            folder.prune(LIMITS.kept_differences)
            self._all.append(Tracing(lambda report: bisect(gm, inputs, folder.folder, report)))
            return self._all[-1]
        except Exception:  # the finding is without a cause; the program must not notice
            return None

    @property
    def are_running(self) -> bool:
        return any(not one.has_ended for one in self._all)

    def wait(self, seconds: float) -> None:
        """Until all have ended, at most so long."""
        end = time.monotonic() + seconds
        for one in self._all if seconds else ():
            one.await_it()
        while self.are_running and not self._is_skipped and time.monotonic() < end:
            time.sleep(_LOOK_S)

    def skip(self) -> None:
        """Nobody waits any longer: what is known so far is left. May be called by a signal's handler while one waits."""
        self._is_skipped = True
        self.cancel()

    def cancel(self) -> None:
        for one in self._all:
            one.cancel()


def _resident() -> float:
    """Bytes of this process's memory: what it writes from now on exists twice."""
    with suppress(OSError, ValueError, IndexError), open("/proc/self/statm", encoding="ascii") as file:
        return float(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0.0


def _unfinished(cause: Cause) -> Cause:
    """It says what is left to do."""
    if cause.fault and cause.reproducer:
        return replace(cause, text=f"{cause.text} Run this file to see whether torch alone shows it.")
    return replace(cause, text=f"{cause.text} `magpy-lsp bisect` completes the search.")


# -- the page ------------------------------------------------------------------------------------------------------------


def _write(page: mmap.mmap, cause: Cause) -> None:
    count = page[_COUNT] % 255 + 1
    start = _TEXT + (count % 2) * _HALF
    data = cause.encoded(_HALF - _TEXT - 1)
    page[start : start + len(data) + 1] = data + b"\0"
    page[_COUNT] = count  # written last: now the program may read it


def _read(page: mmap.mmap, count: int) -> Cause | None:
    start = _TEXT + (count % 2) * _HALF
    with suppress(ValueError):  # overwritten meanwhile, because two more were found: the next look has them
        return Cause.decoded(page[start : start + _HALF - _TEXT].split(b"\0", 1)[0])
    return None


# -- the processes --------------------------------------------------------------------------------------------------------


def _run_detached(page: mmap.mmap, work: Callable[[Report], Cause], program: Path, started: str, slot: int) -> None:
    """Does the work in a process that is not the program's child, under a supervisor, and exits; never returns."""
    try:
        if os.fork() == 0:
            detach()
            page[_PID] = os.getpid().to_bytes(4, "little")
            supervisor, worker = os.getpid(), os.fork()
            if worker == 0:
                os.setpgid(0, 0)
                end_with_parent()  # nobody else would continue it if it is stopped
                if os.getppid() != supervisor:
                    os._exit(1)
                yield_to_others()
                torch.set_num_threads(1)  # the program's threads do not run here
                import_inductor()
                with compile_alone():
                    found = work(lambda cause: _write(page, cause))
                    page[_COMPLETE] = 1  # before it is written: who reads what is written knows
                    _write(page, found)
            else:
                _supervise(page, worker, int(program.parent.name), lambda: start_time(program) == started, slot)
                page[_ENDED] = 1
    except BaseException as error:
        page[_COMPLETE] = 1
        _write(page, Cause(f"Its operations could not be told apart ({type(error).__name__}: {str(error)[:160]})."))
    finally:
        os._exit(0)


def _supervise(page: mmap.mmap, worker: int, program: int, is_needed: Callable[[], bool], slot: int) -> None:
    """Until the ``worker`` has ended: stops it when it has taken its share of the program's processor time, unless the
    program waits for it, and ends it with the program."""
    with suppress(OSError):  # also done by the worker: whoever comes first
        os.setpgid(worker, worker)
    waits, start, runs = Waits(program), time.monotonic(), True

    def reading() -> Reading:
        return Reading(used_by(program), waits.seconds(), used_by_tree(worker))

    share = FairShare(ACCOUNT, slot, reading())
    while os.waitpid(worker, os.WNOHANG)[0] == 0:
        if page[_CANCELLED] or not is_needed() or time.monotonic() - start > LIMITS.compile_longest:
            end_group(worker)
            return
        if (may_run := bool(page[_AWAITED]) or share.may_run(reading())) is not runs:
            os.killpg(worker, signal.SIGCONT if may_run else signal.SIGSTOP)
            runs = may_run
        time.sleep(LIMITS.compile_check_interval)

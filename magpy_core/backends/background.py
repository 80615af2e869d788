"""Compiles in the background: a forked process fills the compilers' caches on disk, from which the program then compiles.

The process is a copy of the program: it has the graph, its inputs and the program's own operators, so nothing has to be
sent. It closes the program's file descriptors, runs none of the program's code, and ends with the program. The two share one
page of memory. The program never waits for the process, which isn't its child.

A second process supervises it: it stops the compiler and whatever that has started when they have taken their share of the
program's processor time (`fair_share.py`), continues them later, ends them with the program, and reports their death.

If an accelerator is in use, no process is forked (its state does not survive a fork): graphs are compiled in the foreground.
Key types: Compilation, Queue.
"""

from __future__ import annotations

import functools
import gc
import json
import logging
import mmap
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from magpy_core._compat.cpython.live_objects import LiveObjects
from magpy_core._compat.linux import end_with_parent
from magpy_core._compat.torch.compilers import import_inductor, inductor_is_imported
from magpy_core._compat.torch.torch_state import accelerator_in_use
from magpy_core._compat.torch.warning_filters import no_warnings
from magpy_core.backends.blocks.parts import reporting
from magpy_core.backends.cache import note_removed, prepare, removed_files
from magpy_core.backends.fair_share import Account, FairShare, Reading, Saving
from magpy_core.backends.processor_time import Waits, used_by, used_by_tree
from magpy_core.findings import Location, Unsupported
from magpy_core.findings.json_form import build
from magpy_core.limits import LIMITS

State = Literal["waiting", "running", "done", "failed"]

_PAGE = 8192
# positions in the page
_STATE, _CANCELLED, _PARTS_DONE, _PARTS = 0, 1, slice(2, 4), slice(4, 6)
_ALONE, _HELD = 6, 7
_BEAT, _CPU, _SAVES, _AWAITED, _TEXT = slice(8, 16), slice(16, 24), slice(24, 32), slice(32, 40), 40
_RUNNING, _DONE, _FAILED = 1, 2, 3
_TO_CLEAN_UP_S = 1.0  # C++ compilers remove what they have half written
_UNLIMITED = (1 << 63) / 1e6
_MOST_PLACES = 8  # of a path: the page has to hold them
_NAP_S = 0.02  # between two looks whether a compilation has ended


@dataclass(frozen=True)
class Result:
    """What a process reports: the seconds it took, or why the compiler refused. ``load_seconds``: CPU time to do the same
    work again from what it has kept; ``import_seconds``: CPU time to import the compiler, if the program has not imported it
    and needs it.
    ``removed``: damaged files in the cache. ``places``: where the program has what was refused, as JSON: the operation, then
    its path."""

    seconds: float
    code: str = ""
    message: str = ""
    load_seconds: float = 0.0
    import_seconds: float = 0.0
    removed: int = 0
    places: Sequence[Mapping[str, Any]] = ()

    @property
    def location(self) -> Location | None:
        return build(Location, dict(self.places[0])) if self.places else None

    @property
    def path(self) -> tuple[Location, ...]:
        return tuple(build(Location, dict(place)) for place in self.places[1:])

    @property
    def to_load(self) -> float:
        """CPU seconds that the program needs to load the compiled code now."""
        return self.load_seconds + (0.0 if inductor_is_imported() else self.import_seconds)


def waits_by_default() -> bool:
    """Whether the environment says that programs wait for compilation, as in tests and benchmarks."""
    return os.environ.get("MAGPY_COMPILE") == "foreground"


def available() -> bool:
    """Whether graphs can be compiled in a forked process here."""
    return hasattr(os, "fork") and sys.platform == "linux" and accelerator_in_use() is None


class Compilation:
    """One piece of work in a separate process. ``seconds``: the program's time that it could have saved so far; ``size``:
    the number of operations to compile, to which the work is about proportional: equal ones count once; ``calls``: all of
    them; ``saves``: of each second that the program runs, the part that the compiled code is sure to save, as far as its
    calls have shown. ``improves``: other compiled code serves meanwhile, so that what it could save is not known.
    ``learns``: autograd calls the code, so that a backward pass is compiled, too."""

    def __init__(self, size: int = 1, calls: int = 0, *, improves: bool = False, learns: bool = False) -> None:
        self._size, self._calls, self._improves, self._learns = size, calls or size, improves, learns
        self._page: mmap.mmap | None = None
        self._result: Result | None = None
        self._starter = 0
        self._started_at = 0.0
        self._parts = (0, 1)
        self.seconds = self.saves = 0.0
        self.last_poll = time.monotonic()

    @property
    def state(self) -> State:
        if self._result is not None:
            return "failed" if self._result.code else "done"
        return "waiting" if self._page is None else "running"

    @property
    def pays(self) -> float:
        """What it could have saved so far, for the work that it is."""
        return self.seconds / (self._size + LIMITS.least_compile_work)

    @property
    def need(self) -> float:
        """The processor seconds that it will probably take."""
        if self._learns:
            return LIMITS.compile_any + LIMITS.compile_backward + 3 * LIMITS.compile_operation * self._size
        return LIMITS.compile_any + LIMITS.compile_operation * self._size

    def ran_plain(self, calls: int, share: float, elapsed: float) -> None:
        """So many ``calls`` in eager mode were a ``share`` of the ``elapsed`` seconds in which the program could run."""
        sure = self._calls * LIMITS.operation_seconds * calls / max(elapsed, 1e-9)
        self.saves = min(sure, LIMITS.most_gain * share)
        if (page := self._page) is not None:
            self._tell(page)

    def _tell(self, page: mmap.mmap) -> None:
        """The process decides by it what it may take from the program."""
        page[_SAVES] = _millionths(self.saves)
        page[_AWAITED] = _millionths(_UNLIMITED if self._improves else self.seconds)

    @property
    def is_wanted(self) -> bool:
        """Whether a call has asked for it lately."""
        return time.monotonic() - self.last_poll < LIMITS.compile_unasked

    @property
    def result(self) -> Result:
        assert self._result is not None, "it has not ended"
        return self._result

    def start(self, work: Callable[[], object]) -> None:
        """Forks a process that does the work, twice. It returns True if it needed no compiler."""
        assert self._page is None
        prepare()
        page = self._page = mmap.mmap(-1, _PAGE)
        self._starter, self._started_at, slot = os.getpid(), time.monotonic(), ACCOUNT.new_slot()
        _beat(page)
        page[_STATE] = _RUNNING
        self._tell(page)
        me = Path(f"/proc/{os.getpid()}/stat")
        started = start_time(me)
        try:
            with no_warnings():  # about a fork while other threads run: the process needs none of them
                between = os.fork()
        except OSError as error:
            self._page, self._result = None, Result(0.0, "MP902", f"The compiling process can't start: {error}.")
            return
        if between == 0:
            _run_detached(page, work, me, started, (slot, self.need))
        with suppress(ChildProcessError):  # one of the program's signal handlers has reaped it
            os.waitpid(between, 0)

    def ended(self) -> bool:
        """Whether there is a result."""
        page = self._page
        if self._result is None and page is not None:
            if page[_STATE] != _RUNNING:
                self._result = Result(**json.loads(page[_TEXT:].split(b"\0", 1)[0]))
                note_removed(self._result.removed)
            elif time.monotonic() - _beaten(page) > LIMITS.silent_compiler:
                self._result = Result(0.0, "MP902", "The process that compiled the graph has died.")
            if self._result is not None:
                self._page = None
        return self._result is not None

    @property
    def is_better_alone(self) -> bool:
        """Whether the program had better wait until it has ended (`FairShare`). Not for one whose supervisor may be dead."""
        page = self._page
        if self.state != "running" or page is None or not page[_ALONE]:
            return False
        return time.monotonic() - _beaten(page) < LIMITS.late_heartbeat

    def wait_for(self) -> float:
        """Wait until it has ended, or the program had better go on. Returns the seconds that took."""
        start = time.monotonic()
        while self.is_better_alone and not self.ended():
            time.sleep(_NAP_S)
        return time.monotonic() - start

    @property
    def is_held(self) -> bool:
        """Whether it would take more from the program than its code will save: it is stopped, in nobody's way."""
        return self.state == "running" and self._page is not None and bool(self._page[_HELD])

    @property
    def parts(self) -> tuple[int, int]:
        """How many of the parts that are compiled separately are done, and how many there are."""
        if (page := self._page) is not None:
            self._parts = _number(page, _PARTS_DONE), max(_number(page, _PARTS), 1)
        return (self._parts[1], self._parts[1]) if self.state == "done" else self._parts

    def core_share(self) -> float | None:
        """The part of a core that its process has got so far; None: it is not running, or has only begun."""
        page, elapsed = self._page, time.monotonic() - self._started_at
        if self.state != "running" or page is None or elapsed < LIMITS.short_compilation:
            return None
        return _number(page, _CPU) / 1000 / elapsed

    def cancel(self) -> None:
        """End it: the result is no longer needed. A process that the program has forked ends nothing of the program's."""
        if self._page is not None and os.getpid() == self._starter:
            self._page[_CANCELLED] = 1
            self._page, self._result = None, Result(0.0, "MP902", "The compilation was cancelled.")


class Queue:
    """Decides which compilations run: as many at once as there are spare cores, those that pay most for their work first."""

    def __init__(self, most: int = 0) -> None:
        self._most = most or max(1, len(os.sched_getaffinity(0)) - 1)
        self._all: LiveObjects[Compilation] = LiveObjects()
        self._lock = threading.Lock()

    def add(self, size: int = 1, calls: int = 0, *, improves: bool = False, learns: bool = False) -> Compilation:
        """As `Compilation`."""
        compilation = Compilation(size, calls, improves=improves, learns=learns)
        self._all.add(compilation)
        return compilation

    def poll(self, one: Compilation, work: Callable[[], object]) -> bool:
        """Whether ``one`` has ended. If it waits and is the next in the queue, it is started with ``work``, which is not
        kept."""
        one.last_poll = time.monotonic()
        if one.state == "waiting" and self._lock.acquire(blocking=False):
            try:
                if self._is_next(one):
                    one.start(work)
            finally:
                self._lock.release()
        return one.ended()

    def _is_next(self, one: Compilation) -> bool:
        others = [other for other in self._all if other is not one]
        running = sum(1 for other in others if other.state == "running" and not other.ended() and not other.is_held)
        waiting = [other for other in others if other.state == "waiting" and other.is_wanted]
        return running < self._most and all(other.pays <= one.pays for other in waiting)

    def pays_in(self, seconds: float) -> bool:
        """Whether code that is being compiled is sure to save, in a run of so many seconds, what compiling it takes if the
        program waits for it."""
        return any(one.saves * seconds >= one.need for one in self._all if one.state == "running" and not one.ended())

    def cancel(self) -> None:
        """The program has ended: what runs is to end while the interpreter does."""
        for one in self._all:
            one.cancel()

    def running(self) -> int:
        return sum(1 for one in self._all if one.state == "running" and not one.ended())


QUEUE = Queue()
ACCOUNT = Account()  # of this program; a process that it forks uses its own share of the same account


# -- the page ------------------------------------------------------------------------------------------------------------


def _beat(page: mmap.mmap) -> None:
    page[_BEAT] = int(time.monotonic() * 1000).to_bytes(8, "little")


def _beaten(page: mmap.mmap) -> float:
    return _number(page, _BEAT) / 1000


def _number(page: mmap.mmap, where: slice) -> int:
    return int.from_bytes(page[where], "little")


def _millionths(number: float) -> bytes:
    return int(number * 1e6).to_bytes(8, "little")


def _compiled_parts(page: mmap.mmap, done: int, parts: int) -> None:
    """Of the graph's parts that are compiled separately, so many are ``done``."""
    page[_PARTS], page[_PARTS_DONE] = (min(n, 0xFFFF).to_bytes(2, "little") for n in (parts, done))


def _write(page: mmap.mmap, result: Result) -> None:
    fields = dict(vars(result))
    while len(text := json.dumps(fields).encode()) > _PAGE - _TEXT - 1:
        fields["message"] = fields["message"][: len(fields["message"]) // 2]
    page[_TEXT : _TEXT + len(text)] = text
    page[_STATE] = _FAILED if result.code else _DONE  # written last: now the program may read the page


# -- the process ---------------------------------------------------------------------------------------------------------


def start_time(stat: Path) -> str:
    """When a process started, which distinguishes it from a later one with the same id; empty if it has ended."""
    try:
        return stat.read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _run_detached(page: mmap.mmap, work: Callable[[], object], parent: Path, started: str, share: tuple[int, float]) -> Any:
    """Does the work in a process that is not the program's child, under a supervisor, and exits; never returns. ``share``:
    its slot of the account, and what it will probably need."""
    try:
        if os.fork() == 0:
            program = int(parent.parent.name)
            detach()
            supervisor, worker = os.getpid(), os.fork()
            if worker == 0:
                os.setpgid(0, 0)
                end_with_parent()  # nobody else would continue it if it is stopped
                if os.getppid() != supervisor:
                    os._exit(1)
                yield_to_others()
                with reporting(functools.partial(_compiled_parts, page)):
                    _write(page, _done(work))
            else:
                _supervise(page, worker, program, lambda: start_time(parent) == started, *share)
    except BaseException as error:
        _write(page, Result(0.0, "MP902", f"Compiling in the background failed: {type(error).__name__}: {error}"))
    finally:
        os._exit(0)


def detach() -> None:
    """Detach from the program: process group, file descriptors, priority, signal handlers, garbage with finalizers."""
    # No new session: Linux first divides CPU time among sessions (autogroup), whatever their priority.
    os.setpgid(0, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(nowhere, fd)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    sys.stdout = sys.stderr = open(os.devnull, "w")  # until the process ends
    logging.disable(logging.CRITICAL)
    sys.settrace(None)
    sys.setprofile(None)
    gc.freeze()


def yield_to_others() -> None:
    """A thread of the program that wakes up gets the processor at once, rather than at the end of our time slice: parallel
    loops of torch wait for all their threads. No lower priority: on a busy machine, the share would take minutes to use."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _supervise(page: mmap.mmap, worker: int, program: int, is_needed: Callable[[], bool], slot: int, need: float) -> None:
    """Until the ``worker`` has ended: keeps it and its descendants within their share, ends them when the program has ended
    or the work is no longer needed, and reports it if they die without a result."""
    with suppress(OSError):  # also done by the worker: whoever comes first
        os.setpgid(worker, worker)
    start, waits, runs = time.monotonic(), Waits(program), True

    def reading() -> Reading:
        return Reading(used_by(program), waits.seconds(), used_by_tree(worker), time.monotonic() - start)

    saving = Saving(lambda: _number(page, _SAVES) / 1e6, lambda: _number(page, _AWAITED) / 1e6)
    share = FairShare(ACCOUNT, slot, reading(), need, saving)
    while True:
        ended, status = os.waitpid(worker, os.WNOHANG)
        if ended:
            if page[_STATE] == _RUNNING:
                how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {os.WEXITSTATUS(status)}"
                _write(page, Result(0.0, "MP902", f"The process that compiled the graph has died ({how})."))
            return
        if page[_CANCELLED] or not is_needed() or time.monotonic() - start > LIMITS.compile_longest:
            end_group(worker)
            return
        now = reading()
        page[_CPU] = int(now.compiler * 1000).to_bytes(8, "little")
        if (may_run := share.may_run(now)) is not runs:
            os.killpg(worker, signal.SIGCONT if may_run else signal.SIGSTOP)
            runs = may_run
        page[_ALONE], page[_HELD] = share.is_better_alone, not share.is_worth_its_cost
        _beat(page)
        time.sleep(LIMITS.compile_check_interval)


def end_group(group: int) -> None:
    """Ends a process group, which may be stopped."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGTERM)
        os.killpg(group, signal.SIGCONT)
        time.sleep(_TO_CLEAN_UP_S)
        os.killpg(group, signal.SIGKILL)


def _done(work: Callable[[], object]) -> Result:
    start, before = time.perf_counter(), removed_files()
    try:
        imported = 0.0 if inductor_is_imported() else _cpu_seconds(import_inductor)[0]
        work()
        seconds, removed = time.perf_counter() - start, removed_files() - before
        to_load, without_compiler = _cpu_seconds(work)
        return Result(seconds, "", "", to_load, 0.0 if without_compiler is True else imported, removed)
    except Unsupported as error:
        return Result(time.perf_counter() - start, error.code, error.message, places=_places(error))
    except Exception as error:
        message = f"{type(error).__name__}: {str(error)[:300]}"
        code, message = getattr(error, "code", "MP902"), getattr(error, "message", message)
        return Result(time.perf_counter() - start, code, message, places=_places(error))


def _places(error: Any) -> list[dict[str, Any]]:
    location = getattr(error, "location", None)
    return [] if location is None else [asdict(one) for one in (location, *getattr(error, "path", ())[:_MOST_PLACES])]


def _cpu_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result

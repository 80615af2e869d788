"""Work in a forked process, whose result comes back as JSON. Key function: results_of.

Compiling for another device replaces functions of torch (`_compat.torch.triton_lowering.stand_in`) and may end the process:
it happens in a copy of the program, which has the captures, and the program itself is not touched.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import torch

from magpy_core._compat.torch.warning_filters import no_warnings

_WATCH_S = 0.5
_LONGEST_S = 600.0

Work = Callable[[], Any]


class WorkerFailed(RuntimeError):
    """A process has ended without a result."""


def results_of(work: Sequence[Work], longest: float = _LONGEST_S) -> Iterator[tuple[int, Any | WorkerFailed]]:
    """Runs each piece of work in a process of its own, as many at once as there are processors; the position and the result
    (JSON) of each as it ends, or why there is none. ``longest``: seconds for one piece."""
    most = max(1, len(os.sched_getaffinity(0)))
    waiting, running = list(enumerate(work)), dict[int, _Process]()
    try:
        while waiting or running:
            while waiting and len(running) < most:
                index, one = waiting.pop(0)
                process = _Process(index, one, longest)
                running[process.pipe] = process
            ready, _, _ = select.select(list(running), [], [], _WATCH_S)
            for pipe, process in list(running.items()):
                if (pipe in ready and process.read()) or process.is_late():
                    del running[pipe]
                    yield process.index, process.end()
    finally:
        for process in running.values():
            process.kill()
            process.end()


class _Process:
    def __init__(self, index: int, work: Work, longest: float) -> None:
        self.index = index
        self.pipe, theirs = os.pipe()
        self._data = bytearray()
        self._deadline = time.monotonic() + longest
        parent = os.getpid()
        with no_warnings():  # about a fork while other threads run: the process needs none of them
            self._pid = os.fork()
        if self._pid == 0:
            _run(work, theirs, parent)
        os.close(theirs)

    def read(self) -> bool:
        """Reads what there is; whether that was the end."""
        data = os.read(self.pipe, 1 << 16)
        self._data += data
        return not data

    def is_late(self) -> bool:
        return time.monotonic() > self._deadline

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    def end(self) -> Any | WorkerFailed:
        late = self.is_late()
        if late:
            self.kill()
        os.close(self.pipe)
        status = 0
        with suppress(ChildProcessError):  # one of the program's signal handlers has reaped it
            _, status = os.waitpid(self._pid, 0)
        try:
            return json.loads(self._data)
        except ValueError:
            return WorkerFailed(_how_it_ended(status, late))


def _how_it_ended(status: int, late: bool) -> str:
    if late:
        return "it did not end in time"
    if os.WIFSIGNALED(status):
        return f"it was ended by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"it ended with status {os.waitstatus_to_exitcode(status)}"


# -- the process ---------------------------------------------------------------------------------------------------------


def _run(work: Work, out: int, parent: int) -> NoReturn:
    """Writes the result and exits: nothing of the program's runs at this process's end."""
    try:
        _detach(out)
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
        data = json.dumps(work()).encode()
        while data:
            data = data[os.write(out, data) :]
    except BaseException as error:
        # the parent finds no result; here nobody would see a traceback
        with suppress(OSError):
            os.write(out, b"")
        os._exit(70 if isinstance(error, Exception) else 71)
    os._exit(0)


def _detach(out: int) -> None:
    """No output, signal handlers, threads or descriptors of the program's."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(nowhere, fd)
    os.closerange(3, out)
    os.closerange(out + 1, os.sysconf("SC_OPEN_MAX"))
    sys.stdout = sys.stderr = open(os.devnull, "w")  # until the process ends
    logging.disable(logging.CRITICAL)
    sys.settrace(None)
    sys.setprofile(None)
    torch.set_num_threads(1)
    gc.freeze()


def _watch(parent: int) -> None:
    """Ends the process with the program."""
    while os.getppid() == parent:
        time.sleep(_WATCH_S)
    os._exit(72)

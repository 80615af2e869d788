"""Supervises a program and all processes that it starts, and ends them. Standard library only.

The child forks once, before any user module is imported. The forked process becomes the program; the original stays as its
*supervisor*: a process of a few megabytes that waits for the program to end, or for the parent to hang up. A watchdog thread
inside the program would be weaker (user code may hold the interpreter lock, close every descriptor, or stop the process) and
would change the program (one more thread). The supervisor is a subreaper, so orphans of the program become its children and
are found: DataLoader workers, daemons and subprocesses are ended as well.
"""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress

from magpy_core._compat.linux import adopt_orphans, end_with_parent

TERM_GRACE = 1.0
"""Seconds between SIGTERM and SIGKILL."""
KILL_GRACE = 0.5
LEFTOVER_GRACE = 0.5
"""Seconds for the program's remaining processes to notice its end (resource trackers clean up then)."""
WHERE = b"where\n"
"""Command: request a dump of the program's stacks, written to the protocol descriptor as plain lines."""


def where_signal() -> int:
    """The signal that requests a stack dump: a real-time signal, which programs rarely use."""
    return signal.SIGRTMIN + 11


def start(commands: int, out: int) -> int:
    """Fork. Returns the supervisor's pid in the program; does not return in the supervisor.

    ``commands`` is readable while the parent lives; its hang-up means "end everything". ``out`` is where ``exit`` is sent.
    """
    supervisor = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(commands)
        os.setpgid(0, 0)  # as a shell does, so that a program that signals its own group hits only itself
        end_with_parent()
        if os.getppid() != supervisor:
            os._exit(1)
        return supervisor
    code = 1
    try:
        code = _supervise(pid, commands, out)
    finally:
        os._exit(code)


class _Reaper:
    """Reaps dead children, including adopted orphans, and records the program's status."""

    def __init__(self, program: int) -> None:
        self.program = program
        self.status: int | None = None

    def reap(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                if ended[0] == self.program:
                    self.status = ended[1]


def _supervise(program: int, commands: int, out: int) -> int:
    adopt_orphans()
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    end_requests = []
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda *_: end_requests.append(True))
    reaper = _Reaper(program)
    poller = select.poll()
    poller.register(commands, select.POLLIN | select.POLLHUP | select.POLLERR)
    poller.register(wake_read, select.POLLIN)
    reaper.reap()  # it may have ended before SIGCHLD had a handler
    while reaper.status is None and not end_requests:
        for fd, _ in poller.poll():
            data = _read(fd)
            if fd == commands:
                if not data:
                    end_requests.append(True)
                elif WHERE in data:
                    _send(program, where_signal())
        reaper.reap()
    requested = bool(end_requests)
    if not requested:
        _wait_ended(os.getpid(), LEFTOVER_GRACE, reaper)
    end_tree(os.getpid(), reaper=reaper)
    reaper.reap()
    return _report(out, reaper.status, requested=requested)


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 4096)
    except BlockingIOError:
        return b"."
    except OSError:
        return b""


def _report(out: int, status: int | None, *, requested: bool) -> int:
    """Sends how the program ended; returns the supervisor's exit status."""
    from magpy_core.runner.protocol import encode

    code = signalled = None
    if status is not None:
        value = os.waitstatus_to_exitcode(status)
        code, signalled = (value, None) if value >= 0 else (None, -value)
    # The program may have died in the middle of a line: the newline in front ends it.
    line = b"\n" + encode({"type": "exit", "code": code, "signal": signalled, "requested": requested})
    with suppress(OSError):  # the parent has exited
        os.write(out, line)
    return 1 if requested or code is None else code


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # it has ended, or is a set-uid program that we can't signal
        os.kill(pid, number)


def processes() -> list[tuple[int, int, int]]:
    """(pid, parent, session) of every live process (zombies are not)."""
    out = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as f:
                fields = f.read().rpartition(b")")[2].split()
        except OSError:
            continue  # ended between listing and reading
        if fields and fields[0] not in (b"Z", b"X"):
            out.append((int(name), int(fields[1]), int(fields[3])))
    return out


def tree(root: int) -> set[int]:
    """Live descendants of ``root`` and members of its session, without ``root`` itself."""
    table = processes()
    children: dict[int, list[int]] = {}
    for pid, parent, _ in table:
        children.setdefault(parent, []).append(pid)
    found = {pid for pid, _, session in table if session == root}
    todo = [root, *found]
    while todo:
        for pid in children.get(todo.pop(), ()):
            if pid not in found:
                found.add(pid)
                todo.append(pid)
    return found - {root, os.getpid()}


def _wait_ended(root: int, seconds: float, reaper: _Reaper | None) -> bool:
    deadline = time.monotonic() + seconds
    while True:
        if reaper is not None:
            reaper.reap()
        if not tree(root):
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.01)


def end_tree(root: int, *, term_grace: float = TERM_GRACE, reaper: _Reaper | None = None) -> bool:
    """SIGTERM to the tree under ``root``, then SIGKILL after the grace period. True if no process is left."""
    if term_grace > 0:
        for pid in tree(root):
            _send(pid, signal.SIGTERM)
        if _wait_ended(root, term_grace, reaper):
            return True
    deadline = time.monotonic() + KILL_GRACE
    while True:  # repeatedly: a fork bomb creates processes between listing and killing
        for pid in tree(root):
            _send(pid, signal.SIGKILL)
        if _wait_ended(root, 0.02, reaper):
            return True
        if time.monotonic() >= deadline:
            return False

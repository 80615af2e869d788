"""Runs a case in a forked process with limits and without network, and returns its result or how it died.

Forking makes a process per case affordable: only the forking process imports the libraries.
Key functions: forked, limit, serve.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

Verdict = dict[str, Any]
Write = Callable[[Verdict], None]

CPU_SECONDS = 600
WALL_SECONDS = 900
MEMORY = 12 << 30
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000


def sentence(error: BaseException) -> str:
    """An exception in one line."""
    return f"{type(error).__name__}: {error}".replace("\n", " ")[:400]


def forked(work: Callable[[], Verdict], wall: float = WALL_SECONDS) -> Verdict:
    """Runs ``work`` in a child process; returns its result, or how it died."""
    read, write = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.setsid()
        answer: Verdict = {}
        try:
            answer = work()
        except BaseException as error:
            answer = {"status": "error", "reason": sentence(error)}
        finally:
            with contextlib.suppress(BaseException):
                os.write(write, json.dumps(answer).encode())
            os._exit(0)
    os.close(write)
    body, deadline = b"", time.monotonic() + wall
    with os.fdopen(read, "rb") as answer_pipe:
        while True:
            ready, _, _ = select.select([answer_pipe], [], [], max(0.0, deadline - time.monotonic()))
            piece = os.read(answer_pipe.fileno(), 1 << 16) if ready else b""
            if not piece:
                break
            body += piece
    if not ready:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # the processes that it started
    try:
        return dict(json.loads(body))
    except ValueError:
        hung = not ready or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL))
        return {"status": "hang" if hung else "crash", "reason": f"wait status {status}"}


def limit(cpu_seconds: int = CPU_SECONDS, memory: int = MEMORY) -> None:
    """Limits this process's CPU time and memory, and disables its output and its network."""
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 5))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null_device = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null_device, descriptor)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0 and libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        import socket

        def refuse(*_: Any, **__: Any) -> Any:
            raise OSError("no network here")

        socket.socket.connect = refuse  # type: ignore[method-assign]


def serve(work: Callable[[dict[str, Any], Write], Verdict]) -> None:
    """Processes the requests on stdin, one JSON object per line, each in a child process. The records that ``work`` writes,
    then the one that it returns (with ``done``: the request's name), go to stdout as JSON lines."""
    wire = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def write(record: Verdict) -> None:
        wire.write(json.dumps(record) + "\n")

    for line in sys.stdin:
        request = json.loads(line)

        def answer(request: dict[str, Any] = request) -> Verdict:
            return work(request, write)

        wire.flush()
        write({"done": request["name"], **forked(answer, wall=request.get("wall", 3600))})

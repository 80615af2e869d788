"""A process that has torch loaded and forks one child per file, and that one child per case and engine.

Forking is what makes a process per case affordable: the imports are paid once. Reads requests, one JSON object a line,
from stdin, and answers each with JSON lines on stdout that end with ``{"done": FILE}``. Key functions: main, run_file.
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
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

import magpy_core
from benchmarks.paritybench.compare import Observed, difference, observe
from benchmarks.paritybench.stand_ins import import_case_file

Verdict = dict[str, Any]

CPU_SECONDS = 600
WALL_SECONDS = 900
MEMORY = 12 << 30
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000


def forked(work: Callable[[], Verdict], wall: float = WALL_SECONDS) -> Verdict:
    """Run ``work`` in a child with limits and without a network; its answer, or how it died."""
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
            answer = {"status": "error", "reason": _sentence(error)}
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
        os.killpg(child, signal.SIGKILL)  # what it started itself
    try:
        return dict(json.loads(body))
    except ValueError:
        hung = not ready or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL))
        return {"status": "hang" if hung else "crash", "reason": f"wait status {status}"}


def isolate() -> None:
    """Limits, no output and no network for the rest of this process."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    quiet = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(quiet, descriptor)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0 and libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        import socket

        def refuse(*_: Any, **__: Any) -> Any:
            raise OSError("no network here")

        socket.socket.connect = refuse  # type: ignore[method-assign]


def _sentence(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".replace("\n", " ")[:400]


def _eager(module: torch.nn.Module) -> Any:
    return module


class _Engine:
    """An engine under test: how it wraps a module, and what it says about a call it would not take whole."""

    def __init__(self, name: str, breaks: tuple[type[BaseException], ...]) -> None:
        self.name = name
        self.breaks = breaks

    def wrap(self, module: torch.nn.Module) -> Any:
        if self.name == "magpy":
            return magpy_core.compile(module, backend="eager", fullgraph=True)
        torch.compiler.reset()
        return torch.compile(module, backend="eager", fullgraph=True)


def _engine(name: str) -> _Engine:
    if name == "magpy":
        return _Engine(name, (magpy_core.GraphBreak,))
    import torch._dynamo.exc as exc

    return _Engine(name, (exc.TorchDynamoException,))


def run_case(case: tuple[Any, ...], name: str) -> Verdict:
    """Eager three times, then the engine once; how they compare."""
    isolate()
    cls, init, forward = case[:3]

    def build() -> torch.nn.Module:
        args, kwargs = init()
        module: torch.nn.Module = cls(*args, **kwargs)
        return module

    start = time.process_time()
    try:
        first = observe(build, forward, _eager)
    except Exception as error:
        return {"status": "eager failed", "reason": _sentence(error)}
    eager_seconds = time.process_time() - start
    for _ in range(2):
        changed = _again(build, forward, first)
        if changed is not None:
            return {"status": "not deterministic", "reason": changed}
    engine = _engine(name)
    start = time.process_time()
    verdict = _judged(engine, build, forward, first)
    verdict["seconds"] = round(time.process_time() - start, 3)
    verdict["eager_seconds"] = round(eager_seconds, 3)
    return verdict


def _again(build: Callable[[], torch.nn.Module], forward: Callable[[], Any], first: Observed) -> str | None:
    try:
        return difference(first, observe(build, forward, _eager))
    except Exception as error:
        return _sentence(error)


def _judged(
    engine: _Engine, build: Callable[[], torch.nn.Module], forward: Callable[[], Any], expected: Observed
) -> Verdict:
    kept: list[Any] = []

    def wrap(module: torch.nn.Module) -> Any:
        kept.append(engine.wrap(module))
        return kept[0]

    try:
        got = observe(build, forward, wrap)
    except engine.breaks as error:
        findings = [
            {"code": f.code, "message": f.message, "line": f.location.range.start.line + 1}
            for f in getattr(error, "findings", ())
        ]
        return {"status": "break", "reason": _sentence(error), "findings": findings[:5]}
    except Exception as error:
        lines = traceback.format_exc().strip().splitlines()
        return {"status": "error", "reason": _sentence(error), "trace": lines[-12:]}
    changed = difference(expected, got)
    if changed is not None:
        return {"status": "wrong", "reason": changed}
    if engine.name == "magpy":
        captures = magpy_core.captures(kept[0])
        if not captures or not all(capture.is_complete for capture in captures):
            return {"status": "break", "reason": f"{len(captures)} captures, not all complete", "findings": []}
        return {"status": "complete", "captures": len(captures)}
    return {"status": "complete"}


def run_file(path: Path, engines: list[str], only: int | None, write: Callable[[Verdict], None]) -> Verdict:
    """Import a file and run its cases, each in a process of its own. Returns what is known of the file."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            module, stubs = import_case_file(path)
    except BaseException as error:
        return {"import_error": _sentence(error)}
    cases = getattr(module, "TESTCASES", [])
    for number, case in enumerate(cases):
        if only is not None and number != only:
            continue
        record: Verdict = {"file": path.name, "case": number, "name": getattr(case[0], "__name__", "?"), "stubs": stubs}
        for name in engines:
            record[name] = forked(partial(run_case, case, name))
            if record[name]["status"] in ("eager failed", "not deterministic"):
                break
        write(record)
    return {"cases": len(cases), "stubs": stubs}


def main() -> None:
    wire = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        path = Path(request["path"])

        def write(record: Verdict) -> None:
            wire.write(json.dumps(record) + "\n")

        def work(path: Path = path, request: Verdict = request) -> Verdict:
            return run_file(path, request["engines"], request.get("case"), write)

        wire.flush()
        outcome = forked(work, wall=request.get("wall", 3600))
        wire.write(json.dumps({"done": path.name, **outcome}) + "\n")


if __name__ == "__main__":
    main()

"""Plain runs of programs, forked off a process that has imported torch: that import is nearly all of an ordinary start.

For tests that compare what a program prints; those that compare tracebacks, import times or the like start an interpreter of
their own (``plainly`` of runner_help). Key function: printed.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.programs.runner_help import PYTHON, environment


def printed(folder: Path, script: str = "prog.py") -> bytes:
    """What ``script`` writes to its output, run in ``folder`` by eager mode; it must end well."""
    with tempfile.TemporaryDirectory() as outside:
        output, errors = (os.path.join(outside, name) for name in ("output", "errors"))
        nursery = _nursery()
        assert nursery.stdin is not None and nursery.stdout is not None
        nursery.stdin.write(json.dumps([str(folder), script, output, errors]) + "\n")
        nursery.stdin.flush()
        status = int(nursery.stdout.readline())
        assert status == 0, (status, Path(errors).read_text(encoding="utf-8"))
        return Path(output).read_bytes()


@functools.cache
def _nursery() -> subprocess.Popen[str]:
    command = [PYTHON, "-m", __name__]
    process = subprocess.Popen(command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.communicate)  # it ends with its input
    return process


def _serve() -> list[str] | None:
    """Fork a process for every line that comes, and tell how it ended. The process gets the request; at the end, None."""
    import torch  # noqa: F401

    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            request: list[str] = json.loads(line)
            return request
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    return None


def _run(folder: str, script: str, output: str, errors: str) -> None:
    for number, path in enumerate((os.devnull, output, errors)):
        fd = os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT)
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(folder)
    sys.argv, sys.path[0] = [script], folder
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    if (request := _serve()) is not None:
        _run(*request)

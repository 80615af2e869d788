"""Runs small programs both under the runner and under eager mode, for comparison. Key names: Ran, under_magpy, plainly."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from magpy_core.runner.launch import Message, Outcome, RunRequest, launch

ROOT = Path(__file__).parents[2]
PYTHON = os.environ.get("MAGPY_TEST_PYTHON", sys.executable)
"""The interpreter that programs run in: the runner's own tests run with any supported one from any supported one."""
FAKE = "tests.programs.runner_fake:FakeSession"


@dataclass
class Ran:
    messages: list[Message]
    outcome: Outcome
    stdout: bytes = b""
    stderr: bytes = b""
    kinds: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.kinds = [m["type"] for m in self.messages]

    @property
    def codes(self) -> list[str]:
        return [f.code for f in self.outcome.report.findings]

    def finding(self, code: str) -> Any:
        (found,) = [f for f in self.outcome.report.findings if f.code == code]
        return found

    def regions(self) -> dict[str, int]:
        return {r.name: r.calls for r in self.outcome.report.regions}


def environment(**more: str) -> dict[str, str]:
    """As ours, with the repository importable (the fake session lives in it)."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", **more}


def write(folder: Path, source: str, name: str = "prog.py") -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    return name


def request(folder: Path, **options: Any) -> RunRequest:
    options = {
        "python": PYTHON,
        "cwd": str(folder),
        "env": environment(),
        "stdin": "null",
        "session_factory": FAKE,
        "timeout": 60.0,
        **options,
    }
    return RunRequest(**options)


def under_magpy(folder: Path, **options: Any) -> Ran:
    out: list[bytes] = []
    err: list[bytes] = []
    options = {"stdout": out.append, "stderr": err.append, **options}
    with launch(request(folder, **options)) as handle:
        messages = list(handle)
        return Ran(messages, handle.outcome, b"".join(out), b"".join(err))


def byte_compile(folder: Path, source: str, target: str) -> None:
    call = f"import py_compile; py_compile.compile({source!r}, cfile={target!r}, doraise=True)"
    subprocess.run([PYTHON, "-c", call], cwd=folder, check=True)


def plainly(folder: Path, *args: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [PYTHON, *args],
        cwd=folder,
        env=environment(**env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )

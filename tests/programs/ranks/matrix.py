"""Programs of several processes, plainly and under every mode: they must compute the same, and end.

``python -m tests.programs.ranks.matrix [--repeat N] [--steps N] [--kinds A,B] [--shapes A,B] [--modes A,B] [--ranks 1,2,4]``
prints one line for each run that differs, hangs or fails, and the count. Key functions: training, plain, monitored,
difference.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
TRAIN = Path(__file__).with_name("train.py")
KINDS = (
    "ddp", "ddp-accumulate", "ddp-unused", "fsdp", "fsdp-keep", "fsdp-mixed", "fsdp-2d", "fsdp-accumulate", "tensor", "zero",
    "manual",
)  # fmt: skip
SHAPES = ("function", "loop")
MODES = {"run": ["run"], "eager": ["run", "--backend", "eager"], "check": ["check", "--exit-zero"]}
#: Modes that must compute the same bits.
EXACT = ("eager", "check")

Results = list[dict[str, Any]]
Command = Callable[[str], list[str]]
"""A script and its arguments, by the name of the files that its processes write."""


class Failed(Exception):
    """A run that ended badly, or not at all; its text says how."""


def _run(command: list[str], folder: Path, ranks: int, name: str, timeout: float) -> tuple[Results, str]:
    """What each rank wrote, and the output."""
    search = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    env = {**os.environ, "PYTHONPATH": search, "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
    env.pop("MAGPY_COMPILE", None)  # tests compile in the foreground, users don't
    process = subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        text = process.communicate(timeout=timeout)[0]
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            text = process.communicate(timeout=20)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            text = process.communicate()[0]
        raise Failed(f"did not end within {timeout:.0f} s: {text[-2000:]}") from None
    files = [folder / f"{name}{rank}" for rank in range(ranks)]
    # a thread of gloo's may abort a rank that is done, as it exits: what the ranks wrote counts
    if not all(file.exists() for file in files):
        raise Failed(f"ended with {process.returncode}: {text[-3000:]}")
    return [json.loads(file.read_text()) for file in files], text


def training(kind: str, shape: str, steps: int) -> Command:
    """The program `train.py`."""
    return lambda out: [str(TRAIN), kind, shape, out, str(steps)]


def plain(folder: Path, ranks: int, program: Command, timeout: float = 120.0) -> Results:
    """The program under torchrun."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    return _run([*launcher, *program("plain")], folder, ranks, "plain", timeout)[0]


def monitored(folder: Path, ranks: int, program: Command, mode: str, timeout: float = 240.0) -> tuple[Results, str]:
    """The program under ``mode``, and its output."""
    for file in folder.glob("ours*"):
        file.unlink()
    command = [sys.executable, "-m", "lsp_server.cli", *MODES[mode], "--nproc-per-node", str(ranks)]
    if mode == "check":
        command += ["--steps", "0"]
    script, *args = program("ours")
    return _run([*command, script, "--", *args], folder, ranks, "ours", timeout)


def difference(expected: Results, found: Results, *, exact: bool) -> str:
    """How the results differ; empty: they do not."""
    for rank, (one, other) in enumerate(zip(expected, found, strict=True)):
        if one["world"] != other["world"]:
            return f"rank {rank}: WORLD_SIZE is {other['world']}, not {one['world']}"
        pairs = list(zip(one["losses"], other["losses"], strict=True))
        for i, (a, b) in enumerate(pairs):
            if a != b if exact else abs(a - b) > 1e-3 + 1e-2 * abs(a):
                return f"rank {rank}: the loss of step {i} is {b!r}, not {a!r}"
        if exact and one["bits"] != other["bits"]:
            return f"rank {rank}: parameters differ"
        if abs(one["total"] - other["total"]) > 1e-2 * abs(one["total"]):
            return f"rank {rank}: the parameters' sum is {other['total']!r}, not {one['total']!r}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--ranks", default="1,2,4")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--repeat", type=int, default=1)
    given = parser.parse_args()
    runs = bad = 0
    for kind in given.kinds.split(","):
        for shape in given.shapes.split(","):
            for ranks in map(int, given.ranks.split(",")):
                with tempfile.TemporaryDirectory() as name:
                    folder = Path(name)
                    program = training(kind, shape, given.steps)
                    expected = plain(folder, ranks, program)
                    for mode in given.modes.split(",") * given.repeat:
                        runs += 1
                        try:
                            found, _ = monitored(folder, ranks, program, mode)
                            text = difference(expected, found, exact=mode in EXACT)
                        except Failed as error:
                            text = str(error)
                        bad += bool(text)
                        print(kind, shape, f"{ranks} ranks", mode, text or "same", flush=True)
    print(f"{runs} runs, {bad} differ, hang or fail")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())

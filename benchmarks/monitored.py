"""The cost of monitoring: a monitored training step against an eager one, and `check` against the plain script."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import torch

import magpy_core
from benchmarks.models import EXAMPLES, CharGPT
from benchmarks.result import Result, Row
from benchmarks.timing import interleave, interleave_commands, ratio_of


def monitored_step() -> Result:
    """char_gpt's step with both of its regions (model call, optimizer step) under the monitor."""
    torch.set_num_threads(1)
    plain, watched = CharGPT(), CharGPT()
    plain.step(plain.model, plain.optimizer.step)  # exclude torch's lazy initialisation

    def monitored() -> None:
        watched.step(
            lambda *args: magpy_core.monitor(watched.model)(*args).result,
            lambda: magpy_core.monitor(watched.optimizer.step)().result,
        )

    start = time.perf_counter()
    monitored()
    first = time.perf_counter() - start
    samples = interleave(
        {"eager step": lambda: plain.step(plain.model, plain.optimizer.step), "monitored step": monitored}, rounds=11
    )
    ratio = ratio_of(samples["monitored step"], samples["eager step"])
    eager_ms = 1e3 * min(samples["eager step"].wall)
    return Result(
        [
            Row("char_gpt: first monitored step", first, "s", 2.0, "wall, instrumentation included"),
            Row("char_gpt: later monitored steps / eager", ratio.cpu_median, "x", 3.0, f"{ratio}; eager {eager_ms:.0f} ms"),
        ],
        {key: value.to_json() for key, value in samples.items()},
    )


def check_char_gpt() -> Result:
    """`magpy-lsp check` of char_gpt against the plain script, three steps each, whole processes."""
    script = str(EXAMPLES / "char_gpt" / "train.py")
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--steps", "3", "--device", "cpu", "--checkpoint", str(Path(folder) / "checkpoint.pt")]
        samples = interleave_commands(
            {
                "plain": [sys.executable, script, *arguments],
                # --steps 0: the script ends by itself, so both processes do the same work
                "check": [
                    sys.executable,
                    "-m",
                    "lsp_server.cli",
                    "check",
                    "--exit-zero",
                    "--steps",
                    "0",
                    script,
                    "--",
                    *arguments,
                ],
            },
            rounds=3,
            cwd=folder,
        )
    added = min(samples["check"].wall) - min(samples["plain"].wall)
    detail = f"plain {min(samples['plain'].wall):.1f} s, check {min(samples['check'].wall):.1f} s (minima of 3)"
    return Result(
        [Row("check char_gpt, 3 steps: added to the plain run", added, "s", 5.0, detail)],
        {key: value.to_json() for key, value in samples.items()},
    )

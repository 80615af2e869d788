"""The wall time of `magpy-lsp run` against the plain script: whole processes, for programs of about 10 and 30 seconds.

Goal: at most 5 % and two seconds more than plain Python, whether or not the compiled code is ready before the program ends.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks.models import EXAMPLES
from benchmarks.result import Result, Row
from benchmarks.timing import Samples, run_command

_PROBE = 20  # steps of the plain script that show how long one takes


def _timed(name: str, steps: int, folder: str, *prefix: str) -> tuple[float, float]:
    more = ["--checkpoint", str(Path(folder) / "checkpoint.pt")] if name == "char_gpt" else []
    script = str(EXAMPLES / name / "train.py")
    rest = ["--"] if prefix else []
    own_caches = ["env", f"TORCHINDUCTOR_CACHE_DIR={folder}/cache"]
    command = [sys.executable, *prefix, script, *rest, "--device", "cpu", "--steps", str(steps), *more]
    return run_command([*own_caches, *command], cwd=folder)


def _compare(name: str, seconds: int) -> Result:
    """A compiled run between two plain ones; nothing is in the compilers' caches at its start."""
    with tempfile.TemporaryDirectory() as folder:
        start = min(_timed(name, 1, folder)[0] for _ in range(2))
        rate = (_timed(name, _PROBE, folder)[0] - start) / (_PROBE - 1)
        steps = max(_PROBE, round((seconds - start) / max(rate, 1e-3)))
        samples = {"plain": Samples(), "run": Samples()}
        samples["plain"].add(*_timed(name, steps, folder))
        samples["run"].add(*_timed(name, steps, folder, "-m", "lsp_server.cli", "run"))
        samples["plain"].add(*_timed(name, steps, folder))
    plain, run = min(samples["plain"].wall), samples["run"].wall[0]
    over = run - 1.05 * plain
    detail = f"{steps} steps: plain {plain:.1f} s, run {run:.1f} s ({run / plain:.2f}x)"
    return Result(
        [Row(f"run of {name}, {seconds} s: beyond 1.05x of plain Python", over, "s", 2.0, detail)],
        {f"{name}, {seconds} s: {key}": value.to_json() for key, value in samples.items()},
    )


def _both(name: str) -> Result:
    results = [_compare(name, seconds) for seconds in (10, 30)]
    rows = [row for result in results for row in result.rows]
    return Result(rows, {name: samples for result in results for name, samples in result.samples.items()})


def never_slower_char_gpt() -> Result:
    return _both("char_gpt")


def never_slower_early_exit() -> Result:
    return _both("early_exit")


def never_slower_image_cnn() -> Result:
    return _both("image_cnn")


def never_slower_hf_bert() -> Result:
    return _both("hf_bert")

"""The command line on the device: ``run`` and ``check --engine both`` report times, and ``doctor`` finds the device usable.

Skipped without the packages of the command line.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.device import BACKEND, DEVICE, IS_CUDA, environment
from tests.programs.test_examples import EXAMPLES

for package in ("click", "cattrs", "rich", "psutil"):
    pytest.importorskip(package, reason=f"{package} is not installed: the command line needs it")

_SCRIPT = EXAMPLES / "step_function" / "train.py"


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "lsp_server.cli", *words]


def _report(folder: Path, command: str, *options: str, steps: int = 60) -> Any:
    file = folder / "report.json"
    line = _command(command, "--format", "json", "--output", str(file), *options, str(_SCRIPT))
    done = subprocess.run(
        [*line, "--", "--device", DEVICE.type, "--steps", str(steps)],
        capture_output=True, text=True, cwd=folder, timeout=110,
        env=environment(MAGPY_COMPILE="foreground"),
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return json.loads(file.read_text(encoding="utf-8"))


def test_run_reports_the_step(tmp_path: Path) -> None:
    report = _report(tmp_path, "run", "--backend", BACKEND)
    step = report["step"]
    assert step["count"] >= 59 and step["compiled"] > 0 and step["plain"] > 0
    assert any(region["complete"] and region["hits"] > 0 for region in report["regions"])
    if BACKEND == "inductor":
        assert step["plain_ms"] > 0 and step["compiled_ms"] > 0


@pytest.mark.skipif(BACKEND != "inductor", reason="it compares two compilers")
def test_both_engines_are_timed(tmp_path: Path) -> None:
    """MagPy and torch.compile, each in a run of its own: regions of both have compiled times. Eager mode is timed by MagPy
    alone: torch.compile runs none."""
    report = _report(tmp_path, "check", "--engine", "both", "--exit-zero")
    engines = {region["engine"] for region in report["regions"]}
    assert engines == {"magpy", "dynamo"}
    for engine in engines:
        timed = [r for r in report["regions"] if r["engine"] == engine and r["compiled_ms"]]
        told = f"no region of {engine} has times: {report['regions']}"
        assert any(r["eager_ms"] for r in timed) or (timed and engine == "dynamo"), told


@pytest.mark.skipif(not IS_CUDA, reason="the CPU has no kernels")
def test_kernels_of_the_device(tmp_path: Path) -> None:
    """`kernels` for a target, on a machine that has one: the program runs on the device, the list is for the target."""
    done = subprocess.run(
        _command("kernels", str(_SCRIPT), "--", "--device", "cuda", "--steps", "6"), capture_output=True, text=True,
        cwd=tmp_path, timeout=110, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "triton_" in done.stdout


def test_doctor(tmp_path: Path) -> None:
    """It compiles a tiny graph for each device, the CUDA one included, or says what is missing."""
    done = subprocess.run(_command("doctor"), capture_output=True, text=True, cwd=tmp_path, timeout=110,
                          env=environment())  # fmt: skip
    assert "Traceback" not in done.stderr + done.stdout, done.stderr + done.stdout
    if IS_CUDA:
        assert "cuda" in done.stdout.lower()

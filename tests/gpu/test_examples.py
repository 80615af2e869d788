"""The examples on the device, as scripts: under ``run`` they print the losses that eager mode prints.

Started as the command line starts them, but without its packages, which a machine for tests need not have.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from magpy_core.runner.launch import Outcome, RunRequest, launch
from tests.gpu.device import BACKEND, DEVICE, environment
from tests.programs.test_examples import EXAMPLES, losses

_STEPS = {"char_gpt": 30, "image_cnn": 30, "early_exit": 30, "hf_bert": 30, "step_function": 60}
_NEEDS = {"hf_bert": "transformers"}
# The loop's body or the step function is one graph in these; what decides on data is cut or looked at ahead.
_WHOLE = {"char_gpt", "image_cnn", "step_function"}


def _arguments(name: str, folder: Path) -> list[str]:
    if (package := _NEEDS.get(name)) and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    arguments = ["--device", DEVICE.type, "--steps", str(_STEPS[name])]
    return [*arguments, "--checkpoint", str(folder / "checkpoint.pt")] if name == "char_gpt" else arguments


def _environment() -> dict[str, str]:
    return environment(HF_HUB_OFFLINE="1", MAGPY_COMPILE="foreground")


def _plainly(name: str, folder: Path) -> str:
    command = [sys.executable, str(EXAMPLES / name / "train.py"), *_arguments(name, folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=_environment(), cwd=folder, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _under_run(name: str, folder: Path, **options: Any) -> tuple[str, Outcome]:
    output, errors = list[bytes](), list[bytes]()
    request = RunRequest(
        mode="run", script=str(EXAMPLES / name / "train.py"), args=_arguments(name, folder), python=sys.executable,
        cwd=str(folder), env=_environment(), steps=0, timeout=110.0, backend=BACKEND, stdin="null",
        stdout=output.append, stderr=errors.append, **options,
    )  # fmt: skip
    with launch(request) as handle:
        for _ in handle:
            pass
        outcome = handle.outcome
    assert outcome.kind == "ok", outcome.message + b"".join(errors).decode()[-2000:]
    return b"".join(output).decode(), outcome


@pytest.mark.parametrize("name", _STEPS)
def test_a_run_prints_the_losses_of_plain_python(name: str, tmp_path: Path) -> None:
    wanted = losses(_plainly(name, tmp_path))
    output, outcome = _under_run(name, tmp_path)
    assert len(wanted) >= 3
    assert losses(output) == pytest.approx(wanted, rel=0.05, abs=0.01)
    report = outcome.report
    assert not [finding for finding in report.findings if finding.code.startswith("MP9")], report.findings
    assert any(region.hits > 0 for region in report.regions), "compiled code has served no call"
    if name in _WHOLE:
        assert any(region.complete and region.hits > 0 for region in report.regions)


def test_a_run_reports_times_of_a_step(tmp_path: Path) -> None:
    """Steps alternate between compiled and plain; their times and the interval of the speedup are in the report."""
    _, outcome = _under_run("step_function", tmp_path)
    step = outcome.report.step
    assert step is not None and step.count >= _STEPS["step_function"] - 1
    assert step.plain > 0 and step.compiled > 0
    if BACKEND == "inductor":
        assert step.plain_ms is not None and step.compiled_ms is not None
        assert step.plain_ms > 0 and step.compiled_ms > 0

"""The loops that people use, from their packages: the same output as in eager mode, captured as far as they allow."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from magpy_core.runner.request import SESSIONS
from tests.programs.runner_help import Ran, plainly, under_magpy

LOOPS = Path(__file__).with_name("loops")


def run(folder: Path, script: str, *args: str) -> Ran:
    shutil.copy(LOOPS / script, folder)
    ran = under_magpy(folder, script=script, args=args, session_factory=SESSIONS["magpy"], mode="check", steps=0)
    assert ran.outcome.kind == "ok", ran.stderr.decode()
    assert _results(ran.stdout) == _results(plainly(folder, script, *args).stdout)
    return ran


def _results(output: bytes) -> list[bytes]:
    return [line for line in output.splitlines() if b"runtime" not in line]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lion", "schedulefree"])
def test_optimizers_from_packages_are_in_the_steps_graph(tmp_path: Path, name: str) -> None:
    (region,) = run(tmp_path, "optimizer_loop.py", name).outcome.report.regions
    assert region.name == "train_step" and region.complete and region.hits >= 18


@pytest.mark.slow
def test_accelerate(tmp_path: Path) -> None:
    """Its optimizer looks for a package at every step: the model and the optimizer inside are regions."""
    ran = run(tmp_path, "accelerate_loop.py")
    regions = {r.name: r for r in ran.outcome.report.regions}
    assert set(regions) == {"model: Sequential", "optimizer: AcceleratedOptimizer", "AdamW"}
    assert regions["AdamW"].hits >= 18 and regions["model: Sequential"].hits >= 18
    assert "`train_step`" in ran.finding("MP406").message


@pytest.mark.slow
def test_transformers_trainer(tmp_path: Path) -> None:
    regions = run(tmp_path, "trainer_loop.py").outcome.report.regions
    hits = {r.name.split(": ")[-1]: r.hits for r in regions}
    assert hits["BertForSequenceClassification"] >= 20 and hits["AdamW"] >= 18


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["automatic", "manual"])
def test_lightning(tmp_path: Path, kind: str) -> None:
    """Automatic: its optimizer gets a new closure for each step, so that the model is a region in the end."""
    regions = {r.name.split(": ")[-1]: r for r in run(tmp_path, "lightning_loop.py", kind).outcome.report.regions}
    assert regions["Sequential"].hits >= 18 and regions["Sequential"].complete
    if kind == "manual":
        assert regions["Adam"].hits >= 18

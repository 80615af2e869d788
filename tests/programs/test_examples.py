"""The examples as ordinary Python programs: they run offline on the CPU, learn, and print the same losses every time."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = ("char_gpt", "image_cnn", "early_exit", "hf_bert", "step_function")

# Steps after which the last printed loss is clearly below the first one.
LEARNING_STEPS = {"char_gpt": 21, "image_cnn": 40, "early_exit": 60, "hf_bert": 120, "step_function": 300}


def run_example(name: str, *args: str, cwd: Path) -> str:
    """The program's stdout; fails with its stderr when it does."""
    if name == "hf_bert":
        pytest.importorskip("transformers", reason="the [examples] extra is not installed")
    env = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, str(EXAMPLES / name / "train.py"), "--device", "cpu", *args]
    if name == "char_gpt":
        command += ["--checkpoint", str(cwd / "checkpoint.pt")]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=cwd, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout


def losses(output: str) -> list[float]:
    """Training losses in the order printed: the lines ``step N  loss X``."""
    return [float(x) for x in re.findall(r"^step +\d+  loss ([\d.]+)", output, re.MULTILINE)]


def without_times(output: str) -> str:
    return re.sub(r"\d+\.\d+ s$", "T s", output, flags=re.MULTILINE)


@functools.cache
def learning(name: str, folder: Path) -> str:
    return run_example(name, "--steps", str(LEARNING_STEPS[name]), cwd=folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("examples")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n in ("char_gpt", "hf_bert", "image_cnn") else []) for n in NAMES]
)
def test_learns(name: str, folder: Path) -> None:
    output = learning(name, folder)
    printed = losses(output)
    assert len(printed) >= 3, output
    assert printed[-1] < 0.9 * printed[0], output


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.exhaustive] if n in ("hf_bert", "image_cnn") else []) for n in NAMES]
)
def test_same_seed_prints_the_same(name: str, tmp_path: Path) -> None:
    first, second = (without_times(run_example(name, "--steps", "12", cwd=tmp_path)) for _ in range(2))
    assert losses(first)
    assert first == second
    assert without_times(run_example(name, "--steps", "12", "--seed", "99", cwd=tmp_path)) != first


@pytest.mark.slow
def test_char_gpt_saves_a_loadable_checkpoint(tmp_path: Path) -> None:
    run_example("char_gpt", "--steps", "1", cwd=tmp_path)
    load = (
        "import sys, torch; sys.path.insert(0, sys.argv[1]); from model import GPT; "
        "saved = torch.load('checkpoint.pt', weights_only=False); model = GPT(saved['config']); "
        "model.load_state_dict(saved['model']); print(sum(p.numel() for p in model.parameters()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", load, str(EXAMPLES / "char_gpt")], capture_output=True, text=True, cwd=tmp_path, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert 1_000_000 <= int(done.stdout) <= 3_000_000


def test_char_gpt_corpus_is_what_its_generator_writes() -> None:
    generate = "import make_corpus; print(make_corpus.corpus() == make_corpus.CORPUS.read_text(encoding='utf-8'))"
    done = subprocess.run(
        [sys.executable, "-c", generate], capture_output=True, text=True, cwd=EXAMPLES / "char_gpt", timeout=60
    )
    assert done.stdout == "True\n", done.stderr


def test_early_exit_takes_every_exit_before_the_first_step(folder: Path) -> None:
    output = learning("early_exit", folder)
    taken = re.search(r"step +0 .*exits taken \[(\d+), (\d+), (\d+)\]", output)
    assert taken is not None, output
    assert all(int(count) > 0 for count in taken.groups())


@pytest.mark.slow
def test_image_cnn_prints_the_same_epoch_shape_without_workers(tmp_path: Path) -> None:
    output = run_example("image_cnn", "--steps", "10", "--workers", "0", cwd=tmp_path)
    assert len(losses(output)) == 1
    assert "epoch  1  mean loss" in output


@pytest.mark.parametrize("name", NAMES)
def test_has_no_magpy_in_it(name: str) -> None:
    """An example is a script as its user wrote it: the tool needs nothing in it."""
    for path in (EXAMPLES / name).glob("*.py"):
        assert "magpy" not in path.read_text(encoding="utf-8"), path

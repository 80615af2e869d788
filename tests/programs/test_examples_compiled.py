"""The examples through the command line: what `check` finds and where, and `run` training as eager mode trains.

The engine's graphs run on the `eager` backend here, bit for bit what Python computes, so whole outputs can be compared; what
Inductor makes of the char_gpt is compared within a tolerance (slow).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.programs.test_examples import EXAMPLES, losses, run_example, without_times

pytestmark = pytest.mark.slow  # whole trainings, compiled

# Two epochs of image_cnn begin within its steps: the last, smaller validation batch comes by as well.
STEPS = {"char_gpt": 12, "image_cnn": 22, "early_exit": 12, "hf_bert": 10}
OPTIMIZERS = {"char_gpt": "AdamW", "image_cnn": "SGD", "early_exit": "Adam", "hf_bert": "AdamW"}
STEP = "training loop of main"  # its body: one graph, from the forward pass to the optimizer's step
MODELS = {
    "char_gpt": "GPT",
    "image_cnn": "ShapeNet",
    "early_exit": "EarlyExitNet",
    "hf_bert": "BertForSequenceClassification",
}

# The lines where a graph has to be cut, by a text that only they have, and why; the other examples' graphs are whole.
BREAKS = {"early_exit": {"if confidence.item() > self.threshold": "MP101"}, "hf_bert": {"output = model(": "MP101"}}
CUT = {"early_exit"}  # hf_bert asks its attention mask, an input: that is looked at ahead of the graph
# Lines that change the world and what `check` calls it.
EFFECTS = {
    "char_gpt": {"self.tokens_seen += tokens.numel()": "MP301"},
    "early_exit": {"self.exits_taken[i] += 1": "MP302"},
    "image_cnn": {"optimizer.step()": "MP306"},
    "hf_bert": {"optimizer.step()": "MP306"},
}

#: The two of the four that take longest are for the slow tests.
SOME_SLOW = [pytest.param(n, marks=[pytest.mark.slow] if n in ("hf_bert", "image_cnn") else []) for n in MODELS]


def magpy(command: str, name: str, cwd: Path, *options: str, program: tuple[str, ...] = ()) -> tuple[str, Any]:
    """The program's stdout and the JSON report of one `magpy-lsp check` or `run`; exit statuses 0 and 1 are fine."""
    if name == "hf_bert":
        pytest.importorskip("transformers", reason="the [examples] extra is not installed")
    report = cwd / "report.json"
    arguments = ["--device", "cpu", *program]
    if name == "char_gpt":
        arguments += ["--checkpoint", str(cwd / "checkpoint.pt")]
    line = [sys.executable, "-m", "lsp_server.cli", command, "--format", "json", "--output", str(report), *options]
    done = subprocess.run(
        [*line, str(EXAMPLES / name / "train.py"), "--", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        cwd=cwd,
        timeout=280,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout, json.loads(report.read_text(encoding="utf-8"))


def lines_of(path: Path, text: str) -> set[int]:
    """0-based numbers of the lines of a file that hold ``text``."""
    found = {i for i, line in enumerate(path.read_text(encoding="utf-8").splitlines()) if text in line}
    assert found, f"{path} has no line with {text!r}"
    return found


def codes_at(report: Any, folder: Path, text: str) -> set[str]:
    """Codes of the findings that begin on a line with ``text`` in the example's model.py or train.py."""
    places = set()
    for path in (folder / "model.py", folder / "train.py"):
        if path.exists() and text in path.read_text(encoding="utf-8"):
            places |= {(str(path), line) for line in lines_of(path, text)}
    assert places, f"no line with {text!r} in {folder}"
    return {f["code"] for f in report["findings"] if (f["file"], f["range"]["start"]["line"]) in places}


def regions(report: Any) -> dict[str, Any]:
    return {region["name"]: region for region in report["regions"]}


@pytest.mark.parametrize("name", SOME_SLOW)
def test_check(name: str, tmp_path: Path) -> None:
    _, report = magpy("check", name, tmp_path)
    by_name = regions(report)
    step = next((r for r in by_name.values() if r["kind"] == "step"), None)
    if step is not None:  # in place of its parts, as in a run
        assert step["complete"] and step["side_effects"], step
    else:
        model, optimizer = by_name[f"model: {MODELS[name]}"], by_name[f"optimizer: {OPTIMIZERS[name]}"]
        assert optimizer["complete"] and optimizer["side_effects"], optimizer
        assert model["complete"] == (name not in CUT), model
        assert bool(model["graph_breaks"]) == (name in CUT), model

    severe = [f for f in report["findings"] if f["code"].startswith(("MP1", "MP9"))]
    folder = EXAMPLES / name
    allowed = set(BREAKS.get(name, {}).values())
    assert {f["code"] for f in severe} <= allowed, severe
    for text, code in {**BREAKS.get(name, {}), **EFFECTS[name]}.items():
        assert code in codes_at(report, folder, text), (text, report["findings"])


@pytest.mark.parametrize("name", SOME_SLOW)
def test_run_trains_as_plain_python_and_settles(name: str, tmp_path: Path) -> None:
    program = ("--steps", str(STEPS[name]))
    plain = without_times(run_example(name, *program, cwd=tmp_path))
    output, report = magpy("run", name, tmp_path, "--backend", "eager", program=program)
    assert losses(plain)
    assert without_times(output).startswith(plain), output  # the table follows
    by_name = regions(report)
    late = {r["name"]: r["recompiles"] for r in by_name.values() if r["captures_after_step_3"]}
    assert not late
    assert by_name[STEP]["captures"] and by_name[STEP]["hits"] >= STEPS[name] // 2 - 1, by_name[STEP]


@pytest.mark.slow
def test_run_char_gpt_with_inductor_has_the_same_losses(tmp_path: Path) -> None:
    program = ("--steps", "8", "--log-every", "1")
    plain = losses(run_example("char_gpt", *program, cwd=tmp_path))
    output, report = magpy("run", "char_gpt", tmp_path, program=program)
    assert len(plain) == 8
    assert losses(output) == pytest.approx(plain, abs=2e-3)
    by_name = regions(report)
    assert not [f for f in report["findings"] if f["code"].startswith("MP9")], "Inductor must not have fallen back"
    for region in by_name.values():
        assert region["complete"] and region["captures"] and region["hits"], region


def test_the_step_function_is_one_graph(tmp_path: Path) -> None:
    program = ("--steps", "30")
    plain = run_example("step_function", *program, cwd=tmp_path)
    output, report = magpy("run", "step_function", tmp_path, "--backend", "eager", program=program)
    assert losses(plain) and output.startswith(plain)
    found = regions(report)
    step = found["Training.train_step"]
    assert step["complete"] and step["calls"] == 29 and step["hits"] >= 15 and step["captures"] <= 3
    assert set(found) == {"Training.train_step", "training.average: Picture"}

"""Whole scripts, as their users have them, do what they do in eager mode: output, exit statuses and files.

``real/`` has them: in the shape of well-known ones, written anew. What `check` says about each is judged here: what is
shown is what a user would change code for.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.programs.real_scripts import (
    FOLDER,
    SCRIPTS,
    SOURCES,
    Left,
    as_before,
    differences,
    magpy_line,
    magpy_run,
    plain_run,
    prepare,
    shown,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Expected:
    """``served``: regions, and how many of their calls a capture serves at least, in all lines of the script together: those
    that comparing with eager mode can't take from it, however long it takes.

    ``findings``: what is shown by default, as code and line, and why a user would act on it.
    """

    served: dict[str, int]
    findings: dict[tuple[str, str], str] = field(default_factory=dict)


_READS_A_FILE = {
    (
        "MP406",
        'data = np.memmap(os.path.join(data_dir, f"{split}.bin"), dtype=np.uint16, mode="r")',
    ): "yes: a batch that is read before the step leaves a step that is one graph"
}

#: Of a check of more steps than a line has: true, and `--steps` says how many.
TOO_FEW = "yes: the check is of fewer steps than were asked for"

EXPECTED = {
    "nanogpt": Expected({"model: GPT": 50, "optimizer: AdamW": 19, "self: GPT": 80}, _READS_A_FILE),
    "nanogpt_bfloat16": Expected({"model: GPT": 20, "optimizer: AdamW": 7}, _READS_A_FILE),
    "adder": Expected({"training loop of Trainer.run": 18}),
    "word_language_model": Expected({"training loop of train": 30, "model: RNNModel": 40}),
    "word_transformer": Expected({"training loop of train": 30, "model: TransformerModel": 20}),
    "vae": Expected({"training loop of train": 18, "model: VAE": 6}),
    "dcgan": Expected({"training loop": 7}, {("MP909", "import argparse"): TOO_FEW}),
    "time_sequence": Expected(
        {"seq: Sequence": 0},
        {("MP201", "optimizer.step(closure)"): "yes: a closure that is defined once needs one capture"},
    ),
    "mnist": Expected({"training loop of train": 24, "model: Net": 5}),
    "imagenet": Expected({"training loop of train": 7, "model: ResNet": 8}),
    "forward_forward": Expected({"training loop of Layer.train": 70, "layer: Layer": 12}),
    "graph_network": Expected({"train_iter": 25}),
    "hogwild": Expected({"model: Net": 0}, {("MP909", "import argparse"): TOO_FEW}),
    "reinforce": Expected({"policy: Policy": 700, "model: Policy": 130}),
    "hf_trainer": Expected({"BertForSequenceClassification": 80, "AdamW": 18}),
    "lightning_module": Expected({"self: Classifier": 24}),
    "accelerate_loop": Expected({"model: Encoder": 45, "AdamW": 20}),
}


def parameters(names: list[str]) -> list[object]:
    """The names of scripts; those whose packages are not there are skipped."""
    missing = {name: ", ".join(SCRIPTS[name].missing) for name in names}
    return [
        pytest.param(name, marks=pytest.mark.skipif(bool(missing[name]), reason=f"not installed: {missing[name]}"))
        for name in names
    ]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("real")


@functools.cache
def plain(name: str, base: Path) -> tuple[Left, Path]:
    """What eager mode leaves, and the folder that it ran in."""
    folder = base / name
    prepare(SCRIPTS[name], folder)
    left = plain_run(SCRIPTS[name], folder, base / "before" / name)
    assert set(left.statuses) == {0}, left.errors
    return left, folder


def test_each_script_has_its_expectations() -> None:
    assert set(EXPECTED) == set(SCRIPTS)
    assert {SOURCES.get(name, name) for name in SCRIPTS} == {path.name for path in FOLDER.iterdir()}


@pytest.mark.parametrize("name", parameters(list(SCRIPTS)))
def test_a_run_leaves_what_plain_python_leaves(name: str, base: Path) -> None:
    expected, folder = plain(name, base)
    as_before(folder, base / "before" / name, 0)
    left = magpy_run(SCRIPTS[name], folder)
    assert list(differences(expected, left)) == []
    assert not [f for ran in left.runs for f in ran.outcome.report.findings if f.code.startswith("MP9")]
    served: Counter[str] = Counter()
    for ran in left.runs:
        served.update({region.name: region.hits for region in ran.outcome.report.regions})
    assert {region: hits for region, hits in EXPECTED[name].served.items() if served[region] < hits} == {}, served


@pytest.mark.parametrize("name", parameters(list(SCRIPTS)))
def test_a_check_shows_what_a_user_would_change(name: str, base: Path) -> None:
    folder = plain(name, base)[1]
    found = set()
    for number, line in enumerate(SCRIPTS[name].lines):
        as_before(folder, base / "before" / name, number)
        ran = magpy_line(line, folder, mode="check", steps=3)
        assert ran.outcome.kind == "ok", (line, ran.outcome.message, ran.stderr.decode())
        found |= {(code, text) for code, text, _ in shown(ran.outcome.report.findings, folder)}
    assert found == set(EXPECTED[name].findings)


@pytest.mark.parametrize("name", ["mnist", "vae"])
def test_inductor_has_the_same_losses(name: str, base: Path) -> None:
    expected, folder = plain(name, base)
    as_before(folder, base / "before" / name, 0)
    left = magpy_run(SCRIPTS[name], folder, backend="inductor")
    assert left.statuses == expected.statuses and left.files.keys() == expected.files.keys()
    assert losses(left.output) == pytest.approx(losses(expected.output), rel=1e-3)
    assert losses(expected.output), expected.output
    (ran,) = left.runs
    (step,) = [region for region in ran.outcome.report.regions if region.kind == "step"]
    assert step.complete and step.hits and not [f for f in ran.outcome.report.findings if f.code.startswith("MP9")]


def losses(output: str) -> list[float]:
    return [float(number) for number in re.findall(r"[Ll]oss: ([\d.]+)", output)]

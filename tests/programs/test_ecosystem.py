"""Training loops of libraries, in ``ecosystem/``: what they print is what eager mode prints, what is compiled in each, and
what is not says why. docs/reference/ecosystem.md has a row for each.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from magpy_core.findings import Report
from magpy_core.runner.request import SESSIONS
from tests.programs.runner_help import PYTHON, environment, under_magpy

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FOLDER = Path(__file__).with_name("ecosystem")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "ecosystem.md"
_OFFLINE = {"HF_HUB_OFFLINE": "1", "WANDB_DISABLED": "true"}


@dataclass(frozen=True)
class Loop:
    """``compiled``: regions that serve at least half of their calls. ``others``: those of which only a part is compiled, or
    nothing, with the reason; of a library that cuts its functions into many parts, only what the program calls itself."""

    needs: tuple[str, ...]
    compiled: frozenset[str]
    others: dict[str, str]


LOOPS = {
    "hf_trainer": Loop(
        ("transformers", "accelerate"),
        frozenset(("model: BertForSequenceClassification", "AdamW")),
        {"AcceleratedOptimizer": "inside"},
    ),
    "accelerate_adamw": Loop(
        ("accelerate",), frozenset(("model: Sequential", "AdamW")), {"optimizer: AcceleratedOptimizer": "inside"}
    ),
    "lightning_adamw": Loop(("lightning",), frozenset(("self: Classifier", "AdamW (update)")), {"AdamW": "inside"}),
    "timm_train": Loop(("timm",), frozenset(("training loop of train_one_epoch", "model: VisionTransformer")), {}),
    "kornia_augment": Loop(
        ("kornia",), frozenset(("training loop of main",)), {"augment: Sequential": "cut", "normalize: Normalize": "cut"}
    ),
    "torchmetrics_loop": Loop(("torchmetrics",), frozenset(("training loop of train",)), {}),
    "pyg_graphs": Loop(
        ("torch_geometric",),
        frozenset(("optimizer: Adam",)),
        {"training loop of train": "cut", "model: GCN": "refused"},
    ),
    "sb3_ppo": Loop(
        ("stable_baselines3",),
        frozenset(("policy: ActorCriticPolicy", "mlp_extractor: MlpExtractor", "policy.optimizer: Adam")),
        {"the training step": "parted"},
    ),
}


def missing(loop: Loop) -> str:
    return ", ".join(name for name in loop.needs if find_spec(name) is None)


LOOP_PARAMS = [
    pytest.param(name, marks=pytest.mark.skipif(bool(missing(loop)), reason=f"not installed: {missing(loop)}"))
    for name, loop in LOOPS.items()
]


def test_each_program_has_its_row_in_the_page() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(LOOPS)
    page = PAGE.read_text("utf-8")
    assert [name for name in LOOPS if f"tests/programs/ecosystem/{name}.py" not in page] == []


@pytest.mark.parametrize("name", LOOP_PARAMS)
def test_model_and_optimizer_are_compiled_and_the_rest_says_why(name: str, tmp_path: Path) -> None:
    script = shutil.copy(FOLDER / f"{name}.py", tmp_path)
    plain = subprocess.run(
        [PYTHON, script], cwd=tmp_path, env=environment(**_OFFLINE), capture_output=True, timeout=280, check=False
    )
    assert plain.returncode == 0, plain.stderr.decode()
    ran = under_magpy(
        tmp_path, script=f"{name}.py", mode="run", steps=0, backend="eager", compile="foreground",
        session_factory=SESSIONS["magpy"], env=environment(**_OFFLINE), timeout=280.0,
    )  # fmt: skip
    assert ran.outcome.kind == "ok", ran.outcome.message
    assert _results(ran.stdout) == _results(plain.stdout)
    _judge(LOOPS[name], ran.outcome.report)


def _results(output: bytes) -> list[str]:
    """What a program prints of its own, not what a library says of its speed."""
    return [line for line in output.decode().splitlines() if line.startswith(("epoch", "loss", "step", "value"))]


def _judge(loop: Loop, report: Report) -> None:
    assert not [finding for finding in report.findings if finding.code in ("MP901", "MP914")]
    served = {region.name for region in report.regions if 2 * region.hits >= region.calls}
    assert loop.compiled <= served, served
    reasons = {one.name: one.reason for one in report.why_not}
    assert {name: reasons.get(name) for name in loop.others} == loop.others
    for one in report.why_not:  # nothing runs in eager mode without a reason, and advice
        assert one.why and (not one.reason or one.rewrite), one
        assert one.reason != "refused" or one.cause, one
    regions = {region.id for region in report.regions}
    assert regions <= {one.region for one in report.why_not}

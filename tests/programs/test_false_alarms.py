"""Right programs have no MP914: Inductor's code of whole scripts is compared with eager mode, in two precisions.

Nothing is known that Inductor gets wrong there: a finding would be a false alarm, or news. `tests/soundness/RESULTS.md`
has how many graphs were compared. ``python -m tests.programs.test_false_alarms NAME PRECISION`` prints what
one script shows.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.programs.real_scripts import SCRIPTS, magpy_line, prepare
from tests.programs.runner_help import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive, pytest.mark.timeout(1800)]

PRECISIONS = ("float32", "bfloat16")
SCRIPT_NAMES = (
    "nanogpt", "adder", "word_language_model", "word_transformer", "vae", "dcgan", "mnist", "imagenet", "forward_forward",
    "graph_network",
)  # fmt: skip
EXAMPLES = {
    "char_gpt": "train.py --steps 12 --device cpu",
    "early_exit": "train.py --steps 12 --device cpu",
    "image_cnn": "train.py --steps 12 --device cpu",
    "hf_bert": "train.py --steps 10 --device cpu",
    "step_function": "train.py",
}
#: Findings that are no false alarms, by what they say: the code is wrong indeed, and not used.
RIGHT = {("word_language_model", "bfloat16"): ("is a float32 tensor", "not a bfloat16 tensor")}  # the state of an LSTM
_COMPILING_S = 1500.0
#: Runs another script, whose forward passes compute in bfloat16 where autocast does.
_AUTOCAST = """
import runpy, sys, torch
sys.argv = sys.argv[1:]
with torch.autocast("cpu", dtype=torch.bfloat16):
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


def shown(name: str, precision: str, base: Path) -> dict[str, Any]:
    """How the first line of a script's session ends, compiled: the graphs that were ``verified``, why others were not, and
    what was ``found``."""
    folder = base / name
    if name in EXAMPLES:
        shutil.copytree(ROOT / "examples" / name, folder, ignore=shutil.ignore_patterns("__pycache__"))
        line = EXAMPLES[name]
    else:
        prepare(SCRIPTS[name], folder)
        line = SCRIPTS[name].lines[0]
    if precision == "bfloat16":
        (folder / "autocast.py").write_text(_AUTOCAST)
        line = f"autocast.py {line}"
    ran = magpy_line(line, folder, mode="run", steps=0, backend="inductor", timeout=_COMPILING_S)
    report = ran.outcome.report
    return {
        "kind": ran.outcome.kind,
        "message": ran.outcome.message or ran.stderr.decode()[-400:] * (ran.outcome.kind != "ok"),
        "verified": sum(region.verified for region in report.regions),
        "hits": sum(region.hits for region in report.regions),
        "unverified": [why for region in report.regions for why in region.unverified],
        "found": [finding.message for finding in report.findings if finding.code == "MP914"],
    }


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", [*SCRIPT_NAMES, *EXAMPLES])
def test_a_right_script_has_no_finding(name: str, precision: str, tmp_path: Path) -> None:
    if name == "hf_bert":
        pytest.importorskip("transformers", reason="the [examples] extra is not installed")
    found = shown(name, precision, tmp_path)
    right = RIGHT.get((name, precision))
    alarms = [text for text in found["found"] if right is None or not all(part in text for part in right)]
    assert found["kind"] == "ok" and alarms == [], found
    assert found["verified"] and found["hits"], found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        print(*shlex.split(" ".join(sys.argv[1:])), shown(sys.argv[1], sys.argv[2], Path(temporary)))

"""The example of each finding's page yields its finding on the marked lines; the version without it does not.

Here are those that need no process of their own: what a check finds, what compiled calls show by the times that are
planted here (``measured``), budgets, settings and comments. `test_page_examples_of_runs.py` has the others.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lsp_server.budgets import Budgets, check_budgets, unknown_regions
from lsp_server.config import ConfigError, load
from lsp_server.selection import Selection, apply
from lsp_server.sources import Sources
from magpy_core.findings.registry import REGISTRY
from tests.programs.page_help import CALLS, Frame, Run, blocks, limits, marked, others, ran
from tests.programs.runner_help import ROOT
from tests.programs.test_page_examples_of_runs import CODES

_TRAIN = """
train_step = __region__(train_step)
model = Model()
Model.forward = lambda self, x: self.layer(x)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [(torch.randn(3, 4), torch.randn(3, 4)) for n in range(8)]
for n in range(4):
    train_step(model, {batch}, optimizer)
"""
_WITH_MODEL = "model = Model()\nModel.forward = lambda self, x: self.layer(x)\n"
_COMPILED = "# mode: compiled\n"
_MANY_CALLS = CALLS.replace("range(4)", "range(30)")
_LIST = "self.weights = [i / 4000 for i in range(4000)]"
_BUFFER = "self.register_buffer('weights', torch.randn(4000))"

FRAMES = {
    "MP101": Frame(),
    "MP102": Frame(),
    "MP103": Frame("self.seconds = 0.0"),
    "MP104": Frame(  # a function of C that no table knows
        "self.embedding = nn.Embedding(300, 4)",
        before="import codecs\nimport sys\nimport types\n\n"
        "sys.modules['fast_tokenizer'] = types.SimpleNamespace(encode=codecs.utf_16_encode)\n",
        args="'a text'",
        fixed_driver=CALLS.replace("{args}", "collate(['a text'])") + "del sys.modules['fast_tokenizer']\n",
    ),
    "MP105": Frame("self.weights = np.array([1.0, 0.5])", before="import numpy as np\n"),
    "MP106": Frame("self.codebook = nn.Parameter(torch.randn(4, 4))"),
    "MP107": Frame(driver=CALLS.replace("model({args})", "model({args}).sum().backward()")),
    "MP108": Frame(
        driver=_TRAIN.replace("{batch}", "batches").replace(
            " for n in range(8)]", " for n in range(8)]\nbatches = (one for one in batches)"
        ),
        fixed_driver=_TRAIN.replace("{batch}", "batches[n]"),
        also=("MP111",),
    ),
    "MP109": Frame(args="torch.randn(3, 5, 4), MASK", before="MASK = torch.rand(3, 5) > 0.5"),
    "MP110": Frame(),
    "MP111": Frame(before="class Settings:\n    scale = 2.0\n"),
    "MP112": Frame(
        before="class Block(nn.Module):\n    def forward(self, x):\n        return x * 2\n",
        driver="model = Model()\nfor n in range(4):\n    model(torch.randn(3, 4))\n",
    ),
    "MP113": Frame(),
    "MP114": Frame(
        "self.config = Config()",
        before="class Config:\n    name = 'small'\n\n    def __repr__(self):\n        return 'Config'\n",
    ),
    "MP115": Frame(
        "self.lock = threading.Lock(); self.calls = 0",
        fixed_driver="Model.forward = lambda self, x: self.layer(x)\nmodel = Model()\nfor n in range(4):\n"
        "    serve(model, torch.randn(3, 4))\n",
    ),
    "MP116": Frame(),
    "MP117": Frame(),
    "MP118": Frame(),
    "MP119": Frame(
        before="import torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel\n\n"
        "dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)\n"
        "x, model = torch.randn(3, 4), DistributedDataParallel(nn.Linear(4, 4))\n",
        driver="step = __region__(step)\nfor n in range(4):\n    step(model, x).backward()\ndist.destroy_process_group()\n",
        fixed_driver="step = __region__(step)\nfor n in range(4):\n    step(model, x)\ndist.destroy_process_group()\n",
    ),
    "MP120": Frame(before="import magpy_core\n"),
    "MP201": Frame(
        "self.mode, self.step, self.warming_up = 'warmup-1', 0, True",
        driver="Model.forward = forward\nmodel = Model()\nfor n in range(4):\n"
        "    model.step, model.warming_up = n, n < 2\n    model(torch.randn(3, 4))\n",
    ),
    "MP202": Frame(args="torch.randn(3, 4), 1.0 + n"),
    "MP203": Frame(
        before=f"import magpy_core\n\n{_WITH_MODEL}batches = [torch.randn(3, 4) for n in range(14)]\n",
        driver="",
        also=("MP201",),
    ),
    "MP204": Frame("self.p = 0.5"),
    "MP205": Frame(
        before="from torch.utils.data import DataLoader, TensorDataset\n\nmodel = nn.Linear(4, 4)\n"
        "dataset = TensorDataset(torch.randn(1000, 4), torch.randint(4, (1000,)))\n",
        driver="",
    ),
    "MP301": Frame(args="torch.randn(4, 4)"),
    "MP302": Frame(),
    "MP303": Frame(
        driver=f"train_step = __region__(train_step)\n{_WITH_MODEL}for n in range(4):\n"
        "    train_step(model, torch.randn(3, 4))\n"
    ),
    "MP304": Frame(
        driver=f"{_WITH_MODEL}step = __region__(make_step(model))\nfor n in range(4):\n    step(torch.randn(3, 4))\n"
    ),
    "MP305": Frame("self.batch_size = 4"),
    "MP306": Frame("self.register_buffer('running_mean', torch.zeros(4))"),
    "MP307": Frame(
        "self.max_length = 2",
        driver=CALLS.replace("    model({args})", "    try:\n        model({args})\n    except ValueError:\n        pass"),
    ),
    "MP308": Frame(),
    "MP401": Frame(
        before="import magpy_core\n\nmlp = layer_norm = torch.tanh\n",
        driver="for n in range(30):\n    scale(torch.randn(4))\n",
        fixed_driver="for n in range(30):\n    block(torch.randn(4))\n",
        settings=f"{_COMPILED}# measured: eager_s=0.001 compiled_s=0.002 compile_s=0.1\n",
        fixed_settings=f"{_COMPILED}# measured: eager_s=0.002 compiled_s=0.001 compile_s=0.1\n",
    ),
    # the call is slower, too, in which the guards are all that there is to do
    "MP402": Frame(_LIST, driver=_MANY_CALLS, fixed_init=_BUFFER, settings=_COMPILED, also=("MP401",)),
    "MP403": Frame(
        before="batches = [torch.randn(3, 4) for n in range(30)]\n",
        driver="",
        settings=f"{_COMPILED}# measured: eager_s=0.010 compiled_s=0.004 compile_s=30\n",
    ),
    "MP501": Frame(
        driver="Net.layer = nn.Linear(4, 4)\nmodel = Net()\nfor n in range(4):\n    model(torch.randn(3, 4))\n",
        also=("MP103",),
    ),
    "MP502": Frame(
        "self.names, self.current = [str(n) for n in range(8)], '0'; self.scale = torch.tensor(2.0)",
        driver="Model.forward = step\nmodel = Model()\nfor n in range(8):\n"
        "    model.current = str(n)\n    model(torch.randn(3, 4))\n",
        settings="# steps: counted\n",
        also=("MP201",),
    ),
    "MP503": Frame(_LIST, fixed_init=_BUFFER),
    "MP504": Frame(),
    "MP505": Frame("self.history = []", settings="# steps: counted\n"),
    "MP506": Frame(
        before="import magpy_core\n\nproj = mlp = norm = torch.tanh\n",
        driver="for n in range(30):\n    gate(torch.randn(3, 4))\n",
        fixed_driver="for n in range(30):\n    block(torch.randn(3, 4))\n",
        settings=f"{_COMPILED}# measured: eager_s=0.010 compiled_s=0.010 compile_s=0\n",
        fixed_settings=f"{_COMPILED}# measured: eager_s=0.010 compiled_s=0.004 compile_s=0\n",
    ),
    "MP901": Frame(  # a defect of the recorder
        before="from magpy_core.recording.access.globals import Globals\n\nread = Globals.global_read\n\n\n"
        "def fails(*args):\n    raise RuntimeError('a defect')\n\n\nGlobals.global_read = fails\n",
        driver=f"{CALLS}Globals.global_read = read\n",
        also=("MP111",),
    ),
    "MP902": Frame(  # an operator without a fake implementation
        "self.weight = torch.randn(4)",
        before="@torch.library.custom_op('my_library::fused_gate', mutates_args=())\n"
        "def fused_gate(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:\n    return x * weight\n",
        settings=f"{_COMPILED}# backend: aot_eager\n",
    ),
    "MP911": Frame(also=("MP101",)),
    "MP912": Frame(),
    "MP913": Frame(
        before="critic = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))\n"
        "x = torch.randn(3, 4, requires_grad=True)\n",
        driver="",
        settings=f"{_COMPILED}# backend: aot_eager\n",
    ),
    "MP915": Frame(),
    "MP916": Frame(args="torch.randn(4, 4)"),
}
SETTINGS = ("MP507", "MP910")
"""Whose examples are settings."""

NOT_RUN = {
    "MP411": "needs a CUDA device: nothing else records CUDA graphs",
}
"""Whose examples no machine without a device can run; `test_findings_corpus` names the tests of these findings."""
_NO_OTHER = sorted(code for code in FRAMES if len(blocks(code)) > 1 and code not in ("MP103", "MP107"))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    return ran(FRAMES, tmp_path_factory, "programs")


def with_budgets(code: str, run: Run, tmp_path: Path) -> Run:
    """With what the command line adds to a report: exceeded budgets, comments that suppress nothing."""
    if code.startswith("MP5"):
        report = replace(run.report, findings=run.findings)
        more = check_budgets(report, Budgets(limits(code)), compiled=code == "MP506")
        return replace(run, findings=[*run.findings, *more])
    if code == "MP912":
        (tmp_path / "program.py").write_text(run.text, encoding="utf-8")
        file = str(tmp_path / "program.py")
        return replace(run, findings=apply(run.findings, Selection(), Sources(), files=[file]).findings)
    return run


@pytest.mark.parametrize("code", FRAMES)
def test_the_example_yields_the_finding_on_the_marked_lines(code: str, found: dict[str, Run], tmp_path: Path) -> None:
    run = with_budgets(code, found[code], tmp_path)
    lines = marked(code, run.text)
    assert lines, "no line of the example is marked"
    assert code == "MP107" or not run.error, run.error
    assert run.lines(code) >= lines, ([(f.code, f.location, f.message) for f in run.findings], run.error)
    assert others(run.findings, code, *FRAMES[code].also) == []


@pytest.mark.parametrize("code", _NO_OTHER)
def test_the_other_version_does_not(code: str, found: dict[str, Run], tmp_path: Path) -> None:
    run = with_budgets(code, found[f"{code}, fixed"], tmp_path)
    assert not run.error, run.error
    # MP201 of a value that has changed once is no warning
    assert [f.message for f in run.findings if f.code == code and f.severity.rank <= REGISTRY[code].severity.rank] == []
    assert code == "MP402" or others(run.findings) == [], "MP402: what takes so little time may as well be slower"


def test_mistakes_in_the_settings_are_found_on_the_marked_lines(tmp_path: Path) -> None:
    wrong, right = blocks("MP910", "toml")
    with pytest.raises(ConfigError) as caught:
        load(settings(tmp_path, wrong))
    lines = wrong.splitlines()
    assert [problem.line for problem in caught.value.problems] == sorted(marked("MP910", wrong))
    for problem in caught.value.problems:
        said = lines[problem.line - 1].partition("# MP910: ")[2]
        assert said and said.lower() in f"{problem.key}: {problem.message}".lower()
    load(settings(tmp_path, right))


def test_a_budget_of_no_region_is_found_on_its_line(found: dict[str, Run], tmp_path: Path) -> None:
    regions = [replace(region, name="net: Net") for region in found["MP101"].report.regions]
    wrong, right = blocks("MP507", "toml")
    for text, lines in ((wrong, sorted(marked("MP507", wrong))), (right, [])):
        loaded = load(settings(tmp_path, text))
        told = unknown_regions(regions, loaded.settings.budgets, str(loaded.file), loaded.region_lines)
        assert [(f.code, f.location.range.start.line + 1) for f in told] == [("MP507", line) for line in lines]
    assert lines == [] and marked("MP507", wrong)


@pytest.mark.parametrize("code", NOT_RUN)
def test_the_example_for_a_device(code: str) -> None:
    page = (ROOT / "magpy_core" / "findings" / "codes" / f"{code}.md").read_text(encoding="utf-8")
    assert "the example below needs a CUDA device" in " ".join(page.split())
    compile(blocks(code)[0], code, "exec")
    pytest.skip(f"the example of {code} {NOT_RUN[code]}")


def settings(folder: Path, text: str) -> Path:
    file = folder / "pyproject.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_each_page_is_run_or_says_why_not() -> None:
    assert sorted([*FRAMES, *SETTINGS, *CODES, *NOT_RUN]) == sorted(REGISTRY), "each code is in one of the tables"
    assert len(NOT_RUN) <= 1

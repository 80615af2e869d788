"""The example of each page of MP1 and MP3 yields its finding on the marked lines; the second version does not.

An example is put into a program that gives it what it names (``FRAMES``). The programs run in one process, as in a check.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from magpy_core.findings import Finding, Severity
from magpy_core.findings.registry import REGISTRY
from tests.programs.runner_help import ROOT, environment

_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
_HEAD = """\
import threading
import time

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = self.encoder = self.head = self.body = self.net = nn.Linear(4, 4)
        self.score = self.value = nn.Linear(4, 4)
        self.blocks = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        {init}


"""
_RUN = "Model.forward = forward\nmodel = Model()\nfor n in range(4):\n    model({args})\n"
_TRAIN = """
train_step = __region__(train_step)
model = Model()
Model.forward = lambda self, x: self.layer(x)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [(torch.randn(3, 4), torch.randn(3, 4)) for n in range(8)]
for n in range(4):
    train_step(model, {batch}, optimizer)
"""


@dataclass(frozen=True)
class Frame:
    """What surrounds an example: statements of the model's constructor, what the model is called with, what comes before,
    and what runs it; ``fixed_``: of the second version, where that differs;
    ``also``: codes of what follows from the finding."""

    init: str = "pass"
    args: str = "torch.randn(3, 4)"
    before: str = ""
    driver: str = ""
    fixed_driver: str = ""
    fixed_init: str = ""
    also: tuple[str, ...] = ()

    def program(self, example: str, *, fixed: bool) -> str:
        driver = (self.fixed_driver if fixed else self.driver) or _RUN
        head = _HEAD.replace("{init}", (fixed and self.fixed_init) or self.init)
        return f"{head}{self.before}\n\n{example}\n\n{driver.replace('{args}', self.args)}"


FRAMES = {
    "MP101": Frame(),
    "MP102": Frame(),
    "MP103": Frame("self.seconds = 0.0"),
    "MP105": Frame("self.mask = torch.ones(4).numpy()", fixed_init="self.register_buffer('mask', torch.ones(4))"),
    "MP106": Frame("self.codebook = nn.Parameter(torch.randn(4, 4))"),
    "MP107": Frame(driver=_RUN.replace("model({args})", "model({args}).sum().backward()")),
    "MP108": Frame(
        driver=_TRAIN.replace("{batch}", "batches").replace(" for n in range(8)]", " for n in range(8)].__iter__()"),
        fixed_driver=_TRAIN.replace("{batch}", "batches[n]"),
        also=("MP111",),
    ),
    "MP109": Frame(args="torch.randn(3, 5, 4), MASK", before="MASK = torch.rand(3, 5) > 0.5"),
    "MP110": Frame(),
    "MP111": Frame(before="class Settings:\n    scale = 2.0\n"),
    "MP112": Frame(
        before="class Block(nn.Module):\n    def forward(self, x):\n        return x * 2\n",
        driver="model = Model()\nfor n in range(4):\n    model(torch.randn(3, 4))\n",
        fixed_driver="model = Model()\nfor n in range(4):\n    model(torch.randn(3, 4))\n",
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
    "MP301": Frame(args="torch.randn(4, 4)"),
    "MP302": Frame(),
    "MP305": Frame("self.batch_size = 4"),
    "MP306": Frame("self.register_buffer('running_mean', torch.zeros(4))"),
    "MP307": Frame(
        "self.max_length = 2",
        driver=_RUN.replace("    model({args})", "    try:\n        model({args})\n    except ValueError:\n        pass"),
    ),
    "MP308": Frame(),
}
NOT_RUN = {
    "MP104": "needs a compiled extension",
    "MP303": "is about a whole step, as MP301",
    "MP304": "is about a whole step, as MP301",
}
"""Of the families MP1 and MP3."""

_ALL = sorted(code for code in REGISTRY if code.startswith(("MP1", "MP3")))


def blocks(code: str) -> list[str]:
    text = (ROOT / "magpy_core" / "findings" / "codes" / f"{code}.md").read_text(encoding="utf-8")
    return _BLOCK.findall(text[text.index("## Example") :])


def marked(code: str, program: str) -> set[int]:
    return {n for n, line in enumerate(program.splitlines(), start=1) if re.search(rf"# {code}\b", line)}


@functools.cache
def found() -> dict[str, tuple[str, list[Finding], str]]:
    """Of each program, by its name: its text, what was found, and the error that ended it."""
    with tempfile.TemporaryDirectory() as folder:
        texts = {}
        for code, frame in FRAMES.items():
            for number, block in enumerate(blocks(code)[:2]):
                name = f"{code}_{'fixed' if number else 'example'}"
                texts[name] = frame.program(block, fixed=bool(number))
                Path(folder, f"{name}.py").write_text(texts[name], encoding="utf-8")
        work = (
            "import json, sys; from pathlib import Path; from tests.programs.findings_run import run; "
            "from tests.programs.findings_help import corpus; answer = open(sys.argv[2], 'w'); "
            "run(corpus(Path(sys.argv[1])).values(), lambda p, f: print(json.dumps([p.path.stem, f]), file=answer))"
        )
        answer = Path(folder, "answer.jsonl")
        command = [sys.executable, "-W", "ignore", "-c", work, folder, str(answer)]
        done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=280, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        lines = [json.loads(line) for line in answer.read_text(encoding="utf-8").splitlines()]
    return {name: (texts[name], [Finding.from_json(f) for f in one["findings"]], one["error"]) for name, one in lines}


@pytest.mark.parametrize("code", FRAMES)
def test_the_example_yields_the_finding_on_the_marked_lines(code: str) -> None:
    text, findings, error = found()[f"{code}_example"]
    lines = marked(code, text)
    assert lines, "no line of the example is marked"
    assert code == "MP107" or not error, error
    assert {f.location.range.start.line + 1 for f in findings if f.code == code} >= lines, (findings, error)
    others = [
        f.message for f in findings if f.severity.rank <= Severity.WARNING.rank and f.code not in (code, *FRAMES[code].also)
    ]
    assert others == []


@pytest.mark.parametrize("code", [code for code in FRAMES if len(blocks(code)) > 1 and code not in ("MP103", "MP107")])
def test_the_other_version_does_not(code: str) -> None:
    _, findings, error = found()[f"{code}_fixed"]
    assert not error, error
    assert [f for f in findings if f.code == code or f.severity.rank <= Severity.WARNING.rank] == []


def test_each_page_about_the_program_is_run_or_says_why_not() -> None:
    assert {*FRAMES, *NOT_RUN} == set(_ALL) and not FRAMES.keys() & NOT_RUN.keys()

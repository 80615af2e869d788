"""The examples of the findings' pages, and what runs them: a frame gives an example the names that it uses.

The programs of frames run one after the other in one process, as in a check. Key type: Frame; key function: ran.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

from lsp_server.budgets import Limits
from magpy_core.findings import Finding, Report, Severity
from tests.programs.runner_help import ROOT, environment

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
CALLS = "Model.forward = forward\nmodel = Model()\nfor n in range(4):\n    model({args})\n"
"""Calls the example, a ``forward``, four times."""


@dataclass(frozen=True)
class Frame:
    """What surrounds an example: statements of the model's constructor, what the model is called with, what comes before,
    and what runs it; ``fixed_``: of the second version, where that differs; ``settings``: comments that say how it runs
    (findings_help); ``also``: codes of what follows from the finding."""

    init: str = "pass"
    args: str = "torch.randn(3, 4)"
    before: str = ""
    driver: str = CALLS
    fixed_driver: str = ""
    fixed_init: str = ""
    settings: str = ""
    fixed_settings: str = ""
    also: tuple[str, ...] = ()

    def program(self, example: str, *, fixed: bool) -> str:
        driver = (fixed and self.fixed_driver) or self.driver
        head = _HEAD.replace("{init}", (fixed and self.fixed_init) or self.init)
        settings = (fixed and self.fixed_settings) or self.settings
        return f"{settings}{head}{self.before}\n\n{example}\n\n{driver.replace('{args}', self.args)}"


@dataclass
class Run:
    """What a program got; ``error``: the traceback that ended it."""

    text: str
    findings: list[Finding]
    error: str
    report: Report
    """With the regions, and their kernels on a target."""

    def lines(self, code: str) -> set[int]:
        return {finding.location.range.start.line + 1 for finding in self.findings if finding.code == code}


def blocks(code: str, language: str = "python") -> list[str]:
    """The example of a page and, if there is one, the version without the finding."""
    text = (ROOT / "magpy_core" / "findings" / "codes" / f"{code}.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text[text.index("## Example") :], re.DOTALL)


def marked(code: str, program: str) -> set[int]:
    """The lines, from 1, whose comment names the code."""
    return {n for n, line in enumerate(program.splitlines(), start=1) if re.search(rf"# {code}\b", line)}


def limits(code: str) -> Limits:
    """The budget that the mark of a page's example names: ``# MP503 (guards = 100)``."""
    (found,) = re.findall(rf"# {code} \(([a-z-]+) = ([\d.]+)\)", blocks(code)[0])
    return Limits(**{found[0].replace("-", "_"): float(found[1])})


def others(findings: Iterable[Finding], *expected: str) -> list[str]:
    """The warnings and errors of other codes than expected."""
    return [f"{f.code} {f.message}" for f in findings if f.severity.rank <= Severity.WARNING.rank and f.code not in expected]


def ran(frames: Mapping[str, Frame], factory: pytest.TempPathFactory, name: str) -> dict[str, Run]:
    """Each example and each second version, by ``CODE`` and ``CODE, fixed``. They run once for all workers of pytest-xdist;
    ``name`` tells these frames from others."""
    base = factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"pages_{name}"
    with FileLock(f"{shared}.lock"):
        answer = shared / "answer.jsonl"
        if not answer.exists():
            _run(frames, shared, answer)
        lines = [json.loads(line) for line in answer.read_text(encoding="utf-8").splitlines()]
    return {
        name: Run(
            (shared / f"{name}.py").read_text(encoding="utf-8"),
            [Finding.from_json(finding) for finding in one["findings"]],
            one["error"],
            Report.from_json(one["report"]),
        )
        for name, one in lines
    }


def _run(frames: Mapping[str, Frame], folder: Path, answer: Path) -> None:
    folder.mkdir(exist_ok=True)
    for code, frame in frames.items():
        for block, name in zip(blocks(code), (code, f"{code}, fixed"), strict=False):
            (folder / f"{name}.py").write_text(frame.program(block, fixed=name != code), encoding="utf-8")
    work = (
        "import json, sys; from pathlib import Path; from tests.programs.findings_run import run; "
        "from tests.programs.findings_help import corpus; answer = open(sys.argv[2], 'w'); "
        "run(corpus(Path(sys.argv[1])).values(), lambda p, f: print(json.dumps([p.path.stem, f]), file=answer))"
    )
    partial = answer.with_suffix(".partial")
    command = [sys.executable, "-W", "ignore", "-c", work, str(folder), str(partial)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    partial.rename(answer)

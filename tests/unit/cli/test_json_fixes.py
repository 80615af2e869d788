"""`check --format json` has the quick fixes of findings as exact edits: applied, they leave nothing to find."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from magpy_core.findings.finding import Finding, Location, Position, Range, Value
from magpy_core.findings.report import Report, report_schema
from tests.agents.connect import apply
from tests.unit.cli.test_program import Tool, tool

__all__ = ["tool"]

PROGRAM = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.mode = "sum"
        self.seen = []

    def forward(self, x):
        y = self.layer(x)
        if y.sum() > 0:
            y = y * 2
        else:
            y = y * 3
        return y


torch.manual_seed(0)
net = Net()
for _ in range(6):
    net(torch.randn(3, 4))
"""


def identity(tool: Tool) -> None:
    tool.script.write_text("import torch\nx = 1 if a is 1 else 2\n", encoding="utf-8")
    os.utime(tool.script, (1e9, 1e9))
    place = Location(str(tool.script), Range(Position(1, 9), Position(1, 15)))
    tool.findings.append(Finding("MP103", "`a is 1` can't be guarded.", place, values=(Value("a", "1"),)))


def told(tool: Tool, *args: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(tool(*args).stdout)
    jsonschema.validate(data, report_schema(), cls=jsonschema.Draft202012Validator)
    return data


def test_a_finding_has_the_edits_of_its_fix(tool: Tool) -> None:
    identity(tool)
    tool.add("MP102")
    data = told(tool, "check", "--format", "json", "train.py")
    (found,) = (finding for finding in data["findings"] if finding["code"] == "MP103")
    (fix,) = found["fixes"]
    where = {"start": {"line": 1, "character": 11}, "end": {"line": 1, "character": 13}}
    assert fix["edits"] == [{"file": str(tool.script), "range": where, "old_text": "is", "new_text": "=="}]
    assert [finding for finding in data["findings"] if finding["code"] == "MP102" and "fixes" in finding] == []
    assert Report.from_json(data).findings, "a report with fixes can be read again"
    apply(fix)
    assert tool.script.read_text(encoding="utf-8") == "import torch\nx = 1 if a == 1 else 2\n"


def test_a_file_that_changed_while_it_ran_has_none(tool: Tool) -> None:
    identity(tool)
    os.utime(tool.script, (4e9, 4e9))
    (found,) = told(tool, "check", "--format", "json", "train.py")["findings"]
    assert "fixes" not in found


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        (["check", "--format", "json"], True),
        (["check", "--format", "json=report.json"], True),
        (["check", "--steps", "0", "--format", "json"], False),
        (["check"], False),
        (["run", "--format", "json"], False),
    ],
)
def test_what_fixes_are_made_of_is_asked_for(tool: Tool, args: list[str], wanted: bool) -> None:
    tool(*args, "train.py")
    assert [request.details for request in tool.requests] == [wanted]


@pytest.mark.slow
def test_the_edits_of_a_real_check_leave_nothing_to_find(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")

    def check() -> list[dict[str, Any]]:
        command = [sys.executable, "-m", "lsp_server.cli", "check", "--format", "json", "train.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode in (0, 1), done.stderr
        return [finding for finding in json.loads(done.stdout)["findings"] if finding["actionable"]]

    (found,) = check()
    (fix, *_) = found["fixes"]
    assert found["code"] == "MP101"
    apply(fix)
    assert "torch.where(" in (tmp_path / "train.py").read_text(encoding="utf-8") and check() == []

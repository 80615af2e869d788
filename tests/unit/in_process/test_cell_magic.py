"""`%%magpy` in IPython, in a process of its own: the cell runs as usual, and its findings follow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
_CHILD = """
import contextlib, io, json, sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.run_line_magic("colors", "nocolor")
for cell in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.redirect_stderr(output):
        result = shell.run_cell(cell, store_history=True)
    print(json.dumps([result.success, output.getvalue()]))
"""
MODEL = """%%magpy
import torch

class Gate(torch.nn.Module):
    def forward(self, x):
        y = torch.relu(x * 2)
        if y.sum() > 3:
            return y
        return y * 2
"""


def run(folder: Path, *cells: str) -> list[tuple[bool, str]]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder / "ipython")}
    cells = ("%load_ext lsp_server", *cells)
    done = subprocess.run(
        [sys.executable, "-c", _CHILD], input=json.dumps(cells), cwd=folder, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()[-len(cells) :]][1:]


def test_findings_are_at_the_lines_of_their_cell(tmp_path: Path) -> None:
    defined, called, again, other, failed, after = run(
        tmp_path,
        MODEL,
        "%%magpy\nmodel = Gate()\nmodel(torch.ones(3))",
        "%%magpy\nmodel(torch.ones(3))",
        "%%magpy\nresult = torch.nn.Linear(3, 3)(torch.ones(3))",
        "%%magpy\nkept = 1\nGate()(torch.ones(3))\n1 / 0",
        "print(kept, result.shape)",
    )
    assert defined == (True, "MagPy: 0 new findings, 0 new regions.\n")
    assert called[0] and "tensor([2., 2., 2.])" in called[1], "the value of the last line is shown"
    assert "MagPy: 1 new finding, 1 new region." in called[1]
    assert "Cell In[2]:6:12: MP101 [warning]" in called[1] and "    if y.sum() > 3:\n" in called[1]
    assert again[0] and "MagPy: 0 new findings, 0 new regions." in again[1]
    assert other == (True, "MagPy: 0 new findings, 1 new region.\n")
    assert not failed[0] and failed[1].count("ZeroDivisionError: division by zero") == 1
    assert "MagPy: 1 new finding, 1 new region." in failed[1] and "the cell raised ZeroDivisionError" in failed[1]
    assert after == (True, "1 torch.Size([3])\n"), "names are the notebook's"


@pytest.mark.slow
def test_settings_of_the_folder_apply(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.magpy]\nignore = ["MP101"]\n')
    _, called = run(tmp_path, MODEL, "%%magpy\nGate()(torch.ones(3))")
    assert "MagPy: 0 new findings, 1 new region." in called[1]
    (tmp_path / "pyproject.toml").write_text("[tool.magpy]\nsteps = 'x'\n")
    defined, called = run(tmp_path, MODEL, "%%magpy\nGate()(torch.ones(3))")
    assert defined[0] and "tool.magpy.steps" in defined[1] and "MP101" in called[1]

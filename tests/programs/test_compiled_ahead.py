"""``magpy-lsp compile``, then ``run``: compiled code serves from the first steps on, also where it was loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import sys, torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 8))
optimizer = torch.optim.AdamW(net.parameters(), lr=float(sys.argv[1]))
x, y = torch.randn(128, 64), torch.randint(0, 8, (128,))


def main():
    for step in range(60):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")


main()
"""


def tool(folder: Path, cache: str, *args: str, status: int = 0) -> str:
    """Runs a command as a user does, without the settings of the tests."""
    unset = ("MAGPY_COMPILE", "TORCHINDUCTOR_CACHE_DIR", "MAGPY_CACHE_SIZE")
    env = {name: value for name, value in os.environ.items() if name not in unset}
    env |= {"XDG_CACHE_HOME": str(folder / cache), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "lsp_server.cli", *args]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=400)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def steps(folder: Path, cache: str) -> dict[str, Any]:
    """The report of a run to the end on its training step."""
    tool(folder, cache, "run", "--format", "json=report.json", "train.py", "0.001")
    report = json.loads((folder / "report.json").read_text())
    (region,) = report["regions"]
    assert region["kind"] == "step" and region["hits"] > 10, region
    found: dict[str, Any] = report["step"]
    return found


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="compiles in the background")
def test_the_run_starts_compiled(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    shown = tool(tmp_path, "first", "compile", "train.py", "0.001")
    assert "Compiled " in shown and "Next: magpy-lsp run train.py 0.001 " in shown and "loss" not in shown
    assert "Nothing was left to compile" in tool(tmp_path, "first", "compile", "train.py", "0.001")

    tool(tmp_path, "first", "cache", "save", "code.zip")
    assert "Loaded " in tool(tmp_path, "second", "cache", "load", "code.zip")
    for cache in ("first", "second"):
        step = steps(tmp_path, cache)
        first = next(sample["step"] for sample in step["timeline"] if sample["kind"] == "compiled")
        assert first <= 5 and step["compile_s"] == 0.0, (cache, step)
        assert len([sample for sample in step["timeline"][:5] if sample["kind"] == "waited"]) <= 3, step["timeline"][:5]


@pytest.mark.slow
def test_a_program_that_fails_or_computes_nothing(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text(f"{PROGRAM}\nraise ValueError('at its end')\n".replace("range(60)", "range(1)"))
    tool(tmp_path, "first", "compile", "fails.py", "0.001", status=3)
    (tmp_path / "nothing.py").write_text("import torch\nprint('done')\n")
    assert tool(tmp_path, "first", "compile", "nothing.py", status=2) == "done\n"

"""``magpy-lsp kernels`` on a program that trains: what a user sees. Needs the ``triton`` package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from magpy_core.runner.launch import launch
from magpy_core.runner.request import RunRequest

pytestmark = pytest.mark.slow
pytest.importorskip("triton")

PROGRAM = """\
import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(32, 64)
        self.norm = nn.LayerNorm(64)

    def forward(self, x):
        h = self.up(x)
        h = F.gelu(h)
        return self.norm(h)


model = Model()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(10):
    optimizer.zero_grad()
    loss = model(torch.randn(16, 32)).square().mean()
    loss.backward()
    optimizer.step()
    print("step", step)
"""


def tool(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lsp_server.cli", *args]
    env = {**os.environ, "COLUMNS": "100"}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=280, check=False)


def kernels(folder: Path, *args: str, program: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(program, encoding="utf-8")
    return tool(folder, "kernels", *args)


def test_a_training_program_has_forward_backward_and_optimizer_kernels(tmp_path: Path) -> None:
    done = kernels(tmp_path, "--format", "json", "train.py")
    assert done.returncode == 0, done.stderr
    assert "step 0" in done.stderr and "step 9" not in done.stderr
    found: dict[str, list[Any]] = {}
    for kernel in json.loads(done.stdout)["kernels"]:
        found.setdefault(kernel["graph"], []).append(kernel)
    lines = {graph: {at["line"] for kernel in of for at in kernel["lines"]} for graph, of in found.items()}
    assert lines == {"forward": {13, 14, 15}, "backward": {13, 14, 15}, "optimizer": {24}}
    costs = json.loads(done.stdout)["lines"]
    assert {cost["line"] for cost in costs} == {13, 14, 15, 24}
    assert sum(cost["us"] for cost in costs) == pytest.approx(
        sum(k["us"] * k["launches"] for of in found.values() for k in of)
    )
    assert all(".target sm_90a" in k["code"]["ptx"] for of in found.values() for k in of if k["kind"] == "triton")


def test_the_report_comes_first_and_nothing_is_compiled_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    request = RunRequest(script="train.py", cwd=str(tmp_path), target="cuda:sm_90", details=True, stdout="null")
    first, second = ([*run, run.outcome.report.kernels] for run in (launch(request), launch(request)))

    def order(messages: list[Any]) -> list[Any]:
        late = [m for m in messages[:-1] if m["type"] in ("captured", "lowering", "done")]
        return [(m["type"], *([m["done"], m["of"]] if m["type"] == "lowering" else [])) for m in late]

    assert order(first) == [("captured",), ("lowering", 0, 1), ("lowering", 1, 1), ("done",)]
    assert order(second) == [("captured",), ("lowering", 1, 1), ("done",)]
    (captured,) = (m["report"] for m in first[:-1] if m["type"] == "captured")
    assert "kernels" not in captured and len(captured["regions"]) == 1 and captured["details"]["regions"][0]["captures"]
    assert first[-1] == second[-1] and first[-1].kernels


def test_a_line_shows_its_triton(tmp_path: Path) -> None:
    done = kernels(tmp_path, "--target", "cuda:sm_100", "train.py:14")
    assert done.returncode == 0, done.stderr
    assert "train.py on B200 (cuda:sm_100)" in done.stdout and "@triton.jit" in done.stdout
    assert "train.py:14  h = F.gelu(h)" in done.stdout and max(map(len, done.stdout.splitlines()[:12])) <= 100


def test_what_a_change_does_to_the_kernels_is_shown(tmp_path: Path) -> None:
    """Two revisions: all lines have moved, and one was edited."""
    edited = "# moved\n\n" + PROGRAM.replace("return self.norm(h)", "return self.norm(h.cumsum(0))")
    for name, text in (("old", PROGRAM), ("new", edited)):
        done = kernels(tmp_path, "--format", "json", "train.py", program=text)
        assert done.returncode == 0, done.stderr
        (tmp_path / f"{name}.json").write_text(done.stdout, encoding="utf-8")
    changed = tool(tmp_path, "diff", "old.json", "new.json").stdout
    assert "no longer fused: layer_norm, gelu at train.py:14-15: 1 -> 2 kernels" in changed, changed
    assert "of layer_norm" in changed and "of gelu" in changed
    assert "optimizer" not in changed, "its line has only moved"

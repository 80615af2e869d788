"""What a script's variables hold dies at its end as in eager mode: finalizers run, and files that are open are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from magpy_core.runner.request import SESSIONS
from tests.programs.runner_help import under_magpy, write
from tests.programs.spare import printed

SETUP = """
import time
import torch

log = open("log.txt", "w")

class Last:
    def __del__(self):
        print("last words")

last = Last()
torch.manual_seed(0)
scale = 2.0

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.linear(x) * scale

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def loss_of(x):
    y = model(x)
    if y.mean() > 0:
        y = y * 3
    elif y.mean() > -1:
        y = y + 1
    return y.square().mean()
"""
SCRIPTS = {
    "step function": """
def step(x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()

for i in range(30):
    log.write(f"{step(torch.randn(2, 4)):.4f}\\n")
""",
    "cut step function": """
def step(i, x):
    start = time.time()
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    log.write(f"{i} {loss:.4f}\\n")
    return time.time() - start

for i in range(30):
    step(i, torch.randn(2, 4))
""",
    "loop of the script": """
for i in range(30):
    x = torch.randn(2, 4)
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    log.write(f"{loss:.4f}\\n")
""",
    "loop of a function": """
def main():
    kept = Last()
    for i in range(30):
        x = torch.randn(2, 4)
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        log.write(f"{i} {loss:.4f}\\n")

main()
print("after main")
""",
    "branches": """
for i in range(60):
    with torch.no_grad():
        log.write(f"{loss_of(torch.randn(2, 4)):.4f}\\n")
""",
    "model": """
with torch.no_grad():
    for i in range(20):
        log.write(f"{model(torch.randn(2, 4)).sum():.4f}\\n")
""",
}


def options(mode: str, **others: Any) -> dict[str, Any]:
    return {"session_factory": SESSIONS["magpy"], "mode": mode, "steps": 0, "regions": (), **others}


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("step function", options("run", backend="eager", compile="foreground")),
        ("cut step function", options("run", backend="eager", compile="foreground")),
        ("loop of the script", options("run", backend="eager", compile="foreground")),
        ("loop of a function", options("run", backend="eager", compile="foreground")),
        pytest.param("branches", options("run", backend="eager", regions=("__main__.loss_of",)), marks=pytest.mark.slow),
        pytest.param("model", options("run", backend="eager"), marks=pytest.mark.slow),
        pytest.param("step function", options("check"), marks=pytest.mark.slow),
        pytest.param("cut step function", options("check", details=True), marks=pytest.mark.slow),
        pytest.param("step function", options("run", backend="inductor"), marks=pytest.mark.slow),
        pytest.param("loop of the script", options("run", backend="inductor", compile="foreground"), marks=pytest.mark.slow),
    ],
)
def test_the_last_words_of_a_script(tmp_path: Path, name: str, given: dict[str, Any]) -> None:
    write(tmp_path, SETUP + SCRIPTS[name])
    expected = printed(tmp_path)
    text = (tmp_path / "log.txt").read_text()
    assert b"last words" in expected and len(text) > 100
    (tmp_path / "log.txt").unlink()
    ran = under_magpy(tmp_path, script="prog.py", **given)
    assert ran.outcome.kind == "ok" and ran.outcome.report.regions, ran.stderr.decode()
    assert ran.stdout == expected
    written = (tmp_path / "log.txt").read_text()
    assert written == text if given.get("backend") != "inductor" else len(written) == len(text)

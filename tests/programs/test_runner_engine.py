"""The runner with the real engine: findings stream, results are the program's own, the report is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.programs.runner_help import Ran, plainly, under_magpy, write
from tests.programs.spare import printed

ENGINE = "magpy_core.regions.session:Session"
TRAIN = """
    import torch
    from torch import nn
    torch.manual_seed(0)
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)
            self.calls = 0
        def forward(self, x):
            self.calls += 1
            return self.inner(x).relu().sum(dim=1)
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    for i in range(6):
        loss = nn.MSELoss()(net(torch.randn(8, 4)), torch.ones(8))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        print(i, round(loss.item(), 5), net.calls)
"""


def run(folder: Path, source: str = TRAIN, **options: Any) -> Ran:
    write(folder, source)
    ran = under_magpy(folder, script="prog.py", **{"session_factory": ENGINE, "steps": 0, "timeout": 120.0, **options})
    assert ran.outcome.kind == "ok", (ran.outcome.message, ran.stderr.decode())
    return ran


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "backend"), [("check", "inductor"), ("run", "eager")])
def test_a_training_program(tmp_path: Path, mode: str, backend: str) -> None:
    ran = run(tmp_path, mode=mode, backend=backend)
    assert ran.stdout == printed(tmp_path) and ran.stderr == b""
    assert ran.regions() == {"training loop": 5 if mode == "check" else 6}, "a check begins with the parts of a step"
    assert not [f for f in ran.outcome.report.findings if f.code.startswith("MP9")]
    assert all(r.captures for r in ran.outcome.report.regions)
    last_step = len(ran.kinds) - ran.kinds[::-1].index("step")
    assert ran.kinds.index("finding") < last_step, "findings arrive while the program runs"
    (counter,) = [f for f in ran.outcome.report.findings if f.code == "MP301" and "net.calls" in f.message]
    assert counter.location.range.start.line == 10


@pytest.mark.slow
def test_the_requested_steps_are_enough_for_findings(tmp_path: Path) -> None:
    ran = run(tmp_path, mode="check", steps=2)
    assert ran.regions() == {"training loop": 1} and ran.stdout.count(b"\n") == 2 and "MP909" not in ran.codes


def test_an_unknown_backend_is_refused(tmp_path: Path) -> None:
    write(tmp_path, TRAIN)
    ran = under_magpy(tmp_path, script="prog.py", mode="run", backend="tritom", session_factory=ENGINE)
    assert ran.outcome.kind == "tool-error" and ran.outcome.cli_exit_code == 2 and ran.codes == ["MP910"]
    assert "'tritom' is not a backend" in ran.outcome.message and ran.stdout == b""


@pytest.mark.slow
def test_an_exception_in_a_region_reads_as_ever(tmp_path: Path) -> None:
    source = (
        TRAIN
        + """
    class Broken(nn.Module):
        def forward(self, x):
            raise KeyError("missing")
    Broken()(torch.ones(1))
    """
    )
    write(tmp_path, source)
    ran = under_magpy(tmp_path, script="prog.py", session_factory=ENGINE, steps=0)
    assert ran.outcome.kind == "failed" and ran.stderr == plainly(tmp_path, "prog.py").stderr
    lines = (tmp_path / "prog.py").read_text().splitlines()
    assert "raise KeyError" in lines[ran.finding("MP905").location.range.start.line]

"""Steps with a closure that can't be one graph: the closure runs before the update, and the program sees no difference."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path

import pytest

from magpy_core.runner.request import SESSIONS
from tests.programs.runner_help import PYTHON, environment, under_magpy

pytestmark = pytest.mark.slow

PROGRAM = """
    import time, traceback
    import torch
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 2)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
    order = []
    optimizer.register_step_pre_hook(lambda *_: order.append("before"))
    optimizer.register_step_post_hook(lambda *_: order.append("after"))
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    for step in range(14):
        def closure():
            order.append("closure" if torch.is_grad_enabled() else "no gradients")
            optimizer.zero_grad()
            time.time()
            if step == 9:
                raise ValueError("no loss")
            loss = net(torch.ones(3, 4)).square().mean()
            loss.backward()
            return loss
        try:
            with torch.no_grad():
                loss = optimizer.step(closure)
            print("loss", loss.item(), torch.is_grad_enabled())
        except ValueError as error:
            frames = traceback.extract_tb(error.__traceback__)
            print(error, frames[0].name, frames[-1].name, error.__context__)
        scheduler.step()
    print(order, net.weight.tolist(), optimizer.param_groups[0]["lr"])
"""


def test_the_program_sees_no_difference(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(textwrap.dedent(PROGRAM))
    plain = subprocess.run(
        [PYTHON, "prog.py"], cwd=tmp_path, env=environment(), capture_output=True, timeout=120, check=True
    )
    ran = under_magpy(
        tmp_path, script="prog.py", mode="run", steps=0, backend="eager", compile="foreground",
        session_factory=SESSIONS["magpy"], env=environment(), timeout=120.0,
    )  # fmt: skip
    assert ran.stdout.decode() == plain.stdout.decode(), ran.stderr.decode()
    served = {region.name: region.hits for region in ran.outcome.report.regions}
    assert served["optimizer: AdamW (update)"] > 5 and served["closure"] > 5, served
    reasons = {one.name: one.reason for one in ran.outcome.report.why_not}
    assert reasons["optimizer: AdamW"] == "inside" and reasons["optimizer: AdamW (update)"] == ""

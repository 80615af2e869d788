"""``run`` compiles beside the program: a short one ends as if nothing was compiled, a long one gets the compiled code."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from magpy_core.runner.request import SESSIONS
from tests.programs.runner_help import Ran, environment, under_magpy, write

PROGRAM = """
    import sys, time, torch
    from torch import nn

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    end = time.monotonic() + float(sys.argv[1])
    steps = 0
    while time.monotonic() < end or steps < 8:
        optimizer.zero_grad()
        loss = net(torch.ones(4, 8)).square().mean()
        loss.backward()
        optimizer.step()
        steps += 1
    print("ended")
"""


def in_background(folder: Path, seconds: float) -> Ran:
    env = environment(TORCHINDUCTOR_CACHE_DIR=str(folder / "cache"))
    del env["MAGPY_COMPILE"]
    script = write(folder, PROGRAM)
    return under_magpy(
        folder, mode="run", script=script, args=[str(seconds)], steps=0, env=env, session_factory=SESSIONS["magpy"]
    )


def test_a_short_program_does_not_wait(tmp_path: Path) -> None:
    start = time.monotonic()
    ran = in_background(tmp_path, 0)
    assert time.monotonic() - start < 60
    assert ran.outcome.kind == "ok" and b"ended" in ran.stdout
    found = [f for f in ran.outcome.report.findings if f.code == "MP404"]
    assert found and "still being compiled" in found[0].message
    assert all(r.hits == 0 and r.compile_s is None for r in ran.outcome.report.regions)


@pytest.mark.slow
def test_a_long_program_gets_the_compiled_code_and_a_second_one_at_once(tmp_path: Path) -> None:
    first = in_background(tmp_path, 100)
    assert first.outcome.kind == "ok"
    net, optimizer = first.outcome.report.regions
    assert net.hits > 20 and net.compile_s and net.eager_ms and net.compiled_ms, net
    assert optimizer.calls == net.calls
    second = in_background(tmp_path, 20)
    assert second.outcome.report.regions[0].hits > 0

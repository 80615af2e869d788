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
    from magpy_core.backends import fair_share
    from magpy_core.limits import Limits
    from magpy_core.regions import provider

    # other tests may leave no core free, and the code saves nothing
    fair_share.LIMITS = Limits(compile_at_once=1000.0, most_gain=1e6)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def steps(n):
        for _ in range(n):
            optimizer.zero_grad()
            net(torch.ones(4, 8)).square().mean().backward()
            optimizer.step()

    def serves():
        regions = provider.session().regions
        return bool(regions) and all(region.hits for region in regions)

    steps(8)
    if sys.argv[1] == "long":
        end = time.monotonic() + 200
        while time.monotonic() < end and not serves():
            steps(8)
        steps(60)
    print("ended")
"""


def in_background(folder: Path, length: str) -> Ran:
    env = environment(TORCHINDUCTOR_CACHE_DIR=str(folder / "cache"))
    del env["MAGPY_COMPILE"]
    options = {"args": [length], "steps": 0, "env": env, "timeout": 250.0, "session_factory": SESSIONS["magpy"]}
    return under_magpy(folder, mode="run", script=write(folder, PROGRAM), **options)


@pytest.mark.slow
def test_a_short_program_does_not_wait(tmp_path: Path) -> None:
    start = time.monotonic()
    ran = in_background(tmp_path, "short")
    assert time.monotonic() - start < 60
    assert ran.outcome.kind == "ok" and b"ended" in ran.stdout
    found = [f for f in ran.outcome.report.findings if f.code == "MP404"]
    assert found and "still being compiled" in found[0].message
    assert all(r.hits == 0 and r.compile_s is None for r in ran.outcome.report.regions)


@pytest.mark.slow
def test_a_long_program_gets_the_compiled_code(tmp_path: Path) -> None:
    ran = in_background(tmp_path, "long")
    assert ran.outcome.kind == "ok", ran.stderr.decode()
    for region in ran.outcome.report.regions:  # each is timed by turns; a slower one goes back to eager mode then
        assert region.hits >= 10 and region.compile_s and region.eager_ms and region.compiled_ms, region
    assert [region.kind for region in ran.outcome.report.regions] == ["step"] and "MP404" not in ran.codes


def test_short_calls_are_counted_though_most_of_them_are_not_looked_at(tmp_path: Path) -> None:
    source = """
    import time, torch

    class Clocked(torch.nn.Linear):
        def forward(self, x):
            time.time()
            return super().forward(x)

    layer = Clocked(2, 2)
    x, total = torch.ones(1, 2), 0.0
    for _ in range(6000):
        total += layer(x).sum().item() > 1e9
        total += 1
    print(total)
    """
    env = environment()
    del env["MAGPY_COMPILE"]
    options = {"steps": 0, "env": env, "session_factory": SESSIONS["magpy"], "backend": "eager"}
    ran = under_magpy(tmp_path, mode="run", script=write(tmp_path, source), **options)
    assert ran.outcome.kind == "ok" and ran.stdout == b"6000.0\n", ran.stderr.decode()
    (region,) = (region for region in ran.outcome.report.regions if region.kind == "module")
    assert region.calls == 6000
    assert ran.outcome.report.step is not None and ran.outcome.report.step.count == 6000

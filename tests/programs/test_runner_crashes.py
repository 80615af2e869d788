"""A program that crashes after it has loaded stored code: that code is removed, and a finding says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from magpy_core.runner.request import SESSIONS
from tests.programs.runner_help import Ran, environment, under_magpy, write

PROGRAM = """
    import os, signal, sys
    import torch

    net = torch.nn.Linear(4, 4)
    with torch.no_grad():
        for _ in range(6):
            net(torch.ones(2, 4))
    if len(sys.argv) > 1:
        os.kill(os.getpid(), getattr(signal, sys.argv[1]))
"""


@pytest.mark.slow
def test_code_that_a_crashed_program_had_loaded_is_removed(tmp_path: Path) -> None:
    script = write(tmp_path, PROGRAM)
    place = tmp_path / "caches" / "magpy" / "inductor" / "graphs"

    def run(*args: str) -> Ran:
        env = environment(XDG_CACHE_HOME=str(tmp_path / "caches"))
        env.pop("TORCHINDUCTOR_CACHE_DIR", None)
        options = {"mode": "run", "steps": 0, "env": env, "session_factory": SESSIONS["magpy"], "timeout": 250.0}
        return under_magpy(tmp_path, script=script, args=list(args), compile="foreground", **options)

    assert run().outcome.kind == "ok"
    stored = list(place.iterdir())
    assert stored
    killed = run("SIGKILL")
    assert killed.outcome.kind == "killed" and "MP405" not in killed.codes and list(place.iterdir()) == stored
    crashed = run("SIGSEGV")
    assert crashed.outcome.kind == "killed" and crashed.codes.count("MP405") == 1
    assert list(place.iterdir()) == [] and list((place.parent.parent / "loaded").iterdir()) == []
    assert run().outcome.kind == "ok" and list(place.iterdir())

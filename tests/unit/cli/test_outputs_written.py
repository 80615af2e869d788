"""Output that can't be written is one sentence and status 2."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("args", [["explain", "MP102"], ["explain", "MP102", "--format", "json"]])
def test_a_full_disk(args: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "lsp_server.cli", *args], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    assert done.stderr == "magpy-lsp: the output can't be written: No space left on device.\n"

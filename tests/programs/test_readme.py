"""README's blocks of output are what the tool prints."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(
    r"```console\n\$ magpy-lsp (.+)\n([^`]*(?:`[^`]+`[^`]*)*?)```", (ROOT / "README.md").read_text(encoding="utf-8")
)


def test_there_is_a_block_for_each_engine() -> None:
    assert ["--engine" in command for command, _ in BLOCKS] == [True, False]


@pytest.mark.slow
@pytest.mark.parametrize(("command", "output"), BLOCKS, ids=["torch.compile", "MagPy"])
def test_the_tool_prints_it(command: str, output: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lsp_server.cli", *shlex.split(command)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    printed = done.stdout.splitlines()
    report = printed[printed.index(output.splitlines()[0]) :]
    assert report[: len(output.splitlines())] == output.splitlines()

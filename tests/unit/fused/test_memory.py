"""The memory of a language model's loss, as the benchmark counts it on fakes in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_gpt2s_loss_needs_a_tenth_of_eagers_memory() -> None:
    command = [sys.executable, "-m", "benchmarks.linear_cross_entropy", "--memory"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=True)
    first = done.stdout.splitlines()[:4]
    assert first[0] == "GPT-2 small: 8192 x 768, vocabulary 50257, bfloat16"
    eager, *ours = (float(found.replace(",", "")) for line in first[1:] for found in re.findall(r"([\d,]+) MB", line))
    assert len(ours) == 2 and all(300 < each < eager / 10 for each in ours)

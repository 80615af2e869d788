"""The end of a script that compiles by itself: what its variables hold dies as in eager mode."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
import torch

class Last:
    def __del__(self):
        print("last words")

last = Last()
log = open("log.txt", "w")
scale = 2.0

class Net(torch.nn.Module):
    def forward(self, x):
        return x * scale

def branches(x):
    return net(x) * (3 if x.mean() > 0 else 2)

net = Net()
call = {"model": net, "function": branches}[sys.argv[1]]
if sys.argv[2] == "compiled":
    import magpy_core
    call = magpy_core.compile(call, backend="eager")
for i in range(12):
    print(call(torch.full((2, 2), float((-1) ** i * i))).sum().item(), file=log)
"""


@pytest.mark.parametrize("what", ["model", "function"])
def test_the_last_words_of_a_script(tmp_path: Path, what: str) -> None:
    (tmp_path / "prog.py").write_text(PROGRAM, encoding="utf-8")
    ends = []
    for how in ("plain", "compiled"):
        command = [sys.executable, "prog.py", what, how]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=True)
        ends.append((done.stdout, (tmp_path / "log.txt").read_text()))
    assert ends[0][0] == "last words\n" and len(ends[0][1].splitlines()) == 12
    assert ends[1] == ends[0]

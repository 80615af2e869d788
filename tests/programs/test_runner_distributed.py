"""--nproc-per-node: the program under torch.distributed.run, what the ranks found as one report, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from magpy_core.findings import Finding, Location, Position, Range, RegionSummary, Report
from magpy_core.runner.distributed import merge_ranks
from magpy_core.runner.launch import launch
from magpy_core.runner.request import RunRequest

ROOT = Path(__file__).parents[2]
SEARCH = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
ENV = {**os.environ, "PYTHONPATH": SEARCH, "OMP_NUM_THREADS": "1", "COLUMNS": "120"}

DDP = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
scale = torch.nn.Linear(1, 1)

class Probe(torch.nn.Module):
    def forward(self, x):
        if rank == 1 and scale(x).sum() > -100:
            x = x * 2
        return x


class Both(torch.nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x


torch.manual_seed(0)
model, probe, both = DDP(torch.nn.Linear(4, 4)), Probe(), Both()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with open(f"losses{rank}.txt", "w", buffering=1) as losses:
    for i in range(3):
        loss = model(torch.ones(2, 4) * (rank + 1)).sum()
        both(probe(torch.ones(1)))
        losses.write(f"{loss.item()!r}\\n")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
dist.barrier()  # a rank that ends while the other still talks to it takes that one down
dist.destroy_process_group()
"""


def finding(line: int, count: int = 1) -> Finding:
    at = Location("/p/train.py", Range(Position(line - 1, 0), Position(line - 1, 5)))
    return Finding("MP102", "m", at, region="net", count=count)


def test_findings_of_all_ranks_are_one_and_others_name_their_ranks() -> None:
    net = RegionSummary("net", "module", "Net", "/p/train.py", 1)
    reports = {
        0: Report("t.py", [net], [finding(1, 2), finding(2)], {"total": 1.0}, steps=3),
        1: Report("t.py", [net, replace(net, id="other")], [finding(1, 5), finding(3)], {"total": 2.0}, steps=3),
    }
    merged = merge_ranks(reports, 2)
    assert [(f.location.range.start.line + 1, f.count, f.ranks) for f in merged.findings] == [
        (1, 5, ()), (2, 1, (0,)), (3, 1, (1,)),
    ]  # fmt: skip
    assert [r.id for r in merged.regions] == ["net", "other"] and merged.timings == {"total": 2.0}
    assert len(reports[0].findings) == 2, "the ranks' own reports are left as they are"
    assert Report.from_json(merged.to_json()).findings[1].ranks == (0,)


def test_a_launcher_that_can_not_start_says_so(tmp_path: Path) -> None:
    outcome = launch(RunRequest(script="x.py", python=str(tmp_path / "python"), cwd=str(tmp_path)), 2).outcome
    assert (
        outcome.kind == "tool-error"
        and "is not a Python interpreter" in outcome.message
        and not outcome.message.startswith("Rank")
    )


@pytest.mark.slow
def test_two_ranks_of_a_ddp_program(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(DDP)
    plain = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "train.py"]
    # Its exit status is not asked for: on a busy machine a thread of gloo's may abort a rank that is done, as it exits
    # ("terminate called without an active exception"), whatever the program calls at its end. Its losses are written then.
    ran = subprocess.run(plain, cwd=tmp_path, env=ENV, capture_output=True, text=True, timeout=120)
    expected = [(tmp_path / f"losses{rank}.txt").read_text() for rank in (0, 1)]
    assert [text.count("\n") for text in expected] == [3, 3] and expected[0] != expected[1], ran.stderr[-3000:]
    command = [sys.executable, "-m", "lsp_server.cli", "check", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*command, "--format", "concise", "--format", "json=report.json", "train.py"],
        cwd=tmp_path, env=ENV, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr[-3000:]
    assert [(tmp_path / f"losses{rank}.txt").read_text() for rank in (0, 1)] == expected, "the program computes the same"
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["steps"] == 3
    branch = [f for f in report["findings"] if f["code"] == "MP101" and f["range"]["start"]["line"] == 10]
    assert [f.get("ranks") for f in branch] == [[1]], "only rank 1 came to it"
    assert "train.py:11:" in done.stdout and "(only rank 1)" in done.stdout
    # ``rank`` differs, and so does what keeps each rank's step from being one graph (MP406)
    own = ("MP204", "MP406")
    others = [f for f in report["findings"] if f["range"]["start"]["line"] > 15 and f["code"] not in own]
    assert others and not any("ranks" in f for f in others), "what both have is told once"


@pytest.mark.slow
def test_a_rank_that_fails_ends_the_run_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text(
        "import os, time, torch\ntorch.nn.Linear(2, 2)(torch.ones(1, 2))\n"
        "if os.environ['RANK'] == '1':\n    raise ValueError('no')\ntime.sleep(600)\n"
    )
    handle = launch(RunRequest(script="fails.py", cwd=str(tmp_path), steps=0, stdout="null", stderr="null"), 2)
    outcome = handle.outcome
    assert outcome.kind == "failed" and outcome.message.startswith("Rank 1: The program raised ValueError: no")
    assert any(f.code == "MP905" for f in outcome.report.findings)


@pytest.mark.slow
def test_when_the_tool_is_killed_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text("import os, time\nprint('pid', os.getpid(), flush=True)\ntime.sleep(600)\n")
    command = [sys.executable, "-m", "lsp_server.cli", "check", "--nproc-per-node", "2", "waits.py"]
    env = {**ENV, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        programs = [psutil.Process(int(process.stdout.readline().split()[1])) for _ in range(2)]
        everything = [*programs, *psutil.Process(process.pid).children(recursive=True)]
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        _, left = psutil.wait_procs(everything, timeout=15)
        assert left == [] and list(tmp_path.glob("magpy-ranks-*")) == []
    finally:
        process.kill()
        process.communicate()

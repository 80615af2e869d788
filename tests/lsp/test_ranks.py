"""Several processes of torch.distributed through the server: one report, and nothing left behind."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from tests.lsp.client import Client

pytestmark = [pytest.mark.asyncio, pytest.mark.slow]

PROGRAM = """\
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.manual_seed(0)
net = torch.nn.Linear(4, 4)


class Net(torch.nn.Module):
    def forward(self, x):
        y = net(x)
        return y + 1 if y.sum() > 0 else y - 1


model = Net()
print(f"rank {dist.get_rank()}\\n", end="", flush=True)  # one write: parts of two ranks' lines would mix
for step in range(WHILE):
    model(torch.ones(4))
dist.destroy_process_group()
"""


async def test_two_ranks_are_one_run(server: Client, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM.replace("WHILE", "3"))
    server.settings = {
        "interpreter": sys.executable, "backend": "eager", "env": {"OMP_NUM_THREADS": "1"},
        "entrypoints": [{"name": "two", "program": "train.py", "nproc": 2, "steps": 0}],
    }  # fmt: skip
    await server.initialize(folder=tmp_path)
    uri = server.open(path)
    result = await server.command("magpy.check", {"uri": uri, "name": "two"})
    assert result["state"] == "done", (result["failure"], server.output("stderr")[-1500:])
    assert "rank 0" in server.output("stdout") and "rank 1" in server.output("stdout")
    await server.diagnostics_where(uri, lambda d: [x["code"] for x in d if x["severity"] <= 2] == ["MP101"], "told once")
    path.write_text(PROGRAM.replace("WHILE", "10**9"))
    _, answer = server.begin_command("magpy.check", {"uri": uri, "name": "two"})
    await server.until(lambda: server.output("stdout").count("rank") >= 4, "both run again")
    started = psutil.Process(server.process.pid).children(recursive=True)
    assert len(started) >= 3, started
    assert await server.command("magpy.cancel", {"uri": uri}) == {"cancelled": 1}
    assert (await answer)["state"] == "cancelled"
    left = psutil.wait_procs(started, timeout=10)[1]
    assert not [p for p in left if p.status() != psutil.STATUS_ZOMBIE], left

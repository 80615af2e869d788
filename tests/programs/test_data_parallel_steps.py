"""Whole steps under DistributedDataParallel: two processes, whose step is one graph with its communication."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import magpy_core
from magpy_core.regions.api import region_of
from tests.programs.data_parallel_worker import CASES

ROOT = Path(__file__).parents[2]


def run(folder: Path, module: str, *args: str) -> list[str]:
    """What the first of two processes printed."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    processes = []
    for rank in "01":
        command = [sys.executable, "-m", module, rank, str(folder / "meet"), *args]
        processes.append(
            subprocess.Popen(command, env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        )
    try:
        printed = [process.communicate(timeout=300)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    for text in printed:
        assert "done" in text.splitlines(), text[-3000:]
    return printed[0].splitlines()


_SLOW = pytest.mark.slow
_MORE = (_SLOW, pytest.mark.exhaustive)


@pytest.mark.parametrize(
    ("backend", "names"),
    [
        ("eager", ["mixed", "accumulate_mixed", "unused", "outside", "hooked_later", "decides_late"]),
        pytest.param("eager", [*CASES], marks=_MORE, id="eager-all"),
        pytest.param("aot_eager", [*CASES], marks=_MORE, id="aot_eager-all"),
        pytest.param("inductor", ["usual", "mixed", "accumulate_mixed"], marks=_SLOW),
    ],
)
def test_as_in_plain_python(tmp_path: Path, backend: str, names: list[str]) -> None:
    printed = run(tmp_path, "tests.programs.data_parallel_worker", backend, *names)
    assert [line.split()[0] for line in printed if line.split()[0] in CASES] == names


@pytest.mark.slow
def test_the_runner_finds_the_step(tmp_path: Path) -> None:
    """Before the module has arranged its gradients, a step runs plainly and is not given up."""
    (tmp_path / "train.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "lsp_server.cli", "check", "--nproc-per-node", "2", "--details", "train.py"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200, check=False)
    assert "Region train_step (function) at train.py:12: 2 calls, 1 capture, complete graph" in done.stdout, done.stderr
    assert "MP406" not in done.stdout


SCRIPT = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1)))
optimizer = torch.optim.AdamW(model.parameters())
torch.manual_seed(dist.get_rank())


def train_step(x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


for _ in range(8):
    train_step(torch.randn(4, 4))
dist.barrier()
"""


@pytest.fixture
def alone() -> Iterator[Any]:
    """The group of this process alone."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_no_call_communicates_twice(alone: Any, backend: str) -> None:
    """The path depends on what was communicated: a call that takes another one could not be repeated."""
    group = alone.group_name

    def scaled(x: torch.Tensor) -> torch.Tensor:
        functional: Any = torch.ops._c10d_functional
        summed: torch.Tensor = functional.wait_tensor(functional.all_reduce(x * 2, "sum", group))
        return summed + 1 if summed.sum() > 0 else summed - 1

    compiled = magpy_core.compile(scaled, backend=backend, wait=False)
    before = alone._get_sequence_number_for_group()
    for i in range(6):
        x = torch.full((2,), (-1.0) ** i)
        assert torch.equal(compiled(x), 2 * x + x)
    assert alone._get_sequence_number_for_group() == before + 6
    assert any(
        f.code == "MP119" and "after the region has communicated" in f.message for f in region_of(compiled).findings.values()
    )


@pytest.mark.usefixtures("alone")
def test_a_step_waits_for_its_compiled_code() -> None:
    """Until then, its calls are plain: a call that began to communicate could not be repeated. One process, as it trains
    by default."""
    parameters = []
    for wrap in (lambda step: step, magpy_core.compile(wait=False)):
        torch.manual_seed(0)
        model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)))
        optimizer = torch.optim.AdamW(model.parameters())

        def train_step(x: torch.Tensor, model: Any = model, optimizer: Any = optimizer) -> None:
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()

        step = wrap(train_step)
        for _ in range(6):
            step(torch.randn(4, 4))
        parameters.append([p.detach().clone() for p in model.parameters()])
    assert all(map(torch.equal, *parameters))
    (capture,) = region_of(step).captures
    assert capture.plain_calls and capture.progress, "its code is on its way"

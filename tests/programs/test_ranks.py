"""Programs of several processes under the runner: they compute what they compute under torchrun, and end."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import magpy_core
from magpy_core.regions.api import region_of
from tests.programs.ranks.matrix import EXACT, KINDS, MODES, SHAPES, difference, monitored, plain, training


def test_a_sharded_step_that_is_recorded_trains_as_in_plain_python() -> None:
    """FSDP reduces gradients in its own backward pass and in functions that the engine calls at the end."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        trained = []
        for wrap in (lambda step: step, magpy_core.compile(wait=False)):
            torch.manual_seed(0)
            model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
            for layer in (model[0], model[2], model):
                fully_shard(layer, mesh=init_device_mesh("cpu", (1,)))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

            def train_step(x: torch.Tensor, model: nn.Module = model, optimizer: torch.optim.SGD = optimizer) -> None:
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()

            train_step(torch.randn(4, 4))  # FSDP prepares itself: the runner records no first call either
            step = wrap(train_step)
            for _ in range(3):
                step(torch.randn(4, 4))
            trained.append([p.to_local().detach().clone() for p in model.parameters()])  # type: ignore[attr-defined]
        assert all(map(torch.equal, *trained))
        region = region_of(step)
        assert region.recordings and not region.hits
    finally:
        dist.destroy_process_group()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "ranks"), [("fsdp", 2), ("ddp-accumulate", 2), ("ddp", 1)])
def test_a_program_of_several_processes(tmp_path: Path, kind: str, ranks: int) -> None:
    _agree(tmp_path, kind, "function", ranks, "eager", "run")


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_whole_matrix(tmp_path: Path, kind: str, shape: str, ranks: int) -> None:
    _agree(tmp_path, kind, shape, ranks, *MODES)


def _agree(folder: Path, kind: str, shape: str, ranks: int, *modes: str) -> None:
    expected = plain(folder, ranks, training(kind, shape, 12))
    for mode in modes:
        found, output = monitored(folder, ranks, training(kind, shape, 12), mode)
        assert not difference(expected, found, exact=mode in EXACT), (mode, output[-3000:])

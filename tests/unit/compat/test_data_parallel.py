"""What can't be expressed of DistributedDataParallel. The rest is tested with two processes, by data_parallel_worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.testing._internal.distributed.fake_pg import FakeStore

from magpy_core._compat.torch import data_parallel as compat


@pytest.fixture
def group() -> Iterator[None]:
    """Two processes, the other of which does not exist: collectives leave what they are given."""
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)  # type: ignore[no-untyped-call]
    yield
    dist.destroy_process_group()


def parallel(**options: Any) -> DistributedDataParallel:
    net = nn.Sequential(nn.Linear(4, 64), nn.BatchNorm1d(64), nn.Linear(64, 2))
    return DistributedDataParallel(net, **options)


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("name", ["find_unused_parameters", "static_graph", "gradient_as_bucket_view"])
def test_what_is_refused(name: str) -> None:
    assert compat.reason_to_refuse(parallel()) is None
    reason = compat.reason_to_refuse(parallel(**{name: True}))
    assert reason is not None and f"`{name}` is True" in reason


@pytest.mark.usefixtures("group")
def test_all_that_is_read_is_a_field() -> None:
    module = parallel()
    assert set(compat.fields_read(module)) <= set(vars(module))


def test_collectives_are_counted_where_the_group_can() -> None:
    """Private in torch 2.13: sequence numbers of groups, looked up by name."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        names = [dist.group.WORLD.group_name]  # type: ignore[union-attr]
        before = compat.collectives_run(names)
        compat.all_reduced(torch.ones(2), names[0])
        dist.all_reduce(torch.ones(2))
        compat.broadcast(torch.ones(2), names[0])
        assert compat.collectives_run(names) == before + 3 and compat.collectives_run([]) == 0
    finally:
        dist.destroy_process_group()


@pytest.mark.usefixtures("group")
def test_a_group_that_does_not_count_may_have_communicated() -> None:
    names = [dist.group.WORLD.group_name]  # type: ignore[union-attr]
    assert compat.collectives_run(names) != compat.collectives_run(names)

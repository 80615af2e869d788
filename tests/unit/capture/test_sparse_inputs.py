"""A sparse tensor among the inputs: Inductor is not asked, and the finding names the tensor; other backends run it."""

from __future__ import annotations

import pytest
import torch

import magpy_core
from magpy_core.regions.api import region_of

TEXT = "Inductor can't compile a graph with a sparse tensor, and `adjacency` is one."


class Convolution(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, adjacency: torch.Tensor) -> torch.Tensor:
        return torch.mm(adjacency, self.linear(x)).relu()


@pytest.mark.parametrize(("backend", "is_compiled"), [("aot_eager", True), ("inductor", False)])
def test_a_sparse_matrix(backend: str, is_compiled: bool) -> None:
    model, x = Convolution(), torch.randn(8, 4)
    adjacency = torch.eye(8).roll(1, 0).to_sparse()
    compiled = magpy_core.compile(model, wait=True, backend=backend)
    for _ in range(6):
        assert torch.equal(compiled(x, adjacency), torch.relu(model.linear(x).roll(1, 0)))
    region = region_of(compiled)
    assert (region.hits > 0) is is_compiled
    messages = [finding.message for finding in region.findings.values() if finding.code == "MP902"]
    assert messages == ([] if is_compiled else [TEXT])

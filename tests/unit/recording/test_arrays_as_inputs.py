"""NumPy arrays as masks, in lists, and of sizes that vary: one graph serves later calls, with the results of eager mode."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import magpy_core
from magpy_core.regions.api import region_of
from tests.unit.engine_pair import same

CALLS = 16
LAYER = torch.nn.Linear(8, 8)
Data = Any


def data(call: int) -> Data:
    """``size``-long arrays have another size in each call."""
    random = np.random.default_rng(call)
    size = (6, 4, 7, 3, 5, 8)[call % 6]
    return SimpleNamespace(
        keep=random.random(10) > 0.5,
        cells=random.random((10, 8)) > 0.5,
        scores=random.random(10),
        parts=[random.random((5, 8)).astype(np.float32) for _ in range(2)],
        batch=random.random((size, 8)).astype(np.float32),
        rows=random.integers(0, 10, size),
    )


def written_by_mask(d: Data, x: torch.Tensor) -> Any:
    written = x * 2
    written[~d.keep] = 0.0
    written[d.cells] += 1.0
    return written


def appended(d: Data, x: torch.Tensor) -> Any:
    parts = []
    for part in d.parts:
        parts.append(part * 2)
    return LAYER(torch.from_numpy(np.concatenate(parts)))


def unpacked(d: Data, x: torch.Tensor) -> Any:
    size, width = d.batch.shape
    return LAYER(torch.from_numpy(d.batch)).sum() / size + width + d.batch.size


ONE_GRAPH: dict[str, Callable[[Data, torch.Tensor], Any]] = {
    "mask": lambda d, x: LAYER(x)[d.keep],
    "mask of cells": lambda d, x: LAYER(x)[d.cells].sum(),
    "mask and number": lambda d, x: LAYER(x)[d.keep, 1],
    "computed mask": lambda d, x: LAYER(x)[~d.keep & (d.scores > 0.3)],
    "mask with what does not vary": lambda d, x: LAYER(x)[d.keep | (np.arange(10) < 2)],
    "written by mask": written_by_mask,
    "stack": lambda d, x: LAYER(torch.from_numpy(np.stack(d.parts))),
    "array of arrays": lambda d, x: LAYER(torch.tensor(np.array(d.parts))),
    "list on the stack": lambda d, x: LAYER(torch.from_numpy(np.vstack([d.parts[0], d.parts[1] * 2]))),
    "appended": appended,
    "no copy": lambda d, x: LAYER(torch.from_numpy(np.ascontiguousarray(d.parts[0]))),
    "transposed": lambda d, x: LAYER(torch.from_numpy(d.parts[0].T.copy()).T),
}
TWO_GRAPHS: dict[str, Callable[[Data, torch.Tensor], Any]] = {
    "places": lambda d, x: LAYER(x)[np.where(d.keep)[0]],
    "nonzero": lambda d, x: LAYER(x)[d.keep.nonzero()[0]],
    "rows that are kept": lambda d, x: torch.from_numpy(d.scores[d.keep]) * 2,
    "batch": lambda d, x: LAYER(torch.from_numpy(d.batch)),
    "copied batch": lambda d, x: LAYER(torch.tensor(d.batch)) * len(d.batch),
    "rows": lambda d, x: LAYER(x)[d.rows] + d.rows.shape[0],
    "sizes": unpacked,
}


@pytest.mark.parametrize(
    ("region", "graphs"),
    [pytest.param(fn, n, id=name) for n, found in ((1, ONE_GRAPH), (2, TWO_GRAPHS)) for name, fn in found.items()],
)
def test_they_are_inputs(region: Callable[[Data, torch.Tensor], Any], graphs: int) -> None:
    torch.manual_seed(0)
    compiled = magpy_core.compile(region, backend="eager", wait=True)
    for call in range(CALLS):
        x, d = torch.randn(10, 8), data(call)
        assert same(compiled(d, x), region(d, x))
    found = region_of(compiled)
    assert (len(found.captures), found.hits) == (graphs, CALLS - graphs)


def test_a_size_that_python_reads_exactly_is_guarded() -> None:
    """`.tolist()` makes as many numbers as there are: that is code for each size, and the finding names it."""

    def region(d: Data, x: torch.Tensor) -> Any:
        return sum(LAYER(x).sum() * n for n in d.batch[:, 0].tolist())

    compiled = magpy_core.compile(region, backend="eager", wait=True)
    for call in range(CALLS):
        x, d = torch.ones(10, 8), data(call)
        assert same(compiled(d, x), region(d, x))
    assert any(f.code == "MP201" and "d.batch.shape" in f.message for f in region_of(compiled).findings.values())

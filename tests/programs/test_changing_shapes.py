"""Networks of twenty kinds, trained on inputs of ten shapes: at most two captures, and eager mode's results."""

from __future__ import annotations

import copy

import pytest
import torch

import magpy_core
from benchmarks.shapes.architectures import ARCHITECTURES, SHAPES
from benchmarks.shapes.measure import Contender
from magpy_core.regions.api import region_of

QUICK = ("gpt", "lstm")
COMPILED = ("encoder", "gpt", "messages", "resnet", "vgg")


def trained(name: str, backend: str) -> Contender:
    """A compiled network after two rounds of steps, whose results and gradients were those of a plain one."""
    torch.manual_seed(0)
    model = ARCHITECTURES[name].build()
    other = copy.deepcopy(model)
    plain, compiled = Contender(model, model), Contender(other, magpy_core.compile(other, backend=backend, wait=True))
    torch.manual_seed(1)
    inputs = [ARCHITECTURES[name].inputs(i) for i in range(SHAPES)]
    tolerance = 0.0 if backend == "eager" else 1e-3
    for arguments in inputs + inputs:
        for one, theirs in zip(compiled.step(arguments), plain.step(arguments), strict=True):
            torch.testing.assert_close(one, theirs, rtol=tolerance, atol=tolerance)
    return compiled


def check_captures(compiled: Contender) -> None:
    region = region_of(compiled.model)
    assert region is not None and not region.disabled
    assert region.recordings <= 2, region.recompiles
    assert region.hits == region.calls - 2


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in ARCHITECTURES]
)
def test_two_captures_serve_all_shapes(name: str) -> None:
    check_captures(trained(name, "eager"))


@pytest.mark.slow
@pytest.mark.usefixtures("empty_compiler_cache")
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_code_serves_all_shapes(name: str) -> None:
    check_captures(trained(name, "inductor"))

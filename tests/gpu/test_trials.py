"""Whether compiled code pays is decided by the device's time, although calls return before their kernels have run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import magpy_core
from benchmarks.gpu.clock import timed_on
from magpy_core.regions.api import region_of
from magpy_core.regions.trial import CapturesTrial
from tests.gpu.device import BACKEND, DEVICE, IS_CUDA

_SIZE = 2048 if IS_CUDA else 128

pytestmark = pytest.mark.skipif(BACKEND != "inductor", reason="only what Inductor compiles is on trial")


def _products(x: torch.Tensor) -> torch.Tensor:
    """Long on the device, and few launches."""
    for _ in range(10):
        x = torch.tanh(x @ x) * 0.1
    return x


def _run_until(done: Callable[[], bool], call: Callable[[], object], most: int) -> None:
    for _ in range(most):
        if done():
            return
        call()


def test_a_call_takes_what_the_device_takes() -> None:
    x = torch.randn(_SIZE, _SIZE, device=DEVICE)
    run = magpy_core.compile(_products, backend=BACKEND, wait=False)
    region = region_of(run)
    _run_until(lambda: region.times.trial is not None, lambda: run(x), 200)
    trial = region.times.trial
    assert isinstance(trial, CapturesTrial), "it is not compiled"
    inside = trial._trial
    _run_until(lambda: min(len(inside.plain), len(inside.compiled)) >= 8 or inside.pays is not None, lambda: run(x), 200)
    _products(x)
    seconds = min(timed_on(DEVICE)(lambda: _products(x), 5)[0] for _ in range(3))
    assert min(len(inside.plain), len(inside.compiled)) >= 8
    assert min(inside.plain) > 0.5 * seconds, (min(inside.plain), seconds)
    assert min(inside.compiled) > 0.25 * seconds, (min(inside.compiled), seconds)


def test_results_on_trial_are_those_of_plain_python() -> None:
    """Calls by turns, compiled and plain, until it is decided."""
    x = torch.randn(64, 64, device=DEVICE)
    wanted = _products(x)
    run = magpy_core.compile(_products, backend=BACKEND, wait=False)
    for _ in range(120):
        torch.testing.assert_close(run(x), wanted, rtol=1e-3, atol=1e-4)

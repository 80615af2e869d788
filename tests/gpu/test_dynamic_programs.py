"""The programs of ``tests/programs/dynamic`` on the device: compiled and plain agree at every call, on every path."""

from __future__ import annotations

import pytest
import torch

from tests.gpu.device import BACKEND, DEVICE
from tests.programs.dynamic import PROGRAMS, seed
from tests.programs.dynamic_pair import Pair
from tests.soundness.harness.cuts import without_trials

_CALLS, _COMPILED_CALLS = 12, 6
_COMPILED = ("early_exit_resnet", "skipnet_feedforward", "moe_top1", "dropblock", "gpt_sampling")


def _pair(name: str, backend: str) -> Pair:
    """Skips a program that does not run on the device in plain Python (it makes an array of NumPy of a tensor, say)."""
    pair = Pair(name, backend, DEVICE)
    try:
        pair.call_plainly(0)
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, TypeError) as error:
        pair.uncompile()
        pytest.skip(f"plain Python does not run on {DEVICE.type}: {str(error).splitlines()[0][:150]}")
    pair.uncompile()
    seed(1)
    return Pair(name, backend, DEVICE)


def _check(name: str, backend: str, calls: int) -> None:
    pair = _pair(name, backend)
    try:
        for i in range(calls):
            pair.check(i)
    finally:
        pair.uncompile()


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_operator_as_recorded(name: str) -> None:
    """The recorded graphs, operator by operator: guards, numbers that the host reads, random streams, effects."""
    with without_trials():
        _check(name, "eager", _CALLS)


@pytest.mark.parametrize("name", _COMPILED)
def test_compiled(name: str) -> None:
    with without_trials():
        _check(name, BACKEND, _COMPILED_CALLS)

"""The programs of ``tests/programs/dynamic`` on the device: compiled and plain agree at every call, on every path."""

from __future__ import annotations

import pytest
import torch

from tests.gpu.device import BACKEND, DEVICE, IS_CUDA
from tests.programs.dynamic import PROGRAMS
from tests.programs.dynamic_pair import Pair, call_plainly
from tests.soundness.harness.cuts import without_trials

_CALLS, _COMPILED_CALLS = 12, 6
_COMPILED = ("early_exit_resnet", "skipnet_feedforward", "moe_top1", "dropblock", "gpt_sampling")


@pytest.fixture(autouse=True)
def same_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradients that differ from call to call would round otherwise, or decide otherwise, than the plain program's."""
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)


def _skip_if_plain_python_fails(name: str) -> None:
    if not IS_CUDA:
        return  # it runs on the CPU: `tests/programs/test_dynamic_programs.py`
    try:
        call_plainly(name, DEVICE)
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, TypeError) as error:
        pytest.skip(f"eager mode does not run on {DEVICE.type}: {str(error).splitlines()[0][:150]}")


def _check(name: str, backend: str, calls: int) -> None:
    _skip_if_plain_python_fails(name)
    pair = Pair(name, backend, DEVICE)
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

"""Autograd in a process that was forked after a backward pass on a device: here, one that does nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from magpy_core._compat.torch import forked_autograd, triton_device
from magpy_core._compat.torch.forked_autograd import AutogradRefused
from magpy_core.products.targets.worker import results_of

# The engine starts a thread for it, as for each CUDA device.
_DEVICE = """
#include <c10/core/impl/DeviceGuardImplInterface.h>
namespace {
using Guard = c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::PrivateUse1>;
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);
}
"""
_PROGRAM = """
import ctypes, os, sys
import torch
from torch import nn
import magpy_core
from magpy_core._compat.torch import forked_autograd

ctypes.CDLL(sys.argv[1])
model, x = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16)), torch.randn(4, 8)
seen = magpy_core.monitor(model)(x)
before = [kernel.name for kernel in magpy_core.kernels(seen)]
threads = len(os.listdir("/proc/self/task"))
model(x).sum().backward()
print("a thread of the device:", len(os.listdir("/proc/self/task")) == threads + 1)
print("refused in a copy:", os.waitstatus_to_exitcode(os.waitpid(os.fork() or os._exit(forked_autograd.is_refused()), 0)[1]))
print("the same kernels:", [kernel.name for kernel in magpy_core.kernels(seen)] == before, len(before))
model(x).sum().backward()
print("it still differentiates:", not forked_autograd.is_refused(), forked_autograd.refusal().value)
"""


def test_the_engine_runs_when_its_note_is_removed() -> None:
    def forked() -> dict[str, Any]:
        triton_device.guard_without_device()
        forked_autograd.refusal().value = True
        refused = forked_autograd.is_refused()
        forked_autograd.allow()
        leaf = torch.full((2,), 3.0, requires_grad=True)
        (leaf * leaf).sum().backward()
        assert leaf.grad is not None
        return {"refused": refused, "gradient": leaf.grad.tolist()}

    ((_, found),) = results_of([forked])
    assert found == {"refused": True, "gradient": [6.0, 6.0]}
    assert not forked_autograd.is_refused() and not forked_autograd.refusal().value


def test_a_torch_without_the_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked_autograd, "_VARIABLE", b"_ZN5torch8autograd4noneE")
    with pytest.raises(AutogradRefused, match="no _ZN5torch8autograd4noneE"):
        forked_autograd.refusal()
    monkeypatch.setattr(forked_autograd, "_LIBRARY", "libnone.so")
    with pytest.raises(AutogradRefused, match="not loaded"):
        forked_autograd.refusal()
    forked_autograd.allow()  # nothing is refused here, and nothing is looked for


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler here")
def test_kernels_after_a_backward_pass_with_threads_of_a_device(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    source, library, torch_folder = tmp_path / "device.cpp", tmp_path / "device.so", Path(torch.__file__).parent
    source.write_text(_DEVICE, encoding="utf-8")
    options = ["-std=c++20", "-shared", "-fPIC", f"-I{torch_folder}/include", f"-L{torch_folder}/lib", "-lc10"]
    subprocess.run(["g++", str(source), *options, "-o", str(library)], check=True, timeout=100)
    env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}  # of the user's: MagPy keeps no kernels then
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(library)], capture_output=True, text=True, env=env, timeout=250
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == [
        "a thread of the device: True",
        "refused in a copy: 1",
        "the same kernels: True 6",
        "it still differentiates: True False",
    ], done.stdout

"""The Triton kernel: by Triton's interpreter in a process of its own, and compiled for devices that are not there."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
import torch

from magpy_core._compat.torch import triton_device
from magpy_core.fused import operators
from magpy_core.targets import own_kernels, ptxas
from magpy_core.targets.devices import DEVICES

pytest.importorskip("triton")


def interpreted(*planted: str) -> list[str]:
    command = [sys.executable, "-m", "tests.unit.fused.interpreted", *planted]
    env = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.mark.slow
def test_the_kernel_computes_what_atens_operators_compute() -> None:
    assert interpreted() == ["0 differences"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('x = tl.where(at < vocabulary, x, float("-inf"))', "x = x + 0.0"),
        ("total * tl.exp(highest - shift)", "total"),
        ('tl.where(above == float("-inf"), 0.0, above)', "above"),
        ("tl.where(counts, loss, 0.0)", "loss"),
        ("tl.full((), 1.0 - SMOOTHING, NUMBER)", "tl.full((), 1.0, NUMBER)"),
        ("at == wanted, sure, 0.0)", "at == wanted, 1.0 - SMOOTHING, 0.0)"),
        ("tl.device_assert(is_class | (counts == 0)", "tl.device_assert(is_class | (counts == 0) | (counts != 0)"),
    ],
)
def test_a_wrong_kernel_is_found(right: str, wrong: str) -> None:
    assert len(interpreted(right, wrong)) > 1


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted(DEVICES))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("operator", [operators.LOSSES, operators.SUM], ids=["losses", "gradients"])
def test_it_compiles_for_each_device_without_spills(operator: object, dtype: torch.dtype, target: str) -> None:
    """With whole vectors for loads and stores, although the vocabulary is odd, and with the check of the targets."""
    graph = torch.fx.Graph()
    hidden, weight, labels = (graph.placeholder(name) for name in ("hidden", "weight", "labels"))
    hidden.meta["val"] = torch.empty(8192, 768, dtype=dtype, device="meta")
    weight.meta["val"] = torch.empty(50_257, 768, dtype=dtype, device="meta")
    node = graph.call_function(operator, (hidden, weight, None, labels, -100, 0.0))  # type: ignore[arg-type]
    device = DEVICES[target]
    figures = triton_device.DeviceFigures(
        device.title, device.capability, device.multiprocessors, device.registers, device.threads, device.warp,
        device.shared_bytes, device.memory_bytes,
    )  # fmt: skip
    code = own_kernels.code_of(node, device, figures)
    assert code.spill_bytes == 0 and code.registers <= 64  # 8 blocks of 8 warps on a multiprocessor at 32
    assert code.triton.startswith("@triton.jit\ndef loss_rows(") and f".target {device.architecture}" in code.ptx
    assert ".v4.b32" in code.ptx and "assertfail" in code.ptx
    assert not re.search(r"\b(atom|red)\.", code.ptx)
    assert code.grid == (own_kernels.operators.chunk_of(8192, 50_257, dtype.itemsize), 1, 1)
    assert ptxas.resources(code.ptx, triton_device.assembler(device.capability), device.architecture).registers


def test_the_saved_memory_is_that_of_the_logits_without_a_chunk() -> None:
    graph = torch.fx.Graph()
    hidden, weight = graph.placeholder("hidden"), graph.placeholder("weight")
    hidden.meta["val"] = torch.empty(8192, 768, dtype=torch.bfloat16, device="meta")
    weight.meta["val"] = torch.empty(50_257, 768, dtype=torch.bfloat16, device="meta")
    node = graph.call_function(operators.SUM, (hidden, weight))
    assert own_kernels.is_own(node) and not own_kernels.is_own(hidden) and not own_kernels.is_own(None)
    chunk = 2048 * 50_304 * 2
    assert own_kernels.saved_bytes(node) == 8192 * 50_257 * 2 - chunk == 617_365_504


@pytest.mark.slow
def test_a_launch_specializes_it_for_every_type_and_vocabulary() -> None:
    command = [sys.executable, "-m", "tests.unit.fused.specialized"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [f"{vocabulary} checks targets" for vocabulary in (50_257, 1, 5000, 64)]

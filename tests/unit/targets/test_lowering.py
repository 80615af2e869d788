"""Captures compiled for a device that is not there, in forked processes. Needs the ``triton`` package."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import magpy_core
from magpy_core._compat.torch import triton_device
from magpy_core.findings import Kernel
from magpy_core.findings.kernels import BOUNDS
from magpy_core.products.targets import lowering
from magpy_core.products.targets.devices import UnknownTarget, parse_target
from tests.unit.compat.test_triton_lowering import H100, in_process

pytest.importorskip("triton")
ROWS, WIDTH, WIDE = 64, 32, 128


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, WIDE)
        self.norm = nn.LayerNorm(WIDE)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.up(x)
        h = F.gelu(h)
        return self.norm(h)


LINE = Block.forward.__code__.co_firstlineno  # of `def forward`


def lines_of(kernels: Sequence[Kernel]) -> set[int]:
    assert {at.file for kernel in kernels for at in kernel.lines} <= {__file__}
    return {at.line - LINE for kernel in kernels for at in kernel.lines}


@pytest.fixture(scope="module")
def kernels() -> tuple[Kernel, ...]:
    """Of the forward and the backward pass of a block."""
    available = torch.cuda.is_available
    found = magpy_core.kernels(magpy_core.monitor(Block())(torch.randn(ROWS, WIDTH)))
    assert torch.cuda.is_available is available  # nothing is replaced in this process
    return found


def test_both_passes_have_generated_and_library_kernels(kernels: tuple[Kernel, ...]) -> None:
    assert {(kernel.graph, kernel.kind) for kernel in kernels} == {
        (graph, kind) for graph in ("forward", "backward") for kind in ("triton", "extern")
    }
    assert not {kernel.bound for kernel in kernels} - set(BOUNDS)


def test_kernels_have_the_lines_that_they_compute(kernels: tuple[Kernel, ...]) -> None:
    forward = [kernel for kernel in kernels if kernel.graph == "forward"]
    assert lines_of([kernel for kernel in forward if kernel.kind == "extern"]) == {1}
    assert lines_of([kernel for kernel in forward if kernel.kind == "triton"]) == {2, 3}
    assert lines_of([kernel for kernel in kernels if kernel.graph == "backward"]) == {1, 2, 3}


def test_the_code_is_that_of_the_device(kernels: tuple[Kernel, ...]) -> None:
    for kernel in kernels:
        if kernel.kind == "extern":
            assert kernel.code is None
            continue
        assert kernel.code is not None and "@triton.jit" in kernel.code.triton and "tl.load" in kernel.code.triton
        assert ".target sm_90a" in kernel.code.ptx
        assert 0 < kernel.code.registers <= 255 and kernel.code.num_warps >= 1
        assert len(kernel.code.grid) == 3 and kernel.code.grid[0] >= 1


def test_work_is_counted(kernels: tuple[Kernel, ...]) -> None:
    (product,) = (kernel for kernel in kernels if kernel.graph == "forward" and kernel.kind == "extern")
    assert product.operators == ("addmm",) and product.work.flops == 2 * ROWS * WIDTH * WIDE
    assert product.work.bytes_written == 4 * ROWS * WIDE
    assert product.work.bytes_read == 4 * (ROWS * WIDTH + WIDTH * WIDE + WIDE)
    (fused,) = (kernel for kernel in kernels if kernel.graph == "forward" and kernel.kind == "triton")
    result, statistics, parameters = 4 * ROWS * WIDE, 4 * ROWS, 4 * WIDE
    assert fused.work.bytes_read == result + 2 * parameters
    assert fused.work.bytes_written == result + 2 * statistics
    assert fused.work.flops > ROWS * WIDE


def test_an_unknown_target_is_refused_before_anything_runs() -> None:
    with pytest.raises(UnknownTarget, match="known: cuda:sm_80"):
        magpy_core.kernels(magpy_core.monitor(torch.sin)(torch.ones(2)), target="tpu")


def test_without_the_package_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lowering.triton_device, "has_triton", lambda: False)
    with pytest.raises(lowering.MissingTriton, match=r"not installed: `pip install triton`, or `magpy-lsp\[triton\]`"):
        magpy_core.kernels(magpy_core.monitor(torch.sin)(torch.ones(2)))


def test_a_graph_that_does_not_compile_is_named() -> None:
    from magpy_core.products.targets.kernels import TargetFailed

    layer = nn.LSTM(4, 4)
    with pytest.raises(TargetFailed, match=r"LSTM: .*cuDNN"):
        magpy_core.kernels(magpy_core.monitor(layer)(torch.ones(2, 3, 4)))


def test_a_step_with_its_backward_pass_is_one_graph() -> None:
    weight = nn.Parameter(torch.ones(64, 64))

    def step(x: torch.Tensor) -> torch.Tensor:
        weight.grad = None
        loss = (x * weight).square().sum()
        loss.backward()
        with torch.no_grad():
            weight.sub_(weight.grad, alpha=0.1)
        return loss.detach()

    first = step.__code__.co_firstlineno
    found = magpy_core.kernels(magpy_core.monitor(step)(torch.ones(64, 64)), target="a100")
    assert {kernel.graph for kernel in found} == {"step"}
    assert {at.line - first for kernel in found for at in kernel.lines} >= {2, 5}
    assert all(".target sm_80" in kernel.code.ptx for kernel in found if kernel.code is not None)


def test_the_same_kernel_for_the_same_line_is_listed_once() -> None:
    def of(line: int) -> Kernel:
        work = lowering.KernelWork(1, 1, 0, "float32")
        lines = (lowering.KernelLine("m.py", line),)
        return Kernel("r", "forward", "k", "triton", ("add",), lines, 1, work, 2.5, "launch")

    assert [(k.lines[0].line, k.launches) for k in lowering.grouped([of(1), of(2), of(1)])] == [(1, 2), (2, 1)]


@pytest.mark.slow
def test_only_the_kernels_of_a_line_are_compiled() -> None:
    (block,) = magpy_core.monitor(Block())(torch.randn(ROWS, WIDTH)).captures
    (sine,) = magpy_core.monitor(torch.sin)(torch.ones(2)).captures
    captured = [lowering.Captured("block", "function", block), lowering.Captured("sine", "function", sine)]
    line = LINE + 1
    for file in (__file__, "test_lowering.py"):
        found = lowering.kernels_of(captured, parse_target("h100"), (file, line)).kernels
        assert {kernel.region for kernel in found} == {"block"}
        generated = {kernel for kernel in found if kernel.kind == "triton"}
        having = {kernel for kernel in generated if kernel.code is not None}
        assert having == {kernel for kernel in generated if line - LINE in lines_of([kernel])} and having < generated
    found = lowering.kernels_of(captured, parse_target("h100"), (__file__, 1)).kernels
    assert {kernel.region for kernel in found} == {"block", "sine"} and not any(kernel.code for kernel in found)


def test_a_kernel_that_has_run_on_a_device(kernels: tuple[Kernel, ...]) -> None:
    """Inductor keeps the modules that it has loaded in a process, and their kernels forget their configurations."""
    kernel = next(kernel for kernel in kernels if kernel.code is not None)
    assert kernel.code is not None
    source = kernel.code.triton

    def work() -> list[bool]:
        from torch._inductor.codecache import PyCodeCache

        triton_device.stand_in(H100)
        loaded = getattr(PyCodeCache.load(source), kernel.name)
        assert loaded.configs
        loaded.configs = None
        return ["ret" in triton_device.compile_kernel(kernel.name, source, {}, H100).ptx]

    assert in_process(work) == [True]

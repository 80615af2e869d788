"""Reading the assembler's report, and running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from magpy_core.products.targets.ptxas import AssemblerFailed, Resources, read, resources

REPORT = """ptxas info    : 11 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    40 bytes stack frame, 24 bytes spill stores, 28 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 400 bytes cumulative stack size
"""
PTX = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p) { .reg .b64 %rd<2>; .reg .b32 %r<2>;
ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; st.global.u32 [%rd1], %r1; ret; }
"""


def test_registers_and_spills_are_read() -> None:
    assert read(REPORT) == Resources(255, 52)


def test_a_report_without_figures_is_an_error() -> None:
    with pytest.raises(AssemblerFailed, match="no registers"):
        read("ptxas info: nothing")


def test_a_missing_assembler_is_an_error() -> None:
    with pytest.raises(AssemblerFailed, match="can't be run"):
        resources(PTX, Path("/nowhere/ptxas"), "sm_90a")


def test_the_assembler_of_the_package_assembles() -> None:
    pytest.importorskip("triton")
    from magpy_core._compat.torch.triton_device import assembler

    used = resources(PTX, assembler((9, 0)), "sm_90a")
    assert 0 < used.registers <= 32 and used.spill_bytes == 0
    with pytest.raises(AssemblerFailed):
        resources(PTX.replace("st.global", "st.nowhere"), assembler((9, 0)), "sm_90a")

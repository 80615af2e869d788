"""Kernels as tables for a terminal."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from lsp_server.formats import brief, kernel_lines, regions
from lsp_server.formats import kernels as formats
from lsp_server.formats.view import View
from magpy_core.findings import (
    Kernel,
    KernelCode,
    KernelLine,
    KernelWork,
    LineCost,
    RegionSummary,
    Report,
    TargetProblem,
    TargetReport,
)

CODE = KernelCode("import triton\n@triton.jit\ndef k(x):\n    pass\n", ".target sm_90a", 40, 0, 1024, 4, (64, 1, 1))
LINES = (KernelLine("/p/model.py", 3), KernelLine("/p/model.py", 4), KernelLine("/p/model.py", 9))
FUSED = Kernel(
    "model", "forward", "triton_per_fused_0", "triton", ("native_layer_norm", "view", "gelu"), LINES, 4,
    KernelWork(4_000_000, 1_500_000, 3_000_000, "float32"), 2.5, "launch", CODE,
)  # fmt: skip
PRODUCT = Kernel(
    "model", "backward", "extern_kernels.mm", "extern", ("mm",), LINES[:1], 1,
    KernelWork(10**9, 10**9, 10**12, "bfloat16"), 1011.1, "compute",
)  # fmt: skip
REPORT = TargetReport(
    "cuda:sm_90", "H100 SXM", 3.35e12, 2.5, [FUSED, PRODUCT], [TargetProblem("other", "no\x1b counterpart")]
)


def text(parts: Any, width: int = 100) -> str:
    out = Console(file=io.StringIO(), width=width, color_system=None)
    for part in parts:
        out.print(part, soft_wrap=False)
    return out.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_each_graph_has_a_table() -> None:
    shown = text(formats.tables(REPORT, {}, View(width=100)))
    assert "model, forward  4 launches, at least 10.0 µs" in shown
    assert "model, backward  1 launch, at least 1.01 ms" in shown
    assert "layer_norm, gelu" in shown and "model.py:3-4,9" in shown and "mm (library)" in shown
    assert "spills" not in shown


def test_spills_have_a_column_where_there_are_any() -> None:
    spilled = replace(REPORT, kernels=[replace(FUSED, code=replace(CODE, spill_bytes=52))])
    assert "spills" in (shown := text(formats.tables(spilled, {}, View(width=100)))) and "52 B" in shown


@pytest.mark.parametrize("width", [80, 100, 140])
def test_tables_fit_the_terminal(width: int) -> None:
    spilled = replace(REPORT, kernels=[replace(FUSED, code=replace(CODE, spill_bytes=52)), PRODUCT])
    shown = text(formats.tables(spilled, {}, View(width=width)), width)
    assert max(map(len, shown.splitlines())) <= width
    assert all("…" not in line for line in shown.splitlines() if "launch " in line and width >= 100)


def test_sources_show_the_kernel_alone() -> None:
    shown = text(formats.sources(REPORT, View(width=100), colored=False))
    assert "@triton.jit\ndef k(x):" in shown and "import triton" not in shown
    assert "reads 4.0 MB, writes 1.5 MB; 3.00 MFLOP, 0.55 FLOP per byte in float32" in shown
    assert "grid 64 x 1 x 1, 4 warps, 40 registers per thread, 1.0 kB shared memory, 0 B spilled" in shown
    assert "A library's kernel" in shown


def test_the_figures_are_called_estimates() -> None:
    shown = text(formats.notes(REPORT, View()))
    assert "An estimate: nothing ran on the device." in shown and "3.35 TB/s" in shown
    assert "other is not listed: no\N{REPLACEMENT CHARACTER} counterpart" in shown


@pytest.mark.parametrize(("numbers", "shown"), [([3], "3"), ([3, 4, 5, 9], "3-5,9"), ([1, 3, 5], "1,3…"), ([], "")])
def test_lines_are_ranges(numbers: list[int], shown: str) -> None:
    assert formats.ranges(numbers, 2) == shown


@pytest.mark.parametrize(("number", "shown"), [(5, "5 B"), (1500, "1.5 kB"), (150_000, "150 kB"), (5e12, "5000 GB")])
def test_sizes(number: float, shown: str) -> None:
    assert formats.size(number) == shown


@pytest.mark.parametrize("lines", [regions.lines, brief.lines])
def test_a_checks_regions_say_what_they_launch(lines: Any) -> None:
    known = [RegionSummary("model", "module", "model", "/p/model.py", 1), RegionSummary("other", "module", "other", "", 0)]
    shown = text(lines(Report("t.py", known, kernels=REPORT), View()), 200)
    assert "  on H100 SXM: forward 4 kernels, at least 10.0 µs; backward 1 kernel, at least 1.01 ms" in shown
    assert "  on H100 SXM: not compiled: no" in shown


@pytest.mark.parametrize("width", [80, 100, 140])
def test_the_table_of_lines_fits_the_terminal(width: int) -> None:
    costs = [LineCost("model", f"/p/{'folder/' * 20}model.py", line, 1234.5 / line, line) for line in range(1, 30)]
    shown = text([kernel_lines.table(replace(REPORT, lines=costs), View(width=width))], width)
    assert max(map(len, shown.splitlines())) <= width
    assert shown.splitlines()[2].split()[:4] == ["µs", "share", "launches", "line"]
    assert "model.py:20" in shown and "model.py:21" not in shown, "the end of a long path"
    assert "and 9 lines more, 9.2% together" in shown

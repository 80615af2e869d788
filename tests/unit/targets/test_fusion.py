"""What more fusion would save: kernels that Inductor leaves apart, and the least that a graph moves. Needs ``triton``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core._compat.torch.fusion import Apart
from magpy_core._compat.torch.triton_lowering import LoweredGraph
from magpy_core.findings import Kernel, KernelWork, TargetReport
from magpy_core.products.targets import fusion
from magpy_core.products.targets.devices import parse_target
from magpy_core.products.targets.kernels import kernels_of_capture
from magpy_core.products.targets.roofline import estimate

pytest.importorskip("triton")
SIZE = 4096  # smaller kernels are bound by their launch
MATRIX = 4 * SIZE * SIZE
H100 = parse_target("h100")


def report_of(function: Callable[..., Any], *more: torch.Tensor) -> TargetReport:
    with torch.no_grad():
        (capture,) = magpy_core.monitor(function)(torch.zeros(SIZE, SIZE), *more).captures
    report = kernels_of_capture(capture, "h100")
    assert not report.problems, report.problems
    return report


def apart(x: torch.Tensor) -> torch.Tensor:
    total = x.cumsum(0)
    return total.softmax(-1)


@pytest.mark.slow
def test_two_kernels_and_their_lines_and_the_reason() -> None:
    report = report_of(apart)
    assert [graph.least_bytes for graph in report.graphs] == [2 * MATRIX]
    (pair,) = report.unfused
    first = apart.__code__.co_firstlineno
    assert (pair.written.line - first, pair.read.line - first) == (1, 2)
    assert pair.saved_bytes == 2 * MATRIX and pair.times == 1 and pair.reason == "no shared data" and not pair.is_window
    assert (pair.producer, pair.consumer) == tuple(kernel.name for kernel in report.kernels)
    assert 0.2 < pair.share <= 0.5


@pytest.mark.slow
def test_neighbours_are_a_window() -> None:
    def neighbours(x: torch.Tensor) -> torch.Tensor:
        total = x.cumsum(0)
        return total[:, 1:] - total[:, :-1]

    (pair,) = report_of(neighbours).unfused
    assert pair.is_window and pair.reason


@pytest.mark.slow
def test_a_result_that_is_kept_or_needed_elsewhere_is_no_pair() -> None:
    def kept(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = x.cumsum(0)
        return total, total.softmax(-1)

    report = report_of(kept)
    assert len(report.kernels) == 2 and not report.unfused
    assert [graph.least_bytes for graph in report.graphs] == [3 * MATRIX]


@pytest.mark.slow
def test_no_pair_where_another_kernel_runs_between() -> None:
    def between(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        total, shifted = x.cumsum(0), x.cumsum(0) + 1
        return total + (shifted @ w)[:, :1]

    report = report_of(between, torch.zeros(SIZE, 8))
    assert {kernel.kind for kernel in report.kernels} == {"triton", "extern"} and not report.unfused


def kernel(moved: int, flops: int = 0) -> Kernel:
    work = KernelWork(moved, moved, flops, "float32")
    us, bound = estimate(H100, work)
    return Kernel("r", "forward", "k", "triton", ("add",), (), 1, work, us, bound)


@pytest.mark.parametrize(
    ("moved", "flops", "saved"),
    [(10**9, 0, 2e9 / H100.bandwidth * 1e6), (10**5, 0, 0.0), (10**9, 10**12, 0.0)],
    ids=["memory", "launch", "compute"],
)
def test_only_what_memory_bounds_is_saved(moved: int, flops: int, saved: float) -> None:
    pair = Apart(0, 1, ("m.py", 1), ("m.py", 2), moved, moved, "")
    assert fusion.saved_us(pair, [kernel(moved, flops), kernel(moved, flops)], H100) == pytest.approx(saved)


def test_what_costs_little_is_left_out() -> None:
    pair = Apart(0, 1, ("m.py", 1), ("m.py", 2), 10**8, 10**8, "")
    graph = LoweredGraph("forward", [], [pair, replace(pair, written_at=None)], 10**12)
    small, large = [kernel(10**8), kernel(10**8)], kernel(10**10)
    (found,) = fusion.unfused("r", "forward", [(graph, small)], H100)
    assert found.times == 1, "not the pair without a line"
    assert not list(fusion.unfused("r", "forward", [(graph, [*small, large])], H100))


def test_alike_pairs_count_together_and_a_graph_moves_no_less_than_its_kernels() -> None:
    pair = Apart(0, 1, ("m.py", 1), ("m.py", 2), 10**8, 10**8, "")
    graph = LoweredGraph("forward", [], [pair, pair], 10**12)
    kernels = [kernel(10**8), kernel(10**8)]
    (found,) = fusion.unfused("r", "forward", [(graph, kernels)], H100)
    assert (found.times, found.saved_bytes) == (2, 4 * 10**8)
    assert fusion.graph("r", "forward", [(graph, kernels)]).least_bytes == 4 * 10**8

"""What kernels on a target show about a region: MP407 to MP409. No compiler is needed here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.findings import Finding, Kernel, KernelCode, KernelLine, KernelWork, TargetReport, Unfused
from magpy_core.products.targets.kernels import _chosen, kernel_findings
from magpy_core.regions.api import region_of


def kernel(*, us: float = 2.5, launches: int = 1, spill_bytes: int = 0, graph: str = "forward", line: int = 1) -> Kernel:
    code = KernelCode("@triton.jit", ".target sm_90a", 255, spill_bytes, 0, 4, (1, 1, 1))
    work = KernelWork(8, 8, 1, "float32")
    return Kernel("f", graph, "k", "triton", ("add",), (KernelLine(__file__, line),), launches, work, us, "launch", code)


def findings_of(kernels: Sequence[Kernel], unfused: Sequence[Unfused] = ()) -> list[Finding]:
    region: Any = region_of(magpy_core.compile(lambda x: x + 1, name="f"))
    report = TargetReport("cuda:sm_90", "H100 SXM", 1.0, 2.5, list(kernels), unfused=list(unfused))
    return list(kernel_findings(region, report))


def pair(reason: str = "no shared data", *, region: str = "f", lines: tuple[int, int] = (5, 7)) -> Unfused:
    written, read = (KernelLine(__file__, line) for line in lines)
    return Unfused(region, "forward", "k0", "k1", written, read, 2, 134_200_000, 40.0, 0.5, reason, False)


def test_spills_are_found_on_the_line() -> None:
    (found,) = findings_of([kernel(spill_bytes=52, line=5), kernel()])
    assert found.code == "MP407" and found.location.range.start.line == 4
    assert found.message == (
        "The forward kernel of `from collections.abc import Sequence` spills 52 bytes per thread on H100 SXM: 255 registers "
        "don't suffice."
    )


def test_many_short_kernels_are_found_at_the_region() -> None:
    (found,) = findings_of([kernel(launches=30), kernel(us=9.0, launches=2)])
    assert found.code == "MP408" and found.message.startswith("A call of f launches 32 kernels on H100 SXM; 30 of them can")


def test_few_or_long_kernels_are_no_finding() -> None:
    assert not findings_of([kernel(launches=10)])
    assert not findings_of([kernel(us=9.0, launches=20), kernel(launches=20)])
    assert not findings_of([kernel(launches=40, graph="inference")])


def test_one_capture_per_grad_mode_is_compiled() -> None:
    def capture(grad: bool, hits: int) -> Any:
        return SimpleNamespace(modes=(grad,), hits=hits)

    newest, used, plain = capture(True, 1), capture(True, 5), capture(False, 0)
    assert _chosen([newest, plain, used]) == [used, plain]


def test_a_capture_knows_its_modes() -> None:
    with torch.no_grad():
        (without,) = magpy_core.monitor(torch.sin)(torch.ones(2)).captures
    (having,) = magpy_core.monitor(torch.sin)(torch.ones(2)).captures
    assert (without.modes[0], having.modes[0]) == (False, True)


def test_what_goes_through_memory_is_found_where_it_is_read() -> None:
    (found,) = findings_of([kernel()], [pair(), pair(region="other")])
    assert (found.code, found.location.range.start.line, found.path[0].range.start.line) == ("MP409", 6, 4)
    assert found.message == (
        "`from types import SimpleNamespace` reads back 134.2 MB that `from collections.abc import Sequence` has just "
        "written and nothing else uses (50% of the lower bound of forward on H100 SXM). Inductor keeps two kernels, because "
        "they go through it in different orders."
    )
    assert found.advice.startswith("Keep one order") and found.is_actionable
    assert [value.repr for value in found.values] == ["k0, k1", "2", "40.0 µs", "no shared data"]


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("numel/rnumel mismatch (reduce) (8, 4), (4, 8)", "because they loop over different sizes"),
        ("exceeds max fusion", "more operations than Inductor allows"),
        ("grouped node must not be fused", "and says: grouped node must not be fused"),
        ("", "and gives no reason"),
    ],
)
def test_the_compilers_reason_is_explained(reason: str, said: str) -> None:
    (found,) = findings_of([kernel()], [pair(reason)])
    assert said in found.message and found.advice


def test_what_only_calls_without_gradients_exchange_is_no_finding_of_a_program_that_trains() -> None:
    of_evaluation = replace(pair(), graph="inference")
    assert not findings_of([kernel(), kernel(graph="inference")], [of_evaluation])
    assert len(findings_of([kernel(graph="inference")], [of_evaluation])) == 1


def test_a_window_needs_no_action() -> None:
    (found,) = findings_of([kernel()], [replace(pair(), is_window=True)])
    assert not found.is_actionable


def test_a_line_of_two_kernels_is_quoted_once() -> None:
    (found,) = findings_of([kernel()], [pair(lines=(5, 5))])
    assert found.message.startswith("`from collections.abc import Sequence` is computed by two kernels: one reads back")
    assert found.path == () and found.is_actionable
    (gradient,) = findings_of([kernel(graph="backward")], [replace(pair(lines=(5, 5)), graph="backward")])
    assert not gradient.is_actionable, "nobody wrote it"

"""What kernels on a target show about a region: MP407, MP408, MP410. No compiler is needed here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import torch

import magpy_core
from magpy_core.findings import Finding, Kernel, KernelCode, KernelLine, KernelWork, TargetReport
from magpy_core.regions.api import region_of
from magpy_core.regions.kernels import _chosen, kernel_findings


def kernel(*, us: float = 2.5, launches: int = 1, spill_bytes: int = 0, graph: str = "forward", line: int = 1) -> Kernel:
    code = KernelCode("@triton.jit", ".target sm_90a", 255, spill_bytes, 0, 4, (1, 1, 1))
    work = KernelWork(8, 8, 1, "float32")
    return Kernel("f", graph, "k", "triton", ("add",), (KernelLine(__file__, line),), launches, work, us, "launch", code)


def findings_of(kernels: Sequence[Kernel]) -> list[Finding]:
    region: Any = region_of(magpy_core.compile(lambda x: x + 1, name="f"))
    return list(kernel_findings(region, TargetReport("cuda:sm_90", "H100 SXM", 1.0, 2.5, list(kernels))))


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


def test_a_loss_without_logits_is_found_on_its_line() -> None:
    plain = kernel(line=5)
    (found,) = findings_of([replace(plain, work=replace(plain.work, saved_bytes=617_365_504)), plain])
    assert found.code == "MP410" and found.location.range.start.line == 4 and not found.is_actionable
    assert found.message == (
        "On H100 SXM, the logits of `from collections.abc import Sequence` are never in memory together: MagPy's own kernel "
        "computes loss and gradients in chunks, which saves 617 MB."
    )


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

"""Budgets for the kernels of a target: MP508 (number), MP509 (spills), MP510 (time), and MP507 where there is no target."""

from __future__ import annotations

import pytest

from lsp_server.budgets import Budgets, Limits, check_budgets, without_target
from magpy_core.findings import (
    Finding,
    Kernel,
    KernelCode,
    KernelLine,
    KernelWork,
    RegionSummary,
    Report,
    Severity,
    TargetProblem,
    TargetReport,
)
from tests.unit.cli.test_program import Tool, tool

__all__ = ["tool"]

NET = RegionSummary("net", "module", "module: Net", "/p/net.py", 7, calls=2, captures=1)


def kernel(graph: str = "forward", launches: int = 1, us: float = 4.0, spilled: int = 0, region: str = "net") -> Kernel:
    code = KernelCode("@triton.jit", "", 255, spilled, 0, 4, (1,))
    at = (KernelLine("/p/net.py", 9),)
    work = KernelWork(8, 8, 8, "float32")
    return Kernel(region, graph, f"k_{graph}", "triton", ("add",), at, launches, work, us, "memory", code)


KERNELS = [
    kernel(launches=3),
    kernel("backward", 2, spilled=52),
    kernel("inference", 90),
    kernel(region="other", launches=90),
]


def exceeded(limits: Limits, kernels: list[Kernel] = KERNELS, problems: tuple[TargetProblem, ...] = ()) -> list[Finding]:
    target = TargetReport("cuda:sm_90", "H100 SXM", 1e12, 2.5, kernels, list(problems))
    return check_budgets(Report("t.py", [NET], kernels=target), Budgets(limits), compiled=False)


@pytest.mark.parametrize(
    ("limits", "code", "message", "values"),
    [
        (Limits(kernels=4), "MP508", "module: Net launches 5 kernels on H100 SXM; its budget is 4.", ["3", "2"]),
        (Limits(spills=51), "MP509",
         "module: Net has a backward kernel on H100 SXM that spills 52 bytes per thread; its budget is 51.",
         ["k_backward", "net.py:9"]),
        (Limits(estimated_us=19.5), "MP510",
         "module: Net takes at least 20.0 µs on H100 SXM, by its published figures; its budget is 19.5 µs.",
         ["12.0 µs", "8.0 µs"]),
    ],
)  # fmt: skip
def test_a_call_with_its_backward_pass_is_what_is_limited(
    limits: Limits, code: str, message: str, values: list[str]
) -> None:
    (found,) = exceeded(limits)
    assert (found.code, found.message, found.severity) == (code, message, Severity.ERROR)
    assert (found.location.file, found.location.range.start.line, found.region) == ("/p/net.py", 6, "net")
    assert [value.repr for value in found.values] == values


@pytest.mark.parametrize(
    "limits", [Limits(kernels=5), Limits(spills=52), Limits(estimated_us=20), Limits(kernels=False), Limits()]
)
def test_a_kept_limit_is_no_finding(limits: Limits) -> None:
    assert exceeded(limits) == []


def test_a_region_without_gradients_is_limited_by_what_it_launches() -> None:
    (found,) = exceeded(Limits(kernels=89), [kernel("inference", 90)])
    assert "launches 90 kernels" in found.message


def test_a_region_that_does_not_compile_was_not_checked() -> None:
    (found,) = exceeded(Limits(kernels=9, estimated_us=1), [], (TargetProblem("net", "No counterpart."),))
    assert (found.code, found.severity) == ("MP507", Severity.WARNING)
    assert found.message == "`kernels`, `estimated-us` of module: Net can't be checked on H100 SXM: No counterpart."


def test_a_run_without_a_target_says_that_it_has_none() -> None:
    (found,) = without_target(Report("t.py", [NET]), Budgets(Limits(spills=0)))
    assert (found.code, found.severity, found.region) == ("MP507", Severity.INFORMATION, "net")
    assert found.message.startswith("`spills` of module: Net was not checked: this run compiles for no device.")
    assert without_target(Report("t.py", [NET]), Budgets(Limits(guards=1, kernels=False))) == []


def test_on_the_command_line(tool: Tool) -> None:
    tool.pyproject("[tool.magpy.budgets]\nkernels = 4\n")
    tool.regions.append(NET)
    plain = tool("check", "--format", "concise", "train.py")
    assert plain.exit_code == 0 and "MP507 [information] `kernels` of module: Net was not checked" in plain.stdout
    tool.kernels = TargetReport("cuda:sm_90", "H100 SXM", 1e12, 2.5, KERNELS)
    limited = tool("check", "--format", "concise", "--target", "h100", "train.py")
    assert limited.exit_code == 1 and "MP508 [error] module: Net launches 5 kernels" in limited.stdout
    assert "MP507" not in limited.stdout

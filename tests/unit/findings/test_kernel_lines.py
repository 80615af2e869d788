"""The time of a line is that of its kernels, shared equally, for one step."""

from __future__ import annotations

from magpy_core.findings import Kernel, KernelLine, KernelWork
from magpy_core.findings.kernel_lines import line_costs


def kernel(us: float, *lines: int, graph: str = "forward", launches: int = 1, region: str = "r") -> Kernel:
    at = tuple(KernelLine("m.py", line) for line in lines)
    return Kernel(region, graph, "k", "triton", ("add",), at, launches, KernelWork(1, 1, 0, "float32"), us, "memory")


def test_a_kernels_time_is_shared_and_the_hottest_is_first() -> None:
    costs = line_costs([kernel(10.0, 1, 2), kernel(4.0, 2, launches=3, graph="backward")], {})
    assert [(cost.line, cost.us, cost.launches) for cost in costs] == [(2, 17.0, 4), (1, 5.0, 1)]


def test_kernels_without_a_line_are_not_lost() -> None:
    (cost,) = line_costs([kernel(3.0)], {})
    assert (cost.file, cost.line, cost.us) == ("", 0, 3.0)


def test_a_region_that_a_step_calls_twice_costs_twice() -> None:
    (cost,) = line_costs([kernel(3.0, 1)], {"r": 2.0})
    assert (cost.us, cost.launches) == (6.0, 2)


def test_calls_without_gradients_are_no_part_of_a_step_that_trains() -> None:
    (cost,) = line_costs([kernel(3.0, 1), kernel(5.0, 9, graph="inference")], {"r": 4.0})
    assert (cost.line, cost.us) == (1, 3.0), "which of the calls had gradients is not known"
    (alone,) = line_costs([kernel(5.0, 9, graph="inference")], {"r": 4.0})
    assert alone.us == 20.0

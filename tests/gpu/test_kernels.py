"""``magpy_core.kernels`` for the device that is there: it names the kernels that run, with the registers that they have."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from benchmarks.gpu.kernels import Compared, Loaded, compared, paired
from magpy_core.findings.kernels import Kernel, KernelCode, KernelWork
from tests.gpu.device import DEVICE, needs_cuda


def _told(found: Sequence[Compared]) -> str:
    lines = []
    for one in found:
        code = None if one.said is None else one.said.code
        lines.append(f"{one.name}: said {code and (code.registers, code.num_warps)}, loaded {one.loaded}, {one.us} µs")
    return "\n".join(lines)


@functools.cache
def _all() -> tuple[Compared, ...]:
    """Once: what is loaded already is not loaded again."""
    return tuple(compared(DEVICE))


@needs_cuda
def test_names_and_registers_are_those_of_the_device() -> None:
    found = _all()
    print(_told(found))
    assert len(found) >= 3, _told(found)
    both = [one for one in found if one.said is not None and one.loaded is not None]
    assert len(both) >= 0.8 * len(found), f"kernels that only one side has:\n{_told(found)}"
    assert all(one.us is not None and one.us > 0 for one in both), f"a kernel did not run:\n{_told(found)}"
    same = [one.has_same_registers for one in both if one.has_same_registers is not None]
    assert same and sum(same) >= 0.8 * len(same), f"other registers:\n{_told(found)}"


@needs_cuda
def test_no_kernel_is_faster_than_the_least_time() -> None:
    """What is said to be the least, by the published figures, is less than what is measured, but for the clock's error."""
    for one in _all():
        if one.said is not None and one.us is not None and one.said.bound != "launch":
            assert one.us > 0.7 * one.said.us, _told([one])


def test_kernels_are_paired_by_name_and_order() -> None:
    def said(name: str, registers: int) -> Kernel:
        code = KernelCode("", "", registers, 0, 0, 4, ())
        return Kernel("r", "step", name, "triton", (), (), 1, KernelWork(1, 1, 1, "float32"), 1.0, "memory", code)

    found = paired(
        [said("triton_poi_fused_add_3", 20), said("triton_poi_fused_add_0", 10), said("triton_red_fused_sum_1", 30)],
        {"triton_poi_fused_add_12": Loaded(20, 8), "triton_poi_fused_add_2": Loaded(10, 4)},
        {"triton_poi_fused_add_2": 3.0},
    )
    assert [(one.name, one.has_same_registers, one.us) for one in found] == [
        ("triton_poi_fused_add", True, 3.0),
        ("triton_poi_fused_add", None, None),  # other warps, so nothing can be said
        ("triton_red_fused_sum", None, None),  # not loaded
    ]

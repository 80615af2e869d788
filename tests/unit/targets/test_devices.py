"""Names of devices, and the least time that work takes on them."""

from __future__ import annotations

import pytest

from magpy_core.findings.kernels import KernelWork
from magpy_core.products.targets.devices import DEVICES, UnknownTarget, parse_target
from magpy_core.products.targets.roofline import LAUNCH_US, estimate

H100 = DEVICES["cuda:sm_90"]


@pytest.mark.parametrize("text", ["cuda:sm_90", "sm_90", "SM90", "h100", " H100 "])
def test_a_device_has_several_names(text: str) -> None:
    assert parse_target(text) is H100


def test_an_unknown_device_lists_the_known_ones() -> None:
    with pytest.raises(UnknownTarget, match=r"'cuda:sm_91' is not a target; known: cuda:sm_80 \(A100 SXM\), .*sm_90\?"):
        parse_target("cuda:sm_91")


def test_the_assembler_gets_the_instructions_of_one_generation() -> None:
    assert [device.architecture for device in DEVICES.values()] == ["sm_80", "sm_90a", "sm_100a"]


@pytest.mark.parametrize("device", DEVICES.values(), ids=lambda device: device.title)
def test_figures_are_in_basic_units(device: object) -> None:
    """Terabytes and teraflops are easily taken for bytes and flops."""
    assert 1e12 < device.bandwidth < 1e13 and 1e13 < device.peaks["float32"] < 1e14  # type: ignore[attr-defined]
    assert device.peaks["float16"] > device.peaks["tf32"] > device.peaks["float32"]  # type: ignore[attr-defined]


def test_bytes_bound_a_kernel_that_computes_little() -> None:
    us, bound = estimate(H100, KernelWork(2_000_000_000, 1_350_000_000, 1000, "float32"))
    assert bound == "memory" and us == pytest.approx(1000)


def test_arithmetic_bounds_a_product() -> None:
    n = 8192
    us, bound = estimate(H100, KernelWork(2 * 2 * n * n, 2 * n * n, 2 * n**3, "bfloat16"))
    assert bound == "compute" and us == pytest.approx(2 * n**3 / 989e12 * 1e6)


def test_the_type_decides_the_rate() -> None:
    def time(dtype: str) -> float:
        return estimate(H100, KernelWork(0, 0, 10**12, dtype))[0]

    assert time("float64") > time("float32") > time("tf32") > time("float16")
    assert time("complex64") == time("float32")  # no rate is published for it


def test_no_kernel_is_faster_than_a_launch() -> None:
    assert estimate(H100, KernelWork(8, 8, 2, "float32")) == (LAUNCH_US, "launch")

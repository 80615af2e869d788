"""The HTML page's chapter on kernels: a table for each graph, a roofline whose dots are on the roof that limits them."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from lsp_server.formats.html import page, roofline
from magpy_core.findings import Kernel, KernelWork, LineCost, RegionSummary, Report, TargetGraph, TargetReport
from magpy_core.runner.request import parse_target
from tests.golden.test_formats import MODEL, TRAIN, view
from tests.unit.formats.browser import measured
from tests.unit.formats.test_html import EVIL, Page, detailed
from tests.unit.formats.test_kernels import CODE, FUSED, PRODUCT, REPORT

H100 = parse_target("h100")
LONG = "triton_red_fused_native_layer_norm_native_layer_norm_backward_threshold_backward_sum_17"


def of(kernels: list[Kernel], evil: str = "other") -> Report:
    return replace(detailed(), kernels=replace(REPORT, kernels=kernels, problems=REPORT.problems[:1]), entrypoint=evil)


def kernel(bytes_moved: int, flops: int, us: float, bound: str, *, launches: int = 1, dtype: str = "float32") -> Kernel:
    work = KernelWork(bytes_moved, 0, flops, dtype)
    return replace(FUSED, work=work, us=us, bound=bound, launches=launches)


def dots(kernels: list[Kernel]) -> list[tuple[str, float, float, float]]:
    """Class, x, y and radius of each dot."""
    svg = roofline.picture(TargetReport("cuda:sm_90", "H100 SXM", H100.bandwidth, 2.5, kernels))
    found = re.findall(r"<circle class='limit-(\w+)' cx='([\d.]+)' cy='([\d.]+)' r='([\d.]+)'><title>", svg)
    return [(bound, float(x), float(y), float(r)) for bound, x, y, r in found]


def test_the_chapter_is_there_with_kernels_only() -> None:
    assert "id='kernels'" not in page.text(detailed(), view())
    text = page.text(of([FUSED, PRODUCT]), view())
    found = Page(text)
    assert "#kernels" in found.links and found.open == [] and "<h2 id='kernels'>Kernels</h2>" in text
    assert "One call of each region launches on H100 SXM (cuda:sm_90): 5 kernels, at least 1.02 ms in all." in text
    assert "model, forward <span class='soft'>4 kernels, at least 10.0 µs</span>" in text
    assert "nothing ran there" in text and "other is not listed: no\N{REPLACEMENT CHARACTER} counterpart" in text


def test_a_row_has_everything() -> None:
    spilled = replace(FUSED, code=replace(CODE, spill_bytes=52))
    text = page.text(of([spilled, PRODUCT]), view())
    chapter = text.partition("<h2 id='kernels'>")[2].partition("<h2 id='captures'>")[0]
    _, _, row, _, other, *_ = chapter.split("<tr>")  # each after its table's head
    for cell in ("layer_norm, gelu", "model.py:3-4,<wbr>9", "launch", "2.5", "4", "5.5 MB", "3.00", "40", "52 B", "1.0 kB"):
        assert f">{cell}<" in row, cell
    assert "mm (library)" in other and "2.0 GB" in other and "<td data-label='spills' class='number'></td>" in other
    assert "@triton.jit" in text and "import triton" not in text and "href='#kernel-1'" in text


def test_lines_and_traffic_are_told_where_they_are_known() -> None:
    costs = [LineCost("model", MODEL if n else "", n, 100.0 / (n + 1), 3) for n in range(25)]
    target = replace(REPORT, kernels=[FUSED], lines=costs, graphs=[TargetGraph("model", "forward", 2_000_000)])
    text = page.text(replace(detailed(), kernels=target), view())
    hottest = text.partition("<summary>Lines, hottest first</summary>")[2].partition("</details>")[0]
    assert hottest.count("<tr>") == 21 and "no line of the program" in hottest and "26.2%" in hottest
    assert "5 lines more" in hottest and Page(text).open == []
    assert "4 kernels, 0 of them memory-bound, move 22.0 MB; inputs and results alone are 2.0 MB." in text
    assert "hottest" not in page.text(of([FUSED]), view())


def test_names_of_the_program_stay_text() -> None:
    evil = replace(FUSED, name=EVIL, lines=(replace(FUSED.lines[0], file=f"/p/{EVIL}.py"),), operators=(EVIL,))
    text = page.text(of([evil, replace(evil, code=replace(CODE, triton=EVIL))], EVIL), view())
    found = Page(text)
    assert found.tags.count("script") == 1 and found.tags.count("img") == 0 and found.open == []


def test_lines_lead_to_the_source_that_the_page_shows() -> None:
    lines = (replace(FUSED.lines[0], file=TRAIN, line=3), replace(FUSED.lines[0], file=MODEL, line=99_999))
    text = page.text(of([replace(FUSED, lines=lines)]), view())
    (shown,) = re.findall(r"<a class='mono' href='#([^']+)'>\w+\.py:3</a>", text)
    assert f"id='{shown}'" in text and "<span class='mono soft'>" in text


def test_a_dot_is_on_the_roof_that_limits_it() -> None:
    moved, worked = 10**9, 10**12
    memory = kernel(moved, 10**8, moved / H100.bandwidth * 1e6, "memory")
    compute = kernel(moved, worked, worked / H100.peaks["float32"] * 1e6, "compute")
    launch = kernel(1000, 500, 2.5, "launch")
    found = {bound: (x, y) for bound, x, y, _ in dots([memory, compute, launch])}
    svg = roofline.picture(TargetReport("cuda:sm_90", "H100 SXM", H100.bandwidth, 2.5, [memory, compute, launch]))
    slope, level = re.findall(r"<line class='roof' x1='([\d.]+)' y1='([\d.]+)' x2='([\d.]+)' y2='([\d.]+)'/>", svg)
    x1, y1, x2, y2 = map(float, slope)
    x, y = found["memory"]
    assert y == pytest.approx(y1 + (y2 - y1) * (x - x1) / (x2 - x1), abs=0.3)
    assert found["compute"][1] == pytest.approx(float(level[1]), abs=0.2) and found["compute"][0] > float(level[0])
    assert found["launch"][1] > y1 + (y2 - y1) * (found["launch"][0] - x1) / (x2 - x1), "below the slope"
    assert "float32 67 TFLOP/s" in svg and "memory 3.35 TB/s" in svg


def test_axes_are_logarithmic_and_hold_every_dot() -> None:
    kernels = [kernel(10**6, 10**n, 10.0, "memory") for n in range(2, 12)]
    found = sorted((x, y) for _, x, y, _ in dots(kernels))
    steps = {round(b[0] - a[0], 1) for a, b in itertools.pairwise(found)}
    assert len(steps) <= 2 and max(steps) - min(steps) < 0.2
    assert all(0 < x < 400 and 0 < y < 330 for x, y in found)


def test_larger_dots_take_more_of_the_time() -> None:
    small, large = kernel(100, 10, 2.5, "launch"), kernel(100, 20, 2.5, "launch", launches=50)
    (first, *_, most), (second, *_, least) = dots([small, large])
    assert most > 2 * least and first == second == "launch"


def test_without_arithmetic_there_is_no_picture() -> None:
    copy = kernel(100, 0, 2.5, "launch")
    assert roofline.picture(replace(REPORT, kernels=[copy])) == ""
    assert "1 kernel without arithmetic is not drawn" in roofline.picture(replace(REPORT, kernels=[copy, FUSED]))


def test_a_device_of_another_version_has_no_peaks() -> None:
    svg = roofline.picture(replace(REPORT, target="cuda:sm_120", kernels=[FUSED]))
    assert "memory 3.35 TB/s" in svg and "TFLOP/s" not in svg and "<circle class='limit-launch'" in svg


def test_peaks_that_are_close_have_names_that_do_not_overlap() -> None:
    kernels = [kernel(10**6, 10**9, 20.0, "compute", dtype=dtype) for dtype in ("bfloat16", "float32", "float64", "tf32")]
    svg = roofline.picture(TargetReport("cuda:sm_90", "H100 SXM", H100.bandwidth, 2.5, kernels))
    heights = [float(y) for y in re.findall(r"y='([\d.]+)' text-anchor='end'>[a-z]+\d+ ", svg)]
    assert len(heights) == 4 and all(b - a >= 12 for a, b in itertools.pairwise(heights))


@pytest.mark.parametrize("width", [375, 1280])
def test_nothing_is_wider_than_the_window(tmp_path: Path, width: int) -> None:
    long = replace(FUSED, name=LONG, code=replace(CODE, spill_bytes=52), us=123_456.7, launches=1_000_000)
    kernels = [replace(long, work=KernelWork(4 * 10**9, 10**9, 10**12 * n, "float32")) for n in range(1, 4)]
    one = of([*kernels, PRODUCT])
    one.regions = [*one.regions, RegionSummary("model", "module", "a_model_with_a_long_name: " + "Net" * 12, MODEL, 1)]
    found = measured(page.text(one, view()), width, tmp_path)
    assert found["page"][0] <= found["page"][1] and not found["boxes"], found


def test_the_picture_says_the_same_in_words() -> None:
    svg = roofline.picture(REPORT)
    assert "aria-label='Roofline of H100 SXM: 2 kernels, 1 limited by compute, 1 limited by launch'" in svg
    assert math.isclose(FUSED.work.intensity, 3_000_000 / 5_500_000) and "0.55 FLOP per byte in float32" in svg

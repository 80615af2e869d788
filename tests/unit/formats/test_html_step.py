"""The HTML page's chapter on the training step: two bars on one scale, single steps by kind, names that stay text."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from lsp_server.formats.html import page, step, step_bars, step_timeline
from magpy_core.findings import RegionSummary, Report, StepPart, StepReport, StepSample
from magpy_core.findings.step import STEP_KINDS
from tests.golden.test_formats import faster, view
from tests.unit.formats.test_html import EVIL, Page


def chapter(one: StepReport | None) -> str:
    return step.chapter(Report("train.py", step=one))


def bars(one: StepReport) -> list[dict[str, float]]:
    """For each bar (by its height on the page) the widths of its pieces, by class."""
    found: dict[str, dict[str, float]] = {}
    for style, y, width in re.findall(
        r"<rect class='([^']+)' x='[\d.]+' y='(\d+)' width='([\d.]+)'", step_bars.picture({"": one})
    ):
        found.setdefault(y, {})[style] = float(width)
    return list(found.values())


def test_the_chapter_is_there_with_a_step_only() -> None:
    assert chapter(None) == "" and "id='step'" not in page.text(Report("train.py"), view())
    text = page.text(Report("train.py", step=faster()), view())
    assert "<a href='#step'>Step</a>" in text and text.index("<h2 id='step'>") < text.index("<h2 id='regions'>")
    assert "<p>41.2 ms compiled, 63.0 ms in eager mode (1.53x" in text and "class='number'>1.74x</td>" in text


@pytest.mark.parametrize(
    "one", [StepReport(), StepReport(count=5, plain=4, compiled=1), StepReport(count=40, plain=30, compiled=2, plain_ms=3.0)]
)
def test_without_measurements_there_is_the_line_alone(one: StepReport) -> None:
    text = chapter(one)
    assert text.startswith("<h2 id='step'>Step</h2><p>") and "<svg" not in text and "<table" not in text


def test_a_command_in_the_line_is_code() -> None:
    region = RegionSummary("r", "module", "Net", "/p/net.py", 1, calls=9, captures=1, unused="compiling")
    text = step.chapter(Report("t.py", [region], step=StepReport(count=9, plain=9, plain_ms=3.0)))
    assert "<code>--compile foreground</code>" in text


def test_both_bars_have_one_scale_and_the_colours_of_their_parts() -> None:
    plain, compiled = bars(faster())
    assert plain["part0 forward"] / compiled["part0 forward"] == pytest.approx(14.1 / 8.0, rel=0.01)
    assert plain["part0 backward"] / compiled["part0 backward"] == pytest.approx(30.2 / 17.5, rel=0.01)
    assert set(plain) == set(compiled) == {"part0 forward", "part0 backward", "part1 forward", "rest forward"}
    longer = replace(faster(), plain_ms=80.0)
    assert bars(longer)[0]["unassigned"] == pytest.approx(bars(longer)[0]["rest forward"] * 17.0 / 9.7, rel=0.01)


def test_only_the_largest_parts_have_a_colour_of_their_own() -> None:
    parts = [StepPart(f"block {n}", f"r{n}", plain_forward_ms=n + 1.0, compiled_forward_ms=n + 0.5) for n in range(9)]
    one = replace(faster(), parts=parts)
    assert {style for bar in bars(one) for style in bar} - {"unassigned"} == {
        *(f"part{n} forward" for n in range(6)), "others forward",
    }  # fmt: skip
    text = step_bars.picture({"": one})
    assert "3 smaller parts" in text and "block 8" in text and "faded" not in text


def test_the_bars_can_be_read_without_seeing_them() -> None:
    (label,) = re.findall(r"<svg[^>]* role='img' aria-label='([^']*)'", step_bars.picture({"": faster()}))
    assert label == (
        "eager step 63.0 ms, Net: 44.3 ms (14.1 + 30.2, forward + backward), AdamW: 9.00 ms, the rest: 9.70 ms; "
        "compiled step 41.2 ms, Net: 25.5 ms (8.00 + 17.5, forward + backward), AdamW: 5.20 ms, the rest: 10.5 ms"
    )


def points(text: str) -> list[tuple[str, float, float]]:
    drawn = r"<path class='step-(\w+)' transform='translate\(([\d.]+),([\d.]+)\)' d='[^']+'><title>"
    return [(kind, float(x), float(y)) for kind, x, y in re.findall(drawn, text)]


def test_each_step_is_a_point_with_the_shape_of_its_kind() -> None:
    text = step_timeline.picture(faster())
    found = points(text)
    assert [kind for kind, *_ in found] == ["plain", "waited", "plain", "mixed", "compiled", "compiled"]
    assert [x for _, x, _ in found] == sorted(x for _, x, _ in found)
    assert found[1][2] < found[0][2] < found[3][2] < found[4][2], "longer is higher"
    assert "step 900: 52.0 ms, partly compiled" in text and "step 4,200" in text and "broke even" in text
    assert "aria-label='Milliseconds of 6 steps, from step 1 to step 4,200: 2 eager mode, 2 compiled, 1 partly" in text
    assert set(step_timeline.KINDS) == set(STEP_KINDS)


def test_the_axis_starts_at_zero_unless_a_wait_would_flatten_the_rest() -> None:
    steady = replace(faster(), timeline=[StepSample(n, 60.0 - n, "plain") for n in range(1, 9)])
    assert ">0</text>" in step_timeline.picture(steady)
    long = step_timeline.picture(faster())
    assert ">0</text>" not in long and ">1,000</text>" in long
    close = step_timeline.picture(replace(faster(), plain_ms=42.0))
    plain, compiled = (re.search(rf"y='([\d.]+)'>{name}:", close) for name in ("eager", "compiled"))
    assert plain is not None and compiled is not None and float(compiled[1]) - float(plain[1]) >= 12, "names do not overlap"


@pytest.mark.parametrize("ms", [0.0, float("nan"), 0.0001, 60.0, 1e7])
def test_any_time_can_be_drawn(ms: float) -> None:
    one = StepReport(count=1, timeline=[StepSample(1, ms, "plain")])
    assert len(points(step_timeline.picture(one))) == (0 < ms < float("inf"))
    assert len(points(step_timeline.picture(replace(faster(), timeline=[*faster().timeline, *one.timeline])))) >= 6


def test_names_stay_text() -> None:
    one = replace(faster(), parts=[StepPart(EVIL, "r0", 1.0, 2.0, 3.0, 4.0)])
    found = Page(page.text(Report("train.py", step=one), view()))
    assert found.open == [] and found.tags.count("script") == 1 and found.tags.count("img") == 0

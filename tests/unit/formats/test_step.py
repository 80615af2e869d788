"""The training step in words and figures: units, what compares, shares, and why nothing ran compiled."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from typing import Any, get_args

import pytest

from lsp_server.features.summary import total_line
from lsp_server.formats import markdown
from lsp_server.formats.brief import lines as brief_lines
from lsp_server.formats.html import page
from lsp_server.formats.live import LiveRun
from lsp_server.formats.step_parts import row_of, rows, share_of
from lsp_server.formats.step_text import brief, duration, gained, line, milliseconds, result
from lsp_server.formats.view import cost
from magpy_core.findings import (
    Finding,
    Location,
    Position,
    Range,
    RegionSummary,
    Report,
    Severity,
    StepPart,
    StepReport,
    Unused,
)
from tests.golden.test_formats import faster, table_of, text_of, view
from tests.golden.test_formats import report as sample

PLAIN = StepReport(count=9, plain=9, plain_ms=3.0)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0123, "0.012"), (0.5, "0.500"), (1.234, "1.23"), (12.34, "12.3"), (999.4, "999.4"), (1234.5, "1,234")],
)
def test_milliseconds(value: float, shown: str) -> None:
    assert milliseconds(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.421, "0.42 s"),
        (3.14, "3.1 s"),
        (41.26, "41.3 s"),
        (269.4, "269 s"),
        (1104.0, "18 min 24 s"),
        (21000.0, "5 h 50 min"),
    ],
)
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_brief_is_empty_unless_both_were_measured() -> None:
    assert brief(faster()) == "step 41.2 ms compiled, 63.0 ms eager (1.53x)"
    assert brief(PLAIN) == brief(StepReport()) == ""


WHY: dict[Unused, str] = {
    "called once": "`Net` was called only 60 times",
    "budget": "so short a run can gain: run it for longer, or record at once with `--compile foreground`",
    "surroundings": "(MP106 at net.py:1)",
    "not recorded": "no call of `Net` could be recorded",
    "refused": "`Net` can't be compiled (MP106 at net.py:1)",
    "cut": "only parts of `Net` can be compiled",
    "slower": "was slower, so it is not used",
    "slower before": "was slower in an earlier run of this command, so it was not compiled again",
    "again": "while `Net` was being compiled: run it again (the compiler may take more time in the next run)",
    "compiling": "while `Net` was being compiled: run it for longer, or wait",
    "no core": "leave it a core (`OMP_NUM_THREADS=1`)",
    "queued": "before the compiler came to `Net`",
    "costly": "compiling `Net` would take more time than its code saves in so short a run: run it for longer, or compile it",
    "not loaded": "run it for longer, or again",
    "not served": "no later call of `Net` was like the recorded one (MP106 at net.py:1)",
    "late": "ran in only 3 of 60 calls",
    "small": "`Net` has too few operations to gain anything from compiling",
    "replaced": "smaller parts of `Net` are compiled in its place",
    "inside": "`Net` is not compiled as a whole, but what it calls is compiled by itself",
    "missed": "`Net` fits only some of its calls, and ran in 0 of 60 calls (MP106 at net.py:1)",
}


def run_with(unused: Unused, **finding: Any) -> Report:
    at = Location("/p/net.py", Range(Position(0, 0), Position(0, 1)))
    other: Unused = "" if unused in ("cut", "small", "replaced", "inside", "missed") else "queued"
    regions = [
        RegionSummary("r", "module", "Net", "/p/net.py", 1, calls=60, hits=3 if unused == "late" else 0, unused=unused),
        RegionSummary("o", "optimizer", "SGD", "/p/net.py", 1, calls=60, unused=other),
    ]
    return Report("t.py", regions, [Finding("MP106", "m", at, region="r", **finding)], step=PLAIN)


@pytest.mark.parametrize("unused", get_args(Unused)[1:])
def test_a_run_without_compiled_steps_says_why_in_one_line_to_act_on(unused: Unused) -> None:
    text = line(run_with(unused))
    assert text.startswith("Step: 3.00 ms in eager mode; no step ran fully compiled: ") and WHY[unused] in text
    assert "findings say" not in text and "\n" not in text


@pytest.mark.parametrize("unused", ["again", "compiling", "no core", "queued", "costly"])
@pytest.mark.parametrize(("done", "text"), [(0, None), (1, "1 of 9 parts is compiled; the next run starts with it"),
                                            (7, "7 of 9 parts are compiled; the next run starts with them")])  # fmt: skip
def test_a_run_that_ends_too_soon_says_how_far_the_compiler_came(unused: Unused, done: int, text: str | None) -> None:
    report = run_with(unused)
    report.regions[0].parts, report.regions[0].parts_compiled = 9, done
    assert f" ({text})" in line(report) if text else "parts" not in line(report)


def test_a_run_says_that_its_code_was_compiled_before() -> None:
    report = Report("t.py", [RegionSummary("r", "module", "Net", "/p/net.py", 1, calls=60, hits=50, kept=1)], step=faster())
    report.step.compile_s = 0.0  # type: ignore[union-attr]
    assert "; its code was compiled in an earlier run" in line(report)
    report.step.compile_s = 3.0  # type: ignore[union-attr]
    assert "compiling took 3.0 s in the background" in line(report) and "earlier run" not in line(report)


@pytest.mark.parametrize(
    ("verified", "others", "text"),
    [(3, [], "3 of 3 graphs"), (1, [], "1 of 1 graph"), (2, ["it communicates"], "2 of 3 graphs"), (0, [], None)],
)
def test_a_run_says_how_much_of_its_code_was_verified(verified: int, others: list[str], text: str | None) -> None:
    region = RegionSummary("r", "module", "Net", "/p/net.py", 1, calls=60, hits=50, verified=verified, unverified=others)
    shown = line(Report("t.py", [region], step=faster()))
    assert (f" {text} verified against eager mode." in shown) if text else "verified" not in shown


def test_a_reason_that_is_a_fact_says_how_to_see_it() -> None:
    text = line(
        run_with("refused", severity_override=Severity.INFORMATION, hint="No action needed: the inner one is a region.")
    )
    assert "(MP106 at net.py:1, which `--details` shows)" in text


def test_few_compiled_steps_have_a_reason_too() -> None:
    report = run_with("late")
    report.step = StepReport(count=60, plain=57, compiled=3, plain_ms=3.0)
    assert "too few compiled steps to compare (3 of 60): compiled code of `Net` ran in only 3 of 60 calls" in line(report)
    report.step = StepReport(count=60, plain=5, compiled=3)
    assert "too few to compare: compiled code of `Net` ran in only 3" in line(report)


def test_a_program_without_regions_is_told_so() -> None:
    assert "called no model and no optimizer that MagPy could record" in line(Report("t.py", step=PLAIN))


LOSES = replace(faster(), saved_s=-6.5, break_even=None)
UNCLEAR = replace(faster(), speedup_low=0.9, saved_s=-3.1, break_even=None)


@pytest.mark.parametrize("step", [LOSES, UNCLEAR])
def test_no_output_prints_a_gain_that_the_clock_would_not_show(step: StepReport) -> None:
    report = replace(sample(), step=step)
    for region in report.regions:
        region.speedup_low, region.speedup_high = 0.5, 3.0
    live = LiveRun()
    live.take({"type": "progress", "rate": 24.0, "compiled": 1.0, "step": step.to_json()})
    shown = [
        page.text(report, view()), markdown.text(report, view(), {}), table_of(report), text_of(brief_lines(report, view())),
        line(report), brief(step), result(step), gained(step), total_line(report.regions, step),
        *live.text().lines, *live.text(ended=True).lines,
    ]  # fmt: skip
    assert [text for text in shown if re.search(r"\b1\.53x|\b2\.\d\dx", text)] == []
    assert step.to_json()["verdict"] == ("faster" if step is LOSES else "unclear")


def test_the_whole_of_a_step_is_100_percent() -> None:
    at = Location("/p/net.py", Range(Position(0, 0), Position(0, 1)))
    assert cost([Finding("MP406", "m", at, cost_ms=2.0, step_ms=2.0)]) == "2 ms per step, 100% of a step of 2 ms"


def test_only_sums_of_the_same_passes_compare() -> None:
    parts = [
        StepPart("both", "a", 1.0, 3.0, 0.5, 1.5),
        StepPart("forward", "b", plain_forward_ms=3.0, compiled_forward_ms=2.0),
        StepPart("unlike", "c", 1.0, 3.0, 0.5, None),
        StepPart("plain", "d", plain_forward_ms=1.0),
        StepPart("nothing", "e"),
        StepPart("instant", "f", 1.0, None, 0.0, None),
    ]
    step = StepReport(count=9, plain_ms=8.0, compiled_ms=4.0, speedup_low=1.8, speedup_high=2.2, parts=parts)
    assert [row.speedup for row in rows(step)] == [2.0, 1.5, None, None, None, None]
    assert [row.share for row in rows(step)] == [50.0, 37.5, 50.0, 12.5, None, 12.5]
    assert row_of(step, "b") == list(rows(step))[1] and row_of(step, "z") is row_of(step, "") is row_of(None, "b") is None


def test_shares_are_of_the_compiled_step_if_only_that_was_measured() -> None:
    step = StepReport(count=9, compiled_ms=4.0, parts=[StepPart("a", "a", 9.0, 9.0, 0.5, 1.5)])
    assert (share_of(step), [row.share for row in rows(step)]) == ("compiled", [50.0])


def test_the_words_need_no_rich() -> None:
    code = "import sys, lsp_server.formats.step_parts; assert 'rich' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)

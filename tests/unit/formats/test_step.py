"""The training step in words and figures: units, what compares, shares, and why nothing ran compiled."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lsp_server.formats.step_parts import row_of, rows, share_of
from lsp_server.formats.step_text import brief, duration, line, milliseconds
from magpy_core.findings import Finding, Location, Position, Range, RegionSummary, Report, StepPart, StepReport
from tests.golden.test_formats import faster

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
    assert brief(faster()) == "step 41.2 ms compiled, 63.0 ms plain (1.53x)"
    assert brief(PLAIN) == brief(StepReport()) == ""


@pytest.mark.parametrize(
    ("region", "codes", "why"),
    [
        (None, [], ": the program has no region."),
        ({"captures": 0}, ["MP404"], ": no region was captured, and the findings say why."),
        ({"captures": 1}, ["MP404"], ": the program ended before the compiled code was ready (`--compile foreground` waits"),
        ({"captures": 1}, ["MP401"], ": the compiled code was slower, so it is not used."),
        ({"captures": 1}, ["MP102"], "fully compiled."),
        ({"captures": 1, "compile_s": 1.5}, [], "fully compiled."),
        ({"captures": 1}, [], ": nothing was compiled before the program ended (`--compile foreground` waits for it)."),
    ],
)
def test_why_no_step_ran_compiled(region: dict[str, float] | None, codes: list[str], why: str) -> None:
    regions = [] if region is None else [RegionSummary("r", "module", "Net", "/p/net.py", 1, **region)]  # type: ignore[arg-type]
    at = Location("/p/net.py", Range(Position(0, 0), Position(0, 1)))
    text = line(Report("t.py", regions, [Finding(code, "m", at) for code in codes], step=PLAIN))
    assert text.startswith("Step: 3.00 ms in plain Python; no step ran fully compiled") and why in text


def test_only_sums_of_the_same_passes_compare() -> None:
    parts = [
        StepPart("both", "a", 1.0, 3.0, 0.5, 1.5),
        StepPart("forward", "b", plain_forward_ms=3.0, compiled_forward_ms=2.0),
        StepPart("unlike", "c", 1.0, 3.0, 0.5, None),
        StepPart("plain", "d", plain_forward_ms=1.0),
        StepPart("nothing", "e"),
        StepPart("instant", "f", 1.0, None, 0.0, None),
    ]
    step = StepReport(count=9, plain_ms=8.0, compiled_ms=4.0, parts=parts)
    assert [row.speedup for row in rows(step)] == [2.0, 1.5, None, None, None, None]
    assert [row.share for row in rows(step)] == [50.0, 37.5, 50.0, 12.5, None, 12.5]
    assert row_of(step, "b") == list(rows(step))[1] and row_of(step, "z") is row_of(step, "") is row_of(None, "b") is None


def test_shares_are_of_the_compiled_step_if_only_that_was_measured() -> None:
    step = StepReport(count=9, compiled_ms=4.0, parts=[StepPart("a", "a", 9.0, 9.0, 0.5, 1.5)])
    assert (share_of(step), [row.share for row in rows(step)]) == ("compiled", [50.0])


def test_the_words_need_no_rich() -> None:
    code = "import sys, lsp_server.formats.step_parts; assert 'rich' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)

"""The page's chapter on recompiles: calls and causes belong together, hits only where it is certain whose they are."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from lsp_server.formats.html import capture_timeline, page
from lsp_server.formats.html.capture_history import history
from lsp_server.formats.html.source import Sheets
from magpy_core.findings import CaptureSummary, Recompile, RegionSummary, Report
from magpy_core.findings.details import Call, Details
from magpy_core.runner.launch import launch
from magpy_core.runner.request import RunRequest
from tests.golden.test_formats import TRAIN, view
from tests.unit.formats.test_html import EVIL, Page

NET = "module:Net"
HOW = "recorded plain recorded replayed recorded replayed replayed".split()
CALLS = [Call(NET, float(number), 0.5, how) for number, how in enumerate(HOW)]
REGION = RegionSummary(
    NET, "module", "Net", TRAIN, 3, calls=7, captures=3,
    recompiles=[Recompile(3, "self.training", "True", "False", TRAIN, 4), Recompile(5, "x.shape[0]", "8", "4")],
    per_capture=[CaptureSummary(9, None, 2, True), CaptureSummary(8, None, 1, True), CaptureSummary(7, None, 0, True)],
)  # fmt: skip


def report(region: RegionSummary = REGION, calls: list[Call] = CALLS) -> Report:
    return Report("train.py", [region], details=Details([], calls))


def chapter(one: Report) -> str:
    return capture_timeline.chapter(one, Sheets(one, view()))


def test_a_recording_has_the_causes_of_its_call_and_the_capture_that_it_made() -> None:
    others = [Call("other", 0.1, 0.1, "recorded"), *CALLS]
    found = history(REGION, others)
    assert [(one.number, [c.name for c in one.causes]) for one in found] == [
        (1, []), (3, ["self.training"]), (5, ["x.shape[0]"]),
    ]  # fmt: skip
    assert [one.timed.start for one in found if one.timed] == [0.0, 2.0, 4.0]
    assert [one.made.hits for one in found if one.made] == [0, 1, 2], "captures are kept from newest to oldest"


def test_hits_belong_to_no_capture_if_one_is_missing() -> None:
    dropped = replace(REGION, per_capture=REGION.per_capture[:2], captures=2)
    assert [one.made for one in history(dropped, CALLS)] == [None] * 3
    text = chapter(report(dropped))
    assert "Hits of the captures that were kept, newest first: 2, 1." in text and "class='life'" not in text
    assert "recording 2" in text and "capture 2" not in text
    compiler = chapter(report(replace(REGION, engine="dynamo")))
    assert "hit" not in re.sub(r"<th[^>]*>hits</th>|data-label='hits'", "", compiler), "torch.compile counts no hits"


def test_each_capture_is_a_lane_with_the_time_of_its_call_and_its_cause() -> None:
    text = chapter(report())
    lanes = re.findall(r"<rect class='recorded' x='([\d.]+)' y='(\d+)' width='([\d.]+)' height='14'", text)
    xs = [float(x) for x, *_ in lanes]
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2) and xs[1] > xs[0] and len({y for _, y, _ in lanes}) == 3
    assert "call 3, line 4: self.training changed from True to False" in text and "1 hit<" in text and "2 hits<" in text
    (label,) = re.findall(r"aria-label='([^']*)'", text)
    assert label.startswith("Captures of Net over its 7 calls. capture 1: call 1, 500.0 ms: no capture before it; 0 hits.")
    assert "capture 2: call 3, 500.0 ms: self.training changed from True to False, line 4; 1 hit." in label.replace(
        "&#x27;", "'"
    )


def test_the_table_says_the_same_and_leads_to_the_line() -> None:
    text = page.text(report(), view())
    rows = text.partition("<h2 id='recompiles'>")[2].partition("<tbody>")[2].partition("</tbody>")[0]
    assert rows.count("<tr>") == 3 and "<code>self.training</code>" in rows and "<code>False</code>" in rows
    assert re.search(r"<a class='mono' href='#L\w+-4'>train.py:4</a>", rows)
    assert "<a href='#recompiles'>Recompiles</a>" in text


def test_the_picture_ends_soon_after_the_last_capture() -> None:
    late = [*CALLS, *(Call(NET, 10.0 * number, 0.5, "replayed") for number in range(1, 21))]
    text = chapter(report(calls=late))
    assert "Then 20 more calls, up to 200 s, without a capture." in text and ">6.75 s<" in text
    assert "more call" not in chapter(report())


def test_thousands_of_calls_are_thinned_out_and_captures_never() -> None:
    many = [Call(NET, n * 0.001, 0.0005, "recorded" if n in (0, 5001, 9999) else "plain") for n in range(10_000)]
    text = chapter(report(replace(REGION, recompiles=[]), many))
    assert text.count("class='plain'") == 0 and "No region was compiled again." in text
    region = replace(REGION, recompiles=[Recompile(5002, "a", "1", "2"), Recompile(10_000, "a", "2", "3")])
    text = chapter(report(region, many))
    assert text.count("height='14'") == 3 and text.count("class='plain'") < 4100
    assert text.count("<rect class='recorded'") == 3 + 3 + 1, "lanes, calls, legend"


def test_without_timed_calls_there_is_the_table_alone() -> None:
    text = chapter(Report("train.py", [REGION]))
    assert "<svg" not in text and "self.training" in text
    assert [(one.number, one.made and one.made.hits) for one in history(REGION, [])] == [(0, 0), (3, 1), (5, 2)]
    assert chapter(Report("train.py", [replace(REGION, captures=0, recompiles=[])])) == ""


def test_names_and_values_stay_text() -> None:
    region = replace(REGION, name=EVIL, recompiles=[Recompile(3, EVIL, EVIL, EVIL, TRAIN, 4)])
    found = Page(page.text(report(region), view()))
    assert found.open == [] and found.tags.count("script") == 1 and found.tags.count("img") == 0


PROGRAM = """\
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(4, 4)
        self.mode = "first"

    def forward(self, x):
        return self.a(x) if self.mode == "first" else self.a(x).relu()

net = Net()
for i in range(5):
    net.mode = "first" if i < 3 else "second"
    net(torch.ones(2, 4))
"""


@pytest.mark.slow
def test_a_real_runs_recompile_is_at_the_call_that_recorded_again(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    outcome = launch(RunRequest(script="train.py", cwd=str(tmp_path), steps=9, details=True, stdout="null")).outcome
    assert outcome.kind == "ok" and outcome.report.details is not None
    (region,) = outcome.report.regions
    first, again = history(region, outcome.report.details.calls)
    assert (first.number, again.number) == (1, 4) and not first.causes
    assert [(c.name, c.old, c.new, c.line) for c in again.causes] == [("self.mode", "'first'", "'second'", 10)]
    assert first.made is not None and again.made is not None and (first.made.hits, again.made.hits) == (2, 1)

"""What `run --verify` shows: a table, and a picture of the differences over the steps."""

from __future__ import annotations

import re

from rich.console import Console

from lsp_server.formats import verified
from lsp_server.formats.html import page
from lsp_server.formats.html import verified as chapter
from magpy_core.findings import Compared, RegionSummary, Report
from tests.golden.test_formats import view
from tests.unit.formats.test_html import EVIL, Page


def region(name: str, *samples: Compared) -> RegionSummary:
    return RegionSummary(name, "module", name, "/p/train.py", 3, samples=list(samples))


REPORT = Report(
    "train.py",
    regions=[
        region("net", Compared(0, 2e-7), Compared(50, 3.1e-6), Compared(100, 0.25, is_difference=True)),
        region("equal", Compared(0, 0.0), Compared(0, 0.0), Compared(50, 0.0)),
        region("quiet"),
        region(EVIL, Compared(7, 0.0, unchecked="it <communicates>"), Compared(9, 0.0, unchecked="it <communicates>")),
    ],
)


def test_the_table_has_a_row_for_each_region_that_was_compared() -> None:
    assert verified.table(Report("train.py", regions=[region("quiet")])) is None
    net, equal, unchecked = verified.compared(REPORT)
    assert verified.cells(net) == ("3", "1", "2.5e-01", "100")
    assert verified.cells(equal) == ("2", "0", "0", "-"), "steps, not graphs"
    assert verified.cells(unchecked) == ("0", "0", "-", "-")
    assert verified.reasons(unchecked) == ["2 calls not compared: it <communicates>"]
    console = Console(width=100, record=True)
    console.print(verified.table(REPORT))
    text = console.export_text()
    assert "Compared with eager mode" in text and re.search(r"net +3 +1 +2.5e-01 +100", text) and "quiet" not in text


def test_code_that_was_wrong_in_its_first_call_has_a_row() -> None:
    at_first, later = region("at first"), region("later", Compared(50, 0.25, is_difference=True))
    at_first.wrong, later.wrong = 2, 1
    report = Report("train.py", regions=[at_first, later])
    assert [verified.cells(one) for one in verified.compared(report)] == [("0", "2", "-", "-"), ("1", "1", "2.5e-01", "50")]
    assert verified.reasons(at_first) == ["2 graphs not used: another result in its first call"]
    assert verified.reasons(later) == [] and "2 graphs not used" in chapter.chapter(report)


def test_the_page_draws_them_over_the_steps() -> None:
    assert chapter.chapter(Report("train.py")) == ""
    text = page.text(REPORT, view())
    drawn = Page(text)
    assert not drawn.open and "#verified" in drawn.links and "verified" in drawn.ids
    assert text.count("<circle ") == 6 and text.count("class='step-waited' cx") == 1, "of a call that differs"
    assert "Largest difference from eager mode in 3 calls of net: 2.5e-01" in text and "<communicates>" not in text
    heights = [float(y) for y in re.findall(r"cy='([\d.]+)'", chapter.chapter(REPORT))]
    assert heights[0] > heights[1] > heights[2], "larger differences lie higher"


def test_the_report_keeps_them() -> None:
    assert Report.from_json(REPORT.to_json()).regions[0].samples == REPORT.regions[0].samples


def test_the_page_draws_the_losses() -> None:
    assert "Losses of" not in chapter.chapter(REPORT)
    falling = region("net", Compared(0, 1e-7, loss=4.0, compiled_loss=4.0), Compared(50, 1e-7, loss=1.0, compiled_loss=2.0))
    unknown = region(
        "<b>",
        Compared(0, 0.0),
        Compared(1, 0.0, loss=1e308, compiled_loss=None),
        Compared(2, 0.0, loss=2.0, compiled_loss=2.0),
    )
    text = chapter.chapter(Report("train.py", regions=[falling, unknown]))
    assert "Losses of 2 calls of net, in eager mode and compiled: from 4 to 1" in text
    assert "step 50: loss 1 in eager mode, 2 compiled" in text and "<b>: from" not in text
    ys = [float(y) for y in re.findall(r"class='step-plain' cx='[\d.]+' cy='([\d.]+)'", text)]
    assert ys[0] < ys[1] and len(ys) == 3, "a larger loss lies higher"
    (compiled,) = re.findall(r"cy='([\d.]+)' r='3'><title>step 50: loss", text)
    assert ys[0] < float(compiled) < ys[1]


def test_whether_torch_helps_to_give_the_same_bits_is_said() -> None:
    for numerics, said in (("strict", "torch's strict numerics"), ("default", "has no strict numerics")):
        report = Report("train.py", regions=REPORT.regions, numerics=numerics)  # type: ignore[arg-type]
        console = Console(width=200, record=True)
        console.print(verified.table(report))
        assert said in console.export_text() and said in chapter.chapter(report).replace("&#x27;", "'")
        assert Report.from_json(report.to_json()).numerics == numerics
        alone = Report("train.py", numerics=numerics)  # type: ignore[arg-type]
        assert said in chapter.chapter(alone).replace("&#x27;", "'"), "no code was good enough to be compared later"
    assert "numerics" not in REPORT.to_json() and "numerics" not in chapter.chapter(REPORT)

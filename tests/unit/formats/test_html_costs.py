"""The costs of lines on the page: the report's figures and no others, each kind on its own scale, with a legend."""

from __future__ import annotations

import re
from dataclasses import replace

from lsp_server.formats.html import page
from lsp_server.formats.html.costs import LineCosts
from magpy_core.findings import Finding, LineCost, RegionSummary, Report, StepReport, TargetReport
from tests.golden.test_formats import LIBRARY, MODEL, TRAIN, at, faster, view
from tests.unit.formats.test_html import EVIL, Page

NET = RegionSummary("module:Net", "module", "Net", MODEL, 1)
LONG = "/project/long.py"


def finding(code: str, ms: float | None, file: str = TRAIN, line: int = 5) -> Finding:
    return Finding(code, f"{code} costs {ms}", at(file, line, 4, 8), cost_ms=ms)


def device(*lines: LineCost, name: str = "H100 SXM") -> TargetReport:
    return TargetReport("cuda:sm_90", name, 3e12, 2.5, lines=list(lines))


def cells(one: Report, file: str, line: int) -> list[tuple[str, int, str]]:
    """Kind, percent of the longest bar, and figure of each cost left of a 1-based line."""
    text = LineCosts(one).cells(file, line - 1)
    found = re.findall(r"<span class='cost (\w+)' style='--part: (\d+)%' title='[^']*'>([^<]*)<", text)
    return [(kind, int(part), figure) for kind, part, figure in found]


def test_findings_of_a_line_add_up_and_the_largest_has_the_longest_bar() -> None:
    one = Report("t.py", findings=[finding("MP102", 0.5), finding("MP101", 1.5), finding("MP102", 1.0, line=6)])
    assert cells(one, TRAIN, 5) == [("step", 100, "2.00 ms")] and cells(one, TRAIN, 6) == [("step", 50, "1.00 ms")]
    assert cells(one, TRAIN, 7) == [] and cells(one, MODEL, 5) == []
    assert "title='MP102, MP101: 2 ms per step between its graphs'" in LineCosts(one).cells(TRAIN, 4)


def test_what_is_paid_each_time_has_a_scale_of_its_own() -> None:
    one = Report("t.py", findings=[finding("MP102", 2.0), finding("MP201", 300.0), finding("MPD201", 100.0, line=6)])
    assert cells(one, TRAIN, 5) == [("step", 100, "2.00 ms"), ("again", 100, "300.0 ms")]
    assert cells(one, TRAIN, 6) == [("again", 33, "100.0 ms")]
    several = Report("t.py", findings=[finding("MP201", 300.0), finding("MP202", 100.0)])
    assert cells(several, TRAIN, 5) == [("again", 100, "300.0 ms")] and "up to 300 ms each time" in LineCosts(several).cells(
        TRAIN, 4
    )


def test_a_region_has_its_time_in_a_step_and_a_finding_its_share_once() -> None:
    one = Report("t.py", [NET], [replace(finding("MP102", 2.06), step_ms=41.2)], step=faster())
    assert cells(one, MODEL, 1) == [("region", 100, "25.5 ms")], "the compiled time, forward and backward"
    assert "compiled: 25.5 ms of one step (8.00 + 17.5, forward + backward)" in LineCosts(one).cells(MODEL, 0)
    assert LineCosts(one).cells(TRAIN, 4).count("of a step") == 1
    assert "per step between its graphs, 5% of a step of 41.2 ms'" in LineCosts(one).cells(TRAIN, 4)
    plain = replace(
        one, step=replace(faster(), parts=[replace(faster().parts[0], compiled_forward_ms=None, compiled_backward_ms=None)])
    )
    assert cells(plain, MODEL, 1) == [("region", 100, "44.3 ms")] and "in eager mode" in LineCosts(plain).cells(MODEL, 0)


def test_estimates_for_a_device_have_a_column_of_their_own() -> None:
    costs = [LineCost("a", TRAIN, 5, 30.0, 2), LineCost("b", TRAIN, 5, 10.0, 1), LineCost("a", "", 0, 99.0, 1)]
    one = Report("t.py", findings=[finding("MP102", 2.0)], kernels=device(*costs))
    assert cells(one, TRAIN, 5) == [("step", 100, "2.00 ms"), ("device", 100, "40.0 µs")], "regions add up; no line, no cost"
    assert LineCosts(one).cells(TRAIN, 8).count("<span class='costs'></span>") == 2, "columns stay where they are"


def test_nothing_is_invented() -> None:
    one = Report("t.py", [NET], [finding("MP102", None), finding("MP103", 0.0)], step=StepReport(count=3), kernels=device())
    assert LineCosts(one).cells(TRAIN, 4) == "" and LineCosts(one).legend() == ""
    text = page.text(one, view())
    assert "class='costs'" not in text and "class='legend" not in text


def test_the_legend_explains_the_kinds_that_are_there() -> None:
    one = Report("t.py", [NET], [finding("MP102", 2.0), finding("MP102", 8.0, line=6)], step=faster())
    legend = LineCosts(one).legend()
    assert legend.count("<li>") == 2 and ">8.00 ms</span> of one step: what the findings" in legend and "again" not in legend
    estimated = LineCosts(Report("t.py", kernels=device(LineCost("a", TRAIN, 5, 30.0, 2)))).legend()
    assert "of one step: at least, by the line's kernels, on H100 SXM" in estimated


def test_costly_lines_of_a_long_file_are_shown_and_libraries_are_not() -> None:
    shown = view()
    shown.sources._texts[LONG] = "\n".join(f"line_{number} = {number}" for number in range(1, 400))
    costs = [LineCost("a", LONG, 300, 30.0, 2), LineCost("a", LIBRARY, 125, 30.0, 2)]
    text = page.text(Report("t.py", kernels=device(*costs)), shown)
    assert (
        "line_300 = 300" in text
        and "line_200 = 200" not in text
        and "30.0 µs</span></span><span class='text'>line_300" in text
    )
    assert "site-packages" not in text.partition("<h2 id='source'>")[2].partition("<h2")[0]


def test_names_stay_text() -> None:
    step = replace(faster(), parts=[replace(faster().parts[0], name=EVIL)])
    one = Report("t.py", [NET], step=step, kernels=device(LineCost("a", TRAIN, 5, 30.0, 2), name=EVIL))
    found = Page(page.text(one, view()))
    assert found.open == [] and found.tags.count("script") == 1 and found.tags.count("img") == 0

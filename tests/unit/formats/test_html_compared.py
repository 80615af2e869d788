"""The page of two runs: steps on one scale, each region before and now, findings that came and went; all of it escaped."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from lsp_server.comparison import Loaded, compare
from lsp_server.formats.html import compared, step_bars
from magpy_core.findings import Finding, RegionSummary, Report, Severity, StepPart, StepReport, TargetReport
from tests.golden.test_formats import MODEL, TRAIN, at, faster, guard, view
from tests.unit.formats.browser import dumped, measured, on_paper
from tests.unit.formats.test_html import EVIL, Page

NET = RegionSummary("module:Net", "module", "Net", MODEL, 1, calls=9, captures=1, complete=True, graphs=1, guards=40,
                    eager_ms=9.0, compiled_ms=5.0, guard_ms=0.1)  # fmt: skip


def finding(code: str, line: int, message: str = "") -> Finding:
    return Finding(code, message or f"line {line} is read", at(TRAIN, line, 4, 8))


def report(*findings: Finding, regions: tuple[RegionSummary, ...] = (NET,), step: StepReport | None = None) -> Report:
    return Report("train.py", list(regions), list(findings), {"total": 12.5}, 60, step)


def page(old: Report, new: Report) -> str:
    loaded = [Loaded(one, [None] * len(one.findings)) for one in (old, new)]
    comparison = compare(loaded[0], loaded[1], 0.2)
    return compared.text(comparison, ("main.json", old), ("branch.json", new), view(), Severity.WARNING)


def chapter(text: str, name: str) -> str:
    return text.partition(f"<h2 id='{name}'>")[2].partition("<h2 ")[0].partition("</main>")[0]


def cells(text: str, label: str) -> list[tuple[str, str]]:
    return re.findall(rf"<td data-label='{label}' class='([^']*)'>(.*?)</td>", text)


def test_what_appeared_and_what_is_gone_are_tables_of_their_own() -> None:
    text = page(report(finding("MP102", 2), finding("MP102", 3)), report(finding("MP102", 3), finding("MP101", 4)))
    came, _, went = chapter(text, "findings").partition("<h3>Disappeared <span class='soft'>1</span></h3>")
    assert "MP101" in came and "line 4" in came and "MP102" not in came
    assert "line 2" in went and "1 finding in both." in went
    assert "<b class='error'>✗ 1 finding appeared, 1 disappeared, 1 unchanged; no region got worse.</b>" in text
    assert "Before: <b>main.json</b> train.py, 60 steps, 12.5 s<br>Now: <b>branch.json</b>" in text


def test_the_same_twice_is_good_and_says_each_figure_once() -> None:
    text = page(report(finding("MP102", 2), step=faster()), report(finding("MP102", 2), step=faster()))
    assert "<b class='good'>✓ 0 findings appeared" in text and chapter(text, "findings").count("None.") == 2
    assert "class='number error'" not in text and "class='soft'" not in chapter(text, "regions").partition("<table>")[2]
    assert chapter(text, "step").count("as before") == 4
    facts = page(report(), report(guard("x", "1", 0)))
    assert "Nothing to act on." in facts and "1 fact that needs no action" in facts


@pytest.mark.parametrize(
    ("change", "label", "style", "shown"),
    [
        ({"compiled_ms": 7.5}, "compiled ms", "number error", "<span class='soft'>5</span><br>7.5"),
        ({"compiled_ms": 5.9}, "compiled ms", "number ", "<span class='soft'>5</span><br>5.9"),
        ({"compiled_ms": 2.5}, "compiled ms", "number good", "<span class='soft'>5</span><br>2.5"),
        ({"compiled_ms": None}, "compiled ms", "number ", "<span class='soft'>5</span><br>-"),
        ({"graph_breaks": 2}, "graph breaks", "number error", "<span class='soft'>0</span><br>2"),
        ({"guards": 400}, "guards", "number ", "<span class='soft'>40</span><br>400"),
        ({"complete": False}, "graph", "number error", "<span class='soft'>complete</span><br>incomplete"),
        ({"captures": 3}, "captures", "number ", "<span class='soft'>1</span><br>3"),
    ],
)
def test_a_region_has_its_figures_before_and_now(
    change: dict[str, float | None], label: str, style: str, shown: str
) -> None:
    text = chapter(page(report(), report(regions=(replace(NET, **change),))), "regions")  # type: ignore[arg-type]
    assert cells(text, label) == [(style, shown)]


def test_figures_that_no_region_has_are_no_column_and_new_regions_are_marked() -> None:
    other = replace(NET, name="Other")
    text = chapter(page(report(), report(regions=(other,))), "regions")
    assert "recompiles after step 3" not in text and "graph breaks" not in text
    assert re.findall(r"<b>(\w+)</b> <span class='badge'>(\w+)</span>", text) == [("Other", "new"), ("Net", "removed")]


def test_both_steps_have_one_scale_and_a_region_one_colour() -> None:
    slower = replace(faster(), compiled_ms=60.0, parts=[StepPart("Net", "module:Net", 14.1, 30.2, 16.0, 17.5)])
    svg = step_bars.picture({"before": faster(), "now": slower})
    names = re.findall(r">((?:eager|compiled) step, \w+)</text>", svg)
    assert names == ["eager step, before", "eager step, now", "compiled step, before", "compiled step, now"]
    forward = [float(wide) for wide in re.findall(r"class='part0 forward' x='[\d.]+' y='\d+' width='([\d.]+)'", svg)]
    assert forward[3] == pytest.approx(2 * forward[2], rel=0.01) and forward[0] == forward[1]
    text = chapter(page(report(step=faster()), report(step=slower)), "step")
    assert ("number error", "+46%, slower") in cells(text, "change") and "eager step, before 63.0 ms" in text


def test_without_two_steps_there_is_no_chapter_and_once_is_said() -> None:
    assert "id='step'" not in page(report(), report(step=faster()))
    text = chapter(page(report(step=StepReport(count=3)), report(step=faster())), "step")
    assert text.count("measured once only") == 3


def test_kernels_are_compared_too() -> None:
    target = TargetReport("cuda:sm_90", "H100 SXM", 3e12, 2.5)
    text = page(replace(report(), kernels=target), replace(report(), kernels=target))
    assert "Kernels on H100 SXM" in chapter(text, "kernels") and "No difference." in text
    assert "id='kernels'" not in page(report(), report())


@pytest.mark.parametrize("evil", ["evil", EVIL])
def test_the_page_is_well_formed_and_loads_nothing(evil: str) -> None:
    region = replace(NET, name=evil, compiled_ms=9.0)
    step = replace(faster(), parts=[StepPart(evil, "module:Net", 1.0, 2.0, 3.0, 4.0)])
    text = page(report(step=faster()), report(finding("MP102", 2, evil), regions=(region,), step=step))
    found = Page(text)
    assert found.open == [] and found.loads == [] and found.tags.count("script") == 1 and found.tags.count("img") == 0
    assert len(set(found.ids)) == len(found.ids) and all(link[1:] in found.ids for link in found.links if link[0] == "#")


@pytest.mark.parametrize("width", [390, 718, 1280])
def test_nothing_is_wider_than_the_window(tmp_path: Path, width: int) -> None:
    long = replace(NET, name="a_model_with_a_long_name: " + "Net" * 12, file=f"/project/{'folder/' * 9}train.py")
    changed = replace(
        long, complete=False, graph_breaks=12, captures_after_step_3=3, compiled_ms=1234.5, compile_s=123.4, guard_ms=9.87
    )
    old, new = (report(finding("MP102", 2), regions=(one, NET), step=faster()) for one in (long, changed))
    text = page(old, new)
    found = measured(on_paper(text) if width == 718 else text, width, tmp_path)
    assert found["tables"] >= 2 and found["page"][0] <= found["page"][1] and not found["boxes"], found


def test_chromium_renders_it_without_a_complaint(tmp_path: Path) -> None:
    file = tmp_path / "diff.html"
    file.write_text(page(report(step=faster()), report(finding("MP102", 2), step=faster())), encoding="utf-8")
    done = dumped(file.as_uri(), tmp_path / "profile")
    assert "comparison of two runs" in done.stdout
    assert "CONSOLE" not in done.stderr, [line for line in done.stderr.splitlines() if "CONSOLE" in line]

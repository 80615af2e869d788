"""A step as it ran: from one end of a step to the next, calls inside calls, gaps as Python; the median step of each kind."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from lsp_server.formats.html import page, step, step_flame
from lsp_server.formats.html.step_flame import steps_of
from magpy_core.findings import RegionSummary, Report
from magpy_core.findings.details import Call, Details, GraphCall
from tests.golden.test_formats import TRAIN, faster, view
from tests.unit.formats.test_html import EVIL, Page


def region(name: str, kind: str) -> RegionSummary:
    return RegionSummary(name, kind, name, TRAIN, 1)


REGIONS = [region("Net", "module"), region("Adam", "optimizer"), region("block", "module")]


def one_step(start: float, how: str = "plain", net: float = 4.0) -> list[Call]:
    """From ``start``: 1 s of Python, the net with a block inside, 2 s of Python, the optimizer for 1 s."""
    adam = start + 1 + net + 2
    return [Call("block", start + 2, 1.0, how), Call("Net", start + 1, net, how), Call("Adam", adam, 1.0, how)]


def report(*calls: Call, regions: list[RegionSummary] = REGIONS) -> Report:
    return Report("train.py", regions, details=Details([], list(calls)))


def blocks(svg: str) -> list[tuple[str, float, float, float]]:
    """Title, x, y and width of each block."""
    found = re.findall(r"<title>([^<]*)</title><rect class='flame [^']*' x='([\d.]+)' y='([\d.]+)' width='([\d.]+)'", svg)
    return [(title, float(x), float(y), float(wide)) for title, x, y, wide in found]


def test_a_step_is_what_lies_between_two_ends_of_the_optimizer() -> None:
    ending, steps = steps_of(report(*one_step(0.0), *one_step(8.0), *one_step(16.0, net=5.0)))
    assert ending == "Adam" and [(one.number, one.begin, one.end) for one in steps] == [(2, 8.0, 16.0), (3, 16.0, 25.0)]
    assert [(span.call.region, span.depth) for span in steps[0].spans] == [("Net", 0), ("block", 1), ("Adam", 0)]


def test_calls_are_inside_calls_and_python_fills_the_gaps() -> None:
    svg = step_flame.picture(report(*one_step(0.0), *one_step(8.0)))
    found = {title: (x, y, wide) for title, x, y, wide in blocks(svg)}
    whole, net, block = found["eager step: 8,000 ms"], found["Net: 4,000 ms"], found["block: 1,000 ms"]
    assert net[2] == pytest.approx(whole[2] / 2, abs=0.2) and block[2] == pytest.approx(whole[2] / 8, abs=0.2)
    assert whole[1] < net[1] == found["Adam: 1,000 ms"][1] < block[1] and net[0] < block[0] < net[0] + net[2]
    assert net[0] == pytest.approx(whole[0] + whole[2] / 8, abs=0.2)
    assert {title for title in found if title.startswith("Python")} == {"Python: 1,000 ms", "Python: 2,000 ms"}
    (label,) = re.findall(r"aria-label='([^']*)'", svg)
    assert label == (
        "An eager step of 8,000 ms with 3 calls; Net from 1,000 ms on, for 4,000 ms; block from 2,000 ms on, for 1,000 ms, "
        "inside 1 other; Adam from 7,000 ms on, for 1,000 ms"
    )


def test_the_median_step_of_each_kind_is_shown_on_one_scale() -> None:
    calls, at = [], 0.0
    for how, net in [
        ("recorded", 90.0),
        ("plain", 4.0),
        ("plain", 9.0),
        ("plain", 5.0),
        ("replayed", 1.0),
        ("replayed", 1.0),
    ]:
        calls += one_step(at, how, net)
        at += net + 4
    text = step_flame.picture(report(*calls))
    plain = next(wide for title, *_, wide in blocks(text) if title == "eager step: 9,000 ms")
    compiled = next(wide for title, *_, wide in blocks(text) if title == "compiled step: 5,000 ms")
    assert compiled == pytest.approx(plain * 5 / 9, abs=0.2)
    assert "the median of 3, up to call 4 of Adam" in text and "the median of 2, up to call 6 of Adam" in text
    mixed = [*one_step(0.0), Call("Net", 9.0, 4.0, "replayed"), Call("Adam", 15.0, 1.0, "plain")]
    assert step_flame.picture(report(*mixed)) == "", "a step of both kinds is neither"


def test_without_an_optimizer_the_loop_or_what_is_called_most_ends_a_step() -> None:
    loop = [Call("loop", float(n), 0.5, "plain") for n in range(3)]
    others = [Call("Net", n + 0.6, 0.1, "plain") for n in range(3)]
    kinds = [region("loop", "step"), region("Net", "module"), region("Other", "module")]
    assert steps_of(report(*loop, *others, regions=kinds))[0] == "loop"
    assert (
        steps_of(report(*others, Call("Other", 9.0, 1.0, "plain"), Call("Other", 11.0, 1.0, "plain"), regions=kinds))[0]
        == "Net"
    )
    rare = [Call("Rare", 3.0 + 10 * n, 0.5, "plain") for n in range(2)]
    often = [Call("Often", 4.0 + n, 0.5, "plain") for n in range(4)]
    two = [region("Often", "optimizer"), region("Rare", "optimizer")]
    assert steps_of(report(*rare, *often, regions=two))[0] == "Rare", "its step holds those of the others"


def test_what_is_not_known_is_not_drawn() -> None:
    assert step_flame.picture(Report("t.py", REGIONS)) == "" == step_flame.picture(report(*one_step(0.0)))
    programs = [replace(one, entrypoint=f"{n}.py") for n, one in enumerate(REGIONS)]
    assert step_flame.picture(report(*one_step(0.0), *one_step(8.0), regions=programs)) == "", "clocks of several programs"


def test_the_chapter_is_there_also_without_measured_steps() -> None:
    one = report(*one_step(0.0), *one_step(8.0))
    text = page.text(one, view())
    assert "<a href='#step'>Step</a>" in text and "<h2 id='step'>Step</h2><h3>A step as it ran</h3>" in text
    assert step.chapter(replace(one, step=faster())).count("<h3>") == 2
    assert "not timed one by one" in text


def test_names_stay_text() -> None:
    regions = [replace(one, name=EVIL) for one in REGIONS]
    found = Page(page.text(report(*one_step(0.0), *one_step(8.0), regions=regions), view()))
    assert found.open == [] and found.tags.count("script") == 1 and found.tags.count("img") == 0


def cut_step(start: float, net: float = 4.0) -> tuple[list[Call], list[GraphCall]]:
    """The net's call has two graphs of a quarter each, at its beginning and its end."""
    graphs = [GraphCall("Net", start + 1, net / 4), GraphCall("Net", start + 1 + net * 3 / 4, net / 4)]
    return one_step(start, "replayed", net), graphs


def test_graphs_of_a_call_that_is_cut_are_inside_it() -> None:
    calls = [*one_step(0.0, "replayed"), *one_step(8.0, "replayed"), *one_step(16.0, "replayed", net=5.0)]
    timed, graphs = cut_step(25.0, net=4.8)
    regions = [replace(REGIONS[0], graphs=2), *REGIONS[1:2], replace(REGIONS[2], graphs=1)]
    one = report(*calls, *timed, regions=regions)
    assert one.details is not None
    known = step_flame.picture(replace(one, details=replace(one.details, graphs=graphs)))
    assert "A compiled step, 8,800 ms: the median of 3, up to call 4 of Adam" in known
    found = {title: (x, y, wide) for title, x, y, wide in blocks(known)}
    net, first, second = found["Net: 4,800 ms"], found["graph 1 of 2: 1,200 ms"], found["graph 2 of 2: 1,200 ms"]
    assert first[1] == second[1] > net[1] and first[0] == pytest.approx(net[0], abs=0.2)
    assert second[0] + second[2] == pytest.approx(net[0] + net[2], abs=0.2)
    assert "in 2 graphs of 1,200, 1,200 ms" in known and "Inside a call that is cut: its graphs" in known
    unknown = step_flame.picture(one)
    assert "graph 1 of 2" not in unknown and "Inside a call that is cut" not in unknown
    assert re.search(r"<title>Net: [\d,]+ ms, up to 2 graphs</title>", unknown), "how many, where they were not timed"
    assert "Adam: 1,000 ms, up to" not in unknown and "block: 1,000 ms, up to" not in unknown


def test_a_step_whose_graphs_were_timed_is_shown_only_if_it_is_close_to_the_median() -> None:
    timed, graphs = cut_step(24.0, net=20.0)
    calls = [*one_step(0.0, "replayed"), *one_step(8.0, "replayed"), *one_step(16.0, "replayed"), *timed]
    far = report(*calls)
    assert far.details is not None
    text = step_flame.picture(replace(far, details=replace(far.details, graphs=graphs)))
    assert "A compiled step, 8,000 ms: the median of 3" in text and "graph 1 of 2" not in text
    timed, graphs = cut_step(24.0, net=4.5)
    close = report(*calls[:-3], *timed)
    assert close.details is not None
    text = step_flame.picture(replace(close, details=replace(close.details, graphs=graphs)))
    assert "A compiled step, 8,500 ms: close to the median, 8,000 ms, of 3, up to call 4 of Adam" in text
    assert "graph 1 of 2" in text

"""--html: one page by itself, nothing in it unescaped, good links, rendered by Chromium without a complaint."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from lsp_server.cli import program
from lsp_server.cli.main import cli
from lsp_server.formats.html import graph, page, timeline
from magpy_core.findings import Report
from magpy_core.findings.details import Call, CaptureDetail, Details, GuardDetail, NodeDetail, RegionDetail
from magpy_core.runner.launch import launch
from magpy_core.runner.request import RunRequest
from tests.golden.test_formats import MODEL, TRAIN, guard, report, view
from tests.unit.formats.browser import dumped, evaluated, measured, on_paper

EVIL = "</script><script>alert(1)</script>\"'<img src=x onerror=alert(2)>"
VOID = {"meta", "link", "br", "img", "input", "hr", "wbr"}
SVG_ALONE = {"circle", "line", "path", "rect"}


def node(name: str, *inputs: str, kind: str = "call", segment: int = 0, line: int = 5, label: str = "") -> NodeDetail:
    place = ("", 0) if kind == "placeholder" else (TRAIN, line)
    return NodeDetail(name, kind, label or name, list(inputs), segment, *place)


def detailed(evil: str = "evil") -> Report:
    capture = CaptureDetail(
        guards=[GuardDetail(f"self.{evil}", "eq", evil, MODEL, 3), GuardDetail("x", "tensor", "Tensor[4]")],
        nodes=[
            node("x", kind="placeholder"),
            node("w", kind="placeholder", label="self.layer.weight"),
            node("linear", "x", "w"),
            node("item", "linear", kind="read", label=evil),
            node("mul", "linear", segment=1),
        ],
        guard_code=f"if x is not {evil}: return MISS",
        replay_code="return g0_0",
        generated_code=["def call(args): ..."],
    )
    calls = [Call("module:Net", 1.5, 0.25, "recorded"), Call("module:Net", 2.0, 0.001, "replayed")]
    one = report()
    one.findings[0] = replace(one.findings[0], message=evil)
    return replace(one, details=Details([RegionDetail("module:Net", [capture])], calls), steps=3)


class Page(HTMLParser):
    """Ids, links, tags, and whether every element is closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        assert not [name for name in given if name.startswith("on")], "no event handlers in attributes"
        if identity := given.get("id"):
            self.ids.append(identity)
        if tag == "a":
            self.links.append(given.get("href") or "")
        self.loads += [v for k, v in given.items() if k in ("src", "srcset", "data") and v]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert tag in VOID | SVG_ALONE

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("evil", ["evil", EVIL])
def test_the_page_is_well_formed_loads_nothing_and_its_links_lead_somewhere(evil: str) -> None:
    found = Page(page.text(detailed(evil), view()))
    assert found.open == [] and found.loads == [] and "link" not in found.tags
    assert found.tags.count("script") == 1 and found.tags.count("img") == 0
    assert len(set(found.ids)) == len(found.ids)
    for link in found.links:
        assert link.removeprefix("#") in found.ids if link.startswith("#") else link.startswith(("https://", "data:"))


def test_the_policy_allows_just_its_own_script() -> None:
    text = page.text(detailed(), view())
    assert "default-src 'none'" in text and "script-src 'sha256-" in text and "http-equiv" in text
    assert text.count("<script>") == 1


def test_every_part_is_there() -> None:
    text = page.text(detailed(), view())
    for part in ("Regions", "Findings", "Source", "Captures", "Timeline", "Operator graph: 3 operations", "Guards: 2 values",
                 "Guard code", "Side effects code", "Generated code, graph 0", "trace.json", "2.50x"):  # fmt: skip
        assert part in text, part
    assert "linear.py:125" in text and "loss.item()" in text


def test_without_details_there_are_no_empty_chapters() -> None:
    text = page.text(replace(detailed(), details=None), view())
    assert "Captures" not in text and "Timeline" not in text
    empty = page.text(Report("t.py"), view())
    assert "No findings." in empty and "No region was monitored." in empty and Page(empty).open == []


def test_the_graph_has_a_box_for_each_operation_and_a_line_for_each_cut() -> None:
    assert detailed().details is not None
    capture = detailed().details.regions[0].captures[0]  # type: ignore[union-attr]
    svg = graph.picture(capture, lambda n: "L1" if n.name == "linear" else None)
    boxes = {m[2]: (float(m[0]), float(m[1])) for m in re.findall(r"<rect x='(\d+)' y='(\d+)'.*?<text[^>]*>([^<]*)<", svg)}
    assert set(boxes) == {"x", "linear", "evil", "mul"}, "a parameter that one operation uses is named in its box"
    assert "self.layer.weight" in svg and svg.count("<a href='#L1'>") == 1
    assert boxes["x"][1] < boxes["linear"][1] < boxes["evil"][1] < boxes["mul"][1]
    assert svg.count("class='cut'") == 1 and svg.count("class='edge'") == 3


def test_a_large_graph_is_drawn_without_overlaps_in_no_time() -> None:
    nodes = [node("n0", kind="placeholder")]
    nodes += [node(f"n{i}", *{f"n{i // 2}", f"n{i - 1 if i % 3 else i // 3}"}) for i in range(1, 3000)]
    svg = graph.picture(CaptureDetail(nodes=nodes), lambda n: None)
    places = re.findall(r"<rect x='(\d+)' y='(\d+)'", svg)
    assert len(places) == len(set(places)) == graph.DRAWN and "1,800 more operations are listed below" in svg


def test_the_trace_is_a_chrome_trace() -> None:
    trace = json.loads(json.dumps(timeline.chrome_trace(detailed())))
    done = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert [(e["name"], e["ts"], e["dur"], e["args"]["how"]) for e in done] == [
        ("Net", 1.5e6, 0.25e6, "recorded under the monitor"), ("Net", 2.0e6, 1e3, "compiled"),
    ]  # fmt: skip
    named = [e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M"]
    assert named == ["magpy: train.py", "Net"]


PROGRAM = """\
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(4, 4)

    def forward(self, x):
        y = self.a(x).relu()
        if y.sum().item() > 1:
            y = y * 2
        return y

net = Net()
for i in range(4):
    net(torch.ones(2, 4) * 9)
"""


def test_a_real_run_has_its_captures_and_calls(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    outcome = launch(RunRequest(script="train.py", cwd=str(tmp_path), details=True, stdout="null")).outcome
    assert outcome.kind == "ok", outcome.message
    details = outcome.report.details
    assert details is not None and [c.how for c in details.calls] == ["recorded", "watched", "watched"]
    (capture,) = details.regions[0].captures
    operations = {n.label: (Path(n.file).name, n.line, n.segment) for n in capture.nodes if n.kind != "placeholder"}
    assert operations["relu"] == ("train.py", 9, 0) and operations["item"] == ("train.py", 10, 0)
    assert operations["linear"][0] == "linear.py"
    assert any(g.name == "self.a.in_features" or g.name.startswith("self") for g in capture.guards)
    assert "MISS" in capture.guard_code and capture.replay_code
    again = Report.from_json(outcome.report.to_json())
    assert again.details == details


def test_the_command_line_writes_page_and_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.unit.cli.test_program import Tool

    tool = Tool(tmp_path)
    tool.add("MP102")
    monkeypatch.setattr(program.execute, "__defaults__", (tool.launch,))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["check", "--html", "out/page", "--format", "json", "train.py"])
    assert result.exit_code == 1 and tool.requests[0].details
    assert "loss.</u>item()" in (tmp_path / "out/page/index.html").read_text(encoding="utf-8")
    assert "traceEvents" in json.loads((tmp_path / "out/page/trace.json").read_text())
    assert "details" not in json.loads(result.stdout)
    assert f"the page is {tmp_path / 'out/page/index.html'}" in result.stderr
    refused = CliRunner().invoke(cli, ["check", "--html", "train.py/x", "train.py"])
    assert refused.exit_code == 2 and "is a file" in refused.stderr and len(tool.requests) == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_chromium_renders_it_without_a_complaint(tmp_path: Path, scheme: str) -> None:
    file = tmp_path / "index.html"
    file.write_text(page.text(detailed(EVIL), view()), encoding="utf-8")
    dark = ["--force-dark-mode"] if scheme == "dark" else []
    done = dumped(f"{file.as_uri()}#captures", tmp_path / "profile", *dark)
    assert "Operator graph" in done.stdout and "<svg" in done.stdout
    assert "CONSOLE" not in done.stderr, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.parametrize("width", [390, 1000, 1280, 1400])
def test_nothing_is_wider_than_the_window(tmp_path: Path, width: int) -> None:
    one = detailed()
    long = replace(one.regions[0], name="a_model_with_a_long_name: " + "Net" * 12, file=f"/project/{'folder/' * 9}train.py")
    one.regions = [long, *one.regions[1:]]
    found = measured(page.text(one, view()), width, tmp_path)
    assert found["tables"] >= 4
    assert found["page"][0] <= found["page"][1] and not found["boxes"], found


def test_on_paper_nothing_is_cut_off(tmp_path: Path) -> None:
    one = detailed()
    long = replace(one.regions[0], name="a_model_with_a_long_name: " + "Net" * 12, file=f"/project/{'folder/' * 9}train.py")
    one.regions = [long, *one.regions[1:]]
    found = evaluated(on_paper(page.text(one, view())), _CUT_OFF, tmp_path, 718)  # A4 without its margins
    assert found["width"][0] <= found["width"][1] and found["cut off"] == [], found
    assert found["code"] > 0, "long lines of code are broken, not cut"
    assert found["background"] == "rgb(255, 255, 255)"


_CUT_OFF = """
  page.documentElement.dataset.theme = 'dark';
  page.defaultView.dispatchEvent(new Event('beforeprint'));
  const root = page.documentElement;
  const boxes = [...page.querySelectorAll('.scroll, .lines, .listing, .row')];
  const wide = boxes.filter((box) => box.scrollWidth > box.clientWidth + 1);
  return {
    width: [root.scrollWidth, root.clientWidth],
    'cut off': wide.map((box) => [box.className, box.scrollWidth, box.clientWidth, box.textContent.slice(0, 60)]),
    code: page.querySelectorAll('.row').length,
    background: page.defaultView.getComputedStyle(page.body).backgroundColor,
  };
"""


def test_for_paper_everything_is_open_and_then_as_it_was(tmp_path: Path) -> None:
    opened = """
      const details = [...page.querySelectorAll('details')], closed = () => details.filter((one) => !one.open).length;
      const before = closed();
      page.defaultView.dispatchEvent(new Event('beforeprint'));
      const printed = closed();
      page.defaultView.dispatchEvent(new Event('afterprint'));
      return [before, printed, closed()];
    """
    before, printed, after = evaluated(page.text(detailed(), view()), opened, tmp_path)
    assert before == after > 3 and printed == 0


def test_a_picture_that_is_too_large_for_paper_is_left_to_the_listing() -> None:
    nodes = [node(f"n{i}") for i in range(100)]
    assert "picture large" in graph.picture(CaptureDetail(nodes=nodes), lambda n: None)
    assert "picture large" not in graph.picture(CaptureDetail(nodes=nodes[:9]), lambda n: None)


def test_facts_are_closed_below_what_a_person_would_act_on() -> None:
    text = page.text(detailed(), view())
    findings = text.partition("<h2 id='findings'>")[2].partition("<h2 id='source'>")[0]
    act, _, facts = findings.partition("<details class='facts'><summary>5 facts that need no action</summary>")
    assert "MP102" in act and "MP204" not in act and "MP204" in facts
    assert "<details class='note fact information'>" in text
    assert "<details class='facts'>" not in page.text(detailed(), replace(view(), in_detail=True))
    alone = page.text(replace(detailed(), findings=[guard("x", "1", 0)]), view())
    assert "Nothing to act on." in alone and "<summary>1 fact that needs no action</summary>" in alone

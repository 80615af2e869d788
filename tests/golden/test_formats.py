"""Every output format against a committed text. ``MAGPY_UPDATE_GOLDEN=1 pytest tests/golden`` writes them anew."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from rich.text import Text

from lsp_server.cli.console import console, show, show_table
from lsp_server.formats import (
    as_json,
    brief,
    concise,
    full,
    github,
    gitlab,
    junit,
    markdown,
    regions,
    run_table,
    sarif,
    statistics,
    step_table,
    why_not,
)
from lsp_server.formats.view import View
from lsp_server.sources import Sources
from magpy_core.findings import (
    CaptureSummary,
    Finding,
    Location,
    Position,
    Range,
    Recompile,
    RegionSummary,
    Report,
    Severity,
    StepPart,
    StepReport,
    StepSample,
    Value,
)
from magpy_core.findings.explanation import explain
from magpy_core.findings.report import report_schema

GOLDEN = Path(__file__).parent / "formats"
GITHUB = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "some/project", "GITHUB_SHA": "0123abc"}
TRAIN = "/project/train.py"
MODEL = "/project/nets/model.py"
LIBRARY = "/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py"

SOURCES = {
    TRAIN: """\
import torch

def step(model, x, y):
    loss = model(x, y)
\tprint("naïve 猫", loss.item())  # wide characters and a tab before the marked part
    total = sum(
        loss.item(),
    )
    return loss
""",
    MODEL: "class Net:\n    def forward(self, x):\n        if self.training and x.shape[0] > 1:\n"
    "            return x" + " + x" * 60 + ".item()\n\x1b[31mred\n",
}


def at(file: str, line: int, start: int, end: int, end_line: int | None = None, function: str = "") -> Location:
    """1-based lines, as people read them."""
    return Location(file, Range(Position(line - 1, start), Position((end_line or line) - 1, end)), function)


def guard(name: str, value: str, start: int) -> Finding:
    message = f"guarded: {name} is {value}"
    return Finding("MP204", message, at(MODEL, 3, start, start + 4), values=(Value(name, value),))


def report() -> Report:
    findings = [
        Finding(
            "MP102",
            "`loss.item()` reads a tensor's value",
            at(TRAIN, 5, 18, 29, function="step"),
            region="module:Net",
            path=(at(TRAIN, 4, 4, 9, function="step"), at(MODEL, 3, 0, 1, function="Net.forward")),
            values=(Value("loss", "Tensor[] float32"),),
            count=1234,
            cost_ms=0.52,
        ),
        Finding("MP102", "`sum` reads it\nsecond line of the message", at(TRAIN, 6, 12, 5, end_line=8)),
        Finding("MP301", "`self.last` is written", at(MODEL, 4, 255, 262), hint="Own hint,\non two lines."),
        Finding("MP103", "terminal escape \x1b[2J in a message", at(MODEL, 5, 0, 3), at_most_ms=6.25, step_ms=20.0),
        Finding("MP104", "no source here", at(LIBRARY, 125, 8, 40), severity_override=Severity.ERROR),
        Finding("MP911", "empty range", at(MODEL, 2, 0, 0)),
        guard("self.training", "False", 11),
        guard("x.shape[0]", "4", 28),
        guard("self.name", repr("n" * 80), 11),
        Finding("MP204", "a guard without values", at(MODEL, 2, 4, 7), count=7),
    ]
    found = [
        RegionSummary(
            "module:Net",
            "module",
            "Net",
            MODEL,
            1,
            calls=1200,
            captures=2,
            complete=True,
            guards=41,
            side_effects=1,
            hits=1197,
            eager_ms=12.5,
            compiled_ms=5.0,
            guard_ms=0.125,
            compile_s=9.25,
            speedup_low=1.9,
            speedup_high=2.7,
            recompiles=[Recompile(2, "x.shape[0]", "32", "17", TRAIN, 4)],
            per_capture=[CaptureSummary(41, 0.125, 1000, True, 9.25), CaptureSummary(39, None, 197, True)],
        ),
        RegionSummary(
            "optimizer:AdamW",
            "optimizer",
            "AdamW",
            LIBRARY,
            90,
            calls=1,
            captures=1,
            graph_breaks=3,
            guards=1,
            captures_after_step_3=1,
            eager_ms=0.5,
            compiled_ms=1.0,
            speedup_low=0.8,
            speedup_high=1.1,
            recompiles=[Recompile(n, "self.lr", f"0.{n}", f"0.{n + 1}") for n in range(1, 12)],
        ),
        RegionSummary("function:step", "function", "step", "", 0, calls=1),
    ]
    return Report("train.py", found, findings, {"total": 3.25, "odd": float("nan")}, step=faster())


def unserved() -> Report:
    """A run with a region for each state."""
    whole = report()
    found = [
        whole.regions[0],
        replace(whole.regions[0], id="part", name="Net.forward:9", unused="small", hits=0, step_share=0.01),
        replace(whole.regions[1], id="cut", name="model: Cut", graphs=3, hits=1, step_share=40.0),
        replace(whole.regions[2], unused="refused", step_share=12.5),
        *(replace(whole.regions[2], id=f"late{n}", unused="late", name=f"layer{n}", calls=9) for n in range(5)),
    ]
    about = [replace(whole.findings[0], region="cut", step_ms=63.0), replace(whole.findings[1], region="function:step")]
    return replace(whole, regions=found, findings=about)


def faster() -> StepReport:
    """The step of a run that saved time. The parts: with both passes, with one, without a measurement, the rest."""
    return StepReport(
        count=4200,
        plain=30,
        compiled=4100,
        plain_ms=63.0,
        compiled_ms=41.2,
        speedup_low=1.48,
        speedup_high=1.6,
        saved_s=41.0,
        wait_s=3.1,
        compile_s=12.0,
        seconds=269.0,
        break_even=210,
        parts=[
            StepPart("Net", "module:Net", 14.1, 30.2, 8.0, 17.5),
            StepPart("AdamW", "optimizer:AdamW", plain_forward_ms=9.0, compiled_forward_ms=5.2),
            StepPart("step", "function:step"),
            StepPart("the rest", plain_forward_ms=9.7, compiled_forward_ms=10.5),
        ],
        timeline=[
            StepSample(1, 71.5, "plain"),
            StepSample(2, 2012.0, "waited"),
            StepSample(3, 63.1, "plain"),
            StepSample(900, 52.0, "mixed"),
            StepSample(1800, 41.2, "compiled"),
            StepSample(4200, 40.9, "compiled"),
        ],
    )


LOST = replace(faster(), saved_s=-3.1, seconds=12.4, count=120, compiled=80, break_even=None)
NOT_READY = Finding("MP404", "not ready", at(TRAIN, 1, 0, 3), region="module:Net")
STEPS = {
    "nothing-measured": (StepReport(count=5, plain=3, compiled=1, wait_s=0.4, seconds=1.2), None),
    "plain-only": (StepReport(count=40, plain=30, compiled=4, plain_ms=63.0, seconds=3.0), None),
    "compiled-only": (StepReport(count=40, plain=3, compiled=35, compiled_ms=0.4125, seconds=0.1), None),
    "slower": (replace(LOST, plain_ms=38.0, speedup_low=0.9, speedup_high=0.95), None),
    "lost-so-far": (LOST, None),
    "within-the-noise": (replace(LOST, plain_ms=41.9, speedup_low=0.98, speedup_high=1.05, saved_s=0.01), None),
    "no-interval": (replace(faster(), speedup_low=None, speedup_high=None, break_even=None), None),
    "long": (replace(faster(), plain_ms=12345.0, compiled_ms=9876.0, seconds=41476.0, saved_s=10370.0), None),
    "not-ready": (
        StepReport(count=50, plain=49, plain_ms=63.0, saved_s=-0.4, wait_s=0.4, seconds=3.6, compile_s=2.0),
        NOT_READY,
    ),
    "no-steps": (StepReport(), None),
}


def step_of(step: StepReport, *findings: Finding, regions: bool = True) -> str:
    """As a terminal of 80 columns shows it."""
    buffer = io.StringIO()
    out = console(buffer, "never")
    out.width = 80
    for block in step_table.blocks(Report("t.py", report().regions if regions else [], list(findings), step=step)):
        show_table(out, block)
    return "\n".join(line.rstrip() for line in buffer.getvalue().split("\n"))


def steps() -> str:
    """The line in each case; without the tables, which show the same parts."""
    cases = {name: replace(step, parts=[]) for name, (step, _) in STEPS.items()}
    texts = [f"## {name}\n{step_of(cases[name], *filter(None, [found]))}" for name, (_, found) in STEPS.items()]
    texts.append(f"## no-capture\n{step_of(StepReport(count=9, plain=9, plain_ms=3.0), regions=False)}")
    return "".join(texts)


def view() -> View:
    return View(base=Path("/project"), width=100, sources=Sources(dict(SOURCES)), root=Path("/project"))


def text_of(lines: Iterable[Text], color: str = "never") -> str:
    buffer = io.StringIO()
    show(console(buffer, color), lines)
    return buffer.getvalue()


def table_of(one: Report) -> str:
    buffer = io.StringIO()
    out = console(buffer, "never")
    out.width = 120
    show_table(out, run_table.table(one, view()))
    show(out, [*run_table.recompiles(one, view()), run_table.total(one)])
    return "\n".join(line.rstrip() for line in buffer.getvalue().split("\n"))


CASES = {
    "concise.txt": lambda: text_of(concise.lines(report(), view())),
    "full.txt": lambda: text_of(full.lines(report(), view())),
    "full-color.txt": lambda: text_of(full.lines(report(), view()), "always"),
    "report.json": lambda: as_json.text(report(), view()),
    "report.sarif": lambda: sarif.text(report(), view()),
    "github.txt": lambda: text_of(github.lines(report(), view())),
    "gitlab.json": lambda: gitlab.text(report(), view()),
    "junit.xml": lambda: junit.text(report(), view()),
    "junit-empty.xml": lambda: junit.text(Report("t.py"), view()),
    "summary.md": lambda: markdown.text(report(), view(), GITHUB),
    "summary-empty.md": lambda: markdown.text(Report("t.py", report().regions[:1]), view(), {}),
    "regions.txt": lambda: text_of(
        [*regions.lines(report(), view()), *regions.totals(report(), replace(view(), suppressed=2, in_detail=True))]
    ),
    "brief.txt": lambda: text_of([*brief.lines(report(), view()), *regions.totals(report(), view())]),
    "empty.txt": lambda: text_of([*brief.lines(Report("t.py"), view()), *regions.totals(Report("t.py"), view())]),
    "statistics.txt": lambda: text_of(statistics.lines(report())),
    "step.txt": lambda: step_of(faster()),
    "step-lines.txt": steps,
    "run-table.txt": lambda: table_of(report()),
    "why-not.txt": lambda: text_of(why_not.lines(explain(unserved()), view(), in_full=True)),
    "why-not-brief.txt": lambda: text_of(why_not.lines(explain(unserved()), view())),
    "run-table-not-measured.txt": lambda: table_of(Report("t.py", report().regions[2:])),
    "run-table-not-compiled.txt": lambda: table_of(
        Report("t.py", report().regions[2:], [Finding("MP404", "not ready", at(TRAIN, 1, 0, 3), region="a")])
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_format(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    golden, text = GOLDEN / name, CASES[name]()
    if os.environ.get("MAGPY_UPDATE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_json_is_valid_by_the_published_schema_and_has_no_nan() -> None:
    data = json.loads(as_json.text(report(), view()), parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    del data["timings"]["odd"]  # null: the schema wants numbers, and the runner measures with a clock
    jsonschema.validate(data, report_schema(), cls=jsonschema.Draft202012Validator)


def test_text_formats_show_no_control_characters() -> None:
    for lines in (concise.lines, full.lines):
        assert "\x1b" not in text_of(lines(report(), view()))


def test_every_finding_but_grouped_guards_has_a_line_of_its_own() -> None:
    heads = [line for line in text_of(concise.lines(report(), view())).splitlines()]
    assert len(heads) == len(report().findings) - 2  # three guards on one line


def test_links_where_a_project_publishes_its_pages() -> None:
    published = View(
        base=Path("/project"), sources=Sources(dict(SOURCES)), root=Path("/project"), docs_url="https://docs.example.org"
    )
    assert '"helpUri": "https://docs.example.org/MP102"' in sarif.text(report(), published)
    assert "](https://docs.example.org/MP102 " in markdown.text(report(), published, GITHUB)
    for lines in (full.lines(report(), published), github.lines(report(), published)):
        assert "https://docs.example.org/MP102" in text_of(lines)
    assert "https://docs.example.org/MP102" in junit.text(report(), published)

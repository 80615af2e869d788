"""Why a region is not compiled: one value for each, with a reason, the cause, the share of a step, and what to do."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, get_args

import jsonschema
import pytest

from magpy_core.findings import (
    Finding,
    Location,
    Position,
    Range,
    RegionSummary,
    Report,
    StepReport,
    Unused,
    Value,
)
from magpy_core.findings import explanation as module
from magpy_core.findings.explanation import explain
from magpy_core.findings.report import Recompile, report_schema
from magpy_core.findings.why_not import REASONS, WhyNot

STEP = StepReport(count=50, compiled=40, plain_ms=20.0)


def at(line: int) -> Location:
    return Location("/p/net.py", Range(Position(line - 1, 0), Position(line - 1, 4)))


def region(**more: Any) -> RegionSummary:
    base = RegionSummary("r", "module", "model: Net", "/p/net.py", 7, calls=60, captures=1, complete=True, hits=54, graphs=1)
    return replace(base, **more)


def only(found: RegionSummary, *findings: Finding, step: StepReport | None = STEP) -> WhyNot:
    (one,) = explain(Report("t.py", [found], list(findings), step=step))
    return one


def test_what_is_compiled_says_so_in_one_line() -> None:
    one = only(region(awaited=4))
    assert (one.state, one.reason, one.share) == ("compiled", "", None)
    assert one.why == "Compiled code ran in 54 of 60 calls; 4 ran in eager mode while it was being compiled."
    assert only(region(), step=None).why == "One graph, which `magpy-lsp run` compiles."


@pytest.mark.parametrize("unused", get_args(Unused)[1:])
def test_each_reason_of_the_engine_has_a_sentence_and_an_advice(unused: Unused) -> None:
    finding = Finding("MP106", "`seed()` resets it", at(12), hint="Seed before.", region="r")
    one = only(region(unused=unused, hits=0, step_share=34.0), finding)
    assert one.reason == unused and one.share == 34.0
    assert one.state == ("partly" if unused == "inside" else "eager")
    assert one.why.startswith(("`model: Net`", "Compil", "Recording", "No ", "Only", "The ", "All ", "Smaller"))
    assert one.why.endswith(".") and one.rewrite.endswith(".") and "{" not in one.why


def test_a_refusal_names_the_line_the_value_and_the_rewrite() -> None:
    cheap = Finding("MP102", "`y.item()` reads a value", at(9), region="r", cost_ms=0.1)
    dear = Finding(
        "MP103",
        "`clock()` reads the clock",
        at(12),
        "Read it outside.",
        "r",
        values=(Value("call", "clock()"), Value("t", "1.5")),
    )
    fact = Finding("MP101", "It is a fact.", at(10), "No action needed: it is.", "r")
    dear.cost_ms = 3.0
    one = only(region(unused="refused", captures=0, hits=0, complete=False), cheap, dear, fact)
    assert (one.code, one.file, one.line, one.value) == ("MP103", "/p/net.py", 12, "t = 1.5")
    assert (one.cause, one.rewrite) == ("`clock()` reads the clock", "Read it outside.")


def test_the_share_of_what_is_cut_is_that_of_its_cuts() -> None:
    first = Finding("MP101", "a", at(9), region="r", cost_ms=2.0, step_ms=20.0)
    again = Finding("MP101", "b", at(9), region="r", cost_ms=2.0, step_ms=20.0)
    other = Finding("MP102", "c", at(11), region="r", cost_ms=3.0, step_ms=20.0)
    cut = region(complete=False, graphs=3, graph_breaks=2, step_share=80.0)
    one = only(cut, first, again, other)
    assert (one.reason, one.state, one.share, one.is_limit) == ("breaks", "partly", 25.0, False)
    unmeasured = only(cut, replace(first, cost_ms=None))
    assert (unmeasured.share, unmeasured.is_limit) == (80.0, True)


def test_the_share_of_calls_that_fit_nothing() -> None:
    found = Finding("MP201", "`n` changed", at(9), region="r", values=(Value("len(x)", "4 -> 8"),), count=9)
    missed = region(unused="missed", hits=45, step_share=40.0)
    one = only(missed, found)
    assert (one.state, one.value, one.share, one.code) == ("partly", "len(x): 4 -> 8", 10.0, "MP201")
    last = only(replace(missed, recompiles=[Recompile(5, "x.shape[0]", "4", "8")]))
    assert last.value == "x.shape[0]: 4 -> 8" and "same shapes" in last.rewrite


def test_too_many_captures() -> None:
    stopped = Finding("MP203", "MagPy stopped", at(7), region="r")
    changed = Finding("MP201", "`k` changed", at(9), "Keep it in a tensor.", "r", values=(Value("k", "1 -> 2"),), count=8)
    one = only(region(complete=False, captures=8), stopped, changed)
    assert (one.reason, one.code, one.value, one.rewrite) == ("limit", "MP201", "k: 1 -> 2", "Keep it in a tensor.")
    assert "8 graphs" in one.why


def test_what_goes_wrong() -> None:
    failed = Finding("MP901", "It failed", at(7), region="r")
    assert only(region(hits=0, captures=0, complete=False, unused="refused"), failed).reason == "failed"
    wrong = Finding("MP914", "It is wrong", at(7), region="r")
    assert only(region(hits=0, captures=0, complete=False, unused="refused", wrong=1), wrong).code == "MP914"
    slower = Finding("MP401", "It is slower", at(7), region="r")
    assert only(region(hits=0, unused="cut"), slower).reason == "slower"
    assert only(region(), Finding("MP913", "twice", at(7), region="r")).reason == "uncompiled"
    assert only(region(calls=0, captures=0, hits=0)).reason == "not called"
    assert only(region(complete=False)).reason == "closed"


def test_a_check_has_reasons_too() -> None:
    broken = Finding("MP101", "It branches", at(9), region="r", at_most_ms=5.0, step_ms=20.0)
    one = only(region(captures=0, complete=False, hits=0), broken, step=None)
    assert (one.reason, one.state, one.share) == ("refused", "eager", 25.0)
    assert only(region(captures=0, complete=False, hits=0), step=None).reason == "not recorded"


def test_a_step_of_which_only_the_parts_are_graphs() -> None:
    parted = Finding("MP406", "`log()` writes", at(20), "Move it.", severity_override=None)
    model, optimizer = region(step_share=60.0), region(id="o", kind="optimizer", name="AdamW", step_share=15.0)
    step, *others = explain(Report("t.py", [model, optimizer], [parted], step=STEP))
    assert (step.region, step.reason, step.line, step.rewrite) == ("", "parted", 20, "Move it.")
    assert (step.share, step.is_limit) == (25.0, True) and [one.reason for one in others] == ["", ""]
    whole = region(id="s", kind="step", name="training loop")
    assert [one.region for one in explain(Report("t.py", [whole], [parted], step=STEP))] == ["s"]


def test_every_reason_has_its_text_and_is_in_the_schema() -> None:
    assert module._WHY.keys() | {"", "parted"} == set(REASONS)
    assert report_schema()["$defs"]["why_not"]["properties"]["reason"]["enum"] == list(REASONS)


def test_it_is_part_of_the_json_report_and_read_back() -> None:
    report = Report("t.py", [region(unused="small", hits=0)], step=STEP)
    report.why_not = explain(report)
    data = json.loads(json.dumps(report.to_json()))
    jsonschema.validate(data, report_schema(), cls=jsonschema.Draft202012Validator)
    assert Report.from_json(data).why_not == report.why_not


def test_regions_of_another_engine_are_not_explained() -> None:
    assert explain(Report("t.py", [region(engine="dynamo")])) == []

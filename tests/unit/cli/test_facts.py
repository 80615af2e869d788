"""Facts that need no action are shown on request only, wherever a person looks for what to do."""

from __future__ import annotations

import json

import pytest

from lsp_server.cli.options import FORMATS
from magpy_core.findings import REGISTRY, Finding, Location, Position, Range, Severity
from tests.unit.cli.test_program import Tool, tool

__all__ = ["tool"]
FACTS = (
    "MP202",
    "MP204",
    "MP205",
    "MP301",
    "MP302",
    "MP303",
    "MP304",
    "MP305",
    "MP306",
    "MP307",
    "MP403",
    "MP404",
    "MPD102",
)
NOWHERE = Location("/p/a.py", Range(Position(0, 0), Position(0, 1)))


def test_a_fact_is_what_its_page_says_needs_no_action() -> None:
    facts = {code for code in REGISTRY if not Finding(code, "m", NOWHERE).is_actionable}
    assert set(FACTS) <= facts <= {*FACTS, "MP911"}
    own = Finding("MP201", "m", NOWHERE, "No action needed: once.", severity_override=Severity.INFORMATION)
    assert not own.is_actionable, "the finding's own advice counts"
    assert Finding("MP102", "m", NOWHERE, "No action needed: once.").is_actionable, "a warning never is a fact"
    assert Finding("MP301", "m", NOWHERE, severity_override=Severity.WARNING).is_actionable


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "json"])
def test_every_format_leaves_facts_out_by_default(tool: Tool, form: str) -> None:
    tool.add("MP102")
    tool.add("MP301")
    short = tool("check", "--format", form, "train.py").stdout
    assert "MP102" in short and "MP301" not in short
    assert "MP301" in tool("check", "--format", form, "--details", "train.py").stdout


def test_json_has_everything(tool: Tool) -> None:
    tool.add("MP102")
    tool.add("MP301")
    found = json.loads(tool("check", "--format", "json", "train.py").stdout)["findings"]
    assert [(f["code"], f["actionable"]) for f in found] == [("MP102", True), ("MP301", False)]


@pytest.mark.parametrize("options", [["--select", "MP301"], ["--select", "MP3,MP1"], ["--fail-on", "information"]])
def test_who_asks_for_a_fact_sees_it(tool: Tool, options: list[str]) -> None:
    tool.add("MP301")
    assert "MP301 [information]" in tool("check", *options, "train.py").stdout


def test_a_severity_in_the_table_asks_for_its_code(tool: Tool) -> None:
    tool.add("MP301")
    tool.add("MP204")
    tool.pyproject('[tool.magpy.severity]\nMP301 = "hint"\n')
    out = tool("check", "train.py").stdout
    assert "MP301 [hint]" in out and "MP204" not in out
    assert out.endswith("1 fact that needs no action: `--details` shows it.\n")


def test_the_baseline_still_knows_facts(tool: Tool) -> None:
    tool.add("MP301")
    assert "1 finding of this run written" in tool("check", "--baseline", "b.json", "--update-baseline", "train.py").stderr
    out = tool("check", "--baseline", "b.json", "--details", "train.py").stdout
    assert "No new findings; 1 in the baseline." in out

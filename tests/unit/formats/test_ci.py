"""Formats for machines: SARIF by its schema, GitHub's escaping, GitLab's and JUnit's rules, Markdown that nothing breaks."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsp_server.fingerprint import enclosing, fingerprint, unique
from lsp_server.formats import github, gitlab, junit, markdown, sarif
from lsp_server.formats.view import View, project_root
from lsp_server.sources import Sources
from magpy_core.findings import Finding, Location, Position, Range, RegionSummary, Report, Severity
from tests.golden.test_formats import report, view

SARIF_SCHEMA = json.loads((Path(__file__).parents[2] / "data" / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
SARIF = jsonschema.Draft4Validator(SARIF_SCHEMA)
FILE = "/project/a b/träin,x.py"
TEXT = "class Net:\n    def forward(self, x):\n        if x.any():\n            return x\n\nx.item()\nx.item()\n"


def finding(line: int = 3, message: str = "m", code: str = "MP102", file: str = FILE, **more: object) -> Finding:
    at = Range(Position(line - 1, 11), Position(line - 1, 18))
    return replace(Finding(code, message, Location(file, at)), **more)


def looking(text: str = TEXT) -> View:
    return View(base=Path("/project"), root=Path("/project"), sources=Sources({FILE: text}))


# ---------------------------------------------------------------- SARIF


def valid(text: str) -> dict:
    log = json.loads(text)
    SARIF.validate(log)
    return log


def test_the_schema_is_not_a_formality() -> None:
    log = valid(sarif.text(report(), view()))
    log["runs"][0]["results"][0]["level"] = "hint"
    with pytest.raises(jsonschema.ValidationError):
        SARIF.validate(log)


def test_sarif_of_an_empty_report_is_valid_and_says_success() -> None:
    run = valid(sarif.text(Report("t.py"), looking()))["runs"][0]
    assert run["results"] == [] and run["invocations"] == [{"executionSuccessful": True}]


def test_sarif_paths_are_uris_below_the_root_and_results_point_to_their_rule() -> None:
    outside = finding(file="/elsewhere/ü.py", code="MP905")
    run = valid(sarif.text(Report("t.py", [], [finding(), outside]), looking()))["runs"][0]
    inside, other = run["results"]
    artifact = inside["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": "a%20b/tr%C3%A4in%2Cx.py", "uriBaseId": "%SRCROOT%"}
    assert other["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///elsewhere/%C3%BC.py"}
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    assert run["invocations"] == [{"executionSuccessful": False}], "the program failed"
    assert inside["locations"][0]["physicalLocation"]["region"] == {
        "startLine": 3, "startColumn": 12, "endLine": 3, "endColumn": 19,
    }  # fmt: skip


@settings(max_examples=30)
@given(st.lists(st.text(max_size=30), max_size=3))
def test_sarif_is_valid_whatever_a_program_says(messages: list[str]) -> None:
    valid(sarif.text(Report("t.py", [], [finding(message=m or "m") for m in messages]), looking()))


# ---------------------------------------------------------------- fingerprints


def test_a_fingerprint_survives_moved_lines_and_other_values_but_not_another_function() -> None:
    before = fingerprint(finding(3, "x is 1"), Path("/project"), Sources({FILE: TEXT}))
    moved = "import torch\n\n\n" + TEXT.replace("        if x.any():", "        if  x.any():")
    assert fingerprint(finding(6, "x is 2"), Path("/project"), Sources({FILE: moved})) == before
    elsewhere = TEXT.replace("def forward", "def backward")
    assert fingerprint(finding(3), Path("/project"), Sources({FILE: elsewhere})) != before
    assert fingerprint(finding(3, code="MP101"), Path("/project"), Sources({FILE: TEXT})) != before
    assert fingerprint(finding(3, file="/project/b.py"), Path("/project"), Sources({"/project/b.py": TEXT})) != before


def test_the_same_line_twice_has_two_fingerprints_and_the_checkout_does_not_matter() -> None:
    first, second = (p for _, p in unique([finding(6), finding(7)], Path("/project"), Sources({FILE: TEXT})))
    assert first != second
    there = FILE.replace("/project", "/ci/build")
    assert fingerprint(finding(6, file=there), Path("/ci/build"), Sources({there: TEXT})) == first


def test_enclosing_names_the_innermost_function_and_survives_what_is_no_python() -> None:
    assert enclosing(FILE, 2, Sources({FILE: TEXT})) == "Net.forward"
    assert enclosing(FILE, 5, Sources({FILE: TEXT})) == ""
    assert enclosing(FILE, 2, Sources({FILE: "def f(:\n"})) == "" == enclosing(FILE, 2, Sources({FILE: None}))


# ---------------------------------------------------------------- GitHub


def commands(*findings: Finding) -> list[str]:
    return [line.plain for line in github.lines(Report("t.py", [], list(findings)), looking())]


def test_github_escapes_properties_and_newlines() -> None:
    (command,) = commands(finding(message="50% of a::b,c\r\nsecond"))
    assert command.startswith(
        "::warning file=a b/träin%2Cx.py,line=3,col=12,endColumn=18,title=MP102 host-read::50%25 of a::b,c"
    )
    assert "%0Asecond%0A" in command and "\n" not in command and "\r" not in command


def test_github_gives_no_columns_across_lines_and_puts_the_severe_first() -> None:
    long = finding()
    long.location = Location(FILE, Range(Position(2, 4), Position(4, 0)))
    error = finding(4, severity_override=Severity.ERROR)
    hint = finding(1, code="MP204")
    first, second = commands(long, hint, error)
    assert first.startswith("::error ") and second.startswith("::warning file=a b/träin%2Cx.py,line=3,endLine=4,title=")


def test_paths_are_relative_to_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = tmp_path / "sub"
    below.mkdir()
    monkeypatch.chdir(below)
    assert project_root({"GITHUB_WORKSPACE": str(tmp_path)}) == tmp_path
    assert project_root({"CI_PROJECT_DIR": str(tmp_path)}) == tmp_path
    assert project_root({"GITHUB_WORKSPACE": "/nowhere"}) == Path.cwd() == project_root({})


# ---------------------------------------------------------------- GitLab, JUnit, Markdown


def test_gitlab_has_what_the_service_asks_for_and_unique_fingerprints() -> None:
    issues = json.loads(gitlab.text(report(), replace(view(), in_detail=True)))
    assert len({i["fingerprint"] for i in issues}) == len(issues) == len(report().findings)
    for issue in issues:
        assert set(issue) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert issue["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert set(issue["location"]) == {"path", "lines"} and issue["location"]["lines"]["begin"] >= 1


def test_junit_fails_exactly_what_fails_the_run() -> None:
    def failures(fail_on: Severity) -> int:
        look = view()
        look.fail_on = fail_on
        root = ET.fromstring(junit.text(report(), look))
        found = root.findall(".//failure")
        assert int(root.get("failures", "")) == sum(int(s.get("failures", "")) for s in root) == len(found)
        assert int(root.get("tests", "")) == len(root.findall(".//testcase"))
        return len(found)

    assert [failures(s) for s in Severity] == [1, 4, 6, 10]


@given(st.text(max_size=40))
def test_junit_is_xml_whatever_a_program_says(message: str) -> None:
    ET.fromstring(junit.text(Report("t.py", [], [finding(message=message)]), looking()))


def test_a_clean_run_is_a_test_that_passed() -> None:
    region = RegionSummary("r", "module", "Net", FILE, 1)
    for one in (Report("t.py"), Report("t.py", [region])):
        root = ET.fromstring(junit.text(one, looking()))
        assert (root.get("tests"), root.get("failures")) == ("1", "0")


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("a | b", "a &#124; b"),
        ("<img src=x> @someone #1", "&#60;img src=x&#62; &#64;someone &#35;1"),
        ("[x](http://evil)", "&#91;x&#93;(http://evil)"),
        ("`a | b` and `c", "`a \\| b` and &#96;c"),
    ],
)
def test_markdown_shows_messages_as_they_are(message: str, shown: str) -> None:
    text = markdown.text(Report("t.py", [], [finding(message=message)]), looking(), {})
    row = next(line for line in text.split("\n") if "MP102" in line)
    assert row.endswith(f"| {shown} |")
    assert len(re.findall(r"(?<!\\)\|", row)) == 5, "four cells, whatever is in them"


def test_markdown_says_how_many_it_leaves_out_and_whether_it_fails() -> None:
    text = markdown.text(Report("t.py", [], [finding(message=f"m{n}") for n in range(60)]), looking(), {})
    assert "❌ Found 60 findings (60 warnings) in 1 file." in text and "… and 10 findings more." in text
    relaxed = looking()
    relaxed.fail_on, relaxed.known = Severity.ERROR, 3
    assert "✅ Found 1 finding (1 warning) in 1 file; 3 in the baseline." in markdown.text(
        Report("t.py", [], [finding()]), relaxed, {}
    )

"""explain: every code, by code, name and family, in three formats."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from lsp_server.cli.main import cli
from lsp_server.features.fixes import FIXABLE_CODES
from magpy_core.findings import REGISTRY


def explain(*args: str) -> Result:
    return CliRunner().invoke(cli, ["explain", *args], prog_name="magpy-lsp", env={"COLUMNS": "100"})


@pytest.mark.parametrize("name", ["MP102", "mp102", "host-read", "HOST-READ"])
def test_by_code_or_name(name: str) -> None:
    result = explain(name)
    assert result.exit_code == 0
    for part in ("MP102: A tensor's value is read by Python", "What happened", "What to do", "means = sorted("):
        assert part in result.output
    assert "http" not in result.output, "no page is published"


def test_a_family_and_several_codes() -> None:
    codes = [entry["code"] for entry in json.loads(explain("MP4", "MP102", "MP401", "--format", "json").output)]
    assert codes == [
        "MP401",
        "MP402",
        "MP403",
        "MP404",
        "MP405",
        "MP406",
        "MP407",
        "MP408",
        "MP409",
        "MP411",
        "MP102",
    ]


def test_markdown_is_the_documentation_page() -> None:
    assert explain("MP910", "--format", "markdown").output == REGISTRY["MP910"].page


def test_all_as_json_has_everything_the_registry_has() -> None:
    entries = json.loads(explain("--all", "--format", "json").output)
    assert [e["code"] for e in entries] == list(REGISTRY)
    for entry in entries:
        code = REGISTRY[entry["code"]]
        assert (entry["title"], entry["severity"], entry["hints"]) == (code.title, code.severity.value, list(code.hints))
        assert entry["url"] is None


def test_all_as_text_begins_with_the_index() -> None:
    out = explain("--all").output
    assert out.index("Graph breaks") < out.index("MP101: ")
    assert all(f"{code}: " in out for code in REGISTRY)


def test_color_always() -> None:
    assert "\x1b[" in explain("MP102", "--color", "always").output
    assert "\x1b[" not in explain("MP102", "--color", "never").output


def test_codes_with_a_quick_fix_are_those_that_the_language_server_has_one_for() -> None:
    entries = json.loads(explain("--all", "--format", "json").output)
    assert {e["code"] for e in entries if e["has_fix"]} == set(FIXABLE_CODES)
    assert "quick fix" in REGISTRY["MP102"].page and "quick fix" not in REGISTRY["MP105"].page

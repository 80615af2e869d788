"""--baseline: only new findings fail; it survives moved lines, and shrinks by itself where a run could have found more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.test_program import Tool, tool

__all__ = ["tool"]

SOURCE = "def step():\n    loss.item()\n    loss.item()\n\n\ndef other():\n    loss.item()\n"


@pytest.fixture(autouse=True)
def at_a_desk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


@pytest.fixture
def based(tool: Tool) -> Tool:
    """Two findings known on two equal lines of one function."""
    tool.script.write_text(SOURCE)
    tool.add("MP102", line=2)
    tool.add("MP102", line=3)
    result = tool("check", "--baseline", "known.json", "--update-baseline", "train.py")
    assert result.exit_code == 0, result.output
    assert "2 findings of this run written to " in result.stderr and "known.json." in result.stderr
    assert "No new findings; 2 in the baseline." in result.stdout
    return tool


def known(tool: Tool) -> dict[str, int]:
    data = json.loads((tool.folder / "known.json").read_text())
    return {f"{run} {f['code']} {f['function']}": f["count"] for run, p in data["runs"].items() for f in p["findings"]}


def check(tool: Tool, *options: str) -> tuple[int, str]:
    result = tool("check", "--baseline", "known.json", "--format", "concise", *options, "train.py")
    return result.exit_code, result.stdout + result.stderr


def test_known_findings_neither_fail_nor_show(based: Tool) -> None:
    status, said = check(based)
    assert status == 0 and "MP102" not in said
    assert known(based) == {"check train.py MP102 step": 2}


def test_what_is_new_fails_even_on_an_equal_line_of_another_function(based: Tool) -> None:
    based.add("MP102", line=7)
    status, said = check(based)
    assert status == 1 and "train.py:7:1: MP102" in said and "train.py:2" not in said
    assert "Found 1 finding (1 warning) in 1 file; 2 in the baseline." in said


def test_a_third_one_of_two_known_is_new(based: Tool) -> None:
    based.script.write_text(SOURCE.replace("    loss.item()\n\n", "    loss.item()\n    loss.item()\n\n"))
    based.add("MP102", line=4)
    status, said = check(based)
    assert status == 1 and "Found 1 finding" in said and "2 in the baseline" in said


def test_moved_and_reindented_lines_are_known_and_changed_ones_are_not(based: Tool) -> None:
    based.script.write_text("import torch\n\n\n" + SOURCE.replace("loss.item()", "loss.item( )", 0))
    based.findings.clear()
    based.add("MP102", line=5, message="with another value")
    based.add("MP102", line=6)
    assert check(based)[0] == 0
    based.script.write_text("import torch\n\n\n" + SOURCE.replace("    loss.item()", "    print(loss.item())", 1))
    assert check(based)[0] == 1


def test_another_severity_of_code_or_file_is_new(based: Tool) -> None:
    based.findings[1].code = "MP101"
    assert check(based)[0] == 1


def test_it_shrinks_by_itself_and_what_comes_back_is_new(based: Tool) -> None:
    again = based.findings.pop()
    status, said = check(based)
    assert status == 0 and "1 finding of the baseline no longer occurs: removed from" in said
    assert known(based) == {"check train.py MP102 step": 1}
    based.findings.append(again)
    assert check(based)[0] == 1


def test_it_does_not_shrink_in_ci_but_says_so(based: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    based.findings.clear()
    status, said = check(based)
    assert status == 0 and "2 findings of the baseline no longer occur: run outside CI" in said
    assert known(based) == {"check train.py MP102 step": 2}


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (["--steps", "1"], "ok"),  # made with 3: what is not found may come later
        (["--ignore", "MP102"], "ok"),  # not selected, so not gone
        (["--select", "MP2"], "ok"),
        ([], "failed"),
        ([], "timeout"),
    ],
)
def test_it_does_not_shrink_when_the_run_could_not_have_found_it(based: Tool, options: list[str], kind: str) -> None:
    based.findings.clear()
    based.kind = kind  # type: ignore[assignment]
    check(based, *options)
    assert known(based) == {"check train.py MP102 step": 2}


def test_more_steps_may_shrink_it(based: Tool) -> None:
    based.findings.clear()
    check(based, "--steps", "0")
    assert known(based) == {}


def test_each_entrypoint_and_mode_has_its_own_part(based: Tool) -> None:
    (based.folder / "eval.py").write_text("x = 1\n")
    findings = list(based.findings)
    based.findings.clear()
    assert based("check", "--baseline", "known.json", "eval.py").exit_code == 0
    based("run", "--baseline", "known.json", "train.py")
    assert known(based) == {"check train.py MP102 step": 2}, "what train.py finds is not gone because eval.py does not"
    based.findings += findings
    assert based("check", "--baseline", "known.json", "eval.py").exit_code == 1


def test_a_program_that_fails_is_never_known(based: Tool) -> None:
    based.add("MP905", line=1)
    assert based("check", "--baseline", "known.json", "--update-baseline", "train.py").exit_code == 1
    assert "check train.py MP905 " not in known(based)


def test_a_failed_run_updates_nothing(based: Tool) -> None:
    based.kind = "failed"
    based.add("MP102", line=7)
    result = based("check", "--baseline", "known.json", "--update-baseline", "train.py")
    assert result.exit_code == 3 and "so the baseline was not updated" in result.stderr
    assert known(based) == {"check train.py MP102 step": 2}


def test_hints_are_not_kept_but_information_is(based: Tool) -> None:
    based.add("MP204", line=1)
    based.add("MP301", line=7)
    based("check", "--baseline", "known.json", "--update-baseline", "train.py")
    assert known(based) == {"check train.py MP102 step": 2, "check train.py MP301 other": 1}


def test_the_table_names_it_relative_to_the_table(based: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    based.pyproject("baseline = 'known.json'")
    below = based.folder / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    result = based("check", "../train.py")
    assert result.exit_code == 0, result.output
    assert f'baseline = "{based.folder / "known.json"}"  # ' in based("check", "--show-settings", "../train.py").output


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "does not exist: create it with --update-baseline"),
        ("{", "is not valid JSON"),
        ("[]", "is not a baseline"),
        ('{"version": 9, "runs": {}}', "has version 9, not 1"),
        ('{"version": 1, "runs": {"check train.py": {"steps": 3, "findings": [{"code": 1}]}}}', "is not a baseline"),
    ],
)
def test_a_baseline_that_can_not_be_used_is_status_2_before_anything_runs(
    tool: Tool, content: str | None, sentence: str
) -> None:
    if content is not None:
        Path("known.json").write_text(content)
    status, said = check(tool)
    assert status == 2 and sentence in said and "--update-baseline" in said and tool.requests == []
    assert check(tool, "--update-baseline")[0] == 0, "which mends it"


def test_update_without_a_baseline_is_a_usage_error(tool: Tool) -> None:
    result = tool("check", "--update-baseline", "train.py")
    assert result.exit_code == 2 and "No baseline file" in result.stderr and tool.requests == []

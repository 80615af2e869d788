"""Parts of the server for coding assistants without a program: the skill file, the edits of fixes, long answers."""

from __future__ import annotations

import re
import time
from pathlib import Path

from click.testing import CliRunner

from lsp_server.agents.programs import NotPossible, Program, settings_of
from lsp_server.agents.reports import Run, checked, verified
from lsp_server.cli.agents import SKILL
from lsp_server.cli.follow import Finished
from lsp_server.cli.main import cli
from lsp_server.features.fixes.exact import Fixes
from magpy_core.findings import Finding, Location, Position, Range, RegionSummary, Report
from magpy_core.findings.finding import Value
from magpy_core.findings.report import Compared
from magpy_core.runner.request import Outcome
from tests.agents.connect import apply
from tests.unit.project.test_words import found, sentences


def identity(file: Path, line: int, start: int, end: int) -> Finding:
    place = Location(str(file), Range(Position(line, start), Position(line, end)))
    return Finding("MP103", "`a is 1` can't be guarded.", place, values=(Value("a", "1"),))


def test_the_skill_is_short_plain_and_names_commands_that_exist() -> None:
    text = SKILL.read_text(encoding="utf-8")
    head, body = text.removeprefix("---\n").split("\n---\n", 1)
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    assert fields["name"] == "magpy" and 50 < len(fields["description"]) < 1024 and len(text) < 4096
    assert found(re.sub(r"\s+", " ", body)) == [] and [s for s in sentences(body) if len(s.split()) > 40] == []
    named = set(re.findall(r"magpy-lsp (\w+)", body))
    assert named and named <= set(cli.commands)
    shown = CliRunner().invoke(cli, ["mcp", "--skill"])
    assert shown.exit_code == 0 and shown.stdout == text


def test_edits_keep_the_ends_of_lines_and_count_code_points(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_bytes("import torch\r\nx = '🙂' if a is 1 else 2\r\n".encode())
    (fix,) = Fixes(Report("train.py")).of(identity(file, 1, 11, 17))
    (edit,) = fix["edits"]
    assert (edit["old_text"], edit["new_text"], edit["range"]["start"]["character"]) == ("is", "==", 13)
    apply(fix)
    assert file.read_bytes() == "import torch\r\nx = '🙂' if a == 1 else 2\r\n".encode()


def test_a_file_that_changed_since_the_run_has_no_fixes(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("x = 1 if a is 1 else 2\n")
    found = identity(file, 0, 9, 15)
    assert Fixes(Report("train.py"), time.time_ns() + 10**9).of(found)
    assert not Fixes(Report("train.py"), time.time_ns() - 10**12).of(found)
    file.write_text("x = 1 if a is\n")
    assert not Fixes(Report("train.py")).of(found)
    file.unlink()
    assert not Fixes(Report("train.py")).of(found)


def test_an_answer_has_the_most_severe_findings_and_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("pass\n" * 40)

    def at(code: str, line: int, text: str = "what") -> Finding:
        return Finding(code, text, Location(str(file), Range(Position(line, 0), Position(line, 4))))

    findings = [*(at("MP101", line) for line in range(9)), at("MP905", 20, "long " * 1000), at("MP204", 30)]
    settings = settings_of("check", Program(str(file), [], str(tmp_path), None, 3, None), {})
    outcome = Outcome("failed", 1, None, "The program failed.", Report("train.py", findings=findings))
    answer = checked(Run(Finished(settings, outcome, False, b"\x1b[1mlast words\n", time.time_ns()), limit=3))
    assert [finding.code for finding in answer.findings] == ["MP905", "MP101", "MP101"]
    assert answer.findings_left_out == 7 and answer.facts == 1 and len(answer.findings[0].message) < 2000
    assert answer.problem == "The program failed." and answer.output == ["\N{REPLACEMENT CHARACTER}[1mlast words"]
    assert len(answer.model_dump_json(exclude_defaults=True)) < 5000


def test_a_difference_decides_the_verdict(tmp_path: Path) -> None:
    settings = settings_of("run", Program(str(tmp_path / "train.py"), [], None, None, 9, None), {"verify": "2"})

    def verdict(*samples: Compared, graphs: int = 0, code: str = "") -> tuple[str, int, int]:
        region = RegionSummary("net", "module", "net: Net", "", 1, calls=9, verified=graphs, samples=list(samples))
        place = Location(str(tmp_path / "train.py"), Range(Position(0, 0), Position(0, 1)))
        report = Report("train.py", regions=[region], findings=[Finding(code, "what", place)] if code else [])
        finished = Finished(settings, Outcome("ok", 0, None, "", report), False)
        answer = verified(Run(finished, limit=9))
        return answer.verdict, answer.compared, answer.differ

    assert verdict() == ("nothing compared", 0, 0)
    assert verdict(graphs=2) == ("agrees", 0, 0)
    assert verdict(Compared(3, 1e-7), Compared(5, 0.0, unchecked="too large")) == ("agrees", 1, 0)
    assert verdict(Compared(3, 1e-7), Compared(5, 0.5, is_difference=True)) == ("differs", 2, 1)
    assert verdict(graphs=2, code="MP914") == ("differs", 0, 0)


def test_names_of_the_table_and_modules_are_programs(tmp_path: Path) -> None:
    table = (
        '[[tool.magpy.entrypoints]]\nname = "a"\nprogram = "a.py"\n[[tool.magpy.entrypoints]]\nname = "b"\nmodule = "p.b"\n'
    )
    (tmp_path / "pyproject.toml").write_text(table)

    def settings(script: str | None) -> str:
        return settings_of("run", Program(script, [], str(tmp_path), None, None, None), {}).title

    assert (settings("a"), settings("-m p.b")) == ("a", "-m p.b")
    try:
        settings(None)
    except NotPossible as error:
        assert "a, b" in str(error)
    else:
        raise AssertionError("one of two programs was chosen")

"""Every finding is where the corpus says: ``findings/*.py`` are users' programs with the expectation on the line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from magpy_core.findings import REGISTRY, Finding, Location, Position, Range, Report, Severity
from tests.programs.findings_help import Program, run
from tests.programs.runner_help import ROOT

FOLDER = Path(__file__).parent / "findings"
PROGRAMS = {path.stem: Program.read(path) for path in sorted(FOLDER.glob("*.py"))}

# Codes that a program alone can't bring about, and the tests that do.
ELSEWHERE = {
    "MP901": "tests/programs/test_runner_endings.py",  # the engine fails
    "MP902": "tests/unit/test_backends_registry.py",  # a backend that does not compile
    "MP903": "tests/programs/test_runner_endings.py",  # another interpreter
    "MP904": "tests/programs/test_runner_endings.py",  # nothing is called
    "MP906": "tests/programs/test_runner_endings.py",  # killed by a signal
    "MP907": "tests/programs/test_runner_endings.py",  # too slow
    "MP908": "tests/programs/test_runner_endings.py",  # no program at all
    "MP910": "tests/unit/test_cli_config.py",  # a broken pyproject.toml
}


def problems(program: Program, findings: list[Finding]) -> list[str]:
    """What is missing, at another line or columns, or not expected at all (warnings and errors only)."""
    here = [f for f in findings if f.location.file == str(program.path)]
    out = [f"not in the program: {f.code} {f.location.file}: {f.message}" for f in findings if f not in here]
    by_line: dict[tuple[str, int], list[Finding]] = {}
    for f in here:
        by_line.setdefault((f.code, f.location.range.start.line + 1), []).append(f)
    unexpected = dict(by_line)
    for want in program.expected:
        unexpected.pop((want.code, want.line), None)
        found = by_line.get((want.code, want.line))
        if found is None:
            others = sorted(line for code, line in by_line if code == want.code)
            out.append(f"line {want.line}: {want.code} is missing" + (f" (it is at {others})" if others else ""))
        elif want.start is not None:
            columns = [(f.location.range.start.character, f.location.range.end.character) for f in found]
            if (want.start, want.end) not in columns:
                out.append(f"line {want.line}: {want.code} is at columns {columns}, not {(want.start, want.end)}")
    out += [
        f"line {line}: {code} is not expected: {f.message}"
        for (code, line), group in unexpected.items()
        for f in group
        if f.severity.rank <= Severity.WARNING.rank
    ]
    return out


def check(program: Program) -> Report:
    """The report of ``magpy-lsp check``, as a user runs it."""
    command = [sys.executable, "-m", "lsp_server.cli", "check", str(program.path), "--format", "json"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=FOLDER, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, 1, 3), done.stderr
    return Report.from_json(json.loads(done.stdout))


@pytest.mark.parametrize("name", [n for n, p in PROGRAMS.items() if not p.in_child])
def test_program(name: str) -> None:
    program = PROGRAMS[name]
    assert problems(program, run(program)) == []


@pytest.mark.parametrize("name", [n for n, p in PROGRAMS.items() if p.in_child])
def test_program_in_a_process_of_its_own(name: str) -> None:
    program = PROGRAMS[name]
    assert problems(program, check(program).findings) == []


def test_a_wrong_expectation_is_seen() -> None:
    """The comparison itself: missing, elsewhere, other columns, unexpected; hints need no comment."""
    program = PROGRAMS["mp101_branch"]
    line = program.expected[0].line

    def at(number: int, start: int = 11, end: int = 31, code: str = "MP101") -> Finding:
        place = Range(Position(number - 1, start), Position(number - 1, end))
        return Finding(code, "said", Location(str(program.path), place))

    right = [at(want.line) for want in program.expected]
    assert problems(program, right) == []
    assert problems(program, right[1:])[0].startswith(f"line {line}: MP101 is missing (it is at ")
    assert "is at columns [(0, 5)], not (11, 31)" in problems(program, [at(line, 0, 5), *right[1:]])[0]
    assert problems(program, [*right, at(1)]) == ["line 1: MP101 is not expected: said"]
    assert problems(program, [*right, at(1, code="MP204")]) == []
    elsewhere = Finding("MP204", "said", Location("other.py", right[0].location.range))
    assert problems(program, [*right, elsewhere]) == ["not in the program: MP204 other.py: said"]


def test_a_finding_in_a_library_is_at_the_users_call_and_its_path_leads_there() -> None:
    program = PROGRAMS["mp101_library"]
    text = program.text.splitlines()
    found = sorted((f for f in run(program) if f.code == "MP101"), key=lambda f: f.location)
    assert [text[f.location.range.start.line].split("#")[0].strip() for f in found] == [
        "distribution = Normal(self.mean(observation), 1.0, validate_args=True)",
        "return distribution.log_prob(observation[:, :2])",
    ]
    for finding in found:
        region_call, forward, *inside = finding.path
        assert text[region_call.range.start.line] == "policy(torch.randn(3, 4))"
        assert forward.range.start.line == finding.location.range.start.line and forward.function == "Policy.forward"
        assert inside[-1].file.endswith("torch/distributions/distribution.py")


def test_the_path_of_a_finding_in_the_program_ends_at_it() -> None:
    (finding,) = [f for f in run(PROGRAMS["mp108_iterator"]) if f.code == "MP108"]
    assert [p.function for p in finding.path] == ["<module>", "step"] and finding.path[-1] == finding.location


def test_a_side_effect_made_by_a_library_is_at_the_users_call() -> None:
    found = [f for f in run(PROGRAMS["mp3_side_effects"]) if f.code == "MP306"]
    (norm,) = [f for f in found if f.path]
    assert {v.repr for v in norm.values} == {
        f"self.norm.{n}" for n in ("num_batches_tracked", "running_mean", "running_var")
    }
    assert norm.path[-1].file.endswith("torch/nn/modules/batchnorm.py")


def test_a_value_that_changes_at_every_call_is_one_finding() -> None:
    found = [f for f in run(PROGRAMS["mp203_recompile_limit"]) if f.code == "MP201"]
    assert [(f.severity, f.count) for f in found] == [(Severity.INFORMATION, 1), (Severity.WARNING, 6)]
    assert [v.repr for v in found[1].values][-1] == "'batch-6' -> 'batch-7'"


def test_every_code_is_covered() -> None:
    in_corpus = {want.code for program in PROGRAMS.values() for want in program.expected}
    assert in_corpus | set(ELSEWHERE) == set(REGISTRY), "a code without a program or a named test"
    for code, path in ELSEWHERE.items():
        assert code in (ROOT / path).read_text(encoding="utf-8"), f"{path} says nothing of {code}"

"""Every finding is where the corpus says: ``findings/*.py`` are users' programs with the expectations on their lines.

``python -m tests.programs.findings_score`` prints precision and recall of the same runs.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from magpy_core.findings import REGISTRY, Finding, Location, Severity
from tests.programs.findings_help import BadExpectation, corpus, expectations
from tests.programs.findings_score import TARGET, Reported, Score, compare, reports
from tests.programs.runner_help import ROOT

PROGRAMS = corpus()

# Codes that a program alone can't bring about, and the tests that do.
ELSEWHERE = {
    # budgets of a project's settings, and what torch.compile finds
    **dict.fromkeys([f"MP5{number:02}" for number in range(1, 8)], "tests/unit/cli/test_budgets.py"),
    **dict.fromkeys(("MP508", "MP509", "MP510"), "tests/unit/cli/test_budgets_kernels.py"),
    **dict.fromkeys(("MPD101", "MPD102", "MPD201", "MPD202", "MPD301", "MPD302"), "tests/unit/dynamo/test_engine.py"),
    # the examples of their pages, which are of all codes
    **dict.fromkeys(("MP117", "MP119", "MP120", "MP915", "MP916"), "tests/programs/test_page_examples.py"),
    "MP404": "tests/programs/test_background.py",  # a program that ends too soon
    "MP405": "tests/unit/backends/test_kept_code.py",  # a folder that others can write to
    "MP406": "tests/programs/test_runner_step_functions.py",  # a step function, which only a program's run shows
    # what is compiled for another device
    **dict.fromkeys(("MP407", "MP408", "MP409"), "tests/unit/regions/test_kernels.py"),
    "MP411": "tests/unit/regions/test_replayed.py",  # on a device
    "MP901": "tests/programs/test_runner_endings.py",  # the engine fails
    "MP902": "tests/unit/backends/test_registry.py",  # a backend that does not compile
    "MP903": "tests/programs/test_runner_endings.py",  # another interpreter
    "MP904": "tests/programs/test_runner_endings.py",  # nothing is called
    "MP906": "tests/programs/test_runner_endings.py",  # killed by a signal
    "MP907": "tests/programs/test_runner_endings.py",  # too slow
    "MP908": "tests/programs/test_runner_endings.py",  # no program at all
    "MP910": "tests/unit/cli/test_config.py",  # a broken pyproject.toml
    "MP914": "tests/soundness/test_miscompiled.py",  # bugs that are planted in the compiler
    "MP913": "tests/unit/regions/test_double_backward.py",  # results that are differentiated twice
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reported]:
    """One run of the corpus serves all tests of this file, in whichever worker of pytest-xdist they are."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "findings_corpus.json"
    with FileLock(f"{shared}.lock"):
        if not shared.exists():
            run = reports(PROGRAMS)
            shared.write_text(json.dumps({n: [[f.to_json() for f in r.findings], r.error] for n, r in run.items()}))
        told = json.loads(shared.read_text())
    return {name: Reported([Finding.from_json(f) for f in findings], error) for name, (findings, error) in told.items()}


@pytest.mark.slow
def test_findings_are_right(found: dict[str, Reported]) -> None:
    """All of them, and not the 99 % that are the target: what is wrong is to be mended or its program to be left out."""
    total = Score()
    for name, program in PROGRAMS.items():
        total.add(compare(program, found[name]))
    print(*total.problems, sep="\n")
    assert not total.errors
    assert min(total.shares()) >= TARGET, f"precision {total.shares()[0]:.2%}, recall {total.shares()[1]:.2%}"
    assert total.problems == []


def test_the_corpus_is_large_enough() -> None:
    quiet = [
        name
        for name, program in PROGRAMS.items()
        if all(REGISTRY[want.code].severity.rank > Severity.WARNING.rank for want in program.expected)
    ]
    assert len(PROGRAMS) >= 130 and len(quiet) >= 40


@pytest.mark.slow
def test_messages_can_be_understood_alone(found: dict[str, Reported]) -> None:
    """Each one is a sentence that names something of the program, with advice; nothing in it differs from run to run."""
    bad = []
    for name, reported in found.items():
        for f in reported.findings:
            named = "`" in f.message or f.code >= "MP4" or f.message.startswith("A branch on tensor data")
            odd = re.search(r"0x[0-9a-f]{5,}|\bobject at\b|\.\.\.\.|\n|\{here\}|``|  ", f.message)
            sentence = f.message.endswith(".") or f.code == "MP912"  # the server's own, in its style
            if not sentence or len(f.message) > 260 or not named or odd or not f.to_json()["hint"]:
                bad.append(f"{name}: {f.code} {f.message} -> {f.to_json()['hint']}")
    assert bad == []


# -- the comparison itself


def shifted(finding: Finding, lines: int = 0, columns: int = 0) -> Finding:
    place = finding.location.range
    start = replace(place.start, line=place.start.line + lines, character=place.start.character + columns)
    end = replace(place.end, line=place.end.line + lines)
    return replace(finding, location=replace(finding.location, range=replace(place, start=start, end=end)))


def test_a_wrong_expectation_is_seen() -> None:
    """Missing, elsewhere, other columns, twice, not expected, in another file; hints need no comment."""
    program = PROGRAMS["mp101_branch"]
    right = [Finding(want.code, "said", Location(want.file, want.range), region="a") for want in program.expected]

    def problems(findings: list[Finding]) -> list[str]:
        return compare(program, Reported(findings)).problems

    first, *others = right
    line = first.location.range.start.line + 1
    assert problems(right) == [] and compare(program, Reported(right)).shares() == (1.0, 1.0)
    (missing,) = problems(others)
    assert missing.startswith(f"missing mp101_branch.py:{line}:12-32: MP101 (it is at mp101_branch.py:")
    for wrong in (shifted(first, lines=1), shifted(first, columns=1)):
        lost, surplus = problems([wrong, *others])
        assert lost.startswith("missing") and surplus.startswith("surplus mp101_branch.py:")
    assert len(problems([*right, first])) == 1
    assert problems([*right, replace(first, region="b")]) == []  # the same line of another region
    assert problems([*right, replace(first, code="MP204")]) == []
    elsewhere = replace(first, location=replace(first.location, file="other.py"))
    assert problems([*right, elsewhere]) == [f"surplus other.py:{line}:12-32: MP101 said"]
    assert compare(program, Reported(right, "Traceback")).problems[0].startswith("mp101_branch.py did not run")
    score = compare(program, Reported([*others, elsewhere]))
    assert score.shares() == (0.5, 0.5) and score.shares("MP101") == (0.5, 0.5) and score.shares("MP102") == (0.0, 0.0)


def test_expectations_are_read() -> None:
    text = (
        'a = "é", b.item(), b.item()  # expect: MP102 `b.item()`#2, MP301 `a`  # region\n'
        "call(\n    1,  # expect[-1]: MP104 `call(` to `)`+2 x2\n)\n# expect: MP909 (file)\n"
    )
    found = [(w.code, w.times, *_numbers(w.range)) for w in expectations(Path("p.py"), text)]
    assert found == [
        ("MP102", 1, 0, 19, 0, 27),
        ("MP301", 1, 0, 0, 0, 1),
        ("MP104", 2, 1, 0, 3, 1),
        ("MP909", 1, 0, 0, 0, 0),
    ]
    for wrong in ("x  # expect: MP102 `y`", "x  # expect: MP102", "x  # expect: MP102 `x` MP103 `x`"):
        with pytest.raises(BadExpectation):
            expectations(Path("p.py"), wrong)


def _numbers(place: object) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", str(place)))


# -- what ranges alone don't show


@pytest.mark.slow
def test_a_finding_in_a_library_is_at_the_users_call_and_its_path_leads_there(found: dict[str, Reported]) -> None:
    text = PROGRAMS["mp101_library"].text.splitlines()
    there = sorted((f for f in found["mp101_library"].findings if f.code == "MP101"), key=lambda f: f.location)
    assert len(there) == 2
    for finding in there:
        region_call, forward, *inside = finding.path
        assert text[region_call.range.start.line] == "policy(torch.randn(3, 4))"
        assert forward.range.start.line == finding.location.range.start.line and forward.function == "Policy.forward"
        assert inside[-1].file.endswith("torch/distributions/distribution.py")


@pytest.mark.slow
def test_a_library_of_the_corpus_is_named_in_the_message(found: dict[str, Reported]) -> None:
    (call,) = [f for f in found["library_call"].findings if f.code == "MP103"]
    assert "`jitter(x)` (at `time.localtime()` in `jitter`)" in call.message
    assert [Path(p.file).name for p in call.path] == ["library_call.py", "library_call.py", "__init__.py"]


@pytest.mark.slow
def test_the_path_of_a_finding_in_the_program_ends_at_it(found: dict[str, Reported]) -> None:
    (finding,) = [f for f in found["mp108_iterator"].findings if f.code == "MP108"]
    assert [p.function for p in finding.path] == ["<module>", "step"] and finding.path[-1] == finding.location


@pytest.mark.slow
def test_a_side_effect_made_by_a_library_is_at_the_users_call(found: dict[str, Reported]) -> None:
    (norm,) = [f for f in found["mp3_side_effects"].findings if f.code == "MP306" and f.path]
    assert {v.repr for v in norm.values} == {
        f"self.norm.{n}" for n in ("num_batches_tracked", "running_mean", "running_var")
    }
    assert norm.path[-1].file.endswith("torch/nn/modules/batchnorm.py")


@pytest.mark.slow
def test_a_value_that_changes_at_every_call_is_one_finding(found: dict[str, Reported]) -> None:
    changed = [f for f in found["mp203_recompile_limit"].findings if f.code == "MP201"]
    assert [(f.severity, f.count) for f in changed] == [(Severity.INFORMATION, 1), (Severity.WARNING, 6)]
    assert [v.repr for v in changed[1].values][-1] == "'batch-6' -> 'batch-7'"


def test_every_code_is_covered() -> None:
    in_corpus = {want.code for program in PROGRAMS.values() for want in program.expected}
    assert in_corpus | set(ELSEWHERE) == set(REGISTRY), "a code without a program or a named test"
    for code, path in ELSEWHERE.items():
        assert code in (ROOT / path).read_text(encoding="utf-8"), f"{path} says nothing of {code}"


def test_a_program_that_takes_the_process_down_is_named() -> None:
    """Programs before it keep their findings."""
    from tests.programs import findings_score

    names = ["mp108_iterator", "no_such_program", "mp101_branch"]
    found = findings_score._run_together(names)
    assert found["mp108_iterator"].findings and not found["mp108_iterator"].error
    assert "the process ended with status 1" in found["no_such_program"].error and found["mp101_branch"].error

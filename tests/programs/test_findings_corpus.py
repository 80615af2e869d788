"""Every finding is where the corpus says: ``findings/*.py`` are users' programs with the expectation on the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from magpy_core.findings import Finding, Severity
from tests.programs.findings_help import Program, run

FOLDER = Path(__file__).parent / "findings"
PROGRAMS = {path.stem: Program.read(path) for path in sorted(FOLDER.glob("*.py"))}


def problems(program: Program, findings: list[Finding]) -> list[str]:
    """What is missing, at another line or columns, or not expected at all (warnings and errors only)."""
    here = [f for f in findings if f.location.file == str(program.path)]
    out = [f"not in the program: {f.code} {f.location.file}: {f.message}" for f in findings if f not in here]
    left = {(f.code, f.location.range.start.line + 1): f for f in here}
    unexpected = dict(left)
    for want in program.expected:
        unexpected.pop((want.code, want.line), None)
        found = left.get((want.code, want.line))
        if found is None:
            others = sorted(line for code, line in left if code == want.code)
            out.append(f"line {want.line}: {want.code} is missing" + (f" (it is at {others})" if others else ""))
        elif want.start is not None:
            columns = (found.location.range.start.character, found.location.range.end.character)
            if columns != (want.start, want.end):
                out.append(f"line {want.line}: {want.code} is at columns {columns}, not {(want.start, want.end)}")
    out += [
        f"line {line}: {code} is not expected: {f.message}"
        for (code, line), f in unexpected.items()
        if f.severity.rank <= Severity.WARNING.rank
    ]
    return out


@pytest.mark.parametrize("name", [n for n, p in PROGRAMS.items() if not p.in_child])
def test_program(name: str) -> None:
    program = PROGRAMS[name]
    assert problems(program, run(program)) == []

"""What captures don't serve has a finding that names the value or the call, its line, and what to write instead."""

from __future__ import annotations

import inspect

import pytest

from magpy_core.findings import Finding
from tests.programs.patterns import PATTERNS
from tests.programs.patterns.measure import measure
from tests.programs.patterns.not_yet import NOT_YET

#: Served, with one or more captures too many: each has an occasion of its own, and no finding asks for a change.
ONE_TOO_MANY = {"swa_from_a_step"}


def says_what_to_do(finding: Finding, first: int, last: int) -> bool:
    """Whether it is in the step, quotes an expression, and has a hint."""
    line = finding.location.range.start.line + 1
    return first < line <= last and "`" in finding.message and bool(finding.hint)


@pytest.mark.parametrize("name", sorted(NOT_YET - ONE_TOO_MANY))
def test_a_finding_names_value_line_and_rewrite(name: str) -> None:
    lines, first = inspect.getsourcelines(PATTERNS[name].make)
    found = [f for f in measure(PATTERNS[name]).reported if says_what_to_do(f, first, first + len(lines))]
    assert found

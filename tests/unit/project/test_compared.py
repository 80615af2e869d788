"""What the comparison of tools looks for in their output: each tool's way to name a line, and only the causes' lines."""

from __future__ import annotations

import pytest

from benchmarks.compared import CAUSES, PROGRAM, has_values, named_in


@pytest.mark.parametrize(
    "text",
    [
        "program.py:15:12: MPD101 [warning]",
        'File "/tmp/x/program.py", line 15, in forward',
        "<FrameSummary file /tmp/x/program.py, line 15 in forward>",
        r"{\"filename\": \"/tmp/program.py\", \"line\": 15}",
    ],
)
def test_each_way_to_name_a_line(text: str) -> None:
    assert named_in(text) == {"branch"}


def test_other_lines_and_files_are_no_causes() -> None:
    assert named_in("program.py:1:2 program.py:150 other.py:15 line 15 program.py") == frozenset()


def test_each_cause_is_one_line_of_the_program() -> None:
    assert [sum(text in line for line in PROGRAM.splitlines()) for text in CAUSES.values()] == [1, 1, 1]


def test_the_value_that_changed() -> None:
    assert has_values("`self.calls` changed from 0 to 1, so") and has_values("self.calls == 0\nself.calls == 1")
    assert not has_values("self.calls += 1") and not has_values("self.calls == 0")

"""Programs of which public issues say that torch.compile gets them wrong: MagPy gets none wrong, and the page says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from tests.soundness.torch_issues import cases
from tests.soundness.torch_issues.case import Case
from tests.soundness.torch_issues.measure import by_bisect, by_magpy, by_torch_compile, differing
from tests.soundness.torch_issues.page import counts, tables

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "torch-issues.md"
_QUICK = {191308, 196467, 195675, 198190}
_NOTED = torch.__version__.startswith("2.13.")


def _marks(case: Case) -> list[pytest.MarkDecorator]:
    if case.issue in _QUICK:
        return []
    return [pytest.mark.slow, *([] if case.compiled == "wrong" else [pytest.mark.exhaustive])]


@pytest.mark.parametrize("case", [pytest.param(case, marks=_marks(case), id=case.name) for case in cases()])
def test_none_is_wrong(case: Case) -> None:
    ours, text = by_magpy(case)
    if _NOTED:
        assert ours == case.ours, text
    else:
        assert ours is not None, text


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.torch_compile
@pytest.mark.skipif(not _NOTED, reason="what torch.compile gives is noted for torch 2.13")
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in cases()])
def test_torch_compile_gives_what_is_noted(case: Case) -> None:
    compiled, text = by_torch_compile(case)
    assert compiled == case.compiled, text


#: Of the cases that are found, what the page says of `bisect`: the operations, what is at fault, whether a file shows it.
_BISECTED = {
    int(issue): (operations.replace("`", "").strip(), fault.strip(), alone)
    for issue, operations, fault, alone in re.findall(
        r"^\| \[(\d+)\]\S+ \| ([^|]+) \| ([^|]+) \| (yes|no) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
}
#: A type, a decomposition, a conversion that the recorded graph shows, parts that torch traces otherwise, a lost gradient.
_SAMPLE = {191308, 198201, 185337, 172062, 194760}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not _NOTED, reason="what bisect finds is noted for torch 2.13")
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=[] if case.issue in _SAMPLE else [pytest.mark.exhaustive])
        for case in cases()
        if case.issue in _BISECTED
    ],
)
def test_bisect_names_the_operations(case: Case, tmp_path: Path) -> None:
    found = by_bisect(case, tmp_path)
    operations, fault, alone = _BISECTED[case.issue]
    assert (found["operations"] or "-", found["at fault"] or "-", found["alone"]) == (operations, fault, alone)


def test_the_page_says_what_bisect_names_of_all_that_is_found() -> None:
    found = {case.issue for case in cases() if case.ours == "found" and case.compiled == "wrong"}
    assert set(_BISECTED) == found >= _SAMPLE
    located = sum(operations != "-" for operations, _, _ in _BISECTED.values())
    assert f"names the operations of {located} of these {len(found)}" in PAGE.read_text(encoding="utf-8")


def test_there_are_many() -> None:
    issues = [case.issue for case in cases()]
    assert len(set(issues)) == len(issues) and sum(counts(cases()).values()) >= 45


def test_a_difference_is_seen() -> None:
    x = torch.tensor([1.0, float("nan")])
    assert not differing((x, [1]), (x.clone() * (1 + 1e-6), [1]))
    for other in ((x.double(), [1]), (x[:1], [1]), (x + 0.1, [1]), (x, [True]), (x, (1,)), (x.nan_to_num(), [1])):
        assert differing((x, [1]), other)


def test_the_page_lists_them() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for table in tables(cases()):
        assert table in page, "python -m tests.soundness.torch_issues --markdown"
    found = counts(cases())
    assert f"{len(cases())} programs" in page and f"{found.total()} of them" in page
    listed = {word: int(number) for word, number in re.findall(r"^\| ([a-z ]+) \| (\d+) \|", page, re.MULTILINE)}
    assert listed == dict(found)

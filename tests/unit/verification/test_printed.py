"""What printed lines of two runs may differ in: numbers, by what rounding noise changes."""

from __future__ import annotations

import pytest

from magpy_core.verification.runs.printed import Line, compare

EAGER = "start\nstep 0 loss 1.2345 acc 10/100\nstep 1 loss 1.1000 acc 12/100\n"


def test_equal_texts_need_nothing_else() -> None:
    assert not compare(EAGER, EAGER).difference and not compare(EAGER, EAGER).is_rounding


def test_numbers_are_apart_from_the_text() -> None:
    line = Line.of("epoch 3: loss -1.5e-03, nan at v2.layer1")
    assert line.numbers == ("3", "-1.5e-03", "nan") and "v2.layer1" in line.text


def test_without_noise_a_number_differs() -> None:
    found = compare(EAGER, EAGER.replace("1.1000", "1.1001"))
    assert found.line == 3 and "1.1000" in found.difference and "1.1001" in found.difference


@pytest.mark.parametrize(("printed", "explained"), [("1.1001", True), ("1.1009", True), ("1.1030", False), ("nan", False)])
def test_noise_of_the_same_number_in_any_line_explains(printed: str, explained: bool) -> None:
    noisy = EAGER.replace("1.2345", "1.2347")  # 4 times 0.0002, and the last place
    found = compare(EAGER, EAGER.replace("1.1000", printed), EAGER, [noisy])
    assert found.is_rounding == explained and bool(found.difference) != explained


def test_whole_numbers_have_no_last_place() -> None:
    other = EAGER.replace("12/100", "13/100")
    assert compare(EAGER, other, EAGER, [EAGER]).difference
    assert compare(EAGER, other, EAGER, [EAGER.replace("10/100", "11/100")]).is_rounding


def test_what_two_eager_runs_differ_in_is_left_out() -> None:
    runs = [f"step 0 loss 1.5 took {ms} ms\n" for ms in (11, 12, 40)]
    found = compare(runs[0], runs[1], runs[2])
    assert not found.difference and not found.is_rounding and "two eager runs" in found.ignored
    assert compare(runs[0], runs[1].replace("1.5", "1.8"), runs[2], [runs[0]]).difference
    assert compare("a\n", "b\n", "c\n").ignored == "two eager runs print different lines"


def test_other_text_is_a_difference_unless_noise_changes_it_too() -> None:
    other = EAGER.replace("start", "begin")
    assert compare(EAGER, other, EAGER, [EAGER]).line == 1
    assert compare(EAGER, other, EAGER, [other]).is_rounding
    assert compare(EAGER, EAGER + "more\n", EAGER, [EAGER]).difference.endswith("compiled code `more`")
    assert "compiled code nothing more" in compare("a\nb", "a", "a\nb", ["a\nb"]).difference

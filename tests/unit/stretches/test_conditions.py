"""The part of a test that a stretch computes, and what stays in the frame."""

from __future__ import annotations

import ast

import pytest

from magpy_core.stretches.conditions import computed_part, may_rotate, with_value

PARTS = {
    "x.sum() > 0": ("x.sum() > 0", "VALUE"),
    "not (x > limit).all()": ("(x > limit).all()", "not VALUE"),
    "bool((x < 1 - eps).any())": ("(x < 1 - eps).any()", "bool(VALUE)"),
    "gate(x).item() > 0.5": ("gate(x)", "VALUE.item() > 0.5"),
    "float(loss * 2) < best": ("loss * 2", "float(VALUE) < best"),
    "not int(x.argmax()) == END": ("x.argmax()", "not int(VALUE) == END"),
    "a.item() == b.item()": ("a.item() == b.item()", "VALUE"),
}


@pytest.mark.parametrize("text", PARTS)
def test_truth_values_and_numbers_are_the_frames(text: str) -> None:
    test = ast.parse(text, mode="eval").body
    part = computed_part(test)
    assert part is not None
    around = with_value(test, ast.copy_location(ast.Name("VALUE", ast.Load()), test))
    assert (ast.unparse(part), ast.unparse(around)) == PARTS[text]
    assert ast.unparse(test) == ast.unparse(ast.parse(text, mode="eval")), "it is not changed"


@pytest.mark.parametrize(
    "text",
    ["x", "word.item()", "not done", "x.any() and y", "a < x.sum() < b", "f(x) in known", "(n := f(x)) > 3", "f(lambda: x)",
     "x if f(y) else z", "f([y for y in x])", "f(not x)", "bool(*f(x) or y)"],
)  # fmt: skip
def test_a_branch_inside_of_a_test_stays_in_the_frame(text: str) -> None:
    assert computed_part(ast.parse(text, mode="eval").body) is None


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = f(x)", True),
        ("if x: break\nx = f(x)", True),
        ("for y in x:\n  if y: continue\nx = f(x)", True),
        ("def g():\n  for y in x: continue\nx = f(x)", True),
        ("if x: continue\nx = f(x)", False),
        ("for y in x: pass\nelse: continue", False),
        ("try: f(x)\nexcept ValueError: continue", False),
        ("match x:\n  case 1: continue", False),
        ("with x:\n  continue", False),
    ],
)
def test_a_loop_rotates_if_only_its_end_leads_to_its_test(body: str, expected: bool) -> None:
    loop = ast.parse("while f(x):\n" + "\n".join(f"  {line}" for line in body.splitlines())).body[0]
    assert isinstance(loop, ast.While) and may_rotate(loop) is expected
    loop.orelse = [ast.Pass()]
    assert not may_rotate(loop)

"""Functions that call stretches do what they did before, wherever they are cut."""

from __future__ import annotations

import ast
import itertools
import linecache
import traceback
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import pytest

from magpy_core.stretches.functions import Functions, Line, cut_code
from magpy_core.stretches.originals import original_of
from magpy_core.stretches.stretch import Stretch
from tests.unit.stretches import statements

_MOST_PAIRS = 200


class Counted:
    """Runs stretches as they are."""

    def __init__(self) -> None:
        self.stretches: list[Stretch] = []
        self.calls = 0

    def receiver(self, stretch: Stretch) -> Any:
        self.stretches.append(stretch)
        counted = self

        class Receiver:
            def __matmul__(self, function: Any) -> Any:
                counted.calls += 1
                return function()

        return Receiver()


def lines_of(function: Callable[..., Any]) -> list[int]:
    code = function.__code__
    return sorted({line for _, _, line in code.co_lines() if line is not None and line > code.co_firstlineno})


def seams_of(function: Callable[..., Any]) -> Iterator[set[int]]:
    lines = lines_of(function)
    yield set()
    yield from ({line} for line in lines)
    pairs = list(itertools.combinations(lines, 2))
    yield from (set(pair) for pair in pairs[:: len(pairs) // _MOST_PAIRS + 1])
    yield set(lines[::2])
    yield set(lines[1::2])
    yield set(lines)


@pytest.mark.parametrize("function", statements.FUNCTIONS, ids=lambda f: f.__name__)
def test_a_cut_function_does_the_same(function: FunctionType) -> None:
    target = statements.METHODS[0] if function is statements.methods else function
    code, expected = target.__code__, function()
    calls = 0
    try:
        for seams in seams_of(target):
            counted = Counted()
            made = cut_code(code, seams, counted.receiver)
            if made is None:
                continue
            assert original_of(made) is code
            assert (made.co_name, made.co_qualname, made.co_firstlineno) == (
                code.co_name, code.co_qualname, code.co_firstlineno,
            )  # fmt: skip
            target.__code__ = made
            assert function() == expected, (seams, [stretch.lines for stretch in counted.stretches])
            calls += counted.calls
    finally:
        target.__code__ = code
    assert calls > 2


@pytest.mark.parametrize(
    ("function", "expected"),
    [(statements.tests_of_branches, ["x > 6", "call(x) % 2", "y + 1"]), (statements.tests_of_loops, ["n * 2 < 10"])],
)
def test_a_stretch_computes_the_test_after_it(function: FunctionType, expected: list[str]) -> None:
    code = function.__code__
    seams = {number for number in lines_of(function) if any(one in _text(code, number) for one in expected)}
    for tests, computed in ((set(), expected), (seams, [])):
        counted = Counted()
        assert cut_code(code, seams, counted.receiver, tests) is not None
        found = [ast.unparse(stretch.test) for stretch in counted.stretches if stretch.test is not None]
        assert [one for one in found if one in expected] == computed


def _text(code: CodeType, number: int) -> str:
    return linecache.getline(code.co_filename, number)


def fails() -> None:
    x = statements.call(1)
    y = x / 0
    print(y)


def test_a_traceback_names_the_line_and_the_function() -> None:
    code = fails.__code__
    made = cut_code(code, set(), Counted().receiver)
    assert made is not None
    fails.__code__ = made
    try:
        with pytest.raises(ZeroDivisionError) as caught:
            fails()
    finally:
        fails.__code__ = code
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.name, last.line) == ("fails", "y = x / 0")


def looks_around() -> Any:
    x = statements.call(1)
    return sorted(locals()), x


def test_a_function_that_uses_its_frame_is_not_cut() -> None:
    assert cut_code(looks_around.__code__, set(), Counted().receiver) is None


def test_a_function_without_its_source_is_not_cut() -> None:
    space: dict[str, Any] = {"call": statements.call}
    exec(compile("def f():\n    x = call(1)\n    return x\n", "<no file>", "exec"), space)
    assert cut_code(space["f"].__code__, set(), Counted().receiver) is None
    other = fails.__code__.replace(co_firstlineno=fails.__code__.co_firstlineno + 1)
    assert cut_code(other, set(), Counted().receiver) is None


def sums(n: int) -> int:
    total = 0
    for i in range(n):
        total += statements.call(i)
        total += statements.call(1)
    return statements.call(total)  # type: ignore[no-any-return]


def test_seams_are_added_to_functions_by_their_lines() -> None:
    counted = Counted()
    functions = Functions(counted.receiver)
    code, (first, second) = sums.__code__, lines_of(sums)[2:4]
    assert functions.add_seams([Line(code.co_filename, "sums", first)])
    assert sums(3) == 6 and counted.calls == 0 and sums.__code__ is code, "only while they are to serve"
    with functions.serving():
        assert sums(3) == 6 and counted.calls == 4
        with functions.serving():
            assert not functions.add_seams([Line(code.co_filename, "sums", first)])
            assert functions.add_seams([Line(code.co_filename, "sums", second)])
        assert sums(3) == 6 and counted.calls == 5
    assert sums.__code__ is code
    ranges = [(stretch.lines.start, stretch.lines.stop) for stretch in counted.stretches]
    assert len(ranges) == len(set(ranges)) == 2  # a stretch of the same lines keeps its receiver
    assert functions.are_cut([Line(code.co_filename, "sums", first)])
    unknown = Line(code.co_filename, "unknown", 3)
    assert not functions.add_seams([unknown]) and not functions.are_cut([unknown])


def test_code_that_the_program_has_replaced_stays() -> None:
    functions = Functions(Counted().receiver)
    code, other = sums.__code__, sums.__code__.replace(co_name="other")
    assert functions.add_seams([Line(code.co_filename, "sums", lines_of(sums)[2])])
    sums.__code__ = other
    try:
        with functions.serving():
            assert sums.__code__ is other
        assert sums.__code__ is other
    finally:
        sums.__code__ = code

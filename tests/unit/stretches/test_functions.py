"""Functions that call stretches do what they did before, wherever they are cut."""

from __future__ import annotations

import ast
import itertools
import linecache
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

import pytest

from magpy_core.stretches.functions import Functions, Line, cut_code
from magpy_core.stretches.originals import original_of
from magpy_core.stretches.seam_clock import SeamClock
from magpy_core.stretches.seam_parts import Span
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


def seams_and_spans_of(function: Callable[..., Any]) -> Iterator[tuple[set[int], set[Span]]]:
    """Each of the function's expressions, alone and with all of its kind, where nothing or everything is a seam."""
    code, lines = function.__code__, lines_of(function)
    spans = {
        Span(first, column, last, end)
        for first, last, column, end in code.co_positions()
        if first is not None and last is not None and column is not None and end is not None and first in lines
    }
    characters = sorted(_in_characters(span, code.co_filename) for span in spans)
    for span in characters[:: len(characters) // _MOST_PAIRS + 1]:
        yield set(range(span[0], span[2] + 1)), {span}
    yield set(lines), set(characters)
    yield set(lines), set(characters[::2])


def _in_characters(span: Span, file: str) -> Span:
    def character(line: int, column: int) -> int:
        return len(linecache.getline(file, line).encode()[:column].decode())

    return Span(span[0], character(*span[:2]), span[2], character(*span[2:4]))


@contextmanager
def serving(functions: Functions) -> Iterator[None]:
    functions.begin()
    try:
        yield
    finally:
        functions.end()


@pytest.mark.parametrize("function", statements.FUNCTIONS, ids=lambda f: f.__name__)
def test_a_cut_function_does_the_same(function: FunctionType) -> None:
    """Its seams are timed, too."""
    target = statements.METHODS[0] if function is statements.methods else function
    code, expected = target.__code__, function()
    calls, seams_timed = 0, SeamClock(lambda: 0, pytest.fail)
    try:
        for seams, spans in [*((seams, set()) for seams in seams_of(target)), *seams_and_spans_of(target)]:
            counted = Counted()
            values = set[int]() if spans else None
            made = cut_code(code, seams, counted.receiver, values, spans=spans, clock=lambda: seams_timed)
            if made is None:
                continue
            assert original_of(made) is code
            assert (made.co_name, made.co_qualname, made.co_firstlineno) == (
                code.co_name, code.co_qualname, code.co_firstlineno,
            )  # fmt: skip
            target.__code__ = made
            assert function() == expected, (seams, spans, [stretch.place for stretch in counted.stretches])
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
        found = [ast.unparse(stretch.value) for stretch in counted.stretches if stretch.value is not None]
        assert [one for one in found if one in expected] == computed


def parts(x: Any) -> Any:
    y = x.first()
    for row in statements.call(y).tolist():
        print(row, len(x))
    for row in range(len(x)):
        print(row)
    z = x.second(x.third(y).numpy(), *f(x), key=f(y))
    z = y + f(x) if g(y).item() > 1 and x.size(0) else x.time()
    return [x.fourth(z.cpu()).tolist(), f"{f(z)}", (y := f(x)), y, [f(one) for one in f(z)]]


def g(x: Any) -> Any:
    return x


f = g


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("statements.call(y).tolist()", ["statements.call(y)"]),
        ("print(row, len(x))", []),
        ("range(len(x))", []),
        ("x.third(y).numpy()", ["x.third(y)", "f(y)", "f(x)"]),
        ("x.second", ["x.third(y).numpy()", "f(y)", "f(x)"]),
        ("g(y).item()", ["y + f(x)", "x.time()", "g(y)", "x.size(0)"]),
        ("x.fourth(z.cpu()).tolist()", ["f(z)", "x.fourth(z.cpu())", "[f(one) for one in f(z)]"]),
    ],
)
def test_parts_of_a_seam_are_stretches(text: str, expected: list[str]) -> None:
    code = parts.__code__
    number = next(line for line in lines_of(parts) if text in _text(code, line))
    start = _text(code, number).index(text)
    span = Span(number, start, number, start + len(text))
    counted = Counted()
    seams = [line for line in lines_of(parts) if line >= code.co_firstlineno + 2]
    assert cut_code(code, seams, counted.receiver, (), spans=[span]) is not None, "what a loop iterates over is no seam"
    found = [one for one in counted.stretches if one.value is not None and number in one.value_lines]
    assert sorted(ast.unparse(one.value) for one in found if one.value is not None) == sorted(expected)
    joined = [one for one in found if one.statements]
    assert [ast.unparse(one.statements[0]) for one in joined] == (["y = x.first()"] if "statements" in text else [])
    left = Counted()
    cut_code(code, seams, left.receiver, [number], spans=[span])
    assert not any(number in one.value_lines for one in left.stretches)


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
    with serving(functions):
        assert sums(3) == 6 and counted.calls == 4
        with serving(functions):
            assert not functions.add_seams([Line(code.co_filename, "sums", first)])
            assert functions.add_seams([Line(code.co_filename, "sums", second)])
        assert sums(3) == 6 and counted.calls == 5
    assert sums.__code__ is code
    ranges = [(stretch.lines.start, stretch.lines.stop) for stretch in counted.stretches]
    assert len(ranges) == len(set(ranges)) == 2  # a stretch of the same lines keeps its receiver
    assert functions.are_cut([Line(code.co_filename, "sums", first)])
    unknown = Line(code.co_filename, "unknown", 3)
    assert not functions.add_seams([unknown]) and not functions.are_cut([unknown])


def test_what_was_in_a_stretch_can_be_the_functions_own_again() -> None:
    counted = Counted()
    functions = Functions(counted.receiver)
    code, (first, second) = sums.__code__, lines_of(sums)[2:4]
    functions.add_seams([Line(code.co_filename, "sums", first)])
    inside = next(one for one in counted.stretches if one.lines.start == second)
    functions.dissolve(inside)
    with serving(functions):
        assert sums(3) == 6 and counted.calls == 4
        functions.recut()
        assert sums(3) == 6 and counted.calls == 5, "what is returned is another stretch"
    assert sums.__code__ is code


def rotates(n: int) -> list[int]:
    found: list[int] = []
    while len(found) < n:
        found.append(statements.call(len(found)))
        found.append(-1)
    if statements.call(n) > 2:
        found.append(n)
    return found


@pytest.mark.parametrize("function", [sums, rotates])
def test_with_any_of_its_stretches_gone_a_function_does_the_same(function: FunctionType) -> None:
    for seams in seams_of(function):
        made = Counted()
        cut_code(function.__code__, seams, made.receiver, set())
        for gone in made.stretches:
            left = Counted()
            code = cut_code(function.__code__, seams, left.receiver, set(), plain=[gone.place])
            assert gone.place not in [one.place for one in left.stretches]
            if code is not None:
                again = FunctionType(code, function.__globals__)
                assert [again(n) for n in range(5)] == [function(n) for n in range(5)]


def test_code_that_the_program_has_replaced_stays() -> None:
    functions = Functions(Counted().receiver)
    code, other = sums.__code__, sums.__code__.replace(co_name="other")
    assert functions.add_seams([Line(code.co_filename, "sums", lines_of(sums)[2])])
    sums.__code__ = other
    try:
        with serving(functions):
            assert sums.__code__ is other
        assert sums.__code__ is other
    finally:
        sums.__code__ = code

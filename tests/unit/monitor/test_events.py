"""Exact events of small functions, opcode by opcode."""

# Statements that look pointless are what is being watched.
# ruff: noqa: B007, B018, F841, RUF060, UP028

from __future__ import annotations

import asyncio
import contextlib
import math
import sys
from typing import Any

import pytest

from tests.unit.monitor.log import events_of, run

GLOBAL = 7


class Box:
    """An object with attributes, items and a method."""

    def __init__(self) -> None:
        self.value = 1
        self.items = {"a": 1}

    def method(self, x: int, *, key: int = 0) -> int:
        return x


def test_attributes() -> None:
    box = Box()

    def f(b: Any) -> None:
        b.value
        b.value = 5
        del b.value

    assert events_of(f, box) == [
        ("enter", "f"),
        ("attr_read", "value", box),
        ("attr_write", "value", box, 5),
        ("attr_delete", "value", box),
    ]


def test_a_write_is_reported_before_it_happens() -> None:
    from magpy_core.monitor.events import Observer
    from magpy_core.monitor.record import record

    seen = []

    class Before(Observer):
        def attr_write(self, site: Any, obj: Any, value: Any) -> None:
            seen.append(obj.value)

    box = Box()

    def f() -> None:
        box.value = 5

    with record(Before()):
        f()
    assert (seen, box.value) == ([1], 5)


def test_items_and_slices() -> None:
    data = [1, 2, 3, 4]

    def f(d: Any) -> Any:
        d[0] = d[1]
        d[1:2] = d[2:]
        del d[0]
        return d[::2]

    assert events_of(f, data) == [
        ("enter", "f"),
        ("item_read", None, data, 1),
        ("item_write", None, data, 0, 2),
        ("item_read", None, data, slice(2, None)),
        ("item_write", None, data, slice(1, 2), [3, 4]),
        ("item_delete", None, data, 0),
        ("item_read", None, data, slice(None, None, 2)),
    ]


def test_globals() -> None:
    def f() -> None:
        global GLOBAL, _made
        GLOBAL
        _made = 3
        del _made

    assert events_of(f) == [
        ("enter", "f"),
        ("global_read", "GLOBAL"),
        ("global_write", "_made", 3),
        ("global_delete", "_made"),
    ]


def test_cells() -> None:
    count = 1

    def f() -> int:
        nonlocal count
        count = count + 1
        return count

    cell = f.__closure__[0]  # type: ignore[index]
    assert events_of(f, without="binary binary_result") == [
        ("enter", "f"),
        ("cell_read", "count", cell),
        ("cell_write", "count", cell, 2),
        ("cell_read", "count", cell),
    ]


def test_cells_of_arguments_and_own_variables() -> None:
    def f(arg: int, plain: int) -> Any:
        own = arg
        del own
        own = 2
        return lambda: (arg, own)

    log = run(f, 1, 2)[1]
    assert [(event[0], event[1]) for event in log.events[1:-1]] == [
        ("cell_read", "arg"),
        ("cell_write", "own"),
        ("cell_delete", "own"),
        ("cell_write", "own"),
    ]


def test_calls() -> None:
    box = Box()
    method = box.method
    args, kwargs = [1], {"key": 2}

    def f(b: Any, a: Any, k: Any) -> None:
        b.method(1, key=2)
        b.method(*a, **k)
        len((1,))
        "x".join(["y"])

    got = events_of(f, box, args, kwargs, without="attr_read global_read")
    join = got[-2][2]
    assert got == [
        ("enter", "f"),
        ("call", None, method, (1,), {"key": 2}),
        ("enter", "method"),
        ("call_result", None, 1),
        ("extend", None, {"key": 2}, kwargs),
        ("extend", None, None, args),
        ("call", None, method, (1,), {"key": 2}),
        ("enter", "method"),
        ("call_result", None, 1),
        ("call", None, len, ((1,),), None),
        ("call_result", None, 1),
        ("call", None, join, (["y"],), None),
        ("call_result", None, "y"),
    ]
    assert join("ab") == "axb"


def test_star_arguments_of_any_iterable() -> None:
    def f(*args: int) -> tuple[int, ...]:
        return args

    def g(x: Any) -> Any:
        return f(*x)

    made = iter([1, 2])
    result, log = run(g, made)
    assert result == (1, 2)
    assert [event for event in log.events if event[0] in ("extend", "call")] == [
        ("extend", None, None, made),
        ("call", None, f, (1, 2), None),
    ]
    with pytest.raises(TypeError, match=r"argument after \* must be an iterable, not int"):
        run(g, 5)


def test_super() -> None:
    class Child(Box):
        def method(self, x: int, *, key: int = 0) -> int:
            return super().method(x) + super(Child, self).method(x)  # noqa: UP008

    child = Child()
    got = [event for event in events_of(child.method, 3) if event[0] in ("call", "attr_read")]
    assert got[0] == ("call", None, super, (), None)
    assert got[1][:2] == ("attr_read", "method") and type(got[1][2]) is super
    assert got[2][2].__func__ is Box.method and got[2][3:] == ((3,), None)
    assert got[3] == ("call", None, super, (Child, child), None)


def test_operators() -> None:
    def f(a: Any, b: Any) -> None:
        c = a + b
        c -= a
        _ = -a, ~b, +a
        _ = a < b, a is b, a is not b, not a

    assert events_of(f, 1, 2) == [
        ("enter", "f"),
        ("binary", "+", 1, 2),
        ("binary_result", "+", 1, 2, 3),
        ("binary", "-=", 3, 1),
        ("binary_result", "-=", 3, 1, 2),
        ("unary", "-", 1),
        ("unary_result", "-", 1, -1),
        ("unary", "~", 2),
        ("unary_result", "~", 2, -3),
        ("unary", "+", 1),
        ("unary_result", "+", 1, 1),
        ("compare", "<", 1, 2),
        ("is_", "is", 1, 2),
        ("is_result", "is", 1, 2, False),
        ("is_", "is not", 1, 2),
        ("is_result", "is not", 1, 2, True),
        ("truth", None, 1),
    ]


def test_returns() -> None:
    def key(v: int) -> int:
        return -v

    def f(a: Any) -> Any:
        return sorted(a, key=key)

    returned = [event for event in events_of(f, [1, 2], without="nothing") if event[0] in ("return_", "call_result")]
    assert returned == [
        ("return_", None, -1),
        ("return_", None, -2),
        ("call_result", None, [2, 1]),
        ("return_", None, [2, 1]),
    ]


def test_results() -> None:
    class Box:
        T = "turned"

    def f(box: Any, a: list[int]) -> list[Any]:
        return [a[0], a[1:], a < [9], box.T, [v for v in a]]

    box = Box()
    got = [event for event in events_of(f, box, [1, 2], without="nothing") if event[0].endswith("_result")]
    assert got[:4] == [
        ("item_read_result", None, [1, 2], 0, 1),
        ("item_read_result", None, [1, 2], slice(1, None), [2]),
        ("compare_result", "<", [1, 2], [9], True),
        ("attr_result", "T", box, "turned"),
    ]
    assert got[4][:3] == ("iterate_result", None, [1, 2]) and list(got[4][3]) == []


def test_branches() -> None:
    def f(a: Any, b: Any) -> int:
        if a:
            pass
        while b is not None:
            b = None
        if a in (1, 2) or a not in {}:
            return 1
        return 2

    empty: dict[Any, Any] = {}
    expected = [
        ("enter", "f"),
        ("truth", None, 5),
        ("is_", "is", 6, None),
        ("is_", "is", None, None),
        ("contains", "in", 5, (1, 2)),
        ("truth", None, False),
        ("contains", "not in", 5, empty),
        ("truth", None, True),
    ]
    if sys.version_info >= (3, 13):  # no truth test of what is a bool by the way it was made
        expected = [event for event in expected if event[0] != "truth" or type(event[2]) is not bool]
    assert events_of(f, 5, 6) == expected


def test_a_comparison_that_decides_a_branch() -> None:
    class Answer:
        def __init__(self, truth: bool) -> None:
            self.truth = truth

        def __bool__(self) -> bool:
            return self.truth

    class Thing:
        def __lt__(self, other: object) -> Any:
            return answers[other]

    answers = {1: Answer(True), 2: Answer(False)}

    def f(a: Any) -> int:
        if a < 1 and not a < 2:
            return 1
        return 2

    thing = Thing()
    got = events_of(f, thing)
    assert [event for event in got if event[0] in ("compare", "truth")] == [
        ("compare", "<", thing, 1),
        ("truth", None, answers[1]),
        ("compare", "<", thing, 2),
        ("truth", None, answers[2]),
    ]


def test_iteration_and_unpacking() -> None:
    pairs = [(1, [2, 3])]

    def f(p: Any) -> Any:
        for a, (b, *c) in p:
            return [*p, *{**{"k": a}}], {*c}

    got = events_of(f, pairs)
    assert [event[0] for event in got] == [
        "enter",
        "iterate",
        "unpack",
        "unpack",
        "extend",
        "hashed",
        "extend",
        "extend",
        "extend",
    ]
    assert got[1:4] == [("iterate", None, pairs), ("unpack", None, pairs[0]), ("unpack", None, [2, 3])]


def test_formatting() -> None:
    def f(x: float) -> str:
        return f"{x} {x!r:>{4}}"

    start = [("enter", "f"), ("format", None, 1.5, None), ("format_result", None, 1.5, None, "1.5")]
    spec = [("format", None, 4, None), ("format_result", None, 4, None, "4")]
    joined = [*spec, ("joined_result", None, (">", "4"), ">4")]
    whole = [("joined_result", None, ("1.5", " ", " 1.5"), "1.5  1.5")]
    if sys.version_info >= (3, 13):  # a conversion comes first, and is an event of its own
        converted = [("format", "r", 1.5, None), ("format_result", "r", 1.5, None, "1.5")]
        formatted = [("format", None, "1.5", ">4"), ("format_result", None, "1.5", ">4", " 1.5")]
        assert events_of(f, 1.5) == [*start, *converted, *joined, *formatted, *whole]
    else:
        formatted = [("format", "r", 1.5, ">4"), ("format_result", "r", 1.5, ">4", " 1.5")]
        assert events_of(f, 1.5) == [*start, *joined, *formatted, *whole]


def test_a_conversion_without_a_specification_is_one_event() -> None:
    def f(x: float) -> str:
        return f"{x!r}"

    assert events_of(f, 1.5) == [("enter", "f"), ("format", "r", 1.5, None), ("format_result", "r", 1.5, None, "1.5")]


def test_with_import_raise() -> None:
    error = ValueError("x")
    manager = contextlib.suppress(ValueError)

    def f() -> None:
        from math import tau  # noqa: F401

        with manager:
            raise error

    def g() -> None:
        try:
            raise error from None
        except ValueError:
            raise

    got = events_of(f, without="enter truth cell_read attr_read attr_write global_read")
    assert got[:4] == [
        ("import_name", "math", "math"),
        ("import_from", "tau", math),
        ("with_enter", None, manager),
        ("raise_", None, error),
    ]
    exit_call = got[4]
    assert exit_call[0] == "call" and exit_call[2] == manager.__exit__ and exit_call[3][:2] == (ValueError, error)
    with pytest.raises(ValueError):
        run(g)
    log_events: list[Any] = []

    def h() -> None:
        with contextlib.suppress(ValueError):
            g()

    log_events = [event for event in events_of(h) if event[0] == "raise_"]
    assert log_events == [("raise_", None, error), ("raise_", None, error)]


def test_match() -> None:
    box = Box()

    def f(x: Any) -> int:
        match x:
            case {"k": 1}:
                return 1
            case [a, b]:
                return 2
            case Box(value=v):
                return 3
        return 4

    assert events_of(f, box, without="global_read truth is_ compare") == [
        ("enter", "f"),
        ("match", None, box),
        ("match", None, box),
        ("match_class", None, box, Box, ("value",)),
        ("unpack", None, (1,)),
    ]
    assert [run(f, x)[0] for x in ({"k": 1}, [1, 2], box, 5)] == [1, 2, 3, 4]


def test_frames_entered_from_c_and_generators() -> None:
    class Key:
        @property
        def value(self) -> int:
            return 1

        def __lt__(self, other: object) -> bool:
            return False

    def numbers(n: int) -> Any:
        for k in range(n):
            yield k

    def f() -> Any:
        list(map(lambda x: x, [1]))
        sorted([Key(), Key()])
        return Key().value, sum(numbers(3)), list(numbers(2))

    entered = [event[1] for event in events_of(f) if event[0] == "enter"]
    assert entered == ["f", "<lambda>", "__lt__", "value", "numbers", "numbers"]


def test_coroutines() -> None:
    async def inner() -> int:
        await asyncio.sleep(0)
        return GLOBAL

    @contextlib.asynccontextmanager
    async def manager() -> Any:
        yield 1

    async def agen() -> Any:
        yield 1
        yield 2

    async def outer() -> Any:
        async with manager() as one:
            return [x async for x in agen()] + [one, await inner()]

    result, log = run(asyncio.run, outer())
    assert result == [1, 2, 1, 7]
    assert ("global_read", "GLOBAL") in log.events
    assert {"inner", "agen", "manager"} <= {event[1] for event in log.events if event[0] == "enter"}


def test_results_can_be_replaced_by_equal_ones() -> None:
    from magpy_core.monitor.events import Observer
    from magpy_core.monitor.record import record

    class Fresh(Observer):
        def __init__(self) -> None:
            self.made: list[float] = []

        def _fresh(self, value: Any) -> Any:
            if type(value) is float:
                value = float.fromhex(value.hex())
                self.made.append(value)
            return value

        def call_result(self, site: Any, result: Any) -> object:
            return self._fresh(result)

        def binary_result(self, site: Any, lhs: Any, rhs: Any, result: Any) -> object:
            return self._fresh(result)

        def unary_result(self, site: Any, value: Any, result: Any) -> object:
            return self._fresh(result)

    def f(x: float) -> list[float]:
        return [x + 1.0, -x, float("3.5")]

    observer = Fresh()
    with record(observer):
        result = f(2.0)
    assert result == [3.0, -2.0, 3.5]
    assert [id(value) for value in result] == [id(value) for value in observer.made]


def test_a_result_of_another_type_is_refused() -> None:
    from magpy_core.monitor.events import Observer
    from magpy_core.monitor.record import record

    class Wrong(Observer):
        def binary_result(self, site: Any, lhs: Any, rhs: Any, result: Any) -> object:
            return float(result)

    def f() -> int:
        return GLOBAL + 1

    with record(Wrong()) as recording:
        result = f()
    assert (result, type(result)) == (8, int)
    assert "int became float" in str(recording.observer_failure)

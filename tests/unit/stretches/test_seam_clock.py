"""What seams take: their own time, without that of stretches and other seams in them."""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import pytest

from magpy_core.stretches import seam_clock
from magpy_core.stretches.functions import cut_code
from magpy_core.stretches.seam_clock import Seam, SeamClock

NOW = [0.0]


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seam_clock, "perf_counter", lambda: NOW[0])


def take(seconds: float, result: Any = None) -> Any:
    NOW[0] += seconds
    return result


class Timed:
    """A function cut at the lines, counted from its first one, of ``seams``."""

    def __init__(self, function: Callable[..., Any], seams: list[int]) -> None:
        code = function.__code__
        self.first, self.file, self.runs = code.co_firstlineno, code.co_filename, 0
        self.clock = SeamClock(lambda: self.runs, pytest.fail)
        timed = self

        class Receiver:
            def __matmul__(self, stretch: Any) -> Any:
                start = NOW[0]
                result = stretch()
                timed.clock.ran_other(NOW[0] - start)
                return result

        made = cut_code(code, [self.first + n for n in seams], lambda stretch: Receiver(), clock=lambda: timed.clock)
        assert made is not None
        self.function = FunctionType(made, function.__globals__)

    def __call__(self, *args: Any) -> Any:
        try:
            return self.function(*args)
        finally:
            self.runs += 1

    def takes(self, line: int) -> float | None:
        seam = self.clock.seam_at(self.file, self.first + line)
        return None if seam is None else self.clock.per_run(seam)


def statement(n: int) -> int:
    total = n + take(1.0, 0)
    take(
        5.0,
    )
    return total + take(1.0, 1)


def test_a_statement_with_all_of_its_lines() -> None:
    timed = Timed(statement, [3])
    assert [timed(i) for i in range(4)] == [1, 2, 3, 4]
    assert [timed.takes(n) for n in (1, 2, 3, 4, 5)] == [None, 5.0, 5.0, 5.0, None]


def returned(n: int) -> Any:
    n += take(1.0, 1)
    return take(2.0, [n])


def test_what_a_function_returns() -> None:
    timed = Timed(returned, [2])
    assert [timed(i) for i in range(4)] == [[1], [2], [3], [4]]
    assert timed.takes(2) == 2.0


def compares(n: int) -> Any:
    n += take(1.0, 1)
    return take(2.0, NotImplemented)


def unpacks(n: int) -> Any:
    n += take(1.0, 1)
    return *take(2.0, [n]), n


def test_a_function_may_return_anything() -> None:
    assert Timed(compares, [2])(1) is NotImplemented
    assert Timed(unpacks, [2])(1) == (2, 2)


def heads(n: int) -> Any:
    seen = []
    if take(2.0, n > 1):
        seen.append(take(10.0, n))
    else:
        seen.append(take(20.0, -n))
    for i in take(3.0, range(n)):
        seen.append(take(30.0, i))
    with take(4.0, Entered()):
        seen.append(take(40.0, n))
    return seen


class Entered:
    def __enter__(self) -> None:
        take(0.5)

    def __exit__(self, *exception: object) -> None:
        take(100.0)


def test_the_head_of_a_statement_with_blocks() -> None:
    timed = Timed(heads, [2, 6, 8])
    assert [timed(i) for i in range(4)] == [heads(i) for i in range(4)]
    assert [timed.takes(n) for n in (2, 6, 8)] == [2.0, 3.0, 4.5]
    assert [timed.takes(n) for n in (3, 5, 7, 9)] == [None] * 4


def test_the_body_of_a_loop_is_as_fast_as_before() -> None:
    timed = Timed(heads, [6])
    ends = [one for one in dis.get_instructions(timed.function) if isinstance(one.argval, seam_clock._End)]
    assert len(ends) == 1, "where what it goes over is known, and not in each turn"


def in_block(n: int) -> Any:
    n += take(1.0, 1)
    if n > 2:
        take(6.0)
        n += take(1.0, 1)
    return n


def test_a_line_in_a_block_is_no_time_of_the_head() -> None:
    timed = Timed(in_block, [3])
    assert [timed(i) for i in range(8)] == [in_block(i) for i in range(8)]
    assert timed.takes(2) is None
    assert timed.takes(3) == 6.0 * 6 / 8, "it runs in six of eight calls"


def fails(n: int) -> Any:
    n += take(1.0, 1)
    take(7.0, 1 / (n % 2))
    return n + take(1.0, 0)


def test_what_an_exception_ends_is_not_counted() -> None:
    timed = Timed(fails, [2])
    for n in range(8):
        if n % 2:
            with pytest.raises(ZeroDivisionError):
                timed(n)
        else:
            assert timed(n) == n + 1
    assert timed.takes(2) == 7.0 * 4 / 8


def generates(n: int) -> Iterator[int]:
    n += take(1.0, 1)
    m = yield n
    take(7.0, m)
    yield n + take(1.0, 1)


def test_the_time_in_which_a_generator_is_suspended_is_not_its_own() -> None:
    timed = Timed(generates, [2, 3])
    for n in range(4):
        running = timed(n)
        assert next(running) == n + 1
        take(1000.0)
        assert next(running) == n + 2
    assert timed.takes(2) is None and timed.takes(3) == 7.0


def test_others_in_a_seam_are_not_counted() -> None:
    outer, inner = Seam("a.py", range(1, 2)), Seam("a.py", range(5, 6))
    clock = SeamClock(lambda: round(NOW[0] / 100), pytest.fail)
    for _ in range(3):
        clock.begin(outer)
        take(1.0)
        clock.begin(inner)
        take(10.0)
        clock.ran_other(4.0)
        clock.end(inner)
        take(2.0)
        clock.end(outer)
        take(87.0)
    assert not clock.is_running
    assert (clock.per_run(outer), clock.per_run(inner)) == (3.0, 6.0)


def test_a_few_times_are_not_enough() -> None:
    timed = Timed(returned, [2])
    assert [timed(1), timed(1)] == [[2], [2]]
    assert timed.takes(2) is None
    assert timed(1) == [2] and timed.takes(2) == 2.0


def test_a_seam_that_never_ends_is_kept_once() -> None:
    clock, seam = SeamClock(lambda: 0, pytest.fail), Seam("a.py", range(1, 2))
    for _ in range(100):
        clock.begin(seam)
    assert len(clock._running.seams) == 1

"""Which names a function counts up, by its code."""

from __future__ import annotations

from typing import Any

from magpy_core._compat.cpython.counters import count_also, counted_names, counts_item, stored_keys

N = 0


def test_augmented_assignments() -> None:
    total = 0

    def count(state: Any, table: dict[str, int]) -> int:
        nonlocal total
        global N
        total += len(table)
        N -= 1
        state.calls += 1
        state.inner.scale *= 2
        state.other = state.other + 1
        table["n"] += 1
        local = 0
        local += 1
        return local

    assert counted_names(count.__code__) == {"total", "N", "calls", "scale"}


def test_what_is_read_only() -> None:
    def read(state: Any) -> Any:
        state.last = state.calls + 1
        return state.calls + N

    assert counted_names(read.__code__) == set()


def test_names_from_elsewhere() -> None:
    def body(state: Any) -> None:
        state.n += 1

    count_also(body.__code__, frozenset({"step"}))
    assert counted_names(body.__code__) == {"n", "step"}


def test_items() -> None:
    def count(table: dict[str, int], values: list[int], i: int) -> None:
        table["n"] += 1
        values[i] *= 2
        values[0] = values[1] + 1
        del table["m"]

    first = count.__code__.co_firstlineno
    places = [
        (line, column)
        for line in range(first, first + 6)
        for column in range(60)
        if counts_item(count.__code__, line, column)
    ]
    assert places == [(first + 1, 8), (first + 2, 8)]


def test_the_names_of_items_that_are_set() -> None:
    def schedule(group: Any, groups: Any, name: str) -> None:
        group["lr"] = group["initial_lr"]
        for one in groups:
            one["momentum"] *= 0.9
            one[name] /= 10
            one["a", "b"] = one["read"]

    assert stored_keys(schedule.__code__) == {"lr", "momentum"}

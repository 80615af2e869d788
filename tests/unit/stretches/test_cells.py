"""The variables of a frame move into the cells of the function that is captured, and back."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from magpy_core.stretches.cells import Moved


class Thing:
    pass


def frame(seen: list[Any]) -> tuple[Callable[[], None], Callable[[], tuple[Any, Any]]]:
    x, y = 1, None

    def stretch() -> None:
        nonlocal x, y
        seen.append((x, y))
        y = x
        x = x + 1
        if x == 4:
            del y
        if x == 6:
            raise ValueError

    return stretch, lambda: (x, y)


def test_each_entry_of_a_frame_has_its_own_values() -> None:
    seen: list[Any] = []
    first, values = frame(seen)
    second, other_values = frame(seen)
    moved = Moved(first, ())  # type: ignore[arg-type]
    assert moved.fits(second, ())  # type: ignore[arg-type]
    moved.call(first, moved.target)  # type: ignore[arg-type]
    moved.call(first, moved.target)  # type: ignore[arg-type]
    moved.call(second, moved.target)  # type: ignore[arg-type]
    assert values() == (3, 2) and other_values() == (2, 1)
    assert seen == [(1, None), (2, 1), (1, None)]


def test_cells_that_closures_may_hold_are_used_as_they_are() -> None:
    first, values = frame([])
    moved = Moved(first, {"x"})  # type: ignore[arg-type]
    assert moved.fits(first, {"x"}) and not moved.fits(frame([])[0], {"x"})  # type: ignore[arg-type]
    cells = dict(zip(first.__code__.co_freevars, first.__closure__ or (), strict=True))  # type: ignore[attr-defined]
    assert cells["x"] in (moved.target.__closure__ or ()) and cells["y"] not in (moved.target.__closure__ or ())
    moved.call(first, moved.target)  # type: ignore[arg-type]
    assert values() == (2, 1)


def test_unbound_variables_and_exceptions() -> None:
    first, values = frame([])
    moved = Moved(first, ())  # type: ignore[arg-type]
    for _ in range(3):
        moved.call(first, moved.target)  # type: ignore[arg-type]
    with pytest.raises(NameError):
        values()
    with pytest.raises(NameError):
        moved.call(first, moved.target)  # type: ignore[arg-type]


def test_no_value_lives_longer_than_in_the_frame() -> None:
    def entry() -> tuple[Callable[[], None], weakref.ref[Thing]]:
        thing = old = Thing()

        def stretch() -> None:
            nonlocal thing, old
            thing = None  # type: ignore[assignment]
            old = None  # type: ignore[assignment]
            gc.collect()
            assert died() is None, "while the stretch runs, too"

        died = weakref.ref(thing)
        return stretch, died

    stretch, died = entry()
    moved = Moved(stretch, ())  # type: ignore[arg-type]
    moved.call(stretch, moved.target)  # type: ignore[arg-type]
    assert died() is None

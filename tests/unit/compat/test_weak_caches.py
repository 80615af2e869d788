"""Caches by objects that they do not keep alive."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from magpy_core._compat.cpython.weak_caches import by_object, class_by_object, made_once


class Odd(type):
    def __eq__(cls, other: object) -> bool:
        raise AssertionError("a cache compares by identity")

    def __hash__(cls) -> int:
        raise AssertionError("a cache hashes no class")


def test_results_are_found_once_and_forgotten_with_their_object() -> None:
    asked: list[str] = []

    def name(cls: type) -> str:
        asked.append(cls.__name__)
        return cls.__name__

    cached = by_object(name)
    for i in range(3):  # ids are used again
        cls = Odd(f"C{i}", (), {})
        assert cached(cls) == cached(cls) == f"C{i}"
        del cls
        gc.collect()
    assert asked == [f"C{i}" for i in range(3)]


def test_a_class_as_result_is_not_kept_alive() -> None:
    cached = class_by_object(lambda cls: cls if cls.__name__ == "A" else None)
    made: Any = type("A", (), {})
    assert cached(made) is made is cached(made) and cached(int) is None is cached(int)
    ref = weakref.ref(made)
    del made
    gc.collect()
    assert ref() is None


def test_what_is_made_once_lives_as_long_as_its_users() -> None:
    def make(cls: type) -> Any:
        return lambda: cls

    cached = made_once(make)
    made: Any = type("A", (), {})
    function = cached(made)
    assert cached(made) is function and function() is made
    ref = weakref.ref(made)
    del made
    gc.collect()
    assert ref() is function()
    del function
    gc.collect()
    assert ref() is None

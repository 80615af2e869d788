"""Containers whose classes answer for the built-in methods in Python: MagPy runs these as often as the program does."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import pytest
import torch

import magpy_core

pytestmark = pytest.mark.filterwarnings("ignore")

RAN: list[str] = []
FILLED: dict[Any, Any] = {
    list: [1.0, 2.0], tuple: (1.0, 2.0), set: {1.0, 2.0}, collections.deque: [1.0, 2.0],
    dict: {"a": 1.0, "b": 2.0}, collections.OrderedDict: {"a": 1.0, "b": 2.0},
}  # fmt: skip
METHODS = ("__len__", "__iter__", "__getitem__", "__contains__", "keys", "values", "items", "__eq__", "__reversed__")
USES: dict[str, Callable[[Any], Any]] = {
    "loop": lambda o: sum(1 for _ in o),
    "len": len,
    "list": list,
    "first": lambda o: next(iter(o)),
    "item": lambda o: o[0],
    "key": lambda o: o["a"],
    "in": lambda o: 1.0 in o,
    "truth": bool,
    "get": lambda o: o.get("a"),
    "values": lambda o: list(o.values()),
    "star": lambda o: [*o],
    "max": max,
    "dict": dict,
    "equal": lambda o: o == [1.0, 2.0],
    "repr": repr,
    "append": lambda o: (o.append(3.0), o.pop()),
    "set": lambda o: o.__setitem__("a", 1.0),
}


def answering(base: Any, name: str) -> Any:
    """A subclass that notes each call of one method."""
    native = getattr(base, name)

    def method(self: Any, *args: Any) -> Any:
        RAN.append(name)
        return native(self, *args)

    return type(f"Noting{base.__name__}", (base,), {name: method})


def outcome(region: Callable[[torch.Tensor], Any]) -> tuple[str, list[str]]:
    RAN.clear()
    try:
        text = repr(region(torch.ones(1)))
    except Exception as error:  # the program's own: it must be the same
        text = type(error).__name__
    return text, list(RAN)


PAIRS = [(base, name) for base in FILLED for name in METHODS if hasattr(base, name)]


@pytest.mark.parametrize(
    ("base", "name"), [p if i % 7 == 0 else pytest.param(*p, marks=pytest.mark.slow) for i, p in enumerate(PAIRS)]
)
def test_as_often_as_the_program(base: Any, name: str) -> None:
    for use, do in USES.items():

        def world(do: Callable[[Any], Any] = do) -> Callable[[torch.Tensor], Any]:
            o = answering(base, name)(FILLED[base])
            return lambda x: (x * 2, do(o))

        plain, compiled = world(), magpy_core.compile(world(), backend="eager")
        for call in range(4):
            assert outcome(compiled) == outcome(plain), (use, call)

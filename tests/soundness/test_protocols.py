"""``isinstance`` of runtime-checkable protocols: who has the members, what the protocol says of itself, its marks."""

from __future__ import annotations

import typing
from collections.abc import Callable
from typing import Any

import pytest
import torch

import magpy_core

CHANGES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "the protocol's method becomes None": lambda p, cls, o: setattr(p, "area", None),
    "no protocol any more": lambda p, cls, o: setattr(p, "_is_protocol", False),
    "not to be asked for any more": lambda p, cls, o: setattr(p, "_is_runtime_protocol", False),
    "another protocol's mark": lambda p, cls, o: setattr(p.__mro__[1], "_is_protocol", False),
    "the object's member": lambda p, cls, o: setattr(o, "area", lambda: 1),
    "the class's member": lambda p, cls, o: setattr(cls, "area", lambda self: 1),
    "the member of data": lambda p, cls, o: delattr(o, "name"),
    "no change": lambda p, cls, o: None,
}


def _world() -> tuple[Callable[[torch.Tensor], Any], tuple[Any, Any, Any]]:
    class Named(typing.Protocol):
        name: str

    @typing.runtime_checkable
    class Flat(Named, typing.Protocol):
        def area(self) -> Any: ...

    class Square:
        area: Any = None

        def __init__(self) -> None:
            self.name = "s"

    square = Square()

    def region(x: torch.Tensor) -> Any:
        return x * 2 if isinstance(square, Flat) else x * 3

    return region, (Flat, Square, square)


def _outcome(region: Callable[[torch.Tensor], Any]) -> Any:
    try:
        return region(torch.ones(1)).tolist()
    except (TypeError, AttributeError) as error:
        return type(error)


@pytest.mark.parametrize("change", CHANGES)
def test_what_makes_an_instance_of_a_protocol(change: str) -> None:
    plain, world = _world()
    region, compiled_world = _world()
    compiled = magpy_core.compile(region, backend="eager")
    for step in ("at first", "again", "changed", "again"):
        if step == "changed":
            CHANGES[change](*world)
            CHANGES[change](*compiled_world)
        assert _outcome(compiled) == _outcome(plain), step
    assert not magpy_core.captures(compiled), "what makes an instance of a protocol, no guard can watch"

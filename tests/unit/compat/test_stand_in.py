"""A stand-in receives what a call passes, and looks like the function's own code."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import pytest

from magpy_core._compat.cpython.stand_in import can_stand_in, stand_in


class Receiver:
    def __init__(self, function: FunctionType) -> None:
        self.function = FunctionType(function.__code__, function.__globals__, "", None, function.__closure__)
        self.given: list[Any] = []

    def __matmul__(self, given: Any) -> Any:
        self.given.append(given)
        return self.function(*given[0], **given[1])


def every_kind(a: int, /, b: int = 2, *rest: int, c: int, d: int = 4, **others: int) -> Any:
    """Of parameter."""
    return a, b, rest, c, d, others


def only_keywords(*, c: int = 3) -> int:
    return c


def nothing() -> str:
    return "nothing"


def closure() -> Callable[..., Any]:
    later, before = 2, 1

    def inner(x: int) -> Any:
        return x, before, later

    return inner


class Base:
    def method(self, x: int) -> Any:
        return [x]


class Derived(Base):
    def method(self, x: int) -> Any:
        return super().method(x)

    def mangled(self, __x: int) -> int:
        return __x


CALLS: dict[str, tuple[Callable[[], Any], tuple[Any, ...], dict[str, Any]]] = {
    "every_kind": (lambda: every_kind, (1,), {"c": 3}),
    "every_kind_full": (lambda: every_kind, (1, 5, 6, 7), {"c": 3, "d": 8, "e": 9}),
    "only_keywords": (lambda: only_keywords, (), {}),
    "nothing": (lambda: nothing, (), {}),
    "closure": (closure, (0,), {}),
    "super": (lambda: Derived.method, (Derived(), 4), {}),
    "mangled": (lambda: Derived.mangled, (Derived(), 4), {}),
}


@pytest.fixture
def function(request: pytest.FixtureRequest) -> Iterator[Any]:
    found = CALLS[request.param][0]()
    code = found.__code__
    yield found
    found.__code__ = code


@pytest.mark.parametrize(("function", "name"), [(name, name) for name in CALLS], indirect=["function"])
def test_calls_reach_the_receiver(function: Any, name: str) -> None:
    _, args, kwargs = CALLS[name]
    result, code = function(*args, **kwargs), function.__code__
    looks = (inspect.signature(function), inspect.getsource(function), inspect.getclosurevars(function).nonlocals)
    receiver = Receiver(function)
    function.__code__ = stand_in(code, receiver)
    assert function(*args, **kwargs) == result
    assert len(receiver.given) == 1
    assert looks == (
        inspect.signature(function), inspect.getsource(function), inspect.getclosurevars(function).nonlocals
    )  # fmt: skip
    for name in ("co_name", "co_qualname", "co_filename", "co_firstlineno", "co_freevars", "co_argcount"):
        assert getattr(function.__code__, name) == getattr(code, name), name


def test_an_exception_passes() -> None:
    def fails(x: int) -> float:
        return 1 / x

    receiver = Receiver(fails)  # type: ignore[arg-type]
    fails.__code__ = stand_in(fails.__code__, receiver)
    with pytest.raises(ZeroDivisionError):
        fails(0)


def test_what_has_no_call_from_start_to_end() -> None:
    async def coroutine() -> None: ...

    def generator() -> Iterator[int]:
        yield 1

    assert not can_stand_in(coroutine.__code__) and not can_stand_in(generator.__code__)
    assert not can_stand_in(compile("x = 1", "<module>", "exec")) and can_stand_in(nothing.__code__)

"""A class that a capture has seen is freed with it, and so is what its methods close over; in the mode that users run."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core.monitor import record


class Held:
    """What methods close over."""

    value = 1


def _module() -> tuple[Any, dict[str, Any]]:
    held = Held()

    class Part:
        __slots__ = ("scale",)

        def __init__(self, scale: float) -> None:
            self.scale = scale

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Part) and self.scale == other.scale

        __hash__ = None  # type: ignore[assignment]

        def scaled(self) -> float:
            return self.scale * held.value

    class Meta(type):
        def __call__(cls, *args: Any) -> Any:
            return super().__call__(*args)

    class Made(metaclass=Meta):
        number = 2

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.part = nn.Linear(2, 2), Part(2.0)

        def forward(self, x: Any) -> Any:
            return self.linear(x) * self.part.scaled() * Part(3.0).scaled() * Made().number

    return Net(), {"held": held, "Part": Part, "Made": Made, "Net": Net}


def _function() -> tuple[Any, dict[str, Any]]:
    held = Held()

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2 * held.value

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * 2

    return lambda x: Doubled.apply(x) + 1, {"held": held, "Doubled": Doubled}


def _subclass() -> tuple[Any, dict[str, Any]]:
    class Sub(torch.Tensor):
        pass

    return lambda x: x.as_subclass(Sub) * 2, {"Sub": Sub}


def _data() -> tuple[Any, dict[str, Any]]:
    names: dict[str, Any] = {"torch": torch}
    exec("class Record:\n    def __init__(self, x): self.x = x\n    def total(self): return self.x.sum() + 1\n", names)
    names["seen"] = Record = names["Record"]
    return lambda x: Record(x).total(), {"Record": Record, "code": Record.total.__code__}


def _torch_keeps_code() -> bool:
    """Whether torch itself counts one more reference to a function's code on each call of compiled code, so that code that
    has run is never freed: torch 2.13 on Python 3.14 does."""

    def plus_one(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    try:
        compiled = torch.compile(plus_one, backend="eager")
        compiled(torch.ones(1))
        before = sys.getrefcount(plus_one.__code__)
        compiled(torch.ones(1))
        return sys.getrefcount(plus_one.__code__) > before
    finally:
        torch._dynamo.reset()


@pytest.mark.torch_compile  # to learn what torch itself keeps
@pytest.mark.parametrize("make", [_module, _function, _subclass, _data])
@pytest.mark.parametrize("options", [{}, {"backend": "eager"}], ids=["default", "eager"])
def test_a_class_is_freed_with_its_capture(make: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAGPY_COMPILE", raising=False)
    alive: dict[str, weakref.ref[Any]] = {}

    def once() -> None:
        target, seen = make()
        compiled = magpy_core.compile(target, **options)
        for _ in range(4):
            compiled(torch.ones(1, 2, requires_grad=True))
        for name, value in seen.items():
            alive[name] = weakref.ref(value)

    once()
    gc.collect()
    if make is _data and _torch_keeps_code():
        pytest.skip("this torch keeps the code of every function that it has run on this Python")
    if "code" in alive:  # no garbage collection finds it: the next recording does
        magpy_core.compile(lambda x: x + 1, backend="eager")(torch.ones(1))
    assert [name for name, ref in alive.items() if ref() is not None] == []


def test_clones_of_code_that_lives_are_kept() -> None:
    def added(x: Any) -> Any:
        return x + 1

    for _ in range(3):
        magpy_core.compile(added, backend="eager")(torch.ones(1))
        magpy_core.compile(lambda x: x - 1, backend="eager")(torch.ones(1))
    clone = record._clones[id(added.__code__)][1]
    magpy_core.compile(lambda x: x * 1, backend="eager")(torch.ones(1))
    assert record.clone_of(added.__code__) is clone is not None

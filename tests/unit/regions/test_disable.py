"""`magpy_core.disable`: calls that are in no capture."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core.regions.api import region_of
from tests.unit.engine_pair import same

X = torch.arange(4.0)
seen: list[str] = []


@magpy_core.disable
def noted(x: torch.Tensor) -> torch.Tensor:
    """Adds one."""
    seen.append(f"{x.sum().item()}")
    return x + 1


@pytest.fixture(autouse=True)
def forgotten() -> None:
    seen.clear()


def test_it_is_the_function() -> None:
    assert noted.__name__ == "noted" and noted.__doc__ == "Adds one." and noted(X).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_region_that_calls_it_is_not_captured(backend: str) -> None:
    def region(x: torch.Tensor) -> torch.Tensor:
        return noted(x * 2) * 3

    compiled = magpy_core.compile(region, backend=backend)
    for _ in range(4):
        assert compiled(X).tolist() == [3, 9, 15, 21]
    assert seen == ["12.0"] * 4
    found = region_of(compiled).findings.values()
    assert not magpy_core.captures(compiled) and {f.code for f in found} == {"MP120"}
    assert {f.location.range.start.line for f in found} == {region.__code__.co_firstlineno}
    assert all("`noted(x * 2)`" in f.message for f in found)


def test_what_it_does_otherwise_is_captured() -> None:
    def region(x: torch.Tensor, note: bool) -> torch.Tensor:
        return (noted(x) if note else x) * 3

    compiled = magpy_core.compile(region, backend="eager")
    for note in (True, False, False, True, False, True):
        assert same(compiled(X, note), (X + 1 if note else X) * 3)
    assert len(magpy_core.captures(compiled)) == 1 and region_of(compiled).hits == 2 and len(seen) == 3


def test_what_native_code_calls() -> None:
    compiled = magpy_core.compile(lambda xs: [x * 2 for x in map(noted, xs)], backend="eager")
    for _ in range(3):
        assert same(compiled([X, X])[1], (X + 1) * 2)
    assert not magpy_core.captures(compiled) and len(seen) == 6


def test_what_is_compiled_inside_is_a_region() -> None:
    inner = magpy_core.compile(lambda x: x.sin(), backend="eager")

    @magpy_core.disable
    def between(x: torch.Tensor) -> torch.Tensor:
        return inner(x) + 1

    outer = magpy_core.compile(lambda x: between(x) * 2, backend="eager")
    for _ in range(6):
        assert same(outer(X), (X.sin() + 1) * 2)
    assert not magpy_core.captures(outer) and len(magpy_core.captures(inner)) == 1
    assert region_of(inner).hits >= 2
    hits = region_of(inner).hits
    with magpy_core.disabled():
        between(X)
    assert region_of(inner).hits == hits
    between(X)
    assert region_of(inner).hits == hits + 1


class Noted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen.append("forward")
        return self.lin(x)


def test_a_module() -> None:
    net = nn.Sequential(Noted(), nn.ReLU())
    inside = net[0]
    assert magpy_core.disable(inside) is inside
    want = inside.lin(X).relu()
    magpy_core.compile(net, backend="eager")
    for _ in range(4):
        assert same(net(X), want)
    assert not magpy_core.captures(net) and seen == ["forward"] * 4
    assert {f.code for f in region_of(net).findings.values()} == {"MP120"}
    copied = copy.deepcopy(inside)
    assert same(copied(X), inside(X)) and list(copied.state_dict()) == ["lin.weight", "lin.bias"]
    magpy_core.compile(inside, backend="eager")
    magpy_core.compile(net, backend="eager")
    for _ in range(3):
        assert same(net(X), want)
    assert len(magpy_core.captures(net)) == 1


def test_a_method() -> None:
    class Has:
        @magpy_core.disable
        def method(self, x: torch.Tensor) -> Any:
            return self, x

        @magpy_core.disable  # type: ignore[type-var]
        @staticmethod
        def static(x: torch.Tensor) -> Any:
            return x

        @magpy_core.disable  # type: ignore[type-var]
        @classmethod
        def of_class(cls, x: torch.Tensor) -> Any:
            return cls, x

    has = Has()
    assert has.method(X) == (has, X) and has.static(X) is X and has.of_class(X) == (Has, X)


def test_fullgraph() -> None:
    compiled = magpy_core.compile(lambda x: noted(x), backend="eager", fullgraph=True)
    compiled(X)
    with pytest.raises(magpy_core.GraphBreak, match="MP120"):
        compiled(X)


def test_an_exception_passes() -> None:
    @magpy_core.disable
    def fails(x: torch.Tensor) -> torch.Tensor:
        raise ZeroDivisionError

    inner = magpy_core.compile(lambda x: x.sin(), backend="eager")
    compiled = magpy_core.compile(lambda x: fails(x), backend="eager")
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            compiled(X)
        assert same(inner(X), X.sin())
    assert region_of(inner).hits == 2


def test_what_can_not_be_disabled() -> None:
    def generator() -> Any:
        yield 1

    async def coroutine() -> None:
        pass

    for wrong in (nn.Linear, 3, generator, coroutine):
        with pytest.raises(TypeError):
            magpy_core.disable(wrong)

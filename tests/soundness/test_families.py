"""The families of regions that ``generators`` holds: a sample of each in every run, a larger part of each when
``exhaustive``.

All of a family is its own command, a campaign: ``python -m tests.soundness.generators.NAME``. Cases are drawn, the same ones
in every run; that those drawn when ``exhaustive`` have every entry of every table is tested.
"""

from __future__ import annotations

import inspect
import math
import random
import types
from typing import NamedTuple

import pytest
import torch

import magpy_core
from tests.soundness.generators import (
    aliases,
    attribute_dicts,
    bound,
    callers,
    exceptions,
    gained,
    introspection,
    keys,
    modes,
    modules,
    natives,
    numbers,
    numbers_of_data,
    products,
    shapes,
    sizes,
    tensor_state,
    training,
    ways,
)
from tests.soundness.harness.families import Case, Family

pytestmark = pytest.mark.filterwarnings("ignore")


class Share(NamedTuple):
    """How much of a family is tested, one case in so many, and in how many tests these are when slow."""

    family: Family
    sample: int
    slow: int
    parts: int = 1


EAGER = Family.product(aliases.aliased, write=aliases.WRITES, result=aliases.RESULTS, backend=["eager"])
SHARES = {
    "aliases": Share(EAGER, 47, 1),
    "attribute_dicts": Share(attribute_dicts.FAMILY, 179, 2),
    "bound": Share(bound.FAMILY, 27, 1),
    "callers": Share(callers.FAMILY, 95, 2, 2),
    "exceptions": Share(exceptions.FAMILY, 27, 1, 2),
    "gained": Share(gained.FAMILY, 927, 37, 2),
    "introspection": Share(introspection.FAMILY, 107, 2, 2),
    "keys": Share(keys.FAMILY, 387, 7, 2),
    "modes": Share(modes.ENTERED, 47, 3, 3),
    "modes_left": Share(modes.LEFT, 1, 1, 0),
    "modules": Share(modules.FAMILY, 5999, 251, 3),
    "natives": Share(natives.FAMILY, 795, 5, 2),
    "numbers": Share(numbers.FAMILY, 663, 17, 2),
    "numbers_of_data": Share(numbers_of_data.FAMILY, 95, 3, 3),
    "products_consumed": Share(products.CONSUMED, 299, 3, 2),
    "products_reached": Share(products.REACHED, 279, 3, 3),
    "shapes": Share(shapes.FAMILY, 119, 1),
    "sizes": Share(sizes.FAMILY, 615, 17, 2),
    "tensor_state": Share(tensor_state.FAMILY, 75, 1, 2),
    "training": Share(training.FAMILY, 1043, 43, 2),
    "ways": Share(ways.FAMILY, 87, 5, 2),
}

#: Cases that were wrong once, or that reach what was.
ONCE: dict[str, tuple[Family, list[Case]]] = {
    "aliases": (aliases.FAMILY, [
        ("foreach", "arguments", "aot_eager"), ("augmented", "views", "aot_eager"), ("by_strides", "views", "aot_eager"),
    ]),
    "gained": (gained.FAMILY, [
        ("__add__", "r tensor", "gained"), ("__radd__", "tensor +", "by the base"), ("__eq__", "in list", "lost"),
        ("__hash__", "hash", "gained"), ("__torch_function__", "add tensors", "gained"), ("__get__", "held read", "gained"),
        ("__set__", "held", "by the base"),
    ]),
    # `min(k, 3)` has the type of the one it gives: the type that the program saw was the recorded one
    "the_type_of_the_least_number": (numbers.FAMILY, [
        (kind, source, use)
        for source in ("at most", "at least", "at most, mixed", "between", "least of many")
        for kind in ("float", "both")
        for use in ("type", "match", "itself", "dtype")
    ]),
    "numbers_that_vary_behind_views": (products.CONSUMED, [
        (consumer, container, "float")
        for consumer in ("sum", "fsum", "map_native")
        for container in ("dict", "deque", "ordered", "namespace")
    ]),
    "dicts_the_collector_does_not_track": (products.REACHED, [("copied_context", "scalars"), ("defaults_tuple", "scalars")]),
}  # fmt: skip


def drawn(name: str, one_in: int) -> list[Case]:
    """A share of a family's cases, drawn by chance, always the same. Cases with an entry that none before them has come
    first: a share has as many entries of the tables as it can."""
    cases = SHARES[name].family.cases
    seen: set[tuple[int, str]] = set()
    first, rest = [], []
    for case in random.Random(name).sample(cases, len(cases)):
        (rest if seen.issuperset(enumerate(case)) else first).append(case)
        seen.update(enumerate(case))
    return (first + rest)[: math.ceil(len(cases) / one_in)]


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARES)
def test_a_sample(name: str) -> None:
    share = SHARES[name]
    assert share.family.differing(drawn(name, share.sample)) == []


@pytest.mark.parametrize("name", ONCE)
def test_what_was_wrong_once(name: str) -> None:
    family, cases = ONCE[name]
    assert set(cases) <= set(family.cases)
    assert family.differing(cases) == []


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "part"), [(name, part) for name, share in SHARES.items() for part in range(share.parts)])
def test_more(name: str, part: int) -> None:
    family, _, one_in, parts = SHARES[name]
    assert family.differing(drawn(name, one_in)[part::parts]) == []


@pytest.mark.parametrize("name", SHARES)
def test_what_runs_when_slow_has_every_entry(name: str) -> None:
    family, _, one_in, _ = SHARES[name]
    for all_of_it, some_of_it in zip(zip(*family.cases, strict=True), zip(*drawn(name, one_in), strict=True), strict=True):
        assert set(all_of_it) == set(some_of_it)


def test_a_replay_does_not_raise() -> None:
    """The program raises itself: the traceback ends in its own lines, and what came before is written once."""
    calls: list[int] = []
    held = torch.zeros(1)

    def region(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        held.add_(1)
        if x.sum() > 0:
            raise ValueError("positive")
        return x * 2

    compiled = magpy_core.compile(region, backend="eager")
    for call, sign in enumerate((1, 1, -1, 1, -1, 1)):
        if sign < 0:
            assert compiled(-torch.ones(1)).item() == -2
        else:
            with pytest.raises(ValueError, match="positive") as error:
                compiled(torch.ones(1))
            assert error.traceback[-1].name == "region"
        assert len(calls) == held.item() == call + 1
    assert all(capture.is_complete for capture in magpy_core.captures(compiled))


def test_a_function_that_wraps_itself() -> None:
    def function(a: int) -> int:
        return a

    function.__wrapped__ = function  # type: ignore[attr-defined]
    nameless = types.ModuleType("nameless")
    del nameless.__name__

    def region(x: torch.Tensor) -> tuple[torch.Tensor, list[str]]:
        said = []
        for ask in (lambda: inspect.signature(function), lambda: nameless.nothing):
            try:
                ask()
            except (ValueError, AttributeError) as error:
                said.append(str(error)[:20])
        return x, said

    compiled = magpy_core.compile(region, backend="eager")
    for _ in range(3):
        assert compiled(torch.ones(1))[1] == region(torch.ones(1))[1] == ["wrapper loop when un", "module has no attrib"]

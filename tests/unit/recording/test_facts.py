"""Trackers of facts, each alone: what is guarded for a value, class, function or container that is used."""

from __future__ import annotations

import functools
import weakref
from typing import Any, ClassVar

import pytest
import torch

from magpy_core.recording.facts.slot import Slot
from magpy_core.recording.ledger import Learned
from magpy_core.refgraph.fields import swap_entry
from tests.unit.recording.help import World


class Base:
    def method(self) -> int:
        return 1


class Derived(Base):
    count = 3


class WithBound:
    entries: ClassVar[list[int]] = [1]
    __len__ = entries.__len__


def function(x: int, y: int = 2) -> int:
    return x + y


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "guards"),
    [
        (3, ["eq x"]), ("text", ["eq x"]), (None, ["eq x"]), (float("nan"), ["is x"]), (torch.float32, ["eq x"]),
        (len, ["is x"]), (torch.ones(2), ["tensor x"]), ([1], ["type x"]), ({}, ["type x"]), (Derived(), ["type x"]),
        (slice(1, 2), ["type x", "eq x.start", "eq x.stop", "eq x.step"]),
    ],
)  # fmt: skip
def test_a_value_is_guarded_by_what_it_is(value: Any, guards: list[str]) -> None:
    world = World()
    assert world.context.values.read(world.argument(), value, None) is value
    assert world.guards == guards
    assert world.status == "open"


def test_an_object_met_again_is_the_same_one() -> None:
    world, obj = World(), [1]
    world.context.values.read(world.argument(0, "x"), obj, None)
    world.context.values.read(world.argument(1, "y"), obj, None)
    assert world.guards == ["type x", "is_source y"]


def test_a_weak_proxy_is_refused() -> None:
    world, obj = World(), Derived()
    world.context.values.read(world.argument(), weakref.proxy(obj), None)
    assert world.codes == ["MP111"]


def test_a_number_known_to_vary_is_carried_by_a_copy_in_its_place() -> None:
    path = World().argument(0, "x").path
    world, held = World(Learned(numbers={path})), [1000]
    original = held[0]
    got = world.context.values.read(
        world.argument(), original, None, Slot(lambda: held[0], functools.partial(swap_entry, held, 0))
    )
    assert got == original and got is not original and held[0] is got
    assert world.guards == ["type x"]
    assert world.ledger.scalars.get(got) is not None
    world.ledger.undo[0]()
    assert held[0] is original


def test_a_number_known_to_vary_that_native_code_reads_is_exact() -> None:
    path = World().argument(0, "x").path
    world = World(Learned(numbers={path}))
    assert world.context.values.read(world.argument(), 1000, None, exact=True) == 1000
    assert (world.guards, world.learned.exact) == (["eq x"], {path})


# -- classes -----------------------------------------------------------------------------------------------------------


def test_a_member_fixes_the_names_of_all_classes_before_it() -> None:
    world = World()
    world.context.classes.member(Derived, "method", None)
    for expected in ("is Derived.__mro__", "names Derived.__dict__", "names Base.__dict__", "is Base.method"):
        assert expected in world.guards, world.guards


def test_a_member_that_is_absent_is_a_fact_of_names() -> None:
    world = World()
    world.context.classes.member(Derived, "missing", None)
    assert {g.partition(" ")[0] for g in world.guards} == {"is", "names"}


def test_classes_are_guarded_once() -> None:
    world = World()
    world.context.classes.shape(Derived, None)
    before = list(world.guards)
    world.context.classes.shape(Derived, None)
    assert world.guards == before


def test_a_special_method_of_another_object_is_refused() -> None:
    world = World()
    world.context.classes.class_used(WithBound, None)
    assert world.codes == ["MP111"]


# -- functions, roots, contents ----------------------------------------------------------------------------------------


def test_a_function_is_its_code_and_defaults() -> None:
    world = World()
    world.context.functions.guard(function)
    assert "is function.__code__" in world.guards
    assert any("__defaults__" in g for g in world.guards)
    assert function.__code__ in world.context.functions.known_codes


@pytest.mark.parametrize("obj", [len, 3, "text", [1]])
def test_only_python_functions_are_looked_into(obj: Any) -> None:
    world = World()
    world.context.functions.guard(obj)
    assert world.guards == []


@pytest.mark.parametrize(("obj", "node", "internal"), [(Derived, True, False), ([1], False, True), (3, False, False)])
def test_roots(obj: Any, node: bool, internal: bool) -> None:
    world = World()
    assert (world.context.roots.node_for(obj) is not None) is node
    assert bool(world.ledger.refgraph.assumed_internal) is internal


@pytest.mark.parametrize(
    ("obj", "guards"),
    [([1, 2], ["eq len(x)"]), ({"a": 1}, ["eq len(x)"]), ({1}, ["eq len(x)"]), ((), ["eq len(x)"])],
)
def test_length(obj: Any, guards: list[str]) -> None:
    world = World()
    assert world.context.contents.length(world.outside(obj), None) is None
    assert world.guards == guards


def test_a_length_known_to_vary_is_not_guarded() -> None:
    sources = World().ledger.sources
    path = sources.make("len", sources.arg(0, "x"), None).path
    world = World(Learned(numbers={path}))
    varying = world.context.contents.length(world.outside([1, 2]), None)
    assert varying is not None and (varying.at_entry, varying.grown) == (2, 0)
    assert world.guards == []

"""Operators, alone: what arithmetic, comparisons, identity, membership and truth guard."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import magpy_core
from magpy_core.recording.access.operators import Operators
from magpy_core.recording.ledger import Learned
from tests.unit.recording.help import World, site


class Thing:
    pass


def varying(value: Any) -> tuple[World, Any]:
    """A world with a number that is known to vary, and its private copy."""
    world = World(Learned(numbers={World().argument().path}))
    return world, world.context.values.read(world.argument(), value, None, to_program=True)


def kinds(world: World) -> list[str]:
    return [g.partition(" ")[0] for g in world.guards]


@pytest.mark.parametrize(("op", "value", "other"), [("+", 3, 4), ("*", 2.5, 2), ("-", 7, 7.5)])
def test_arithmetic_on_a_number_that_varies_stays_symbolic(op: str, value: Any, other: Any) -> None:
    world, number = varying(value)
    result = {"+": value + other, "*": value * other, "-": value - other}[op]
    operators = world.build(Operators)
    operators.binary(site(op), number, other)
    given = operators.binary_result(site(op), number, other, result)
    assert given == result
    assert world.ledger.scalars.get(given) is not None
    assert kinds(world) == ["type"]


def test_arithmetic_on_constants_is_the_programs_own() -> None:
    world, result = World(), 300 + 400
    operators = world.build(Operators)
    operators.binary(site("+"), 300, 400)
    assert operators.binary_result(site("+"), 300, 400, result) is result
    assert world.guards == []


@pytest.mark.parametrize(("op", "value"), [("-", 3), ("~", 5), ("+", 2.5)])
def test_signs(op: str, value: Any) -> None:
    world, number = varying(value)
    result = {"-": -value, "~": ~5, "+": +value}[op]
    given = world.build(Operators).unary_result(site(op), number, result)
    assert given == result
    assert world.ledger.scalars.get(given) is not None


def test_a_sum_of_lists_reads_both() -> None:
    world, a = World(), [1, 2]
    world.outside(a)
    world.build(Operators).binary(site("+"), a, [3])
    assert world.guards == ["eq len(x)", "eq x[0]", "eq x[1]"]


def test_a_list_added_to_in_place_is_written() -> None:
    world, a = World(), [1]
    node = world.outside(a)
    world.build(Operators).binary(site("+="), a, [3])
    assert node.snapshot is not None
    assert [args[0] for args in world.called("writes.mark_written")] == [node]


@pytest.mark.parametrize("other", [torch.ones(1), 2.0])
def test_an_operator_of_a_tensor_is_the_recorders(other: Any) -> None:
    world, x = World(), torch.ones(1)
    world.outside(x)
    world.build(Operators).binary(site("+"), x, other)
    assert (world.guards, world.status) == ([], "open")


def test_a_comparison_of_a_number_that_varies_guards_its_outcome() -> None:
    world, number = varying(3)
    world.build(Operators).compare(site("<"), number, 5)
    assert kinds(world) == ["type", "sym"]


def test_a_comparison_of_objects_from_outside_is_their_identity() -> None:
    world, a, b = World(), Thing(), Thing()
    world.outside(a, 0, "a"), world.outside(b, 1, "b")
    world.build(Operators).compare(site("=="), a, b)
    assert "is_not_source" in kinds(world)


@pytest.mark.parametrize(("same", "count"), [(True, 0), (False, 1)])
def test_identity_of_objects_from_outside(same: bool, count: int) -> None:
    world, a = World(), [1]
    b = a if same else [1]
    world.outside(a, 0, "a")
    if not same:
        world.outside(b, 1, "b")
    world.build(Operators).is_(site("is"), a, b)
    assert len(world.guards) == count


def test_identity_of_equal_texts_is_refused() -> None:
    world = World()
    world.build(Operators).is_(site("is"), "".join(["a", "b"]), "".join(["a", "b"]))
    assert world.codes == ["MP103"]


@pytest.mark.parametrize("value", [5, -5, 256])
def test_small_ints_are_one_object_each(value: int) -> None:
    world = World()
    assert world.build(Operators).known_identity(value, site())


def test_small_ints_are_one_object_each_in_cells_too() -> None:
    n = None

    def fn(x: torch.Tensor) -> None:
        nonlocal n
        n = int(x.sum().item())

    compiled = magpy_core.compile(fn, backend="eager")
    for _ in range(3):
        compiled(torch.ones(3))
        assert n is int("3")


def test_the_identity_of_a_value_read_from_outside_is_guarded() -> None:
    world, text = World(), "".join(["some", "text"])
    world.context.values.read(world.argument(), text, None)
    assert world.build(Operators).known_identity(text, site())
    assert kinds(world) == ["eq", "is"]


@pytest.mark.parametrize(("container", "guards"), [([1, 2], ["eq len(x)", "eq x[0]", "eq x[1]"]), ({"a": 1}, [])])
def test_membership(container: Any, guards: list[str]) -> None:
    world = World()
    world.outside(container)
    world.build(Operators).contains(site("in"), 1, container)
    assert world.guards == guards
    assert bool(world.called("items.dict_key")) == isinstance(container, dict)


@pytest.mark.parametrize("container", [[], [1], {}, {"a": 1}, ()])
def test_truth_of_a_container_is_whether_it_is_empty(container: Any) -> None:
    world = World()
    world.outside(container)
    world.build(Operators).truth(site(), container)
    assert world.guards == ["truth x"]
    assert world.ledger.refgraph.reads[0].expected is bool(container)


@pytest.mark.parametrize("value", [True, None, torch.ones(1), 3, "text"])
def test_truth_of_what_needs_no_guard(value: Any) -> None:
    world = World()
    world.build(Operators).truth(site(), value)
    assert world.guards == []


def test_truth_of_a_number_that_varies_is_a_decision() -> None:
    world, number = varying(3)
    world.build(Operators).truth(site(), number)
    assert kinds(world) == ["type", "sym"]


def test_arrays_from_outside_are_refused() -> None:
    world, array = World(), np.ones(2)
    world.outside(array)
    world.build(Operators).binary(site("+"), array, 1.0)
    assert world.codes == ["MP105"]

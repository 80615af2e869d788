"""Trackers of access, each alone: what a read of an item, a cell or a global guards."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

from magpy_core.recording.access.globals import Globals
from magpy_core.recording.access.items import Items
from magpy_core.recording.access.reads import Reads
from tests.unit.recording.help import World


def items(world: World) -> Items:
    return world.build(Items)


def reads(world: World) -> Reads:
    return world.build(Reads)


def globals_of(world: World) -> Globals:
    return world.build(Globals)


# -- items -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("obj", "key", "guards"),
    [
        ({"a": 1}, "a", ["eq x['a']"]), ({"a": 1}, "b", ["absent x['b']"]), ([5, 6], 1, ["eq x[1]"]),
        ((5, 6), 0, ["eq x[0]"]), ("text", 0, []), (3.0, 0, []),
    ],
)  # fmt: skip
def test_an_item_from_outside(obj: Any, key: Any, guards: list[str]) -> None:
    world = World()
    world.outside(obj)
    items(world).read(obj, key, None)
    assert [g for g in world.guards if not g.startswith("eq len")] == guards
    assert world.status == "open"


def test_an_item_of_what_the_region_made_is_not_guarded() -> None:
    world = World()
    items(world).read([1], 0, None)
    assert (world.guards, world.status) == ([], "open")


@pytest.mark.parametrize(("obj", "code"), [(np.ones(2), "MP105"), (bytearray(2), "MP104"), (memoryview(b"ab"), "MP104")])
def test_memory_from_outside_is_refused(obj: Any, code: str) -> None:
    world = World()
    world.outside(obj)
    items(world).read(obj, 0, None)
    assert world.codes == [code]


# -- cells -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "guard"), [(3, "eq"), (len, "is"), ([1], "type")])
def test_a_cell_from_outside(value: Any, guard: str) -> None:
    world, cell = World(), types.CellType(value)
    world.outside(cell)
    reads(world).cell_read(None, cell)
    assert [g.partition(" ")[0] for g in world.guards] == [guard]


def test_an_empty_cell_skips_the_call() -> None:
    world, cell = World(), types.CellType()
    world.outside(cell)
    reads(world).cell_read(None, cell)
    assert world.status == "skipped"


def test_a_cell_that_the_region_made_is_assumed_internal() -> None:
    world, cell = World(), types.CellType(1)
    reads(world).cell_read(None, cell)
    assert world.guards == []
    assert id(cell) in world.ledger.refgraph.assumed_internal


# -- globals -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kinds"), [("value", ["eq"]), ("len", ["absent", "is"]), ("missing", ["absent"]), ("fn", ["is"])]
)
def test_a_global(name: str, kinds: list[str]) -> None:
    world = World()
    globals_of(world).read({"__name__": "program", "value": 3, "fn": max}, name, None)
    assert [g.partition(" ")[0] for g in world.guards] == kinds


def test_a_global_that_the_region_has_written_is_not_guarded() -> None:
    world, names = World(), {"__name__": "program", "value": 3}
    world.ledger.refgraph.snapshot(world.context.roots.globals_root(names))
    names["value"], names["other"] = 4, 5
    for name in ("value", "other"):
        globals_of(world).read(names, name, None)
    assert world.guards == []


def test_a_name_that_a_module_lacks() -> None:
    world, module = World(), types.ModuleType("program")
    globals_of(world).read_module(module, "missing", None)
    assert {g.partition(" ")[0] for g in world.guards} == {"absent"}
    assert len(world.guards) == 2  # it has no `__getattr__` either

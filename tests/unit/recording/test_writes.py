"""Writes, alone: what is forced at replay, what is snapshotted, and what is refused."""

from __future__ import annotations

import gc
import types
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from magpy_core.recording.access.writes import Writes
from magpy_core.recording.age import Existing
from tests.unit.recording.help import World, site


class Plain:
    def __init__(self) -> None:
        self.value = 1


class Slotted:
    __slots__ = ("value",)


class WithProperty:
    @property
    def value(self) -> int:
        return 1

    @value.setter
    def value(self, new: int) -> None: ...


@pytest.mark.parametrize(
    ("obj", "name", "args", "forced"),
    [
        ([1], "append", (2,), []), ([1], "clear", (), [("clear", None)]), ({1}, "add", (2,), [("add", 2)]),
        ({1}, "update", ({2},), [("add", 2)]), ({1}, "discard", (1,), [("discard", 1)]),
        ({"a": 1}, "__setitem__", ("b", 2), [("set_item", "b")]),
        ({"a": 1}, "update", ({"b": 2},), [("set_item", "b")]),
        (deque([1], maxlen=2), "append", (2,), [("append", 2)]),
        (deque([1], maxlen=2), "extend", ([2, 3],), [("append", 2), ("append", 3)]),
    ],
)  # fmt: skip
def test_a_write_that_depends_on_nothing_there(obj: Any, name: str, args: tuple[Any, ...], forced: list[Any]) -> None:
    world = World()
    node = world.outside(obj)
    assert world.build(Writes).blind_write(node, name, args, {})
    assert node.forced == forced


@pytest.mark.parametrize(
    ("obj", "name", "args"),
    [([1], "pop", ()), ([1], "sort", ()), ({1}, "pop", ()), ({1}, "update", ([2],)), ({"a": 1}, "popitem", ()),
     (deque([1], maxlen=2), "rotate", (1,))],
)  # fmt: skip
def test_a_write_that_depends_on_what_was_there(obj: Any, name: str, args: tuple[Any, ...]) -> None:
    world = World()
    assert not world.build(Writes).blind_write(world.outside(obj), name, args, {})


def test_the_snapshot_is_from_before_the_write() -> None:
    world, values = World(), [1]
    node = world.outside(values)
    writes = world.build(Writes)
    assert writes.before_write(values, site()) is node
    values.append(2)
    assert node.snapshot is not None and list(node.snapshot.content) == [1]
    assert len(node.written_at) == writes.events == 1


def test_what_the_region_made_needs_no_snapshot() -> None:
    world, values = World(), [1]
    assert world.build(Writes).before_write(values, site()) is None
    assert id(values) in world.ledger.refgraph.assumed_internal


@pytest.mark.parametrize("kind", [Plain, Slotted])
def test_an_attribute_is_forced(kind: type) -> None:
    world, obj = World(), kind()
    node = world.outside(obj)
    world.build(Writes).attr(obj, "value", site("value"))
    assert node.forced == [("set_attr", "value")]
    assert world.status == "open"


def test_an_attribute_set_by_the_programs_own_code_is_that_codes_effect() -> None:
    world, obj = World(), WithProperty()
    node = world.outside(obj)
    world.build(Writes).attr(obj, "value", site("value"))
    assert node.forced == []


@pytest.mark.parametrize(("name", "guard"), [("value", "type"), ("missing", "absent")])
def test_a_deleted_attribute_was_there_or_was_not(name: str, guard: str) -> None:
    world, obj = World(), Plain()
    node = world.outside(obj)
    world.build(Writes).attr(obj, name, site(name), deleted=True)
    assert node.forced == [("del_attr", name)]
    assert world.guards[-1].startswith(guard)


def test_a_global_of_a_module_goes_to_the_globals() -> None:
    world, module = World(), types.ModuleType("settings")
    world.build(Writes).attr(module, "rate", site("rate"))
    assert [args[:2] for args in world.called("globals.changed")] == [(vars(module), "rate")]


@pytest.mark.parametrize(
    ("obj", "name", "code"),
    [(torch.ones(1), "mark", "MP110"), (torch.jit.script(torch.nn.Linear(1, 1)), "training", "MP112")],
)
def test_an_attribute_that_replay_cant_set(obj: Any, name: str, code: str) -> None:
    world = World()
    world.outside(obj)
    world.build(Writes).attr(obj, name, site(name))
    assert world.codes == [code]


def test_the_whole_dict_of_an_object_cant_be_replaced() -> None:
    world, obj = World(), Plain()
    world.outside(obj)
    world.build(Writes).attr(obj, "__dict__", site("__dict__"))
    assert world.codes == ["MP110"]


@pytest.mark.parametrize(
    ("obj", "key", "forced", "guards"),
    [({"a": 1}, "a", [("set_item", "a")], []), ([1, 2], 0, [("set_item", 0)], ["eq len(x)"])],
)
def test_an_item(obj: Any, key: Any, forced: list[Any], guards: list[str]) -> None:
    world = World()
    node = world.outside(obj)
    world.build(Writes).item_write(site(), obj, key, 5)
    assert (node.forced, world.guards, world.status) == (forced, guards, "open")


def test_a_slice_depends_on_the_whole_list() -> None:
    world, values = World(), [1, 2, 3]
    node = world.outside(values)
    world.build(Writes).item_write(site(), values, slice(0, 1), [7])
    assert node.forced == []
    assert "eq x[2]" in world.guards


def test_an_item_of_native_memory_is_refused() -> None:
    world, array = World(), np.ones(2)
    world.outside(array)
    world.build(Writes).item_write(site(), array, 0, 1.0)
    assert world.status == "refused"


def test_an_item_of_a_tensor_is_an_operator() -> None:
    world, x = World(), torch.ones(2)
    world.outside(x)
    world.build(Writes).item_write(site(), x, 0, 1.0)
    assert (world.guards, world.status) == ([], "open")


def test_a_deleted_item_must_have_been_there() -> None:
    world, table = World(), {"a": 1}
    node = world.outside(table)
    world.build(Writes).item_delete(site(), table, "a")
    assert node.forced == [("del_item", "a")]
    assert [args[1] for args in world.called("items.dict_key")] == ["a"]


def test_cells() -> None:
    world, outside, inside = World(), types.CellType(1), types.CellType(1)
    node = world.outside(outside)
    writes = world.build(Writes)
    writes.cell_write(site(), outside, 2)
    writes.cell_delete(site(), inside)
    assert node.forced == [("set_cell", None)]
    assert id(inside) in world.ledger.refgraph.assumed_internal


def test_a_gradient_is_an_effect() -> None:
    world, x, grad = World(), torch.ones(2), torch.ones(2)
    world.outside(x)
    world.build(Writes).field_written(x, "grad", grad)
    assert [(t is x, name) for t, name, _, _ in world.ledger.field_writes] == [(True, "grad")]


def test_a_second_run_would_repeat_writes_to_what_existed_before_it() -> None:
    world = World()
    writes = world.build(Writes)
    with collector_off():
        values: list[int] = [1]
        dead: list[list[int]] = [[1] for _ in range(20)]
        writes.existing = Existing()
        ids = {id(one) for one in dead}
        dead.clear()
        later: list[list[int]] = [[2] for _ in range(20)]
        assert ids & {id(one) for one in later}  # new objects get the ids of those that have died
        for one in (values, *later):
            writes.count_write(one)
    assert writes.events == 1


@contextmanager
def collector_off() -> Iterator[None]:
    """As in a recording."""
    gc.collect(0)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

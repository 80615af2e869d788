"""Sources evaluate, render and describe access paths; snapshots find every difference; scalars compare by type and bits."""

from __future__ import annotations

import types
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

import pytest
import torch

from magpy_core.refgraph import kinds
from magpy_core.refgraph.fields import ABSENT
from magpy_core.refgraph.kinds import bounded_repr, kind_of, same_scalar
from magpy_core.refgraph.lookup import resolve
from magpy_core.refgraph.snapshot import Change, Snapshot
from magpy_core.refgraph.source_table import SourceTable


class Thing:
    limit = 3

    def __init__(self) -> None:
        self.table = {"k'\"": [10, 20]}

    @property
    def level(self) -> int:
        return 1


def test_sources_are_interned_by_path_and_type_of_key() -> None:
    t = SourceTable()
    a = t.arg(0, "x")
    assert t.arg(0, "x") is a
    assert t.item(a, 1) is t.item(a, 1)
    assert t.item(a, 1) is not t.item(a, True)
    assert t.item(a, 1) is not t.item(a, 1.0)
    assert t.item(a, "1") is not t.item(a, 1)
    assert t.attr(a, "y") is not t.item(a, "y")


def test_a_path_evaluates_renders_and_describes() -> None:
    t = SourceTable()
    root = t.arg(0, "thing")
    source = t.item(t.item(t.attr(root, "table"), "k'\"", "dict_item"), 1, "list_item")
    assert source.evaluate((Thing(),), {}) == 20
    assert source.describe() == "thing.table['k\\'\"'][1]"
    assert [s.kind for s in source.chain()] == ["arg", "attr", "dict_item", "list_item"]
    assert eval(source.step_kind.template.format(b="base", k="1"), {"base": [5, 6], "list_getitem": list.__getitem__}) == 6


def test_a_key_that_is_itself_from_outside() -> None:
    t = SourceTable()
    source = t.item(t.arg(0, "d"), t.kwarg("key"), "dict_item")
    assert source.evaluate(({"a": 1},), {"key": "a"}) == 1
    assert source.describe() == "d[key]"


def test_paths_are_stable_over_recordings() -> None:
    paths = [t.item(t.attr(t.arg(0, "x"), "table"), "k").path for t in (SourceTable(), SourceTable())]
    assert paths[0] == paths[1]


def test_evaluating_a_path_that_is_gone_raises_what_the_access_raises() -> None:
    t = SourceTable()
    with pytest.raises(KeyError):
        t.attr(t.arg(0, "x"), "missing").evaluate((Thing(),), {})
    with pytest.raises(IndexError):
        t.arg(3, "x").evaluate((), {})


# -- kinds ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value, kind",
    [
        (1, kinds.SCALAR),
        (True, kinds.SCALAR),
        (None, kinds.SCALAR),
        (torch.float32, kinds.SCALAR),
        (len, kinds.IDENTITY),
        (Thing, kinds.IDENTITY),
        (types, kinds.IDENTITY),
        (torch.ones(1), kinds.TENSOR),
        (torch.nn.Parameter(torch.ones(1)), kinds.TENSOR),
        ([], kinds.LIST),
        (torch.Size([1]), kinds.TUPLE),
        (OrderedDict(), kinds.DICT),
        (frozenset(), kinds.SET),
        (deque(), kinds.DEQUE),
        (Thing(), kinds.OBJECT),
        (iter([]), kinds.OPAQUE),
    ],
)
def test_kinds(value: Any, kind: int) -> None:
    assert kind_of(value) == kind


@pytest.mark.parametrize(
    "a, b, equal",
    [
        (float("nan"), float("nan"), True),
        (0.0, -0.0, False),
        (1, True, False),
        (1, 1.0, False),
        (complex(0, -0.0), complex(0, 0.0), False),
        (complex(0, float("nan")), complex(0, float("nan")), True),
        ("a", "a", True),
        ("a", b"a", False),
        (10**30, 10**30, True),
        (None, None, True),
    ],
)
def test_scalars_are_the_same_by_type_and_bits(a: Any, b: Any, equal: bool) -> None:
    assert same_scalar(a, b) is equal


def test_texts_are_bounded_and_never_run_user_code() -> None:
    class Loud:
        def __repr__(self) -> str:
            raise AssertionError("user code ran")

    assert bounded_repr(Loud()) == "<Loud>"
    assert bounded_repr([Loud()]) == "list of 1"
    assert len(bounded_repr("x" * 500)) == 80
    assert bounded_repr(torch.ones(2, 3)) == "Tensor(2, 3) float32"


# -- lookup ---------------------------------------------------------------------------------------------------------------


def test_where_an_attribute_is_found() -> None:
    thing, lin = Thing(), torch.nn.Linear(1, 1)
    assert resolve(thing, "table").where == "instance"
    assert resolve(thing, "limit").where == "class"
    assert resolve(thing, "level").where == "data"
    assert resolve(thing, "nothing").where == "absent"
    assert resolve(lin, "weight").where == "module" and resolve(lin, "weight").table == "_parameters"
    assert resolve(lin, "nothing").where == "absent"


# -- snapshots ------------------------------------------------------------------------------------------------------------

CHANGES: list[tuple[Callable[[], Any], Callable[[Any], Any], list[tuple[str, Any, Any]]]] = [
    (lambda: [1, 2], lambda c: c.append(3), [("extend", None, [3])]),
    (lambda: [1, 2], lambda c: c.__setitem__(0, 5), [("set_item", 0, 5)]),
    (lambda: [1, 2], lambda c: c.pop(), [("replace", None, [1])]),
    (lambda: [1, 2], lambda c: None, []),
    (lambda: {"a": 1}, lambda c: c.update(b=2), [("set_item", "b", 2)]),
    (lambda: {"a": 1, "b": 2}, lambda c: c.pop("a"), [("del_item", "a", None)]),
    (lambda: {"a": 1, "b": 2}, lambda c: c.update(a=c.pop("a")), [("replace", None, [("b", 2), ("a", 1)])]),
    (lambda: {1}, lambda c: c.add(2), [("add", None, 2)]),
    (lambda: {1}, lambda c: c.discard(1), [("discard", None, 1)]),
    (lambda: deque([1, 2]), lambda c: c.append(3), [("extend", None, [3])]),
    (lambda: deque([1, 2]), lambda c: c.appendleft(0), [("replace", None, [0, 1, 2])]),
    (lambda: deque([1, 2, 3], maxlen=3), lambda c: c.append(4), [("extend", None, [4])]),
    (Thing, lambda c: setattr(c, "new", 1), [("set_attr", "new", 1)]),
    (Thing, lambda c: delattr(c, "table"), [("del_attr", "table", None)]),
]


@pytest.mark.parametrize("make, change, expected", CHANGES)
def test_differences(make: Callable[[], Any], change: Callable[[Any], Any], expected: list[tuple[str, Any, Any]]) -> None:
    obj = make()
    snapshot = Snapshot(obj, kind_of(obj))
    change(obj)
    assert [(c.op, c.key, c.value) for c in snapshot.changes()] == expected
    assert all(c.needs_contents for c in snapshot.changes() if c.op == "replace")


def test_a_write_of_the_old_value_is_an_effect_when_forced() -> None:
    obj = {"a": 1}
    snapshot = Snapshot(obj, kinds.DICT)
    obj["a"] = 1
    assert snapshot.changes() == []
    assert snapshot.changes([("set_item", "a")]) == [Change("set_item", "a", 1)]


def test_a_key_deleted_and_set_again_moves_to_the_end() -> None:
    obj = {"a": 1, "b": 2}
    snapshot = Snapshot(obj, kinds.DICT)
    obj["a"] = obj.pop("a")
    ops = [(c.op, c.key) for c in snapshot.changes([("del_item", "a")])]
    assert ops == [("del_item", "a"), ("set_item", "a")]


def test_cells_and_slots() -> None:
    class Slots:
        __slots__ = ("a",)

    obj = Slots()
    snapshot = Snapshot(obj, kinds.OBJECT)
    assert snapshot.attr("a") is ABSENT
    obj.a = 1  # type: ignore[attr-defined]
    assert [(c.op, c.key, c.value) for c in snapshot.changes()] == [("set_slot", "a", 1)]
    cell = types.CellType(1)
    snapshot = Snapshot(cell, kind_of(cell))
    cell.cell_contents = 2
    assert [(c.op, c.value) for c in snapshot.changes()] == [("set_cell", 2)]
    del cell.cell_contents
    assert [c.op for c in snapshot.changes()] == ["del_cell"]

"""What is known of callables is written once: each rule has an entry, and no other table names what has one."""

from __future__ import annotations

import bisect
import importlib
import io
import itertools
import operator
import os
import pkgutil
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.knowledge import policy
from magpy_core.knowledge.callables import CALLABLES, Reads, entry
from magpy_core.knowledge.methods import METHODS, NumberUse, container_method
from magpy_core.knowledge.modules import Verdict
from magpy_core.recording.calls.rules import RULES

# The rules register themselves.
OTHER_TABLES = (RULES,)
# How a graph computes what a callable computes is said by its operators and their lowering, not by the entry.
GRAPH_STAGES = ("magpy_core.opgraph.", "magpy_core.backends.")


def _tables(package: str) -> Iterator[tuple[str, Any]]:
    """Every set, and the keys of every dict, at the top level of a module outside of `knowledge`."""
    seen = {id(table) for table in OTHER_TABLES}
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        if found.name.startswith("magpy_core.knowledge"):
            continue
        for name, value in vars(importlib.import_module(found.name)).items():
            if not name.startswith("__") and type(value) in (set, frozenset, dict) and id(value) not in seen:
                seen.add(id(value))
                yield f"{found.name}.{name}", value


def test_no_other_table_names_a_function_that_has_an_entry() -> None:
    """Classes may be named elsewhere: a table of classes is about values that are of them, not about their calls."""
    functions = {id(fn) for fn in CALLABLES if not isinstance(fn, type)}
    tables = [(table, names) for table, names in _tables("magpy_core") if not table.startswith(GRAPH_STAGES)]
    assert [(table, fn) for table, names in tables for fn in names if id(fn) in functions] == []


def test_nothing_stands_in_two_tables_of_a_recording() -> None:
    tables: dict[Any, list[str]] = {}
    for table, names in _tables("magpy_core.recording"):
        for name in names:
            if callable(name) or name in METHODS:
                tables.setdefault(name, []).append(table)
    assert {name: where for name, where in tables.items() if len(where) > 1} == {}


def test_each_rule_has_an_entry() -> None:
    assert [fn for fn in RULES if fn not in CALLABLES] == []


def test_an_entry_is_found_by_identity() -> None:
    class Meta(type):
        def __hash__(cls) -> int:
            raise AssertionError("hashed")

    class Unhashable(metaclass=Meta):
        pass

    assert entry(Unhashable) == entry([].append) == entry(Unhashable())
    assert entry(bisect.bisect) is entry(bisect.bisect_right)


def test_what_keeps_elements_looks_at_none_of_them() -> None:
    """A dict looks at its keys."""
    assert all(known.levels == (1 if fn is dict else 0) for fn, known in CALLABLES.items() if known.keeps_elements)


def test_text_read_by_native_code_is_text() -> None:
    """Not the other way round: with a format specification, what ``format`` reads is not the value's text."""
    assert {fn for fn, e in CALLABLES.items() if e.to_text and e.reads_inside is not Reads.TEXT} == {format}
    assert all(e.to_text for e in CALLABLES.values() if e.reads_inside is Reads.TEXT)


@pytest.mark.parametrize(
    ("fn", "verdict"),
    [
        (len, "pure"), (print, "pure"), (open, "io"), (eval, "host"), (locals, "pure"), (time.time, "host"),
        (os.fspath, "pure"), (os.getpid, "host"), (os.listdir, "io"), (io.text_encoding, "pure"), (torch.add, "torch"),
        (itertools.count, "pure"),
    ],
)  # fmt: skip
def test_verdicts(fn: Any, verdict: str) -> None:
    assert policy.verdict(fn) is Verdict(verdict)


def test_methods() -> None:
    assert container_method("no such method").writes
    assert container_method("no such method").levels == 1
    assert not container_method("get").writes
    assert not container_method("index").writes
    assert container_method("append").numbers is NumberUse.STORE
    assert all(known.by_key for known in METHODS.values() if known.looks_up)


class Item:
    def __init__(self, value: int) -> None:
        self.value = value


VALUE = operator.attrgetter("value")


@pytest.mark.parametrize(
    "place",
    [
        lambda items: bisect.bisect_left(items, 3, key=VALUE),
        lambda items: bisect.bisect_right(a=items, x=3, key=VALUE),
        lambda items: bisect.insort(items[:2], items[2], key=VALUE) or 0,
        lambda items: sorted(items, key=VALUE)[0].value,
        lambda items: max(items, key=VALUE).value,
        lambda items: min(items[0], items[1], key=VALUE).value,
    ],
)
def test_what_a_native_key_reads_is_guarded(place: Callable[[list[Item]], int]) -> None:
    items = [Item(1), Item(2), Item(5)]
    region = magpy_core.compile(lambda x: x + place(items))
    x = torch.ones(2)
    for values in [(1, 2, 5)] * 3 + [(0, 4, 5), (7, 8, 9), (4, 2, 0)]:
        for item, value in zip(items, values, strict=True):
            item.value = value
        assert torch.equal(region(x), x + place(items))


def test_a_number_read_by_index_is_the_tensor_s_number() -> None:
    numbers = torch.tensor([1, 2])
    region = magpy_core.compile(lambda x: x * numbers.sum().__index__() + numbers.sum().__complex__().real)
    for _ in range(4):
        assert torch.equal(region(torch.ones(2)), torch.full((2,), 2.0 * int(numbers.sum())))
        numbers.add_(1)

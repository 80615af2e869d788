"""Every kind of guard alone: the checks it writes, what it says of a miss, how it reads, when tags stand for it."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from magpy_core._compat.cpython import dict_tags
from magpy_core.guards import kinds as guard
from magpy_core.guards.codegen import GuardWriter
from magpy_core.guards.explain import read_failure
from magpy_core.guards.first_level import FirstLevel
from magpy_core.opgraph.scalars import COMPARE, ScalarTable
from magpy_core.refgraph.failure import Failure
from magpy_core.refgraph.graph import RefGraph
from magpy_core.refgraph.guard_kind import GuardKind, Read
from magpy_core.refgraph.source import Source
from magpy_core.refgraph.source_table import SourceTable
from magpy_core.refgraph.verify import RefGraphError, verify


class Box:
    """An argument with an attribute ``a``."""

    def __init__(self, a: Any = None) -> None:
        self.a = a


KINDS = {value.name: value for value in vars(guard).values() if isinstance(value, GuardKind)}
OTHER = Box()
MODULE = torch.nn.Linear(1, 1)
Place = Callable[[SourceTable], Source]


def box(t: SourceTable) -> Source:
    return t.arg(0, "box")


def own(t: SourceTable) -> Source:
    return t.make("dict", box(t), None)


def attribute(t: SourceTable) -> Source:
    return t.attr(box(t), "a")


def shape(t: SourceTable) -> Source:
    return t.make("shape", attribute(t), None)


def entry_of_dict(t: SourceTable) -> Source:
    return t.item(own(t), "a", "dict_item")


def no_attribute(t: SourceTable) -> Source:
    return t.item(own(t), "b")


def with_attribute(**attributes: Any) -> Box:
    new = Box()
    vars(new).update(attributes)
    return new


def hooked() -> torch.nn.Linear:
    module = torch.nn.Linear(1, 1)
    module.register_forward_hook(lambda *args: None)
    return module


def larger_than_three(t: SourceTable) -> Any:
    scalars = ScalarTable()
    return scalars.call(COMPARE[">"], (scalars.source(attribute(t), 5), 3), True)


@dataclass
class Case:
    """A read of ``place`` that holds for the argument ``good`` and fails for ``bad``; ``old`` and ``new`` explain it."""

    kind: GuardKind
    place: Place
    expected: Any
    good: Any
    bad: Any
    code: str
    text: str
    old: str
    new: str

    def read(self) -> tuple[SourceTable, Read]:
        table = SourceTable()
        expected = self.expected(table) if isinstance(self.expected, types.FunctionType) else self.expected
        return table, Read(self.place(table), self.kind, expected)


def constant_of(make: Callable[[SourceTable], Any]) -> Place:
    return lambda t: t.const(make(t), "outcome")


_SYM = larger_than_three

CASES = [
    Case(guard.ABSENT, no_attribute, None, Box(), with_attribute(b=7), "for d in (d0,):\n    if 'b' in d: return MISS",
         "box.b is absent", "absent", "7"),
    Case(guard.TYPE, attribute, list, Box([]), Box(()), "if type(v1) is not C0: return MISS",
         "type(box.a) is list", "a list", "a tuple"),
    Case(guard.TENSOR, attribute, torch.Tensor, Box(torch.ones(2)), Box(3), "v1 = d0['a']",
         "box.a is a tensor", "a Tensor", "3"),
    Case(guard.SHAPE, shape, (2, 3), Box(np.zeros((2, 3))), Box(np.zeros((2, 4))), "if v2 != C0: return MISS",
         "box.a.shape == (2, 3)", "(2, 3)", "(2, 4)"),
    Case(guard.IS, entry_of_dict, len, Box(len), Box(Box), "if d['a'] is not C0: return MISS",
         "box.a is <builtin_function_or_method len>", "<builtin_function_or_method len>", "<type Box>"),
    Case(guard.IDENTITY, box, OTHER, OTHER, Box(), "if v0 is not C0: return MISS",
         "box is <Box>", "<Box>", "<Box>"),
    Case(guard.EQUAL, attribute, 2, Box(2), Box(2.0), "if type(v1) is not C0 or v1 != 2: return MISS",
         "box.a == 2", "2", "2.0"),
    Case(guard.TRUTH, attribute, True, Box({1: 2}), Box({}), "if not v1: return MISS",
         "box.a is not empty", "not empty", "empty"),
    Case(guard.KEYS, attribute, ("k", "l"), Box({"k": 1, "l": 2}), Box({"l": 2, "k": 1}), "if tuple(v1) != C0: return MISS",
         "keys of box.a are tuple of 2", "the keys 'k', 'l'", "the keys 'l', 'k'"),
    Case(guard.ELEMENTS, attribute, (3,), Box({3}), Box({4}), "if not same_elements(v1, C0): return MISS",
         "elements of box.a are tuple of 1", "tuple of 1", "set of 1"),
    Case(guard.NAMES, own, frozenset({"a"}), Box(), with_attribute(c=1),
         "if tuple(d0) != C0[0] and names_changed(d0, C0): return MISS",
         "names of box.__dict__ are frozenset of 1", "without a change of c", "with other attributes"),
    Case(guard.PLAIN_MODULE, box, torch.nn.Linear, MODULE, hooked(), "'forward' in d: return MISS",
         "box has no hooks and no forward on the instance", "without hooks", "with hooks"),
    Case(guard.SAME_AS, attribute, lambda t: t.const(OTHER, "other"), Box(OTHER), Box(Box()),
         "if v1 is not C0: return MISS", "box.a is other", "the same object as other", "another object"),
    Case(guard.NOT_SAME_AS, attribute, lambda t: t.const(OTHER, "other"), Box(Box()), Box(OTHER),
         "if v1 is C0: return MISS", "box.a is not other", "another object", "the same object as other"),
    Case(guard.OUTCOME, constant_of(_SYM), lambda t: (_SYM(t), True), Box(5), Box(2), "if not (C0(v1, 3)): return MISS",
         "(box.a > 3) is True", "True", "False"),

]  # fmt: skip
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind.name)


def test_every_kind_is_tried_here() -> None:
    assert {case.kind.name for case in CASES} == set(KINDS)
    assert all(KINDS[kind.name] is kind for kind in (case.kind for case in CASES))


def test_every_class_of_a_kind_has_one_object_and_a_name_of_its_own() -> None:
    found = [value for value in vars(guard).values() if isinstance(value, type) and issubclass(value, GuardKind)]
    classes = {cls for cls in found if not inspect.isabstract(cls)}
    assert classes == {type(kind) for kind in KINDS.values()} and len(KINDS) == len(classes)


def test_kinds_hold_no_state() -> None:
    assert not any(vars(kind) for kind in KINDS.values())


@each_case
def test_the_code_fails_for_what_has_changed(case: Case) -> None:
    _, read = case.read()
    writer = GuardWriter()
    writer.write([read])
    assert case.code in "\n".join(writer.lines), writer.lines
    assert writer.checks == (case.kind is not guard.TENSOR)
    body = "\n    ".join([*writer.lines, "return 'hit'"])
    names = {**writer.table, "MISS": "miss"}
    exec(f"def matches(args, kwargs):\n    {body}", names)
    assert names["matches"]((case.good,), {}) == "hit"
    if case.kind is not guard.TENSOR:  # the capture compares all tensors at once
        assert names["matches"]((case.bad,), {}) == "miss"


@each_case
def test_a_miss_is_explained(case: Case) -> None:
    _, read = case.read()
    assert read_failure(read, (case.good,), {}, lambda site: None) is None
    failure = read_failure(read, (case.bad,), {}, lambda site: None)
    assert isinstance(failure, Failure) and (failure.code, failure.old, failure.new) == ("MP201", case.old, case.new)
    assert failure.number is False and failure.name == case.kind.subject(read)[0]


@each_case
def test_the_text_of_a_read(case: Case) -> None:
    assert case.kind.text(case.read()[1]) == case.text


@each_case
def test_the_verifier_compares_with_the_entry_state(case: Case) -> None:
    def graph() -> RefGraph:
        table, read = case.read()
        return RefGraph(table, reads=[read])

    verify(graph(), (case.good,), {})
    with pytest.raises(RefGraphError, match=case.kind.name):
        verify(graph(), (case.bad,), {})


@each_case
def test_a_read_is_recorded_once(case: Case) -> None:
    table, read = case.read()
    graph = RefGraph(table)
    assert graph.read(read.source, read.kind, read.expected, None)
    assert not graph.read(read.source, read.kind, read.expected, None)
    assert len(graph.reads) == 1


def test_outcomes_of_one_symbol_and_objects_told_apart_are_reads_of_their_own() -> None:
    graph = RefGraph()
    sym, place = larger_than_three(graph.sources), attribute(graph.sources)
    source = graph.sources.const(sym, "outcome")
    assert graph.read(source, guard.OUTCOME, (sym, True), None) and graph.read(source, guard.OUTCOME, (sym, 1), None)
    others = [graph.sources.const(object(), "other") for _ in range(2)]
    assert all(graph.read(place, guard.NOT_SAME_AS, other, None) for other in others)
    assert [read.kind.check(read.expected).partition(":")[0] for read in graph.reads] == ["sym"] * 2 + ["is_not_source"] * 2


def test_checks_are_named_as_reports_have_them() -> None:
    assert set(KINDS) == {
        "absent", "type", "tensor", "shape", "is", "identity", "eq", "truth", "keys", "elements", "names", "plain_module",
        "is_source", "is_not_source", "sym",
    }  # fmt: skip
    assert guard.OUTCOME.check((None, True)) == "sym:True"


@pytest.mark.parametrize(("new", "dims"), [((2, 4), (1,)), ((3, 4), (0, 1)), ((2, 3, 1), ()), ((6,), ())])
def test_sizes_of_an_array_may_vary_but_not_how_many(new: tuple[int, ...], dims: tuple[int, ...]) -> None:
    table = SourceTable()
    failure = read_failure(Read(shape(table), guard.SHAPE, (2, 3)), (Box(np.zeros(new)),), {}, lambda site: None)
    assert failure is not None and failure.dims == dims and failure.name == "box.a.shape"


@pytest.mark.parametrize("new, number", [(3, True), (2.0, False), (True, False), ("2", False)])
def test_only_another_number_of_the_type_can_become_symbolic(new: Any, number: bool) -> None:
    table = SourceTable()
    failure = read_failure(Read(attribute(table), guard.EQUAL, 2), (Box(new),), {}, lambda site: None)
    assert failure is not None and failure.number is number


# What the tags of ``box`` and of its dict stand for.
COVERED = {"absent", "type", "tensor", "is", "eq", "truth", "keys", "plain_module", "is_source", "is_not_source"}


@pytest.mark.skipif(not dict_tags.supported(), reason="this Python has no dict version tags")
@each_case
def test_what_dict_version_tags_stand_for(case: Case) -> None:
    table, read = case.read()
    reads = [Read(box(table), guard.TYPE, type(case.good)), read]
    level = FirstLevel(reads, (case.good,), {}, frozenset())
    assert (id(read) in level.covered) is (case.kind.name in COVERED)

"""Trackers at the bottom of a recording, each alone: journal, call stack, age, arrays, decisions, numbers."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from magpy_core.findings import Unsupported
from magpy_core.recording.call_stack import Consumer
from magpy_core.recording.journal import FAILED, Aborted
from magpy_core.recording.ledger import Learned
from magpy_core.replay.ir import MadeInside
from tests.unit.recording.help import World


@pytest.fixture
def collector_off() -> Iterator[None]:
    gc.collect(0)
    gc.disable()
    yield
    gc.enable()


class Plain:
    pass


# -- journal -----------------------------------------------------------------------------------------------------------


def _raise(error: Exception) -> Callable[[], None]:
    def step() -> None:
        raise error

    return step


@pytest.mark.parametrize(
    ("act", "status", "codes"),
    [
        (lambda j: j.refuse("MP110", "no"), "refused", ["MP110"]),
        (lambda j: j.skip_call("not now"), "skipped", []),
        (lambda j: j.note("MP305", "seen"), "open", ["MP305"]),
        (lambda j: [j.refuse("MP110", "no"), j.refuse("MP110", "no")], "refused", ["MP110"]),
        (lambda j: j.refuse_error(Unsupported("MP104", "no")), "refused", ["MP104"]),
        (lambda j: j.refuse_error(Unsupported("", "said before")), "refused", []),
        (lambda j: j.refuse_error(MadeInside("MP110", "set up")), "skipped", ["MP110"]),
        (lambda j: j.contained(_raise(ValueError("ours"))), "refused", ["MP901"]),
        (lambda j: j.contained(_raise(Unsupported("MP103", "no"))), "refused", ["MP103"]),
    ],
)
def test_the_ways_to_say_no(act: Callable[[Any], Any], status: str, codes: list[str]) -> None:
    world = World()
    act(world.journal)
    assert (world.status, world.codes) == (status, codes)


def test_what_happens_once_skips_and_what_is_repeated_is_refused() -> None:
    learned = Learned()
    statuses = []
    for _ in range(2):
        world = World(learned)
        world.journal.refuse_if_repeated(Unsupported("MP110", "fills a cache"))
        statuses.append(world.status)
    assert statuses == ["skipped", "refused"]


def test_abort_drops_what_is_held_and_raises() -> None:
    world, dropped = World(), []
    world.journal.on_abort(lambda: dropped.append(True))
    with pytest.raises(Aborted):
        world.journal.abort("dies", None)
    assert (world.status, world.codes, dropped) == ("aborted", ["MP110"], [True])


def test_a_contained_step_gives_its_result_or_the_mark_of_failure() -> None:
    journal = World().journal
    assert journal.contained(max, 1, 2) == 2
    assert journal.contained(_raise(KeyError())) is FAILED


# -- call stack --------------------------------------------------------------------------------------------------------


def test_calls_above_the_one_that_returns_left_by_an_exception() -> None:
    stack = World().stack
    outer, inner, site = object(), object(), object()
    for at in (outer, inner, site):
        stack.enter(at, Consumer.PYTHON)
    call = stack.leave(inner)
    assert call is not None and call.site is inner
    assert [frame.site for frame in stack.frames] == [outer]
    assert stack.leave(site) is None


def test_a_callback_drops_what_was_expected_of_the_call_around_it() -> None:
    stack = World().stack
    stack.enter("sorted", Consumer.KEEPS)
    stack.expect(lambda result: result)
    assert stack.expects and stack.consumer is Consumer.KEEPS
    stack.enter("key", Consumer.PYTHON)
    stack.leave("key")
    assert not stack.expects


# -- age ---------------------------------------------------------------------------------------------------------------


def test_age(collector_off: None) -> None:
    old = Plain()
    gc.collect(0)
    age = World().age
    new = Plain()
    assert [age.is_made_inside(v) for v in (new, old, 1.5)] == [True, False, None]


@pytest.mark.parametrize(("made_inside", "codes"), [(True, []), (False, ["MP111"])])
def test_an_object_taken_for_internal_must_be_young(collector_off: None, made_inside: bool, codes: list[str]) -> None:
    world, obj = World(), Plain()
    if not made_inside:
        gc.collect(0)
    world.age.assume_internal(obj)
    world.age.check_assumptions()
    assert world.codes == codes


# -- arrays ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "outside", "code"),
    [
        (np.ones(2), True, "MP105"), (bytearray(2), True, "MP104"), ({}.keys(), True, "MP104"),
        (np.ones(2), False, None), (bytearray(2), False, None), ([1, 2], True, None), (1.5, False, None),
    ],
)  # fmt: skip
def test_memory_read(value: Any, outside: bool, code: str | None) -> None:
    world = World()
    if outside:
        world.outside(value)
    assert world.context.arrays.memory_read(None, value) is (code is not None)
    assert world.codes == ([code] if code else [])


def test_results_on_plain_arrays_are_plain_until_a_tensor_shares_them() -> None:
    world, array, other = World(), np.ones(4), np.ones(4)
    world.context.arrays.keep(array)
    world.context.arrays.operator_result((array, 2.0), other)
    world.context.arrays.operator_result((np.ones(4), 2.0), unknown := np.ones(4))
    assert [world.context.arrays.is_plain_array(a) for a in (array, array[1:], other, unknown)] == [True, True, True, False]
    world.context.arrays.mark_shared(array)
    assert [world.context.arrays.is_plain_array(a) for a in (array, array[1:], other)] == [False, False, True]


# -- numbers and decisions ---------------------------------------------------------------------------------------------


def symbol(world: World, value: Any) -> Any:
    source = world.argument(0, "n")
    return world.ledger.scalars.bind(value, world.ledger.scalars.source(source, value))


def test_a_number_that_escapes_is_guarded_by_its_value() -> None:
    world = World()
    n = symbol(world, 1000)
    world.numbers.escape_all(None, [{"key": n}])
    assert world.guards == ["sym result of n"]
    assert world.learned.exact == {world.argument(0, "n").path}
    assert world.status == "open"


@pytest.mark.parametrize("tree", [[1], {"a": 2.5}, "text", (None, [True])])
def test_constants_do_not_escape(tree: Any) -> None:
    world = World()
    symbol(world, 1000)
    world.numbers.escape_all(None, tree)
    assert world.guards == []


def test_a_comparison_of_a_host_number_is_a_guard_and_no_cut() -> None:
    world = World()
    sym = world.ledger.scalars.get(symbol(world, 1000))
    world.decisions.decide(sym, True, "truth", None)
    assert world.guards == ["sym result of n"]
    assert (world.ledger.decisions, world.codes, world.learned.exact) == ([], [], set())

"""Arguments, callbacks and natives, each alone: what native code reads where no event shows it."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch

from magpy_core.recording.access.arguments import Arguments
from magpy_core.recording.access.callbacks import Callbacks
from magpy_core.recording.access.natives import Natives
from tests.unit.recording.help import World, site


class Point:
    __match_args__ = ("a",)

    def __init__(self) -> None:
        self.a = 1
        self.b = [2]


# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shallow", "guards"),
    [(None, ["eq len(x)", "type x[0]", "eq len(x[0])", "eq x[0][0]"]), (0, ["eq len(x)", "type x[0]"])],
)
def test_arguments_are_read_as_deep_as_native_code_looks(shallow: int | None, guards: list[str]) -> None:
    world, nested = World(), [[1]]
    world.outside(nested)
    world.build(Arguments).read(site(), (nested,), {}, shallow)
    assert world.guards == guards


def test_a_container_that_holds_itself_is_read_once() -> None:
    world, loop = World(), []
    loop.append(loop)
    world.outside(loop)
    world.build(Arguments).read(site(), (loop,), {})
    assert world.guards.count("eq len(x)") == 1


def test_a_very_large_container_is_refused() -> None:
    world, large = World(), [0] * 60_000
    world.build(Arguments).read(site(), (large,), {})
    assert world.codes == ["MP111"]


def test_an_iterator_among_the_arguments() -> None:
    world, iterator = World(), iter([1])
    world.outside(iterator)
    world.build(Arguments).read(site(), (iterator,), {})
    assert len(world.called("container_calls.read_iterator")) == 1


@pytest.mark.parametrize(("getter", "codes"), [(operator.attrgetter("a"), []), (vars, ["MP104"])])
def test_a_getter_is_followed_or_refused(getter: Any, codes: list[str]) -> None:
    world, points = World(), [Point()]
    world.build(Arguments).read(site(), (getter, points), {})
    assert world.codes == codes
    assert len(world.called("natives.call_getter")) == (not codes)


# -- callbacks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fn", "args", "kwargs", "dispatched"),
    [
        (map, (abs, [1, -2]), {}, [(1,), (-2,)]), (sorted, ([3, 1],), {"key": abs}, [(3,), (1,)]),
        (max, (3, -4), {"key": abs}, [(3,), (-4,)]), (map, (functools.partial(pow, 2), [3]), {}, [(2, 3)]),
        (map, (pow, [2], [3]), {}, [(2, 3)]),
    ],
)  # fmt: skip
def test_native_callables_are_dispatched_with_each_element(
    fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], dispatched: list[tuple[Any, ...]]
) -> None:
    world = World()
    world.build(Callbacks).guard(site(), fn, args, kwargs)
    assert [call[2] for call in world.called("dispatch.dispatch")] == dispatched


def test_a_python_callable_has_events_of_its_own() -> None:
    def key(value: int) -> int:
        return -value

    world = World()
    world.outside(key)
    world.build(Callbacks).guard(site(), sorted, ([1],), {"key": key})
    assert world.called("dispatch.dispatch") == []
    assert any("__code__" in guard for guard in world.guards)


def test_a_callable_of_torch_is_left_to_the_operator_recorder() -> None:
    world = World()
    world.build(Callbacks).guard(site(), map, (torch.neg, [torch.ones(1)]), {})
    assert world.calls == []


def test_values_that_are_not_known_are_refused() -> None:
    world = World()
    world.build(Callbacks).guard(site(), functools.reduce, (getattr, [1]), {})
    assert world.codes == ["MP104"]


def test_a_result_that_must_be_seen_is_refused() -> None:
    world = World()
    world.build(Callbacks).unobservable(site(), next)()
    assert world.codes == ["MP104"]


# -- natives -----------------------------------------------------------------------------------------------------------


def natives(world: World) -> Natives:
    return world.build(Natives)


@pytest.mark.parametrize(
    ("getter", "attributes", "items"),
    [(operator.attrgetter("a"), ["a"], []), (operator.attrgetter("b", "a"), ["b", "a"], []),
     (operator.itemgetter("k", "l"), [], ["k", "l"])],
)  # fmt: skip
def test_getters(getter: Any, attributes: list[str], items: list[str]) -> None:
    world, obj = World(), Point() if attributes else {"k": 1, "l": 2}
    natives(world).call_getter(site(), getter, (obj,))
    assert [args[1] for args in world.called("reads.attr")] == attributes
    assert [args[1] for args in world.called("items.read")] == items


def test_a_chain_of_attributes_is_refused() -> None:
    world = World()
    natives(world).call_getter(site(), operator.attrgetter("b.a"), (Point(),))
    assert world.codes == ["MP104"]


@pytest.mark.parametrize(("subject", "attributes"), [(Point(), ["__match_args__", "a", "b"]), (3, [])])
def test_a_class_pattern(subject: Any, attributes: list[str]) -> None:
    world = World()
    natives(world).match_class(site(), subject, Point, ("b",))
    assert [args[1] for args in world.called("reads.attr")] == attributes


def test_the_whole_state_of_an_object() -> None:
    world, point = World(), Point()
    world.outside(point)
    natives(world).state_read(point, site())
    assert [args[2] for args in world.called("reads.external_attr")] == ["a", "b"]
    assert any(guard.startswith("keys") for guard in world.guards)


@pytest.mark.parametrize(
    ("text", "codes"),
    [("{0.a}", ["MP104"]), ("{:{w[0]}}", ["MP104"]), ("{} {0:.3f} {:>{width}.2f}.", []), ("{", []), ("{1}", [])],
)
def test_fields_of_a_format(text: str, codes: list[str]) -> None:
    world = World()
    natives(world).format_fields(site(), text)
    assert world.codes == codes


def test_fields_are_only_read_where_the_program_would() -> None:
    reads: Callable[[World], list[Any]] = lambda world: world.called("reads.attr")  # noqa: E731
    world = World()
    natives(world).member_used(site(), Point.__init__, "__call__", Point())
    assert reads(world) == []

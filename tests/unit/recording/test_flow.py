"""Flow, alone: what iteration, unpacking, hashing, matching and `with` read."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from magpy_core.recording.access.flow import Flow
from tests.unit.recording.help import World, site


class Manager:
    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


class Countdown:
    def __iter__(self) -> Any:
        return iter([2, 1])


@pytest.mark.parametrize(
    ("obj", "guards"),
    [([1, 2], ["eq len(x)", "eq x[0]", "eq x[1]"]), ((1,), ["eq len(x)", "eq x[0]"]), ({"a": 1}, ["keys x"]),
     (torch.ones(2), []), ("text", [])],
)  # fmt: skip
def test_iteration_reads_the_whole(obj: Any, guards: list[str]) -> None:
    world = World()
    world.outside(obj)
    world.build(Flow).iterate(site(), obj)
    assert world.guards == guards


def test_iteration_of_an_object_is_its_classs_methods() -> None:
    world, obj = World(), Countdown()
    world.outside(obj)
    world.build(Flow).iterate(site(), obj)
    assert any("__iter__" in guard or "Countdown" in guard for guard in world.guards)


def test_an_iterator_from_outside_is_left_to_container_calls() -> None:
    world, iterator = World(), iter([1])
    world.outside(iterator)
    world.build(Flow).iterate(site(), iterator)
    assert [args[0] for args in world.called("container_calls.read_iterator")] == [iterator]


@pytest.mark.parametrize(("opname", "read"), [("LIST_EXTEND", True), ("SET_UPDATE", True)])
def test_extending_reads_what_is_added(opname: str, read: bool) -> None:
    world, added = World(), [1]
    world.outside(added)
    world.build(Flow).extend(site(opname=opname), [], added)
    assert ("eq x[0]" in world.guards) is read


def test_a_matched_sequence_is_read_whole() -> None:
    world, subject = World(), [1, 2]
    world.outside(subject)
    world.build(Flow).match(site(), subject)
    assert world.guards[-2:] == ["eq x[0]", "eq x[1]"]


def test_a_context_manager_is_its_classs_methods() -> None:
    world, manager = World(), Manager()
    world.outside(manager)
    world.build(Flow).with_enter(site(), manager)
    assert world.status == "open"
    assert sum("Manager" in guard for guard in world.guards) >= 2


@pytest.mark.parametrize(("classes", "called"), [((ValueError, KeyError), "arguments.read"), (ValueError, "")])
def test_the_classes_that_catch(classes: Any, called: str) -> None:
    world = World()
    world.build(Flow).caught(site(), ValueError(), classes)
    assert [name for name, _ in world.calls] == ([called] if called else [])

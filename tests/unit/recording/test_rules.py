"""Rules of builtins, each alone: what their answers follow from."""

from __future__ import annotations

import gc
import sys
from typing import Any, Protocol

import pytest
import torch

from magpy_core.knowledge.callables import CALLABLES
from magpy_core.recording.call_stack import Consumer
from magpy_core.recording.calls.rules import RULES, Rules
from tests.unit.recording.help import World, site


class Sized:
    def __len__(self) -> int:
        return 2

    def __init__(self) -> None:
        self.a = 1


class Closes(Protocol):
    def close(self) -> None: ...


def ask(fn: Any, *args: Any, **kwargs: Any) -> World:
    """A world in which ``fn(*args, **kwargs)`` is about to run; its arguments are from outside."""
    world = World()
    for i, obj in enumerate(args):
        if type(obj) in (list, dict, Sized):
            world.outside(obj, i, f"a{i}")
    at = site()
    world.stack.enter(at, Consumer.PASSES)
    RULES[fn](world.build(Rules), at, fn, args, kwargs)
    return world


@pytest.mark.parametrize(
    ("obj", "guards"),
    [([1, 2], ["eq len(a0)"]), ({"a": 1}, ["eq len(a0)"]), ("text", []), (torch.ones(2), [])],
)
def test_len(obj: Any, guards: list[str]) -> None:
    assert ask(len, obj).guards == guards


def test_len_of_a_tensor_carries_its_symbol() -> None:
    assert ask(len, torch.ones(2)).stack.expects


def test_len_of_an_object_is_its_classs_method() -> None:
    assert any("Sized" in guard for guard in ask(len, Sized()).guards)


@pytest.mark.parametrize("fn", [isinstance, issubclass])
def test_the_type_of_an_object(fn: Any) -> None:
    world = ask(fn, Sized() if fn is isinstance else Sized, Sized)
    assert any("Sized" in guard for guard in world.guards)
    assert world.status == "open"


def test_a_protocol_of_the_programs_is_refused() -> None:
    assert ask(isinstance, Sized(), Closes).codes == ["MP111"]


@pytest.mark.parametrize(
    ("fn", "called"),
    [(getattr, ("reads.attr", "a")), (hasattr, ("reads.attr", "a")), (setattr, ("writes.attr", "a")),
     (delattr, ("writes.attr", "a"))],
)  # fmt: skip
def test_attributes_by_name(fn: Any, called: tuple[str, str]) -> None:
    world = ask(fn, Sized(), "a", *((1,) if fn is setattr else ()))
    assert [(name, args[1]) for name, args in world.calls] == [called]


@pytest.mark.parametrize(("fn", "obj"), [(repr, 3), (ascii, "a"), (format, 2.0)])
def test_text(fn: Any, obj: Any) -> None:
    world = ask(fn, obj)
    assert {"arguments.read", "texts.formatted"} <= {name for name, _ in world.calls}


@pytest.mark.parametrize("fn", [sorted, sum, min, max, any, all])
def test_walks_read_every_element(fn: Any) -> None:
    world = ask(fn, [3, 1])
    assert [args[0] for args in world.called("flow.iterate_value")] == [[3, 1]]
    assert world.called("callbacks.elements_of")


def test_next_of_what_is_from_outside_is_refused() -> None:
    iterator = iter([1])
    assert [args[0] for args in ask(next, iterator).called("container_calls.read_iterator")] == [iterator]


@pytest.mark.parametrize(("fn", "codes"), [(id, []), (hash, [])])
def test_the_identity_of_an_object_from_outside_is_guarded(fn: Any, codes: list[str]) -> None:
    world = ask(fn, Sized())
    assert world.codes == codes
    assert any(guard.startswith("identity") for guard in world.guards)


def test_the_hash_of_an_object_made_inside_is_refused() -> None:
    assert ask(hash, object()).codes == ["MP103"]


def test_a_class_statement_is_refused() -> None:
    import builtins

    world = World()
    RULES[builtins.__build_class__](world.build(Rules), site(), builtins.__build_class__, (None, "Inside"), {})
    assert world.codes == ["MP111"]


@pytest.mark.parametrize(
    ("args", "kwargs", "codes"),
    [((1, "a", [2]), {"sep": "-"}, []), ((Sized(),), {}, ["MP114"]), ((torch.ones(1),), {}, ["MP102"]),
     ((1,), {"file": sys.stderr}, ["MP114"])],
)  # fmt: skip
def test_print(args: Any, kwargs: dict[str, Any], codes: list[str]) -> None:
    world = ask(print, *args, **kwargs)
    assert world.codes == codes
    assert len(world.ledger.outputs) == (not codes)


def test_what_is_printed_is_kept_as_it_was() -> None:
    values = [1]
    world = ask(print, values)
    values.append(2)
    assert world.ledger.outputs[0].payload[0] == ([1],)


def test_the_collector_is_the_programs() -> None:
    world = World()
    rules = world.build(Rules)
    RULES[gc.disable](rules, site(), gc.disable, (), {})
    assert [args[2] for args in world.called("outside.host_call")]


@pytest.mark.parametrize(("tree", "taken"), [([1, {"a": (2,)}], True), ([object()], False), (Sized(), False)])
def test_a_copy_of_plain_data_is_taken_as_a_whole(tree: Any, taken: bool) -> None:
    world = World()
    assert world.build(Rules).copies(site(), tree) is taken


def test_every_rule_has_an_entry() -> None:
    assert [fn for fn in RULES if fn not in CALLABLES] == []

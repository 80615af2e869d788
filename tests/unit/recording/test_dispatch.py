"""Dispatch and the kinds of callees, each alone."""

from __future__ import annotations

import functools
import operator
import random
import weakref
from typing import Any

import pytest
import torch

from magpy_core.recording.calls.classes import ClassCalls
from magpy_core.recording.calls.containers import ContainerCalls
from magpy_core.recording.calls.methods import MethodCalls
from magpy_core.recording.calls.native import NativeCalls
from magpy_core.recording.calls.python import PythonCalls
from magpy_core.recording.dispatch import Dispatch
from tests.unit.recording.help import World, site


class Made:
    def __init__(self) -> None:
        self.a = 1

    def method(self) -> None: ...

    def __call__(self) -> None: ...


class Finalized:
    def __del__(self) -> None: ...


def function(x: Any, flag: bool = True) -> Any:
    return x


cached = functools.lru_cache(function)


def names(world: World) -> list[str]:
    return [name for name, _ in world.calls]


# -- dispatch ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fn", "handler"),
    [
        (function, "python.call"), (Made().method, "python.call"), (len, "native.call"), ([].append, "methods.call"),
        (list.append, "methods.call"), (Made, "class_calls.call"), (functools.partial(function, 1), "python.call"),
        (cached, "caches.call"), (weakref.ref(function), "lifetimes.call_weakref"),
        (operator.attrgetter("a"), "natives.call_getter"), (dict.fromkeys, "native.class_method"),
    ],
)  # fmt: skip
def test_a_callee_goes_to_its_handler(fn: Any, handler: str) -> None:
    world = World()
    world.build(Dispatch).dispatch(site(), fn, ([],), {})
    assert names(world) == [handler]


@pytest.mark.parametrize("fn", [torch.ones(1).add, torch.Tensor.add, torch.ops.aten.add.Tensor])
def test_a_call_into_torch_is_expected_by_the_operator_recorder(fn: Any) -> None:
    world, at = World(), site()
    world.build(Dispatch).dispatch(at, fn, (torch.ones(1),), {})
    assert world.stack.torch is not None and world.stack.torch[0] is at


def test_a_partial_of_another_partial_is_the_function_with_all_arguments() -> None:
    world = World()
    inner = functools.partial(function, 1)
    world.build(Dispatch).dispatch(site(), functools.partial(inner, flag=False), (), {})
    [(_, fn, args, kwargs)] = world.called("python.call")
    assert (fn, args, kwargs) == (function, (1,), {"flag": False})


def test_an_object_that_is_called_is_its_classs_method() -> None:
    world, obj = World(), Made()
    world.outside(obj)
    world.build(Dispatch).dispatch(site(), obj, (), {})
    assert any("__call__" in guard or "Made" in guard for guard in world.guards)
    assert world.status == "open"


def test_a_result_goes_to_what_expects_it() -> None:
    world, at = World(), site()
    dispatch = world.build(Dispatch)
    dispatch.call(at, function, (1,), None)
    world.stack.expect(lambda result: result + 1)
    assert dispatch.call_result(at, 5) == 6
    assert dispatch.call_result(site(), 5) == 5  # of a call that was not announced


def test_draws_from_a_hidden_stream_go_outside() -> None:
    world = World()
    world.build(Dispatch).dispatch(site(), random.random, (), {})
    assert names(world)[0] == "outside.draw"


# -- classes -----------------------------------------------------------------------------------------------------------


def class_calls(world: World) -> ClassCalls:
    return world.build(ClassCalls)


def test_a_class_is_its_shape_and_constructors() -> None:
    world = World()
    class_calls(world).call(site(), Made, (), {})
    assert any("Made" in guard for guard in world.guards)
    assert "lifetimes.constructed" in names(world)


@pytest.mark.parametrize(
    ("cls", "args", "handler"),
    [(torch.nn.Parameter, (torch.ones(1),), "constructors.made_by_constructor"),
     (torch.Tensor, ([1.0],), "constructors.constructor_call"), (torch.FloatTensor, (2,), "constructors.constructor_call")],
)  # fmt: skip
def test_tensors_have_constructors_of_their_own(cls: Any, args: Any, handler: str) -> None:
    world = World()
    class_calls(world).call(site(), cls, args, {})
    assert handler in names(world)


def test_a_generator_of_random_numbers_is_refused() -> None:
    world = World()
    class_calls(world).call(site(), torch.Generator, (), {})
    assert world.codes == ["MP116"]


def test_text_of_values_is_read_as_text() -> None:
    world = World()
    class_calls(world).call(site(), str, (3,), {})
    assert "texts.formatted" in names(world)


# -- methods -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("obj", "name", "args", "handler"),
    [
        (Made(), "__setattr__", ("a", 2), "writes.attr_past_setattr"), (Made, "__setattr__", ("a", 2), "writes.attr"),
        (Made(), "__getattribute__", ("a",), "reads.raw_attr"), (Made(), "__reduce_ex__", (2,), "natives.state_read"),
        ([1], "append", (2,), "container_calls.method"), ("{0.a}", "format", (Made(),), "natives.format_fields"),
        (iter([1]), "__next__", (), "container_calls.read_iterator"),
    ],
)  # fmt: skip
def test_a_method_goes_to_its_handler(obj: Any, name: str, args: Any, handler: str) -> None:
    world = World()
    world.outside(obj)
    world.build(MethodCalls).call(site(), obj, name, args, {}, getattr(obj, name, None))
    assert handler in names(world)


@pytest.mark.parametrize("name", ["__init__", "__class__", "__init_subclass__"])
def test_methods_of_object_that_do_nothing(name: str) -> None:
    world = World()
    world.build(MethodCalls).call(site(), Made(), name, (), {}, None)
    assert world.calls == []


# -- native functions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fn", "args", "handler"),
    [(torch.neg, (torch.ones(1),), "torch_calls.expected"), (operator.concat, ([1], [2]), "arguments.read"),
     (random.seed, (1,), "outside.host_call"), (map, (abs, [1]), "callbacks.guard")],
)  # fmt: skip
def test_a_native_function_goes_by_what_is_known_of_it(fn: Any, args: Any, handler: str) -> None:
    world = World()
    world.build(NativeCalls).call(site(), fn, args, {})
    assert handler in names(world)


def test_a_function_that_fills_its_arguments_writes_them() -> None:
    import heapq

    world, heap = World(), [3]
    world.build(NativeCalls).call(site(), heapq.heappush, (heap, 1), {})
    assert [args[0] for args in world.called("writes.before_write")] == [heap]


# -- Python functions --------------------------------------------------------------------------------------------------


def python_calls(world: World) -> PythonCalls:
    return world.build(PythonCalls, globals=_Globals(world))


class _Globals:
    """A stand-in with the table of a code's globals."""

    def __init__(self, world: World) -> None:
        self._above = world.above.globals
        self._of_code: dict[Any, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._above, name)


def test_a_function_from_outside_is_guarded() -> None:
    world = World()
    world.outside(function)
    python_calls(world).call(site(), function, (1,), {})
    assert function.__code__ in world.context.functions.known_codes
    assert any("__code__" in guard for guard in world.guards)


def test_a_missing_argument_is_a_fact() -> None:
    world = World()
    world.outside(function)
    python_calls(world).call(site(), function, (), {})
    assert sum("__defaults__" in guard for guard in world.guards) >= 1


def test_code_that_runs_with_two_sets_of_globals_is_refused() -> None:
    import types

    world = World()
    calls = python_calls(world)
    calls.call(site(), function, (1,), {})
    calls.call(site(), types.FunctionType(function.__code__, {}), (1,), {})
    assert world.codes == ["MP111"]


# -- containers --------------------------------------------------------------------------------------------------------


def containers(world: World) -> ContainerCalls:
    return world.build(ContainerCalls)


@pytest.mark.parametrize(
    ("obj", "name", "args", "written"),
    [([1], "append", (2,), True), ([1], "index", (1,), False), ({"a": 1}, "pop", ("a",), True),
     ({"a": 1}, "get", ("a",), False)],
)  # fmt: skip
def test_a_method_of_a_container(obj: Any, name: str, args: Any, written: bool) -> None:
    world = World()
    node = world.outside(obj)
    containers(world).method(site(), obj, name, args, {})
    assert (node.snapshot is not None) is written
    assert bool(world.called("writes.mark_written")) is written


@pytest.mark.parametrize("iterator", [iter([1]), (x for x in [1])])
def test_an_iterator_from_outside_is_refused(iterator: Any) -> None:
    world = World()
    world.outside(iterator)
    containers(world).read_iterator(iterator, site())
    assert world.codes == ["MP108"]

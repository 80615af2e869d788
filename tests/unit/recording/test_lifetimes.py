"""Law: a capture keeps no tensor and no object of the program alive. The collector is off, so a cycle of ours counts, too.

Each case is run in eager mode and compiled: a call must leave the same number of objects of each class behind.
"""

from __future__ import annotations

import contextvars
import gc
import re
import types
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor

import magpy_core
from magpy_core.regions.api import region_of


class Box:
    """An object of the program's."""

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def plus(self, x: Any) -> Any:
        return x + self.value


class Dying:
    def __del__(self) -> None:
        pass


class Trouble(Exception):
    """An exception of the program's."""


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.box = Box(2.0)

    def forward(self, x: Any) -> Any:
        return self.linear(x) * self.box.value


VAR: contextvars.ContextVar[Any] = contextvars.ContextVar("VAR")
STATE: dict[str, Any] = {"box": None, "tensor": None}
_WATCHED = (
    torch.Tensor, Box, Dying, Net, BaseException, types.TracebackType, types.GeneratorType, type(iter([])),
)  # fmt: skip


def ones() -> torch.Tensor:
    return torch.ones(3)


def alive() -> Counter[str]:
    found: Counter[str] = Counter()
    for obj in gc.get_objects():
        tp = type(obj)
        if issubclass(tp, _WATCHED) and not issubclass(tp, FakeTensor) and not tp.__module__.startswith("magpy_core"):
            found[tp.__name__] += 1
    return found


@pytest.fixture(scope="module", autouse=True)
def frozen_world() -> Iterator[None]:
    """What was there before is not listed by the collector: that would take most of the time."""
    warm = magpy_core.compile(lambda x: x + 1, backend="eager")
    warm(ones())
    warm(ones())  # what torch makes once, it has made now
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def collector_off() -> Iterator[None]:
    STATE.update(box=None, tensor=None)
    token = VAR.set(Box(1.0))
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    VAR.reset(token)


# -- regions -----------------------------------------------------------------------------------------------------------


def activations(x: Any) -> Any:
    y = (x * 2).relu()
    return (y + 1).sum()


def makes_objects(x: Any) -> Any:
    return Box(x * 3).value + 1


def returns_object(x: Any) -> Any:
    return Box([x * 3, {"x": x + 1}])


def array_inside(x: Any) -> Any:
    a = np.zeros(3)
    a[0] = 2.0
    return x + float(a[0])


def array_to_tensor(x: Any) -> Any:
    return x + torch.from_numpy(np.zeros(3, dtype="float32"))


def data_to_numpy(x: Any) -> Any:
    t = x * 2
    return t.detach().numpy().sum() + x


def argument_to_numpy(x: Any) -> Any:
    x.numpy()
    return x + 1


def context_set_and_reset(x: Any) -> Any:
    token = VAR.set(Box(x))
    y = VAR.get().value * 2
    VAR.reset(token)
    return y


def reads_context(x: Any) -> Any:
    return VAR.get().value * x


def replaces_values(x: Any) -> Any:
    STATE["tensor"] = x * 2
    STATE["box"] = Box(x * 3)
    return x + 1


def raises(x: Any) -> Any:
    y = x * 2
    raise Trouble("no", Box(y))


def raises_and_catches(x: Any) -> Any:
    try:
        raise Trouble(Box(x))
    except Trouble:
        return x * 2


def iterators(x: Any) -> Any:
    it = iter([x, x * 2])
    next(it)
    return next(it) + sum((x * i for i in range(2)), x)


def iterates_argument(x: Any, values: Any) -> Any:
    return x + next(iter(values))


def reads_attribute(x: Any, box: Any) -> Any:
    return x + box.value


def calls_method(x: Any, method: Any) -> Any:
    return method(x)


def compares(x: Any, box: Any, other: Any) -> Any:
    return x + 1 if box is other else x + 2


def looks_up(x: Any, box: Any, table: Any) -> Any:
    return x + table[box]


def is_member(x: Any, box: Any, members: Any) -> Any:
    return x + 1 if box in members else x


def uses_identity(x: Any, box: Any) -> Any:
    return x + (id(box) % 7)


def error_from_outside(x: Any, error: Any) -> Any:
    return x + len(error.args)


def dereferences(x: Any, box: Any) -> Any:
    return x + weakref.ref(box)().value  # type: ignore[union-attr]


def branches(x: Any) -> Any:
    return x * 2 if x.sum() > 0 else x * 3


def reads_number(x: Any) -> Any:
    return x * x.sum().item()


def writes_argument(x: Any) -> Any:
    x.add_(1)
    return x * 2


def array_from_outside(x: Any, array: Any) -> Any:
    return x + float(array[0])


def unknown_call(x: Any, box: Any) -> Any:
    y = x * 2
    hash(object())
    return y + box.value


def generator_from_outside(x: Any, values: Any) -> Any:
    return x + next(values)


def finalizer(x: Any, box: Any) -> Any:
    Dying()
    return x + box.value


def subclasses(x: Any, box: Any) -> Any:
    Box.__subclasses__()
    return x + box.value


def _twice(make: Callable[[Box], Any]) -> Callable[[], tuple[Any, ...]]:
    def arguments() -> tuple[Any, ...]:
        box = Box(1.0)
        return ones(), box, make(box)

    return arguments


class Case(NamedTuple):
    region: Callable[..., Any]
    kind: str  # what becomes of the recordings
    arguments: Callable[[], tuple[Any, ...]] = lambda: (ones(),)


CAPTURED = [
    Case(activations, "replayed"), Case(makes_objects, "replayed"), Case(returns_object, "replayed"),
    Case(array_inside, "replayed"), Case(array_to_tensor, "replayed"), Case(context_set_and_reset, "replayed"),
    Case(reads_context, "replayed"), Case(replaces_values, "replayed"), Case(raises_and_catches, "replayed"),
    Case(iterators, "replayed"), Case(iterates_argument, "replayed", lambda: (ones(), [ones(), Box()])),
    Case(reads_attribute, "replayed", lambda: (ones(), Box(2.0))),
    Case(calls_method, "replayed", lambda: (ones(), Box(2.0).plus)),
    Case(compares, "replayed", _twice(lambda box: box)),
    Case(looks_up, "replayed", _twice(lambda box: {box: 2.0})),
    Case(branches, "replayed"), Case(reads_number, "replayed"),
    Case(writes_argument, "replayed"),
]  # fmt: skip
OTHERS = [
    # guarded by the identity of an object that only this call has: another capture each time, none keeps it
    Case(is_member, "captured", _twice(lambda box: {box})),
    Case(uses_identity, "captured", lambda: (ones(), Box(2.0))),
    Case(error_from_outside, "captured", lambda: (ones(), Trouble(Box(ones())))),
    Case(raises, "captured"),
    Case(dereferences, "refused", lambda: (ones(), Box(2.0))),
    Case(data_to_numpy, "replayed"), Case(argument_to_numpy, "replayed"),
    Case(array_from_outside, "replayed", lambda: (ones(), np.ones(3))),
    Case(unknown_call, "refused", lambda: (ones(), Box(2.0))),
    Case(generator_from_outside, "refused", lambda: (ones(), (i for i in [1.0, 2.0]))),
    Case(finalizer, "aborted", lambda: (ones(), Box(2.0))),
    Case(subclasses, "skipped", lambda: (ones(), Box(2.0))),
]  # fmt: skip


def _name(case: Case) -> str:
    return f"{case.kind}-{case.region.__name__}"


def _call(fn: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        fn(*arguments)
    except Trouble:
        pass


def _kind(region: Any, case: Case) -> str:
    if region.captures:
        return "replayed" if region.hits else "captured"
    aborted = any(f.code == "MP110" and "__del__" in f.message for f in region.findings.values())
    return "aborted" if aborted else "refused" if region.disabled else "skipped"


def left_behind(fn: Callable[..., Any], case: Case) -> Counter[str]:
    before = alive()
    _call(fn, case.arguments())
    return alive() - before


@pytest.mark.parametrize("case", CAPTURED + OTHERS, ids=_name)
def test_a_call_leaves_nothing_alive(case: Case) -> None:
    plain = [left_behind(case.region, case) for _ in range(3)]
    STATE.update(box=None, tensor=None)
    compiled = magpy_core.compile(case.region, backend="eager")
    assert [left_behind(compiled, case) for _ in range(3)] == plain
    assert _kind(region_of(compiled), case) == case.kind


@pytest.mark.parametrize("case", CAPTURED, ids=_name)
def test_compiled_graphs_leave_nothing_alive(case: Case) -> None:
    """What torch itself leaves in cycles when it compiles is not counted: from the second replay on, there is nothing."""
    plain = [left_behind(case.region, case) for _ in range(2)]
    STATE.update(box=None, tensor=None)
    compiled = magpy_core.compile(case.region, backend="aot_eager")
    left_behind(compiled, case)
    left_behind(compiled, case)  # compiles
    gc.collect()
    gc.disable()
    assert [left_behind(compiled, case) for _ in range(2)] == [plain[1]] * 2
    assert region_of(compiled).hits == 3


def test_arguments_die_with_the_call_that_compiles() -> None:
    compiled = magpy_core.compile(reads_attribute, backend="aot_eager")
    for _ in range(3):
        x, box = ones(), Box(2.0)
        refs = weakref.ref(x), weakref.ref(box)
        compiled(x, box)
        del x, box
        gc.collect()  # torch's own cycles
        assert [ref() for ref in refs] == [None, None]


def test_results_die_when_the_caller_drops_them() -> None:
    compiled = magpy_core.compile(returns_object, backend="eager")
    for _ in range(3):
        result = compiled(ones())
        refs = [weakref.ref(result), weakref.ref(result.value[0])]
        del result
        assert [ref() for ref in refs] == [None, None]


def test_an_array_dies_when_the_caller_drops_it() -> None:
    def region(x: Any) -> Any:
        return x + 1, np.zeros(3)

    compiled = magpy_core.compile(region, backend="eager")
    for _ in range(3):
        array = compiled(ones())[1]
        ref = weakref.ref(array)
        del array
        assert ref() is None


def test_the_tensor_under_a_refused_array_dies() -> None:
    def region(x: Any) -> Any:
        return (x * 2).numpy()

    compiled = magpy_core.compile(region, backend="eager")
    for _ in range(2):
        array = compiled(ones())
        owner = weakref.ref(array.base) if array.base is not None else None
        ref = weakref.ref(array)
        del array
        assert ref() is None
        assert owner is None or owner() is None


def test_context_values_and_globals_die_when_replaced() -> None:
    compiled = magpy_core.compile(lambda x: VAR.get().value * x + STATE["box"].value, backend="eager")
    for _ in range(3):
        STATE["box"], inside = Box(1.0), Box(2.0)
        refs = weakref.ref(STATE["box"]), weakref.ref(inside)
        token = VAR.set(inside)
        compiled(ones())
        VAR.reset(token)
        STATE["box"] = None
        del inside, token
        assert [ref() for ref in refs] == [None, None]
    assert region_of(compiled).hits == 2


def test_a_module_in_a_global_dies_when_replaced() -> None:
    compiled = magpy_core.compile(lambda x: STATE["box"](x), backend="eager")
    for _ in range(4):
        STATE["box"] = Net()
        refs = weakref.ref(STATE["box"]), weakref.ref(STATE["box"].linear.weight), weakref.ref(STATE["box"].box)
        compiled(ones())
        compiled(ones())
        STATE["box"] = None
        assert [ref() for ref in refs] == [None, None, None]
    assert region_of(compiled).hits == 7


def test_a_capture_dies_with_its_region() -> None:
    compiled = magpy_core.compile(activations, backend="eager")
    compiled(ones())
    never_ran = weakref.ref(magpy_core.captures(compiled)[0])
    del compiled
    assert never_ran() is None
    compiled = magpy_core.compile(activations, backend="eager")
    compiled(ones())
    compiled(ones())
    capture, region = weakref.ref(magpy_core.captures(compiled)[0]), weakref.ref(region_of(compiled))
    del compiled
    assert (capture(), region()) == (None, None)


# -- what is kept, and how long ----------------------------------------------------------------------------------------


def test_a_compiled_module_dies_with_the_next_collection() -> None:
    """Nodes of an ``fx.Graph`` form cycles, and the path of an input starts at the module."""
    net = Net()
    compiled: Any = magpy_core.compile(net, backend="eager")
    compiled(ones())
    compiled(ones())
    refs = weakref.ref(net), weakref.ref(net.linear.weight)
    del net, compiled
    gc.collect()
    assert [ref() for ref in refs] == [None, None]


def test_definitions_are_kept() -> None:
    """Guards compare functions, classes and modules with themselves."""

    def region(x: Any, fn: Any) -> Any:
        return fn(x)

    compiled = magpy_core.compile(region, backend="eager")

    def inner(x: Any) -> Any:
        return x + 1

    compiled(ones(), inner)
    ref = weakref.ref(inner)
    del inner
    assert ref() is not None


class Count(int):
    """Its state is in C, and it allows no weak references."""


@pytest.mark.parametrize("make", [lambda: Count(3), lambda: re.match("a", "a")])
def test_objects_without_weak_references_are_kept_by_their_guards(make: Callable[[], Any]) -> None:
    compiled = magpy_core.compile(
        lambda x, value: x + (value if isinstance(value, int) else len(value.group(0))), backend="eager"
    )
    value = make()
    compiled(ones(), value)
    reads = magpy_core.captures(compiled)[0].refgraph.reads
    assert any(read.expected is value for read in reads)


def test_an_identity_guard_fails_once_its_object_is_dead() -> None:
    compiled = magpy_core.compile(lambda x, box: x + (id(box) is not None), backend="eager")
    box = Box(1.0)
    compiled(ones(), box)
    compiled(ones(), box)
    capture = magpy_core.captures(compiled)[0]
    assert capture.matches((ones(), box), {})
    guarded = [read for read in capture.refgraph.reads if read.kind.name == "identity"]
    if guarded:
        del box
        assert not capture.matches((ones(), Box(1.0)), {})
        assert not capture.matches((ones(), None), {})
        assert "Box" in guarded[0].kind.text(guarded[0])

"""The first level of guards: dict version tags stand for most of a guard, and never for anything that has changed."""

from __future__ import annotations

import gc
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core._compat.cpython import dict_tags
from magpy_core._compat.cpython.dict_tags import Unwatchable, Watch
from magpy_core._compat.cpython.slot_words import slot
from magpy_core.guards import kinds as guard
from magpy_core.guards.first_level import FirstLevel
from tests.unit.engine_pair import plainly

pytestmark = pytest.mark.skipif(not dict_tags.supported(), reason="this Python has no dict version tags")


class Plain:
    pass


def plain(**values: Any) -> Any:
    obj = Plain()
    vars(obj).update(values)
    return obj


class Other:
    pass


CHANGES: dict[str, Callable[[Any], object]] = {
    "attribute": lambda o: setattr(o, "a", 5),
    "new attribute": lambda o: setattr(o, "b", 5),
    "deleted attribute": lambda o: delattr(o, "a"),
    "__dict__ written": lambda o: vars(o).__setitem__("a", 5),
    "__dict__ replaced": lambda o: setattr(o, "__dict__", dict(vars(o))),
    "class": lambda o: setattr(o, "__class__", Other),
    "entry": lambda o: o.table.__setitem__("k", 5),
    "entry added": lambda o: o.table.update(new=1),
    "entry popped": lambda o: o.table.pop("k"),
    "table cleared": lambda o: o.table.clear(),
    "table replaced": lambda o: setattr(o, "table", dict(o.table)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_watch_sees(change: str) -> None:
    objects = [plain(a=i, table={"k": i}) for i in range(5)]
    watch = Watch([(o, vars(o)) for o in objects], [o.table for o in objects])
    assert watch.holds() and watch.holds()
    CHANGES[change](objects[3])
    assert not watch.holds()


def test_what_is_looked_at_often_does_not_change() -> None:
    obj = plain(a=1, table={"k": 1})
    watch = Watch([(obj, vars(obj))], [obj.table])
    for _ in range(100):
        assert (obj.a, obj.table["k"], len(obj.table), "x" in obj.table, list(vars(obj))) == (1, 1, 1, False, ["a", "table"])
    assert watch.holds() and watch.changed() == ([], [])


def test_says_what_changed() -> None:
    objects = [plain(a=i, table={}) for i in range(4)]
    watch = Watch([(o, vars(o)) for o in objects], [o.table for o in objects])
    objects[2].table["new"] = 1
    assert watch.changed() == ([], [2])
    objects[1].a = 7
    assert watch.changed() == ([1], []), "tables are only looked at below namespaces that hold"
    objects[0].__class__ = Other
    assert watch.changed() == ([], [])


def test_ends_with_an_object() -> None:
    objects = [plain(a=1) for _ in range(3)]
    told: list[bool] = []
    watch = Watch([(o, vars(o)) for o in objects], [], lambda: told.append(True))
    del objects[1]
    assert watch.dead and told == [True] and not watch.holds()
    objects.clear()
    assert told == [True], "once"


@pytest.mark.parametrize(
    "obj", [3, "text", (1, 2), type("Slots", (), {"__slots__": ("a",)})()], ids=lambda o: type(o).__name__
)
def test_what_can_not_be_watched(obj: Any) -> None:
    with pytest.raises(Unwatchable):
        Watch([(obj, None)], [])
    with pytest.raises(Unwatchable):
        Watch([], [type("Own", (dict,), {})()])


# -- in a capture ------------------------------------------------------------------------------------------------------


def deep() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(20)))


X = torch.ones(2, 4)


def armed(target: Any, *args: Any, calls: int = 5) -> tuple[Any, Any]:
    """A compiled target and its capture, once the first level has begun."""
    compiled = magpy_core.compile(target, backend="eager")
    for _ in range(calls):
        compiled(*args)
    (capture,) = magpy_core.captures(compiled)
    assert isinstance(capture.fast_guard._level, FirstLevel), "the first level has not begun"
    return compiled, capture


def _replace(net: Any) -> None:
    net[7]._modules["0"] = nn.Linear(4, 4)


def _hook(net: Any) -> None:
    net[3][0].register_forward_hook(lambda module, args, out: out * 3)


def _parameter(net: Any) -> None:
    net[5][0]._parameters["weight"] = nn.Parameter(torch.ones(4, 4))


def _retyped(net: Any) -> None:
    net[5][1].__class__ = nn.Sigmoid


def _dict(net: Any) -> None:
    net[5][1].__dict__ = nn.Sigmoid().__dict__ | {"forward": lambda x: x * 9}


@pytest.mark.parametrize("change", [_replace, _hook, _parameter, _retyped, _dict])
def test_changes_are_seen(change: Callable[[Any], None]) -> None:
    net = deep()
    compiled, _ = armed(net, X)
    change(net)
    for _ in range(6):
        torch.testing.assert_close(compiled(X), plainly(net, X), rtol=0, atol=0)


CLASS_CHANGES: dict[str, Callable[[Any], None]] = {
    "method": lambda cls: setattr(cls, "forward", lambda self, x: x * 5),
    "attribute": lambda cls: setattr(cls, "scale", 7.0),
    "base's attribute": lambda cls: setattr(cls.__mro__[1], "shift", 7.0),
    "deleted": lambda cls: delattr(cls, "shift"),
    "shadowed": lambda cls: setattr(cls, "__call__", lambda self, x: x * 11),
    "looked up by Python": lambda cls: setattr(cls, "__getattribute__", lambda self, name: _DOUBLED(self, name)),
    "table entry": lambda cls: cls.table.update(k=7.0),
    "table": lambda cls: setattr(cls, "table", {"k": 9.0}),
    "bases": lambda cls: setattr(cls, "__bases__", (_Further,)),
}


def _DOUBLED(self: Any, name: str) -> Any:
    found = object.__getattribute__(self, name)
    return found * 2 if name in ("scale", "shift") else found


class _Further(nn.Module):
    low = 13.0


@pytest.mark.parametrize("change", CLASS_CHANGES)
def test_changes_of_classes_are_seen(change: str) -> None:
    class Base(nn.Module):
        shift = 2.0
        low = 1.0

    class Net(Base):
        scale = 3.0
        shift = 4.0
        table = {"k": 1.0}  # noqa: RUF012

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.scale + self.shift + self.table["k"] + self.low

    net = nn.Sequential(*(Net() for _ in range(30)))
    compiled, capture = armed(net, X)
    assert not any(
        read.kind is guard.NAMES for read in capture.fast_guard._reads if id(read) not in capture.fast_guard._level.covered
    )
    CLASS_CHANGES[change](Net)
    for _ in range(6):
        torch.testing.assert_close(compiled(X), plainly(net, X), rtol=0, atol=0)


_LIBRARY = """
import math
table = {"k": 2.0}
settings = type("Settings", (), {})()
settings.low = 3.0
scale = 4.0
def offset(x, a=1.0, *, b=2.0):
    return x * a + b
def other_offset(x, a=7.0, *, b=9.0):
    return x * 3 + a + b
def make(factor):
    def inner(x):
        return helper(x) * factor
    def helper(x):
        return x + 1
    def change(fn):
        nonlocal helper
        helper = fn
    return inner, change
inner, change = make(2.0)
class Net(nn.Module):
    def forward(self, x):
        x = offset(x) * scale + table["k"] + settings.low + math.pi
        return inner(x) + max(1.0, 2.0)
"""


def _kwdefaults(lib: Any) -> None:
    lib.offset.__kwdefaults__["b"] = 11.0


def _replaced_kwdefaults(lib: Any) -> None:
    lib.offset.__kwdefaults__ = None
    lib.offset.__kwdefaults__ = {"b": 12.0}


LIBRARY_CHANGES: dict[str, Callable[[Any], None]] = {
    "global": lambda lib: setattr(lib, "scale", 5.0),
    "global through its dict": lambda lib: vars(lib).update(scale=6.0),
    "global of another type": lambda lib: setattr(lib, "scale", 4),
    "global deleted and set": lambda lib: (delattr(lib, "scale"), setattr(lib, "scale", 8.0)),
    "built-in shadowed": lambda lib: setattr(lib, "max", min),
    "module replaced": lambda lib: setattr(lib, "math", types.SimpleNamespace(pi=1.0)),
    "table": lambda lib: setattr(lib, "table", {"k": 9.0}),
    "table's entry": lambda lib: lib.table.update(k=9.0),
    "object": lambda lib: setattr(lib.settings, "low", 13.0),
    "function": lambda lib: setattr(lib, "offset", lib.other_offset),
    "code": lambda lib: setattr(lib.offset, "__code__", lib.other_offset.__code__),
    "defaults": lambda lib: setattr(lib.offset, "__defaults__", (5.0,)),
    "keyword default": _kwdefaults,
    "keyword defaults": _replaced_kwdefaults,
    "cell": lambda lib: lib.change(lambda x: x * 17),
    "cell's function's code": lambda lib: setattr(
        lib.inner.__closure__[1].cell_contents, "__code__", (lambda x: x * 19).__code__
    ),
}


@pytest.mark.parametrize("change", LIBRARY_CHANGES)
def test_changes_of_modules_functions_and_cells_are_seen(change: str) -> None:
    lib: Any = types.ModuleType("library_of_test_first_level")
    vars(lib)["nn"] = nn
    exec(_LIBRARY, vars(lib))
    net = nn.Sequential(deep(), *(lib.Net() for _ in range(5)))
    compiled, capture = armed(net, X)
    left = [read for read in capture.fast_guard._reads if id(read) not in capture.fast_guard._level.covered]
    assert not [read for read in left if read.source.kind in ("field", "cell") and read.kind in (guard.IS, guard.IDENTITY)]
    assert not [read for read in left if read.source.path.startswith("<globals of ") and read.kind is not guard.TENSOR], left
    for _ in range(2):
        torch.testing.assert_close(compiled(X), plainly(net, X), rtol=0, atol=0)
    LIBRARY_CHANGES[change](lib)
    for _ in range(6):
        torch.testing.assert_close(compiled(X), plainly(net, X), rtol=0, atol=0)
    assert capture.fast_guard._level is None or capture.hits < 8, "nothing saw the change"


def test_the_names_of_the_script_that_runs_are_left_to_the_full_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    lib: Any = types.ModuleType("__main__")
    vars(lib)["nn"] = nn
    exec(_LIBRARY, vars(lib))
    monkeypatch.setitem(sys.modules, "__main__", lib)
    net = nn.Sequential(deep(), *(lib.Net() for _ in range(5)))
    _, capture = armed(net, X)
    level = capture.fast_guard._level
    for i in range(5):
        lib.loop_variable = i
        assert capture.matches((net, X), {})
    assert capture.fast_guard._level is level, "a loop at the script's top level ends no first level"
    lib.scale = 5.0
    assert not capture.matches((net, X), {})


OWNERS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "__code__": lambda: (lib_function(), (lambda: 3).__code__),
    "__defaults__": lambda: (lib_function(), (7,)),
    "__kwdefaults__": lambda: (lib_function(), {"b": 7}),
    "__bases__": lambda: (type("C", (Plain,), {}), (Other,)),
    "cell_contents": lambda: (types.CellType(1), 2),
}


def lib_function() -> Any:
    def function(a: int = 1, *, b: int = 2) -> int:
        return a + b

    return function


@pytest.mark.parametrize("name", OWNERS)
def test_a_word_tells_what_a_function_class_or_cell_holds(name: str) -> None:
    owner, other = OWNERS[name]()
    read = {"__bases__": "__mro__"}.get(name, name)
    found = slot(owner, read)
    assert found is not None and found[1] is getattr(owner, read)
    watch = Watch([], [], slots=[found[0]])
    assert watch.holds() and watch.holds()
    setattr(owner, name, other)
    assert not watch.holds() and watch.changed() == ([], [])
    again = slot(owner, read)
    assert again is not None and again[1] is getattr(owner, read) and again[0] == found[0]


def test_no_word_for_what_is_not_there() -> None:
    assert slot(lambda: 1, "__name__") is None and slot(3, "real") is None and slot(print, "__code__") is None
    found = slot(lambda: 1, "__defaults__")
    assert found is not None and found[1] is None
    with pytest.raises(ValueError, match="empty"):
        slot(types.CellType(), "cell_contents")


def test_most_of_the_guard_is_left_out() -> None:
    def step(x: torch.Tensor) -> Any:
        return net(x)

    net = deep()
    _, capture = armed(step, X)
    assert len(capture.fast_guard._level.covered) > 0.8 * len(capture.guards) > 200
    assert capture.matches((X,), {}) and not capture.matches((X.double(),), {}) and not capture.matches((X, X), {})


def test_a_counter_is_left_to_the_full_guard() -> None:
    net: Any = deep()

    def step(x: torch.Tensor) -> Any:
        net.calls = getattr(net, "calls", 0) + 1
        net[2].last = net.calls
        return net(x)

    compiled = magpy_core.compile(step, backend="eager")
    for _ in range(40):
        compiled(X)
    assert net.calls == net[2].last == 40
    capture = max(magpy_core.captures(compiled), key=lambda c: c.hits)
    assert capture.fast_guard._level is not None and capture.fast_guard._watch.holds()
    assert any(path.endswith(".__dict__") for path in capture.fast_guard._volatile)


def test_switching_back_and_forth_is_no_reason_to_give_up() -> None:
    net = deep()
    compiled = magpy_core.compile(net, backend="eager")
    for _ in range(3):
        for training in (True, False):
            net.train(training)
            for _ in range(20):
                torch.testing.assert_close(compiled(X), plainly(net, X), rtol=0, atol=0)
    captures = magpy_core.captures(compiled)
    assert any(c.fast_guard._level is not None for c in captures) and not any(c.fast_guard._volatile for c in captures)


def test_nothing_is_kept_alive() -> None:
    holder = {"net": deep()}

    def step(x: torch.Tensor) -> Any:
        return holder["net"](x)

    compiled, capture = armed(step, X)
    gc.collect()
    gc.disable()
    try:
        last = holder["net"][19][0]
        part, weight = weakref.ref(last), weakref.ref(last.weight)
        old = weakref.ref(holder["net"][0][0].weight)
        del last
        holder["net"][0][0]._parameters["weight"] = nn.Parameter(torch.ones(4, 4))
        assert old() is None, "a parameter that was replaced is freed at once, as in eager mode"
        del holder["net"][19]
        assert part() is None and weight() is None
        assert capture.fast_guard._level is None, "the first level has ended"
        expected = holder["net"](X)
        torch.testing.assert_close(compiled(X), expected, rtol=0, atol=0)
        whole = weakref.ref(holder.pop("net"))
        assert whole() is None, "nor does the model live on"
    finally:
        gc.enable()


def test_other_threads() -> None:
    net = deep()
    compiled, _ = armed(net, X)
    done = threading.Event()
    waiting = threading.Thread(target=done.wait)
    waiting.start()
    try:
        with torch.no_grad():
            net[4][0].weight.mul_(2)
        torch.testing.assert_close(compiled(X), plainly(net, X), rtol=0, atol=0)
        _hook(net)
        torch.testing.assert_close(compiled(X), plainly(net, X), rtol=0, atol=0)
    finally:
        done.set()
        waiting.join()


def test_a_profile_shows_the_users_operations_alone() -> None:
    net = deep()
    compiled, capture = armed(net, X)
    with torch.profiler.profile() as profile:
        compiled(X)
    assert capture.fast_guard._level is not None or capture.hits
    assert not {"aten::index_select", "aten::equal"} & {event.name for event in profile.events()}


def test_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAGPY_DICT_TAGS", "0")
    net = deep()
    compiled = magpy_core.compile(net, backend="eager")
    for _ in range(6):
        torch.testing.assert_close(compiled(X), plainly(net, X), rtol=0, atol=0)
    (capture,) = magpy_core.captures(compiled)
    assert capture.fast_guard._level is None

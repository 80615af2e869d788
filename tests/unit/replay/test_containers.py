"""Replay repeats every kind of change to containers and objects from outside, and keeps identities."""

from __future__ import annotations

import heapq
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.regions.api import region_of
from tests.unit.engine_pair import Pair, same

X = torch.arange(3.0)

LIST: dict[str, Callable[[Any], Any]] = {
    "append": lambda c: c.append(X + 1),
    "append twice": lambda c: (c.append(1), c.append("b")),
    "extend": lambda c: c.extend([7, 8]),
    "extend itself": lambda c: c.extend(c),
    "insert": lambda c: c.insert(0, "first"),
    "insert in the middle": lambda c: c.insert(1, None),
    "pop": lambda c: c.pop(),
    "pop first": lambda c: c.pop(0),
    "remove": lambda c: c.remove(2),
    "clear": lambda c: c.clear(),
    "reverse": lambda c: c.reverse(),
    "sort": lambda c: c.sort(key=str),
    "set item": lambda c: c.__setitem__(0, "new"),
    "set last": lambda c: c.__setitem__(-1, "new"),
    "set slice": lambda c: c.__setitem__(slice(0, 2), ["p", "q", "r"]),
    "del item": lambda c: c.__delitem__(1),
    "heappush": lambda c: heapq.heappush(c, 0),
    "iadd": lambda c: c.__iadd__([5]),
    "imul": lambda c: c.__imul__(2),
    "pop and append": lambda c: c.append(c.pop(0)),
    "append and pop": lambda c: (c.append(1), c.pop()),
    "empty and fill": lambda c: (c.clear(), c.append(3)),
}
DICT: dict[str, Callable[[Any], Any]] = {
    "set new": lambda d: d.__setitem__("new", X * 2),
    "set old": lambda d: d.__setitem__("a", "changed"),
    "del": lambda d: d.__delitem__("a"),
    "pop": lambda d: d.pop("b"),
    "pop absent": lambda d: d.pop("zzz", None),
    "popitem": lambda d: d.popitem(),
    "clear": lambda d: d.clear(),
    "update": lambda d: d.update(b=5, c=6),
    "update from a dict": lambda d: d.update({"a": 0, "q'\"": 1}),
    "setdefault new": lambda d: d.setdefault("s", []),
    "setdefault old": lambda d: d.setdefault("a", []),
    "ior": lambda d: d.__ior__({"z": 1}),
    "delete and set": lambda d: (d.pop("a"), d.__setitem__("a", 9)),
    "tuple key": lambda d: d.__setitem__((1, "x"), 2),
    "int key": lambda d: d.__setitem__(3, 2),
    "None key": lambda d: d.__setitem__(None, 2),
}
SET: dict[str, Callable[[Any], Any]] = {
    "add": lambda s: s.add("new"),
    "add old": lambda s: s.add(1),
    "discard": lambda s: s.discard(1),
    "discard absent": lambda s: s.discard("zzz"),
    "remove": lambda s: s.remove(2),
    "update": lambda s: s.update([8, 9]),
    "clear": lambda s: s.clear(),
    "intersection_update": lambda s: s.intersection_update({1, 2}),
    "difference_update": lambda s: s.difference_update({1}),
    "ior": lambda s: s.__ior__({7}),
    "isub": lambda s: s.__isub__({1}),
}
DEQUE: dict[str, Callable[[Any], Any]] = {
    "append": lambda q: q.append(1),
    "appendleft": lambda q: q.appendleft(1),
    "extend": lambda q: q.extend([1, 2, 3]),
    "extendleft": lambda q: q.extendleft([1, 2, 3]),
    "pop": lambda q: q.pop(),
    "popleft": lambda q: q.popleft(),
    "rotate": lambda q: q.rotate(1),
    "clear": lambda q: q.clear(),
    "set item": lambda q: q.__setitem__(0, "new"),
    "remove": lambda q: q.remove(2),
}
ORDERED: dict[str, Callable[[Any], Any]] = {
    "move to end": lambda d: d.move_to_end("a"),
    "move to front": lambda d: d.move_to_end("b", last=False),
    "popitem first": lambda d: d.popitem(last=False),
    "set": lambda d: d.__setitem__("n", 1),
}
DEFAULT: dict[str, Callable[[Any], Any]] = {
    "missing": lambda d: d["new"].append(1),
    "present": lambda d: d["a"].append(2),
    "set": lambda d: d.__setitem__("n", 1),
}
COUNTER: dict[str, Callable[[Any], Any]] = {
    "count": lambda c: c.__setitem__("a", c["a"] + 1),
    "count new": lambda c: c.__setitem__("new", c["new"] + 1),
    "update": lambda c: c.update(["a", "b", "a"]),
}

CASES = [
    pytest.param(make, change, id=f"{name}: {what}")
    for name, make, changes in [
        ("list", lambda: [3, 2, 1], LIST),
        ("dict", lambda: {"a": 1, "b": 2}, DICT),
        ("set", lambda: {1, 2, 3}, SET),
        ("deque", lambda: deque([3, 2, 1]), DEQUE),
        ("bounded deque", lambda: deque([3, 2, 1], maxlen=3), DEQUE),
        ("OrderedDict", lambda: OrderedDict(a=1, b=2), ORDERED | DICT),
        ("defaultdict", lambda: defaultdict(list, a=[1]), DEFAULT),
        ("Counter", lambda: Counter("aab"), COUNTER),
    ]
    for what, change in changes.items()
]


def writing_region(change: Callable[[Any], Any], container: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    def region(x: torch.Tensor) -> torch.Tensor:
        change(container)
        return x + 1

    return region


@pytest.mark.parametrize("make, change", CASES)
def test_every_change_is_repeated(make: Callable[[], Any], change: Callable[[Any], Any]) -> None:
    """Each call starts from the same content, so that the capture holds, and then from another content."""

    def world() -> Any:
        container = make()
        return writing_region(change, container), container

    p = Pair(world)
    for _ in range(3):
        p(X)
    fresh = make()
    for other in (p.state, p.plain_state):
        if isinstance(other, (list, deque)):
            other.clear()
            other.extend(fresh)
        else:
            other.clear()
            other.update(fresh)
    p.calls((X,), (X,))
    assert not p.region.disabled, p.region.disabled


@pytest.mark.parametrize("what", ["append", "append twice", "extend", "clear", "empty and fill"])
def test_blind_writes_need_no_guard_on_the_content(what: str) -> None:
    def world() -> Any:
        container: list[Any] = []
        return writing_region(LIST[what], container), container

    p = Pair(world).calls(*[(X,)] * 5)
    assert p.counts == (1, 4)


def test_operators_in_place() -> None:
    def world() -> Any:
        state: dict[str, Any] = {"l": [1], "d": {"a": 1, "b": 0}, "s": {1}, "q": deque([1, 2], maxlen=2), "n": [1, 2]}

        def region(x: torch.Tensor) -> torch.Tensor:
            state["l"] += [2, 3]
            state["d"] |= {"a": 1, "c": 2}
            state["s"] |= {1, 5}
            state["q"] += [1, 2]
            state["n"] *= 2
            del state["n"][1:]
            return x

        return region, state

    p = Pair(world).calls((X,), (X,))
    for state in (p.state, p.plain_state):
        state["d"]["a"] = "changed"
        state["s"].discard(1)
        state["q"].append("changed")
    p.calls((X,), (X,))


def test_a_container_keeps_its_identity_and_its_elements_theirs() -> None:
    log: list[Any] = []
    table: dict[str, Any] = {"log": log}
    item = object()

    def region(x: torch.Tensor, o: Any) -> torch.Tensor:
        table["log"].append(o)
        table["same"] = table["log"]
        return x + 1

    c = magpy_core.compile(region, backend="eager")
    for n in range(1, 4):
        c(X, item)
        assert table["log"] is log and table["same"] is log
        assert len(log) == n and log[-1] is item
    assert region_of(c).hits >= 1


def test_one_new_object_in_two_places_stays_one() -> None:
    a: list[Any] = []
    b: dict[str, Any] = {}

    def region(x: torch.Tensor) -> Any:
        fresh = [x * 2]
        a.append(fresh)
        b["last"] = fresh
        return fresh

    c = magpy_core.compile(region, backend="eager")
    made = []
    for _ in range(4):
        result = c(X)
        assert a[-1] is result and b["last"] is result
        assert same(result, [X * 2])
        made.append(result)
    assert len({id(r) for r in made}) == 4
    assert region_of(c).hits == 3


def test_a_new_object_that_contains_itself() -> None:
    def region(x: torch.Tensor) -> Any:
        loop: list[Any] = [x + 1]
        loop.append(loop)
        return loop

    c = magpy_core.compile(region, backend="eager")
    for _ in range(3):
        result = c(X)
        assert result[1] is result and same(result[0], X + 1)


def test_nested_containers_from_outside() -> None:
    def world() -> Any:
        state: dict[str, Any] = {"runs": [{"losses": [], "best": None}]}

        def region(x: torch.Tensor) -> torch.Tensor:
            run = state["runs"][-1]
            run["losses"].append(x.sum())
            run["best"] = x.max()
            if len(run["losses"]) % 2 == 0:
                state["runs"].append({"losses": [], "best": None})
            return x * 2

        return region, state

    Pair(world).calls(*[(X + i,) for i in range(8)])


def test_a_subclass_of_list_with_a_method_of_its_own() -> None:
    class Log(list):  # type: ignore[type-arg]
        def __init__(self) -> None:
            super().__init__()
            self.writes = 0

        def append(self, item: Any) -> None:
            self.writes += 1
            super().append(item)

    def world() -> Any:
        log = Log()
        return writing_region(lambda c: c.append("x"), log), log

    p = Pair(world).calls(*[(X,)] * 4)
    assert p.state.writes == 4


def test_changes_by_a_user_class_with_setitem() -> None:
    class Table:
        def __init__(self) -> None:
            self.data: dict[str, Any] = {}

        def __setitem__(self, key: str, value: Any) -> None:
            self.data[key.upper()] = value

        def __getitem__(self, key: str) -> Any:
            return self.data[key.upper()]

        def __contains__(self, key: str) -> bool:
            return key.upper() in self.data

    def world() -> Any:
        t = Table()

        def region(x: torch.Tensor) -> torch.Tensor:
            t["a"] = x + 1 if "a" not in t else t["a"] + 1
            return t["a"]

        return region, t

    p = Pair(world).calls(*[(X,)] * 4)
    assert p.region.hits == 2

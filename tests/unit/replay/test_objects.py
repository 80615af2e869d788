"""Replay makes objects anew, writes attributes, repeats output in order and raises what was raised."""

from __future__ import annotations

import dataclasses
import logging
import warnings
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch

import magpy_core
from magpy_core.regions.api import region_of
from tests.unit.engine_pair import Pair, code_of, pair, same

X = torch.arange(3.0)
Point = namedtuple("Point", "x y")


class Named(NamedTuple):
    loss: Any
    extra: Any = None


@dataclasses.dataclass
class Output:
    logits: Any
    hidden: Any = None


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    value: Any
    name: str = "n"


class Plain:
    def __init__(self, value: Any) -> None:
        self.value = value


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a: Any) -> None:
        self.a = a


class Words(dict):  # type: ignore[type-arg]
    pass


RESULTS: dict[str, Callable[[torch.Tensor], Any]] = {
    "tensor": lambda x: x + 1,
    "nothing": lambda x: None,
    "number": lambda x: 3,
    "tuple": lambda x: (x + 1, x * 2, "s", None),
    "nested": lambda x: {"a": [x + 1, (x * 2, {"b": x - 1})], "n": 1.5},
    "set": lambda x: {1, "a", (2, 3)},
    "frozenset": lambda x: frozenset({1, 2}),
    "named tuple": lambda x: Point(x + 1, y=2),
    "typed named tuple": lambda x: Named(loss=x.sum()),
    "dataclass": lambda x: Output(x + 1, hidden=[x]),
    "frozen dataclass": lambda x: Frozen(x * 2),
    "object": lambda x: Plain(x + 1),
    "slots": lambda x: Slotted(x + 1),
    "dict subclass": lambda x: Words(a=x + 1),
    "OrderedDict": lambda x: OrderedDict(b=x, a=x + 1),
    "defaultdict": lambda x: defaultdict(list, k=[x + 1]),
    "Counter": lambda x: Counter("aab"),
    "deque": lambda x: deque([x + 1, 2], maxlen=4),
    "namespace": lambda x: SimpleNamespace(a=x + 1),
    "slice and range": lambda x: (slice(1, 2), range(3)),
    "size": lambda x: x.shape,
    "dtype": lambda x: (x.dtype, x.device),
    "its own input": lambda x: (x, [x, x]),
    "the same twice": lambda x: (lambda y: (y, y))(x + 1),
    "a view": lambda x: x[1:],
    "a class": lambda x: (Plain, torch.nn.Linear, len),
    "strings": lambda x: 'it\'s "quoted"\n\\ é',
    "infinities": lambda x: (float("inf"), float("-inf"), float("nan"), -0.0, 1e-320),
}


@pytest.mark.parametrize("fn", RESULTS.values(), ids=RESULTS)
def test_results_are_made_anew(fn: Callable[[torch.Tensor], Any]) -> None:
    p = pair(fn).calls((X,), (X + 1,), (X * 2,))
    assert p.counts == (1, 2)


def test_a_bound_method_and_a_partial() -> None:
    state = Plain(1)
    state.run = lambda: 5  # type: ignore[attr-defined]

    def f(x: torch.Tensor) -> Any:
        return partial(torch.add, x + 1, alpha=2), Plain.__init__, [].append

    c = magpy_core.compile(f, backend="eager")
    for _ in range(3):
        made, init, _ = c(X)
        assert made.func is torch.add and made.keywords == {"alpha": 2} and same(made.args[0], X + 1)
        assert init is Plain.__init__


def test_two_calls_never_share_what_they_return() -> None:
    c = magpy_core.compile(lambda x: Output([x + 1], {}), backend="eager")
    results = [c(X) for _ in range(3)]
    results[0].logits.append("mine")
    results[0].hidden["k"] = 1
    assert len(results[1].logits) == 1 and results[1].hidden == {}
    assert same(c(X), Output([X + 1], {}))


def test_a_function_made_inside_is_refused() -> None:
    def f(x: torch.Tensor) -> Any:
        k = 2
        return lambda: x * k

    p = Pair(lambda: (lambda x: f(x)() + 1, None))
    p.calls((X,), (X,))
    assert p.region.hits == 1  # it stays inside
    c = magpy_core.compile(f, backend="eager")
    assert same(c(X)(), X * 2) and same(c(X + 1)(), (X + 1) * 2)
    assert magpy_core.captures(c) == []
    assert [v.code for v in region_of(c).findings.values()] == ["MP110"]


# -- attributes, globals, cells -------------------------------------------------------------------------------------------


def test_attributes_of_every_kind() -> None:
    class Owner:
        __slots__ = ("__dict__", "slot")
        limit = 1

        def __init__(self) -> None:
            self.slot: Any = None
            self.last: Any = None
            self.gone = 1

        @property
        def level(self) -> Any:
            return self._level  # type: ignore[attr-defined]

        @level.setter
        def level(self, value: Any) -> None:
            self._level = value

    def world() -> Any:
        o = Owner()

        def f(x: torch.Tensor) -> torch.Tensor:
            o.last = x + 1
            o.slot = "s"
            o.level = [x.sum()]
            o.new = ("made", o.last)  # type: ignore[attr-defined]
            setattr(o, "by name", 4)
            if hasattr(o, "gone"):
                del o.gone
            return o.last * 2

        return f, o

    p = Pair(world).calls(*[(X + i,) for i in range(4)])
    assert p.counts == (1, 2)  # the first call deletes `gone`: none can be like it


def test_writing_the_old_value_is_still_a_write() -> None:
    """The value it had at the recording is no promise for later calls."""

    def world() -> Any:
        o = Plain("ready")

        def f(x: torch.Tensor) -> torch.Tensor:
            o.value = "ready"
            return x + 1

        return f, o

    p = Pair(world).calls((X,))
    for o in (p.state, p.plain_state):
        o.value = "other"
    p.calls((X,))
    assert p.state.value == "ready" and p.region.hits == 1


def test_globals_are_written_and_deleted() -> None:
    def world() -> Any:
        namespace: dict[str, Any] = {"last": None, "old": 1}
        exec(
            "def f(x):\n    global last, made, old\n    last = x + 1\n    made = [last]\n"
            "    if 'old' in globals_of():\n        del old\n    return last",
            namespace | {"globals_of": lambda: {}},
            namespace,
        )
        return namespace["f"], None

    p = Pair(world).calls((X,), (X,))
    assert p.region.hits == 1
    assert same(p.compiled.__wrapped__.__globals__["last"], X + 1)


def test_cells_are_written() -> None:
    def world() -> Any:
        best = None
        seen = []

        def f(x: torch.Tensor) -> torch.Tensor:
            nonlocal best
            best = x.max()
            return x

        def show() -> Any:
            return best

        seen.append(show)
        return f, Plain(show)

    plain, compiled = world(), world()
    c = magpy_core.compile(compiled[0], backend="eager")
    for i in range(3):
        plain[0](X + i)
        c(X + i)
        assert same(compiled[1].value(), plain[1].value())
    assert region_of(c).hits == 2


def test_a_swap_keeps_identities() -> None:
    a, b = [1], [2]
    o = SimpleNamespace(front=a, back=b)

    def f(x: torch.Tensor) -> torch.Tensor:
        o.front, o.back = o.back, o.front
        return x + 1

    c = magpy_core.compile(f, backend="eager")
    for n in range(1, 6):
        c(X)
        assert (o.front is a) == (n % 2 == 0) and (o.back is b) == (n % 2 == 0)
    assert region_of(c).hits >= 3


# -- tensors --------------------------------------------------------------------------------------------------------------

IN_PLACE: dict[str, Callable[[torch.Tensor], Any]] = {
    "add_": lambda t: t.add_(1),
    "iadd": lambda t: t.__iadd__(2),
    "setitem": lambda t: t.__setitem__(0, 9.0),
    "copy_": lambda t: t.copy_(X),
    "view": lambda t: t[1:].mul_(2),
    "zero_": lambda t: t.zero_(),
    "out": lambda t: torch.add(X, 1, out=t),
    "clamp_": lambda t: torch.clamp_(t, 0, 1),
}


@pytest.mark.parametrize("change", IN_PLACE.values(), ids=IN_PLACE)
def test_tensors_from_outside_are_changed_in_place(change: Callable[[torch.Tensor], Any]) -> None:
    def world() -> Any:
        buffer = torch.ones(3)

        def f(x: torch.Tensor) -> torch.Tensor:
            change(buffer)
            change(x)
            return buffer + x

        return f, [buffer]

    p = Pair(world).calls(*[(X + i,) for i in range(3)])
    assert p.counts == (1, 2)
    assert "MP306" in p.codes


# -- output ---------------------------------------------------------------------------------------------------------------


def test_print_is_repeated_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        print("start", 1, None, [2, "q'"], sep="|")
        y = x + 1
        print("end", end="!\n")
        return y

    c = magpy_core.compile(f, backend="eager")
    for _ in range(3):
        c(X)
        assert capsys.readouterr().out == 'start|1|None|[2, "q\'"]\nend!\n'
    assert region_of(c).hits == 2


def test_printed_numbers_are_those_of_the_call(capsys: pytest.CaptureFixture[str]) -> None:
    state = {"step": 0}

    def f(x: torch.Tensor) -> torch.Tensor:
        state["step"] += 1
        print("step", state["step"])
        return x + 1

    c = magpy_core.compile(f, backend="eager")
    for n in range(1, 6):
        c(X)
        assert capsys.readouterr().out == f"step {n}\n"


def test_logging_is_repeated(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("tests.replay")

    def f(x: torch.Tensor) -> torch.Tensor:
        log.info("size %d of %s", 3, "x")
        log.debug("not shown")
        return x + 1

    c = magpy_core.compile(f, backend="eager")
    with caplog.at_level(logging.INFO, "tests.replay"):
        for _ in range(3):
            c(X)
    assert [r.getMessage() for r in caplog.records] == ["size 3 of x"] * 3
    assert {(r.funcName, r.lineno, r.levelname) for r in caplog.records} == {("f", caplog.records[0].lineno, "INFO")}


def test_warnings_are_repeated() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        warnings.warn("careful", UserWarning, stacklevel=1)
        return x + 1

    c = magpy_core.compile(f, backend="eager")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            c(X)
    assert [(str(w.message), w.category) for w in seen] == [("careful", UserWarning)] * 3


# -- exceptions -----------------------------------------------------------------------------------------------------------


class OwnError(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code = code


def test_a_call_that_raises_is_not_replayed() -> None:
    def world() -> Any:
        log: list[Any] = []

        def f(x: torch.Tensor) -> torch.Tensor:
            log.append(x + 1)
            raise OwnError(7, 'it\'s "bad"')

        return f, log

    p = Pair(world).calls((X,), (X,), (X,))
    assert p.counts == (1, 0)
    with pytest.raises(OwnError) as caught:
        p.compiled(X)
    assert caught.value.code == 7


def test_exceptions_caught_inside() -> None:
    def f(x: torch.Tensor, d: dict[str, Any]) -> torch.Tensor:
        try:
            k = d["k"]
        except KeyError as error:
            k = len(error.args)
        finally:
            d["seen"] = True
        return x * k

    p = pair(f)
    p.calls((X, {}), (X, {}), (X, {"k": 5}), (X, {}))
    assert p.counts == (2, 2)


def test_an_error_of_an_operation() -> None:
    p = pair(lambda x, y: x + y)
    p(X, torch.ones(3))
    p(X, torch.ones(4))
    p(X, torch.ones(4))
    p(X, torch.ones(3))


def test_the_replay_is_readable() -> None:
    def f(x: torch.Tensor, log: list[Any]) -> torch.Tensor:
        log.append(x + 1)
        return x * 2

    c = magpy_core.compile(f, backend="eager")
    c(X, [])
    text = str(code_of(c).replay)
    assert "list_extend(" in text and text.splitlines()[-1].startswith("return ")
    effect = code_of(c).replay.effects[0]
    assert (effect.op, effect.describe) == ("extend", "log")


def test_tuples_are_made_anew_unless_they_are_constants_of_the_code() -> None:
    def region(x: torch.Tensor) -> Any:
        constant = (1, 2)
        return constant, [(a, a) for a in range(2)] + [pair for pair in enumerate(range(2))], x + 1

    compiled = magpy_core.compile(region, backend="eager")
    results = [compiled(torch.ones(1)) for _ in range(3)]
    assert region_of(compiled).hits == 2
    assert all(r[0] is region(torch.ones(1))[0] for r in results)
    assert len({id(pair) for r in results for pair in r[1]}) == 12


def test_a_set_whose_copy_has_another_order() -> None:
    """A table that is larger than it needs to be: its elements are guarded in its own order."""
    items = set(range(100))
    items -= set(range(100)) - {1, 8, 16}
    assert tuple(items) != tuple(set(items))

    def f(x: torch.Tensor) -> Any:
        items.discard(99)
        return x * 2, tuple(items)

    compiled = magpy_core.compile(f, backend="eager", fullgraph=True)
    for _ in range(3):
        assert compiled(X)[1] == tuple(items)
    (capture,) = magpy_core.captures(compiled)
    assert capture.hits == 2

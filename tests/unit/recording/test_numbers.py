"""Numbers that vary from call to call: one recompile at most, and never a stale value."""

from __future__ import annotations

import collections
import copy
import functools
import heapq
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.regions.api import region_of
from tests.unit.engine_pair import Pair, code_of, pair

X = torch.arange(3.0)


def settles(p: Pair, *argument_lists: Any, captures: int = 2) -> None:
    """After the calls, the region has at most ``captures`` captures and every later call was a hit."""
    p.calls(*argument_lists)
    assert len(p.region.captures) <= captures, p.region.recompiles
    assert p.region.hits >= len(argument_lists) - captures
    assert not p.region.disabled


@pytest.mark.parametrize(
    "values", [range(6), [0.5 * i for i in range(6)], [10**12 + i for i in range(6)], [-3, 7, 300, -2, 0, 256]]
)
def test_an_argument_into_tensor_arithmetic(values: Any) -> None:
    settles(pair(lambda x, k: (x * k + k, k)), *[(X, v) for v in values])


def test_a_counter_on_an_object() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x + self.calls

    def make() -> Any:
        m = Model()
        return m, m

    p = Pair(make)
    settles(p, *[(X,)] * 6)
    assert p.state.calls == 6
    assert type(p.state.calls) is int
    assert len(p.region.captures) == 1, "`self.calls += 1` says that it varies"


def test_a_counter_left_small_is_the_shared_int() -> None:
    """No private copy of a number stays in the user's world."""
    state = {"n": 0}

    def f(x: torch.Tensor) -> torch.Tensor:
        state["n"] += 1
        return x + state["n"]

    g = magpy_core.compile(f, backend="eager")
    for i in range(1, 6):
        g(X)
        assert state["n"] is int(str(i))  # small ints are shared: `is` tells


@pytest.mark.parametrize("state", [[0, 7.0], {0: 0, 1: 7.0}], ids=["list", "dict"])
def test_a_counter_that_is_tested_after_it_was_counted(state: Any) -> None:
    def make() -> Any:
        counts = copy.copy(state)

        def step(x: torch.Tensor) -> torch.Tensor:
            counts[0] += 1
            if counts[0] % 3 == 0:
                counts[1] = counts[1] * 0.5
                return x * counts[1]
            return x + counts[0]

        return step, counts

    p = Pair(make)
    settles(p, *[(X,)] * 12, captures=3)
    assert p.state[0] == 12


_MOVES: list[Callable[[list[Any]], Any]] = [
    lambda v: v.reverse(), lambda v: v.insert(0, v.pop()), lambda v: v.sort(),
    lambda v: v.__setitem__(slice(1, 3), v[2:0:-1]), lambda v: v.append(v[0]),
    lambda v: v.__delitem__(0), lambda v: v.clear() or v.extend([1, 2, 3, 4]),
    lambda v: random.Random(1).shuffle(v), lambda v: heapq.heapify(v),
]  # fmt: skip


@pytest.mark.parametrize("move", range(len(_MOVES)))
@pytest.mark.parametrize("first", [True, False])
def test_an_element_that_was_moved_is_never_stale(move: int, first: bool) -> None:
    """A list that is written by index keeps its other elements in their places; any other change may move them."""

    def make() -> Any:
        values = [3, 1, 2, 0]

        def step(x: torch.Tensor, given: list[int]) -> torch.Tensor:
            values[:] = given
            if first:
                values[1] += 10
            _MOVES[move](values)
            values[0] = values[-1] + 1
            return x * values[1] + values[0] + values[-2]

        def moved(x: torch.Tensor) -> torch.Tensor:
            if first:
                values[1] += 10
            _MOVES[move](values)
            values[0] = values[-1] + 1
            return x * values[1] + values[0] + values[-2]

        return (lambda x, given: moved(x) if given is None else step(x, given)), values

    pair_of = Pair(make)
    pair_of.calls(
        *[(X, given) for given in ([3, 1, 2, 0], None, None, [1, 1, 2, 1], None, [1, 1, 2, 5], None, [9, 1, 2, 5])]
    )


_APPENDS: dict[str, tuple[Callable[[Any, float], Any], bool]] = {  # and whether other calls are served
    "last": (lambda v, x: v.append(x) or v[-1], True),
    "last but one": (lambda v, x: v.append(x) or v.append(x + 1) or v[-2], True),
    "extended": (lambda v, x: v.extend([x, x * 2]) or v[-2], True),
    "an element from before": (lambda v, x: v.append(x) or v[-2], False),
    "taken away": (lambda v, x: v.append(x) or (v.pop() and v[-1]), True),
    "moved": (lambda v, x: v.append(x) or v.rotate(1) if hasattr(v, "rotate") else v.reverse() or v[-1], False),
    "set": (lambda v, x: v.append(x) or v.__setitem__(-1, x + 5) or v[-1], False),
}


@pytest.mark.parametrize("kind", [list, lambda v: collections.deque(v, maxlen=4)], ids=["list", "deque"])
@pytest.mark.parametrize("name", _APPENDS)
def test_what_was_appended_is_read_from_the_end(kind: Callable[[Any], Any], name: str) -> None:
    body, is_served = _APPENDS[name]

    def make() -> Any:
        held = kind([1.0])
        return (lambda x, value: (x, body(held, value))), held

    p = Pair(make)
    p.calls(*[(X, value) for value in (1.0, 2.0, 2.0, 5.0, 7.0, 1.0, 1.0, 8.0, 9.0, 3.0, 2.0, 2.0, 4.0)])
    assert not is_served or p.counts == (2, 11)


def test_a_counter_in_a_global() -> None:
    namespace: dict[str, Any] = {"COUNT": 0}
    exec("def f(x):\n    global COUNT\n    COUNT += 1\n    return x * COUNT", namespace)
    g = magpy_core.compile(namespace["f"], backend="eager")
    for i in range(1, 7):
        assert torch.equal(g(X), X * i)
        assert namespace["COUNT"] == i
    assert len(magpy_core.captures(g)) == 1


def test_a_counter_in_a_cell() -> None:
    def make() -> Any:
        n = 0

        def f(x: torch.Tensor) -> torch.Tensor:
            nonlocal n
            n += 2
            return x - n

        return f, None

    settles(Pair(make), *[(X,)] * 6)


def test_a_counter_in_a_slot() -> None:
    class Box:
        __slots__ = ("n",)

        def __init__(self) -> None:
            self.n = 5

    def make() -> Any:
        box = Box()

        def f(x: torch.Tensor) -> torch.Tensor:
            box.n += 1
            return x * box.n

        return f, box

    settles(Pair(make), *[(X,)] * 6)


def test_the_length_of_a_growing_list() -> None:
    def make() -> Any:
        log: list[Any] = []

        def f(x: torch.Tensor) -> torch.Tensor:
            log.append(x.sum())
            return x * len(log)

        return f, log

    p = Pair(make)
    p.calls(*[(X,)] * 6)
    assert len(p.region.captures) <= 6


def test_a_growing_list_that_nobody_measures_costs_nothing() -> None:
    def make() -> Any:
        log: list[Any] = []

        def f(x: torch.Tensor) -> torch.Tensor:
            log.append(float(x.shape[0]))
            return x * 2

        return f, log

    settles(Pair(make), *[(X,)] * 6, captures=1)


def test_a_learning_rate_and_a_step_count() -> None:
    class Decay:
        def __init__(self) -> None:
            self.lr = 0.1
            self.step = 0

    def make() -> Any:
        d = Decay()

        def f(w: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
            d.step += 1
            d.lr = d.lr * 0.9
            return w - d.lr * g / (1 - 0.5**d.step)

        return f, d

    settles(Pair(make), *[(X, X)] * 7)


def test_comparisons_of_a_number_are_guards_not_values() -> None:
    p = pair(lambda x, k: x * k if k > 2 else x + k)
    p.calls(*[(X, i) for i in range(9)])
    assert p.region.hits >= 5
    assert len(p.region.captures) <= 4
    p.calls((X, 1), (X, 8), (X, 0))


def test_bool_of_a_number() -> None:
    pair(lambda x, k: x + 1 if k else x).calls(*[(X, k) for k in (3, 2, 1, 0, 5, 0, 0.0, 4)])


ESCAPES: list[Callable[[Any, Any], Any]] = [
    lambda x, k: (x, repr(k)),
    lambda x, k: (x, f"{k} {k!r}"),
    lambda x, k: (x, "%s" % (k,)),  # noqa: UP031
    lambda x, k: (x, "{}".format(k)),  # noqa: UP032
    lambda x, k: (x, k in (2, 3)),
    lambda x, k: (x, 3 in [k, 9]),
    lambda x, k: (x, 3 in {k: 1}),
    lambda x, k: (x, [10, 20, 30, 40, 50, 60][k]),
    lambda x, k: (x, list(range(k))),
    lambda x, k: (x, "abcdefgh"[:k]),
    lambda x, k: (x, sorted([3, k, 1])),
    lambda x, k: (x, max([3, k, 1]), min(3, k)),
    lambda x, k: (x, sum(k * i for i in range(3))),
    lambda x, k: (x, sorted([1, 2, 3], key=lambda v: abs(v - k))),
    lambda x, k: (x, functools.reduce(lambda a, b: a * k + b, [1, 2, 3])),
    lambda x, k: (x, {k, 2}, len({k, 2})),
    lambda x, k: (x, {k: "a", 2: "b"}),
    lambda x, k: (x, [k, 2, 3].index(2)),
    lambda x, k: (x, [1, 2, 3].insert(k, 9)),
    lambda x, k: (x, ",".join(str(v) for v in (k, 1))),
    lambda x, k: (x, str(k).zfill(3), int(str(k))),
    lambda x, k: (x, k == 3, k != 3, [k] == [3], (k,) < (3,)),
    lambda x, k: (x, divmod(k, 2), pow(k, 2), round(k / 3, 1), abs(-k)),
    lambda x, k: (x, k.bit_length(), (k + 1).to_bytes(2, "big")),
    lambda x, k: (x, any([k - 2]), all([k])),
    lambda x, k: (x, list(map(str, [k]))),
    lambda x, k: (x, list(zip([k], [k + 1], strict=True)), list(enumerate([k], k))),
    lambda x, k: (x, dict(a=k), [*[k], k], {**{"b": k}}),
    lambda x, k: (x, isinstance(k, int), type(k), hash(k)),
    lambda x, k: (x.repeat(k + 1), x.new_zeros(k)),
    lambda x, k: (x[: min(k, 2)], x[k % 3], x.roll(k)),
    lambda x, k: (x << k if x.dtype is torch.int64 else x**k, x // (k + 1)),
    lambda x, k: (torch.full((2,), k), torch.arange(k), torch.tensor([k, 1]), torch.tensor(k)),
    lambda x, k: (x, "match" if (lambda v: True)(k) else ""),
    lambda x, k: (x, ~k, -k, +k, k << 1, k & 1, k | 8, k ^ 3),
]


@pytest.mark.parametrize("fn", ESCAPES, ids=range(len(ESCAPES)))
def test_a_number_used_by_python_itself_is_never_stale(fn: Callable[[Any, Any], Any]) -> None:
    pair(fn).calls(*[(X, k) for k in (0, 1, 2, 3, 4, 5, 3, 2)])


NATIVE_READS: list[Callable[[Any, Any], Any]] = [
    lambda x, c: (x, repr(c)),
    lambda x, c: (x, str(c)),
    lambda x, c: (x, f"{c}"),
    lambda x, c: (x, sorted(c)),
    lambda x, c: (x, sum(c), max(c), min(c)),
    lambda x, c: (x, c == [1, 2]),
    lambda x, c: (x, 2 in c),
    lambda x, c: (x, c.index(1), c.count(2)),
    lambda x, c: (x, ",".join(map(str, c))),
    lambda x, c: (x, list(reversed(c)), c[::-1], c + c, c * 2, list(c), tuple(c), set(c)),
    lambda x, c: (x, [v + 1 for v in c], [*c], {v: 1 for v in c}),
    lambda x, c: (x, c[0], c[-1], c[-1] * 2),
    lambda x, c: (x * c[-1], repr(c)),
    lambda x, c: ([v for v in c], repr(c)),
    lambda x, c: (x, next(iter(c)), list(zip(c, c, strict=True))),
    lambda x, c: (x, (lambda a, b: a - b)(*c)),
]


@pytest.mark.parametrize("wrap", [list, tuple], ids=["list", "tuple"])
@pytest.mark.parametrize("fn", NATIVE_READS, ids=range(len(NATIVE_READS)))
def test_numbers_in_a_container_are_never_stale(fn: Callable[[Any, Any], Any], wrap: Callable[[Any], Any]) -> None:
    pair(fn).calls(*[(X, wrap([1, k])) for k in (0, 1, 2, 3, 4, 2)])


def test_numbers_in_a_dict_are_never_stale() -> None:
    pair(lambda x, d: (x * d["a"], str(d))).calls(*[(X, {"a": k}) for k in range(5)])
    pair(lambda x, d: (x * d["a"], list(d.items()), {**d}, dict(d))).calls(*[(X, {"a": k}) for k in range(5)])
    pair(lambda x, d: (x, d == {"a": 3})).calls(*[(X, {"a": k}) for k in range(5)])


def test_a_class_attribute_and_a_module_attribute_are_never_stale() -> None:
    class Config:
        scale = 1

    def f(x: torch.Tensor) -> torch.Tensor:
        return x * Config.scale

    g = magpy_core.compile(f, backend="eager")
    for k in (1, 2, 3, 2):
        Config.scale = k
        assert torch.equal(g(X), X * k)


def test_a_kind_of_number_is_still_guarded() -> None:
    p = pair(lambda x, k: (x * k, type(k).__name__))
    p.calls((X, 1), (X, 2), (X, 3), (X, 4.0), (X, True), (X, 5))


def test_item_of_a_tensor_stays_in_the_graph() -> None:
    p = pair(lambda x: x * x.sum().item() + 1)
    p.calls(*[(X + i,) for i in range(5)])
    assert p.counts == (1, 4)
    assert code_of(p.compiled).is_complete


def test_a_branch_on_a_tensor_cuts_the_graph_and_follows_both_ways() -> None:
    p = pair(lambda x: x * 2 if x.exp().sum() > 30 else x - 1)
    p.calls((X,), (X + 1,), (X,), (X + 5,), (X - 9,))
    assert p.counts == (2, 3)
    assert "MP101" in p.codes
    assert not any(c.is_complete for c in p.region.captures)


def test_item_used_by_python_cuts_the_graph() -> None:
    p = pair(lambda x: (x + 1, "n=%d" % x.sum().item()))  # noqa: UP031
    p.calls((X,), (X + 1,), (X,), (X + 1,))
    assert "MP102" in p.codes


momentum = functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9)
SCHEDULES: dict[str, tuple[Callable[..., Any], Callable[..., Any], set[str]]] = {
    "a step": (momentum, lambda o: torch.optim.lr_scheduler.StepLR(o, step_size=4), {"lr"}),
    "linear": (momentum, torch.optim.lr_scheduler.LinearLR, {"lr"}),
    "one cycle": (momentum, lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.2, total_steps=60), {"lr", "momentum"}),
    "one cycle of Adam": (
        torch.optim.AdamW,
        lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.2, total_steps=60),
        {"lr", "betas"},
    ),
    "none": (momentum, lambda o: None, set()),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_what_a_scheduler_sets_is_dynamic_from_the_start(name: str) -> None:
    make_optimizer, make_schedule, expected = SCHEDULES[name]

    def train(compile_step: Callable[[Any], Any]) -> tuple[Any, list[torch.Tensor]]:
        torch.manual_seed(0)
        layer = torch.nn.Linear(3, 3)
        optimizer = make_optimizer(layer.parameters())
        schedule = make_schedule(optimizer)

        def step(x: torch.Tensor) -> torch.Tensor:
            optimizer.zero_grad()
            loss = layer(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        step(X)
        called, losses = compile_step(step), []
        for _ in range(10):
            losses.append(called(X))
            if schedule is not None:
                schedule.step()
        return called, losses

    compiled, losses = train(lambda step: magpy_core.compile(step, backend="eager"))
    assert losses == train(lambda step: step)[1]
    assert len(magpy_core.captures(compiled)) == 1
    learned = {
        key for key in ("lr", "momentum", "betas") if any(repr(key) in n for n in region_of(compiled).learned.numbers)
    }
    assert learned == expected


def test_numbers_of_a_slice_may_be_symbolic() -> None:
    p = pair(lambda x, given: x * given["rates"][1:][0] + len(given["rates"][:-1]))
    p.calls(*[(X, {"rates": (0.1 * k, 0.5 * k, 2)}) for k in range(1, 7)])
    assert p.counts == (2, 4)
    p.calls((X, {"rates": (1.0, 2.0, 3, 4)}))
    assert p.counts == (3, 4)


def test_native_code_reads_the_numbers_of_a_slice_exactly() -> None:
    p = pair(lambda x, rates: (x + 1, str(rates[1:]), sum(rates[:2])))
    p.calls(*[(X, [k, 0.5 * k, 2]) for k in (1, 2, 3, 2, 1)])


def test_a_slice_of_what_the_region_writes() -> None:
    def g(x: torch.Tensor, rates: list[float]) -> Any:
        rates[0] = rates[1] * 2
        rates.append(rates[0])
        return x * rates[:2][0], rates[-2:]

    p = pair(g)
    p.calls(*[(X, [0.1 * k, 0.5 * k, 2.0]) for k in range(1, 7)])

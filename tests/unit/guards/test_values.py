"""Guards on plain values: what is a hit, what is a miss, and how the miss is explained."""

from __future__ import annotations

import enum
import math
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.regions.api import region_of
from tests.unit.engine_pair import Pair, code_of, pair

X = torch.arange(4.0)


def scaled(x: torch.Tensor, k: Any) -> torch.Tensor:
    return x * 2 if k else x


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def of_colour(x: torch.Tensor, colour: Any) -> torch.Tensor:
    return x + 1 if colour is Colour.RED else x - 1


@pytest.mark.parametrize(
    "old, new",
    [
        (1, True),
        (True, 1),
        (0, False),
        (1, 1.0),
        (0.0, -0.0),
        ("a", "b"),
        ("a", b"a"),
        (None, 0),
        ("it's", 'it"s'),
        ((1, 2), (1, 3)),
        ((1, 2), [1, 2]),
        (1j, 1j * 0 + 2j),
        (torch.float32, torch.float64),
    ],
    ids=repr,
)
def test_another_value_or_type_is_a_miss(old: Any, new: Any) -> None:
    def used(x: torch.Tensor, k: Any) -> tuple[torch.Tensor, str]:
        return x + 1, repr(k)

    p = pair(used).calls((X, old), (X, old))
    assert p.counts == (1, 1)
    assert not code_of(p.compiled).matches((X, new), {})
    p.calls((X, new), (X, new), (X, old))
    assert p.region.hits >= 2


@pytest.mark.parametrize(
    "value", [float("nan"), -0.0, 10**30, "", "q'\"\n\\", "é✓", b"\x00'", (1, ("a", None)), 2 + 0j, ..., 1e300], ids=repr
)
def test_an_equal_value_is_a_hit(value: Any) -> None:
    def used(x: torch.Tensor, k: Any) -> tuple[torch.Tensor, str]:
        return x + 1, repr(k)

    equal = value  # a NaN is found again by its identity only
    p = pair(used).calls((X, value), (X, equal), (X, equal))
    assert p.counts == (1, 2)


def test_an_equal_string_made_anew_is_a_hit() -> None:
    p = pair(scaled).calls((X, "many words"), (X, " ".join(["many", "words"])))
    assert p.counts == (1, 1)


def test_long_strings_are_compared_too() -> None:
    p = pair(scaled).calls((X, "a" * 100), (X, "a" * 99 + "b"), (X, "a" * 100))
    assert p.counts == (2, 1)


def test_enum_members_are_guarded_by_identity() -> None:
    p = pair(of_colour).calls((X, Colour.RED), (X, Colour.BLUE), (X, Colour.RED), (X, Colour.BLUE))
    assert p.counts == (2, 2)


def test_a_global_is_guarded_and_explained(tmp_path: Any) -> None:
    namespace: dict[str, Any] = {}
    file = tmp_path / "user.py"
    file.write_text("LIMIT = 'low'\ndef f(x):\n    y = x + 1\n    return y if LIMIT == 'low' else y * 2\n")
    exec(compile(file.read_text(), str(file), "exec"), namespace)
    f = magpy_core.compile(namespace["f"], backend="eager")
    f(X)
    assert torch.equal(f(X), X + 1)
    capture = code_of(f)
    assert capture.guards.explain((X,), {}) == []
    namespace["LIMIT"] = "high"
    (failure,) = capture.guards.explain((X,), {})
    assert (failure.code, failure.name, failure.old, failure.new) == ("MP201", "LIMIT", "'low'", "'high'")
    assert failure.location.file == str(file)
    start, end = failure.location.range.start, failure.location.range.end
    assert (start.line, start.character, end.character) == (3, 16, 21)  # LIMIT, zero-based
    assert failure.message == "`LIMIT` was 'low' when this was compiled and is 'high' now."
    assert torch.equal(f(X), (X + 1) * 2)
    assert [r.name for r in region_of(f).recompiles] == ["LIMIT"]


def test_a_deleted_global_is_explained() -> None:
    namespace: dict[str, Any] = {"K": 3}
    exec("def f(x):\n    return x * K", namespace)
    f = magpy_core.compile(namespace["f"], backend="eager")
    f(X)
    del namespace["K"]
    (failure,) = code_of(f).guards.explain((X,), {})
    assert failure.name == "K" and "not reachable" in failure.new
    with pytest.raises(NameError):
        f(X)


def test_a_builtin_shadowed_later_is_a_miss() -> None:
    namespace: dict[str, Any] = {}
    exec("def f(x, n):\n    return x * abs(n)", namespace)
    f = magpy_core.compile(namespace["f"], backend="eager")
    assert torch.equal(f(X, -2), X * 2)
    namespace["abs"] = lambda n: 10
    assert torch.equal(f(X, -2), X * 10)


def test_a_closure_cell_is_guarded() -> None:
    k = "a"

    def f(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if k == "a" else x - 1

    g = magpy_core.compile(f, backend="eager")
    g(X)
    assert torch.equal(g(X), X + 1)
    k = "b"
    (failure,) = code_of(g).guards.explain((X,), {})
    assert (failure.name, failure.old, failure.new) == ("k", "'a'", "'b'")
    assert torch.equal(g(X), X - 1)


def test_state_read_three_calls_deep_is_guarded() -> None:
    class Config:
        def __init__(self) -> None:
            self.inner = {"flags": [True, False]}

    def deepest(c: Config) -> bool:
        return c.inner["flags"][1]

    def middle(c: Config) -> bool:
        return deepest(c)

    def f(x: torch.Tensor, c: Config) -> torch.Tensor:
        return x * 3 if middle(c) else x

    config = Config()
    g = magpy_core.compile(f, backend="eager")
    g(X, config)
    assert torch.equal(g(X, config), X)
    assert region_of(g).hits == 1
    config.inner["flags"][1] = True
    failures = code_of(g).guards.explain((X, config), {})
    assert [(v.name, v.old, v.new) for v in failures] == [("c.inner['flags'][1]", "False", "True")]
    assert torch.equal(g(X, config), X * 3)


def test_a_default_replaced_later_is_a_miss() -> None:
    def f(x: torch.Tensor, k: float = 2.0, *, j: float = 1.0) -> torch.Tensor:
        return x * k + j

    g = magpy_core.compile(f, backend="eager")
    g(X)
    assert torch.equal(g(X), X * 2 + 1)
    f.__defaults__ = (5.0,)
    assert torch.equal(g(X), X * 5 + 1)
    f.__kwdefaults__["j"] = 7.0
    assert torch.equal(g(X), X * 5 + 7)


def test_a_helpers_code_replaced_later_is_a_miss() -> None:
    def helper(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    def other(x: torch.Tensor) -> torch.Tensor:
        return x + 100

    def f(x: torch.Tensor) -> torch.Tensor:
        return helper(x) * 2

    g = magpy_core.compile(f, backend="eager")
    g(X)
    g(X)
    helper.__code__ = other.__code__
    assert torch.equal(g(X), (X + 100) * 2)


def test_absent_attributes_are_guarded() -> None:
    class Plain:
        pass

    def f(x: torch.Tensor, o: Any) -> torch.Tensor:
        return x + getattr(o, "bias", 0.5)

    p = Plain()
    g = magpy_core.compile(f, backend="eager")
    g(X, p)
    assert torch.equal(g(X, p), X + 0.5)
    p.bias = 3.0  # type: ignore[attr-defined]
    assert torch.equal(g(X, p), X + 3.0)
    Plain.bias = 9.0  # type: ignore[attr-defined]
    del p.bias  # type: ignore[attr-defined]
    assert torch.equal(g(X, p), X + 9.0)


def test_a_method_replaced_on_the_class_is_a_miss() -> None:
    class Op:
        def apply(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    def f(x: torch.Tensor, op: Op) -> torch.Tensor:
        return op.apply(x)

    op = Op()
    g = magpy_core.compile(f, backend="eager")
    g(X, op)
    assert torch.equal(g(X, op), X + 1)
    Op.apply = lambda self, x: x - 1  # type: ignore[method-assign]
    assert torch.equal(g(X, op), X - 1)
    op.apply = lambda x: x * 5  # type: ignore[method-assign]
    assert torch.equal(g(X, op), X * 5)


def test_the_instance_dict_itself_may_be_replaced() -> None:
    class Scale(torch.nn.Module):
        def __init__(self, k: str) -> None:
            super().__init__()
            self.k = k

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2 if self.k == "two" else x * 3

    module = Scale("two")
    g = magpy_core.compile(module.forward, backend="eager")
    g(X)
    assert torch.equal(g(X), X * 2)
    module.__dict__ = dict(Scale("three").__dict__)
    assert torch.equal(g(X), X * 3)


def test_equal_ints_of_any_size() -> None:
    p = pair(lambda x, n: (x + 1, {n: 1})).calls((X, 10**18), (X, int("1" + "0" * 18)))
    assert p.counts == (1, 1)


def test_nan_never_hides_a_change() -> None:
    def f(x: torch.Tensor, v: float) -> torch.Tensor:
        return x + 1 if math.isnan(v) else x - 1

    pair(f).calls((X, float("nan")), (X, 1.5), (X, float("nan")), (X, 1.5))


def test_argument_counts_and_keywords_are_part_of_the_guard() -> None:
    def f(x: torch.Tensor, *rest: float, **named: float) -> torch.Tensor:
        return x * (1 + len(rest)) + sum(named.values())

    p = Pair(lambda: (f, None))
    p(X)
    p(X, 1.0)
    p(X, a=1.0)
    p(X, b=1.0)
    p(X)
    p(X, b=1.0)
    assert p.region.hits == 2

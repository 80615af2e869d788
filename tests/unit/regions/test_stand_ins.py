"""What is compiled and is not a function keeps its attributes, its state and its comparisons; its copies are plain."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core._compat.versions import PY314
from magpy_core.backends import fair_share
from magpy_core.regions.api import region_of
from tests.limits import WITHOUT_SHARES


def scaled(x: torch.Tensor, k: float = 1.0) -> torch.Tensor:
    return x * k


class Counter:
    """Counts its calls."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.n += 1
        return x * self.n

    def __len__(self) -> int:
        return self.n

    def method(self, x: torch.Tensor) -> torch.Tensor:
        """Of a counter."""
        self.n += 1
        return x + self.n


def eagerly(target: Any) -> Any:
    return magpy_core.compile(target, backend="eager")


ONES = torch.ones(2)


def test_a_partial() -> None:
    partial = functools.partial(scaled, k=3.0)
    compiled = eagerly(partial)
    assert (compiled.func, compiled.args, compiled.keywords) == (scaled, (), {"k": 3.0})
    assert isinstance(compiled, functools.partial) and not hasattr(compiled, "__name__")
    assert inspect.signature(compiled) == inspect.signature(partial) and compiled.__doc__ == partial.__doc__
    compiled.keywords["k"] = 4.0
    compiled.tag = "set"
    assert [compiled(ONES).tolist() for _ in range(3)] == [[4.0, 4.0]] * 3 and region_of(compiled).hits == 2
    assert partial.keywords == {"k": 4.0} and partial.tag == "set"  # type: ignore[attr-defined]
    for copied in (copy.copy(compiled), copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert type(copied) is functools.partial and copied.keywords == {"k": 4.0}
    assert magpy_core.uncompile(compiled) is partial and eagerly(compiled).func is scaled


def test_an_object_with_its_own_counter() -> None:
    counter = Counter()
    compiled = eagerly(counter)
    for n in range(1, 6):
        assert compiled(ONES)[0] == n == compiled.n == len(compiled) == counter.n
    compiled.n = 10
    assert compiled(ONES)[0] == 11 == counter.n and region_of(compiled).hits == 5
    assert isinstance(compiled, Counter) and compiled.__doc__ == "Counts its calls."
    assert copy.deepcopy(compiled).n == 11 and type(copy.deepcopy(compiled)) is Counter
    assert list(inspect.signature(compiled).parameters) == ["x"] and repr(compiled) == repr(counter)
    alive = weakref.ref(compiled)
    del compiled
    assert alive() is None and counter.n == 11


def test_a_method() -> None:
    counter = Counter()
    compiled = eagerly(counter.method)
    assert compiled == counter.method and counter.method == compiled and compiled == eagerly(counter.method)
    assert hash(compiled) == hash(counter.method) and inspect.ismethod(compiled)
    assert (compiled.__self__, compiled.__func__, compiled.__name__) == (counter, Counter.method, "method")
    assert compiled.__doc__ == "Of a counter." and list(inspect.signature(compiled).parameters) == ["x"]
    counter.compiled = compiled  # type: ignore[attr-defined]
    copied = copy.deepcopy(counter)
    assert copied.compiled.__self__ is copied and copied.compiled(ONES)[0] == 2  # type: ignore[attr-defined]
    assert counter.n == 0


def test_a_cached_function() -> None:
    def program(wrap: Callable[[Any], Any]) -> Any:
        @functools.lru_cache(maxsize=2)
        def table(n: int) -> torch.Tensor:
            return torch.full((2,), float(n))

        cached = wrap(table)
        results = [cached(n) for n in (1, 1, 2, 3, 3, 1)]
        info = cached.cache_info()
        return results[0] is results[1], results[3] is results[4], results[0] is results[5], tuple(info)

    assert program(eagerly) == program(lambda fn: fn) == (True, True, False, (2, 4, 2, 2))


def test_in_a_class() -> None:
    class Holder:
        k = 2.0

        @magpy_core.compile(backend="eager")
        @staticmethod
        def static(x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @magpy_core.compile(backend="eager")
        @classmethod
        def of_class(cls, x: torch.Tensor) -> torch.Tensor:
            return x * cls.k

        @magpy_core.compile(backend="eager")
        @functools.lru_cache  # noqa: B019
        def cached(self, n: int) -> float:
            return self.k * n

        partial = eagerly(functools.partial(scaled, k=3.0))  # it becomes a method from 3.14 on

    for holder in (Holder, Holder()):
        assert holder.static(ONES)[0] == 2 and holder.of_class(ONES)[0] == 2
        if PY314 and type(holder) is Holder:
            with pytest.raises(TypeError, match="multiple values for argument 'k'"):
                holder.partial(ONES)
        else:
            assert holder.partial(ONES)[0] == 3
    assert Holder().cached(3) == 6.0 and Holder.cached.cache_info().misses == 1


def test_disabled() -> None:
    counter = magpy_core.disable(Counter())
    compiled = eagerly(lambda x: counter(x) + 1)
    assert [compiled(ONES)[0].item() for _ in range(3)] == [2, 3, 4] and counter.n == 3
    assert {finding.code for finding in region_of(compiled).findings.values()} == {"MP120"}
    assert magpy_core.disable(functools.partial(scaled, k=2.0)).keywords == {"k": 2.0}


def test_inside_another_region() -> None:
    counter = eagerly(Counter())
    partial = eagerly(functools.partial(scaled, k=3.0))

    def region(x: torch.Tensor) -> torch.Tensor:
        counter.seen = counter.n
        return partial(counter(x)) * len(partial.keywords)

    compiled = eagerly(region)
    for n in range(1, 6):
        assert compiled(ONES)[0] == 3 * n and counter.n == n and counter.seen == n - 1
    partial.keywords["k"] = 5.0
    counter.n = 0
    assert compiled(ONES)[0] == 5 and counter.n == 1
    assert region_of(compiled).hits >= 3 and not region_of(compiled).disabled


def test_a_wrapper_of_the_programs() -> None:
    compiled = eagerly(functools.partial(scaled, k=3.0))

    @functools.wraps(compiled)
    def wrapper(x: torch.Tensor) -> Any:
        return compiled(x)

    wrapper(ONES)
    assert len(magpy_core.captures(wrapper)) == 1 and magpy_core.uncompile(wrapper) is wrapper


@pytest.mark.slow
def test_compiled_beside_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_share, "LIMITS", WITHOUT_SHARES)
    counter, keywords = Counter(), {"k": 2.0}
    compiled = magpy_core.compile(counter, wait=False)
    partial = magpy_core.compile(functools.partial(scaled, **keywords), wait=False)
    calls, end = 0, time.monotonic() + 250
    while not (region_of(compiled).hits and region_of(partial).hits):
        assert time.monotonic() < end, region_of(compiled).findings
        calls += 1
        assert compiled(ONES)[0] == calls == compiled.n and partial(ONES)[0] == 2
        time.sleep(0.02)
    compiled.n = 100
    partial.keywords["k"] = 7.0
    assert compiled(ONES)[0] == 101 == counter.n and partial(ONES)[0] == 7

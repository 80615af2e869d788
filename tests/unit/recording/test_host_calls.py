"""What replay computes again: NumPy's functions, lists that grow, arrays, clocks, text written to streams."""

from __future__ import annotations

import csv
import io
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import magpy_core
from magpy_core._compat.cpython.temporaries import taker_of
from magpy_core.recording.calls.array_values import ArrayValues
from magpy_core.recording.calls.clocks import Clocks
from magpy_core.recording.calls.host_calls import HostCalls
from magpy_core.recording.calls.streams import Streams
from magpy_core.refgraph.arrays import are_separate, array_text
from magpy_core.refgraph.iterators import remaining, upcoming
from magpy_core.regions.api import region_of
from tests.unit.engine_pair import Pair
from tests.unit.recording.help import World, site

CALLS = 9


def _region(step: Callable[..., Any], calls: int = CALLS) -> Any:
    compiled = magpy_core.compile(step, backend="eager", wait=True)
    results = [compiled(torch.ones(2) * k) for k in range(calls)]
    return region_of(compiled), results


GROWING: list[Callable[[list[float]], Any]] = [
    lambda values: float(np.mean(values[-3:])),
    lambda values: sorted(values)[0],
    lambda values: np.percentile(values, 50),
    lambda values: sum(values[-2:]) / len(values[-2:]),
]


@pytest.mark.parametrize("use", GROWING, ids=range(len(GROWING)))
def test_functions_of_what_grows(use: Callable[[list[float]], Any]) -> None:
    def world() -> Any:
        kept: list[float] = []

        def region(x: torch.Tensor) -> Any:
            kept.append(x.sum().item())
            return use(kept)

        return region, kept

    pair = Pair(world).calls(*[(torch.ones(2) * (k % 4 + 0.25),) for k in range(CALLS)])
    assert pair.region.hits >= CALLS - 3


def test_a_slice_that_is_kept_is_guarded() -> None:
    kept = [1.0, 2.0]

    def region(x: torch.Tensor) -> Any:
        kept.append(1.0)
        recent = kept[-3:]
        return x + sum(recent)

    found, results = _region(region, 3)
    kept[-1] = 50.0
    assert found.captures
    assert float(results[1][0]) == 1.0 + 2.0 + 1.0 + 1.0


def _on_the_stack(values: list[int]) -> int:
    return max(values[1:3])


def _in_a_variable(values: list[int]) -> int:
    part = values[1:3]
    return max(part)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="slices have other instructions")
@pytest.mark.parametrize(("fn", "is_taken"), [(_on_the_stack, True), (_in_a_variable, False)])
def test_what_takes_a_value_from_the_stack(fn: Any, is_taken: bool) -> None:
    import dis

    at = next(i.positions for i in dis.get_instructions(fn) if i.opname == "BINARY_SUBSCR")
    assert at is not None
    place = (at.lineno, at.end_lineno, at.col_offset, at.end_col_offset)
    assert (taker_of(fn.__code__, place) is not None) is is_taken


def test_clocks_go_on() -> None:
    seen: list[tuple[float, float]] = []

    def region(x: torch.Tensor) -> Any:
        start = time.perf_counter()
        y = x @ torch.ones(2, 2)
        end = time.perf_counter()
        seen.append((start, end - start))
        return y

    before = time.perf_counter()
    found, _ = _region(region)
    after = time.perf_counter()
    assert found.hits >= CALLS - 2
    starts = [start for start, _ in seen]
    assert starts == sorted(starts) and len(set(starts)) == CALLS and before < starts[0] and starts[-1] < after
    assert all(0 < taken < after - before for _, taken in seen)


def test_a_clock_between_operations_is_refused() -> None:
    def region(x: torch.Tensor) -> Any:
        y = x + 1
        now = time.perf_counter()
        return (y * 2).sum().item() + now * 0

    found, _ = _region(region)
    assert not found.captures and "MP103" in {finding.code for finding in found.findings.values()}


@pytest.mark.parametrize("is_late", [False, True])
def test_a_clock_decides(is_late: bool) -> None:
    limit = [1e18]

    def region(x: torch.Tensor) -> Any:
        y = x + 1 if is_late else x
        return (y, "late") if time.monotonic() > limit[0] else (y, "early")

    compiled = magpy_core.compile(region, backend="eager", wait=True)
    assert [compiled(torch.ones(2))[1] for _ in range(5)] == ["early"] * 5
    limit[0] = 0.0
    assert compiled(torch.ones(2))[1] == "late"


def test_gaussian_loss_is_what_it_consists_of() -> None:
    def region(x: torch.Tensor) -> Any:
        return F.gaussian_nll_loss(x, x + 1, x.abs() + 0.5)

    found, results = _region(region)
    assert found.hits >= CALLS - 2
    assert all(torch.equal(r, region(torch.ones(2) * k)) for k, r in enumerate(results))
    assert "MP101" in {finding.code for finding in found.findings.values()} or found.captures
    with pytest.raises(ValueError, match="negative"):
        magpy_core.compile(lambda x: F.gaussian_nll_loss(x, x, x - 5), backend="eager")(torch.ones(2))


def test_rows_are_written_once_each() -> None:
    out = io.StringIO()
    writer = csv.writer(out)

    def region(x: torch.Tensor) -> Any:
        writer.writerow([x.sum().item(), "a"])

    found, _ = _region(region)
    assert found.hits >= CALLS - 3
    assert out.getvalue() == "".join(f"{2.0 * k},a\r\n" for k in range(CALLS))


def test_arrays_that_share_memory_are_not_separate() -> None:
    whole = np.zeros(6)
    assert are_separate([whole, np.zeros(2)], [])
    assert not are_separate([whole[:2], whole[4:]], [])
    assert not are_separate([whole], [torch.from_numpy(whole[3:]).untyped_storage().data_ptr()])
    assert array_text(whole) != array_text(whole.astype("float32"))
    for other in ([1.0], np.array(["a"]), torch.zeros(2).numpy()):
        with pytest.raises(LookupError):
            array_text(other)


def test_what_an_iterator_returns_is_known() -> None:
    it = iter([1, 2, 3])
    assert (upcoming(it, 0), upcoming(it, 2), remaining(it)) == (1, 3, 3)
    assert [*it] == [1, 2, 3] and remaining(it) == 0
    for other in (it, iter(range(3)), iter({1: 2}), (k for k in [1])):
        with pytest.raises(LookupError):
            upcoming(other, 0)


def test_what_they_do_not_know_is_for_others() -> None:
    world = World()
    arrays, clocks, streams = world.build(ArrayValues), world.build(Clocks), world.build(Streams)
    calls = world.build(HostCalls, array_values=arrays)
    assert not calls.makes(None, np.exp, (1.0,), {}) and not calls.makes(site(), np.exp, (1.0,), {})
    assert not calls.reads_item(site(), [1.0], 0) and not calls.method(site(), np.zeros(2), "mean", (), {})
    assert arrays.sym(np.zeros(2), None) is None and not arrays.stores(None, np.zeros(2), 0, 1.0)
    assert not clocks.reads(None, time.sleep, (), {}) and not clocks.reads(None, time.time, (1,), {})
    assert not streams.method(None, io.StringIO(), "write", ("a",), {})
    assert not streams.dumps(None, print, (), {})

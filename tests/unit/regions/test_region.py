"""Regions: dispatch, cache limit, fullgraph, nested and concurrent calls, refusals, neighbours."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core.capture.outcome import NotRun
from magpy_core.regions.api import region_of
from magpy_core.regions.options import Options
from magpy_core.regions.region import Region
from tests.unit.engine_pair import code_of, pair, same

X = torch.arange(3.0)


def region(target: Any) -> Region:
    found: Region = region_of(target)
    return found


# -- the public API -------------------------------------------------------------------------------------------------------


def test_compile_as_decorator_with_and_without_options() -> None:
    @magpy_core.compile(backend="eager", name="mine")
    def f(x: torch.Tensor, k: int = 2) -> torch.Tensor:
        """Doc."""
        return x * k

    assert f.__name__ == "f" and f.__doc__ == "Doc."
    assert torch.equal(f(X), X * 2) and torch.equal(f(X, k=3), X * 3)
    assert region(f).name == "mine"
    assert len(magpy_core.captures(f)) == 2


def test_compile_of_a_bound_method() -> None:
    class Model:
        def __init__(self, k: float) -> None:
            self.k = k

        def step(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.k

    m = Model(2.0)
    c = magpy_core.compile(m.step, backend="eager")
    c(X)
    assert torch.equal(c(X), X * 2)
    assert region(c).hits == 1
    m.k = 5.0
    assert torch.equal(c(X), X * 5)


@pytest.mark.parametrize("target", [3, "f", None.__class__, nn.Linear])
def test_compile_of_something_else_is_a_type_error(target: Any) -> None:
    with pytest.raises(TypeError, match=r"magpy_core\.compile takes"):
        magpy_core.compile(target, backend="eager")


def test_an_unknown_backend_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"eager.*inductor") as caught:
        magpy_core.compile(lambda x: x, backend="tpu")
    assert "tpu" in str(caught.value)


def test_captures_of_something_else_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        magpy_core.captures(lambda: None)


def test_monitor_gives_result_captures_and_findings() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        x.data_ptr()
        return x + 1

    seen = magpy_core.monitor(f)(X)
    assert torch.equal(seen.result, X + 1)
    assert seen.captures == []
    assert [v.code for v in seen.findings] == ["MP102"]
    seen = magpy_core.monitor(lambda x: x * 2)(X)
    assert len(seen.captures) == 1 and seen.captures[0].is_complete


def test_monitor_raises_what_the_target_raises() -> None:
    with pytest.raises(ZeroDivisionError):
        magpy_core.monitor(lambda x: 1 // 0)(X)


def test_reset_forgets_everything() -> None:
    c = magpy_core.compile(lambda x, k: x * k, backend="eager")
    for k in range(4):
        c(X, k)
    magpy_core.reset()
    assert magpy_core.captures(c) == [] and not region(c).findings
    c(X, 1)
    assert len(magpy_core.captures(c)) == 1


# -- what a capture shows -------------------------------------------------------------------------------------------------


def test_the_parts_of_a_capture() -> None:
    w = nn.Parameter(torch.ones(3))
    c = magpy_core.compile(lambda x: torch.relu(x * w).sum(), backend="eager")
    c(X)
    capture = code_of(c)
    gm = capture.operator_graph
    placeholders = gm.graph.find_nodes(op="placeholder")
    assert [n.meta["magpy_tensor"] for n in placeholders] == [(torch.float32, tuple(X.shape)), (torch.float32, (3,))]
    assert same(gm(X, w)[0], torch.relu(X * w).sum())
    assert capture.is_complete and len(capture.guards) > 2
    for heading in ("# operator graph", "# guards", "# replay"):
        assert heading in capture.print_readable()


def test_the_code_of_guards_says_where_each_value_was_read() -> None:
    def f(x: torch.Tensor, c: dict[str, Any]) -> torch.Tensor:
        if c["mode"] == 'it\'s "fast"':
            return x * 2
        return x

    g = magpy_core.compile(f, backend="eager")
    g(X, {"mode": 'it\'s "fast"'})
    line = f.__code__.co_firstlineno + 1
    commented = [v for v in str(code_of(g).guards).splitlines() if v.endswith(f"# test_region.py:{line}")]
    assert any("'mode'" in v for v in str(code_of(g).guards).splitlines())
    assert commented and all(v.startswith("if ") and "return MISS" in v for v in commented)
    compile(str(code_of(g).guards).replace("return MISS", "pass"), "<guards>", "exec")


# -- limits ---------------------------------------------------------------------------------------------------------------


def test_the_cache_limit_ends_in_plain_python_and_a_finding() -> None:
    p = pair(lambda x, s: (x + 1, s.upper()))
    p.calls(*[(X, f"text {i}") for i in range(12)])
    assert len(p.region.captures) == 8
    assert p.codes.count("MP203") == 1
    p.calls((X, "text 3"), (X, "unseen"))
    assert p.region.hits == 1  # what was captured still replays


def test_a_limit_of_ones_own() -> None:
    def f(x: torch.Tensor, s: str) -> tuple[torch.Tensor, str]:
        return x, s

    plain = magpy_core.compile(f, backend="eager")
    r = region(plain)
    own = Region("r", "function", "r", r.location, f, Options("compiled", "eager", cache_limit=2))
    for s in "abcd":
        assert own(X, s) == (X, s) or True
    assert len(own.captures) == 2
    assert any(v.code == "MP203" for v in own.findings.values())


# -- refusals -------------------------------------------------------------------------------------------------------------


def test_a_host_call_runs_in_plain_python_every_time() -> None:
    c = magpy_core.compile(lambda x: x * os.getpid() * len(os.urandom(3)), backend="eager")
    for _ in range(3):
        assert torch.equal(c(X), X * os.getpid() * 3)
    found = [f for f in region(c).findings.values() if f.code == "MP103"]
    assert [f.location.file for f in found] == [__file__] * 2
    assert "getpid" in found[0].message and "urandom" in found[1].message


def test_fullgraph_raises_with_the_findings() -> None:
    c = magpy_core.compile(lambda x: (x + 1) * time.time(), backend="eager", fullgraph=True)
    with pytest.raises(magpy_core.GraphBreak, match="MP103") as caught:
        c(X)
    assert [f.code for f in caught.value.findings] == ["MP103"]
    with pytest.raises(magpy_core.GraphBreak):
        c(X)


def test_under_fullgraph_a_decision_on_data_is_looked_at_after_the_graph() -> None:
    def branching(x: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        seen.add_(1)
        if x.sum() > 0:
            seen.mul_(2)
            return x * 2
        return x + torch.rand(2)

    c = magpy_core.compile(branching, backend="eager", fullgraph=True)
    mine, plain = torch.zeros(1), torch.zeros(1)
    for sign in (1, -1, 1, -1, -1, 1):
        x = sign * torch.ones(2)
        torch.manual_seed(5)
        want = branching(x, plain)
        after = torch.rand(1)
        torch.manual_seed(5)
        assert torch.equal(c(x, mine), want)
        assert torch.equal(mine, plain) and torch.equal(torch.rand(1), after)
    assert region(c).hits == 4 and all(capture.is_complete for capture in region(c).captures)


def test_under_fullgraph_a_wrong_path_that_raises_is_undone() -> None:
    def lookup(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        table.add_(1)
        n = int(x.sum())
        return table[torch.tensor(n)] if n < 3 else table.sum()

    c = magpy_core.compile(lookup, backend="eager", fullgraph=True)
    mine, plain = torch.arange(3.0), torch.arange(3.0)
    for n in (2, 7, 1, 7, 2, 9):
        x = torch.tensor([float(n)])
        assert torch.equal(c(x, mine), lookup(x, plain)) and torch.equal(mine, plain)


def test_fullgraph_is_silent_for_one_graph() -> None:
    c = magpy_core.compile(lambda x: x * 2, backend="eager", fullgraph=True)
    assert torch.equal(c(X), X * 2) and torch.equal(c(X), X * 2)


def test_a_failing_monitor_leaves_the_program_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from magpy_core.recording.access.globals import Globals

    def broken(self: Any, *args: Any) -> None:
        raise RuntimeError("a defect of ours")

    monkeypatch.setattr(Globals, "global_read", broken)
    c = magpy_core.compile(lambda x: torch.relu(x) + 1, backend="eager")
    for _ in range(3):
        assert torch.equal(c(X), X + 1)
    assert [f.code for f in region(c).findings.values()] == ["MP901"]
    assert magpy_core.captures(c) == []


def test_a_failing_backend_leaves_the_program_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from magpy_core.backends.eager import EagerBackend

    def broken(self: Any, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("no compiler today")

    monkeypatch.setattr(EagerBackend, "compile", broken)
    c = magpy_core.compile(lambda x: x + 1, backend="eager")
    for _ in range(3):
        assert torch.equal(c(X), X + 1)
    assert [f.code for f in region(c).findings.values()] == ["MP902"]


# -- neighbours -----------------------------------------------------------------------------------------------------------


def test_nested_regions_are_part_of_the_outer_one() -> None:
    inner = magpy_core.compile(lambda x: x * 2, backend="eager")
    outer = magpy_core.compile(lambda x: inner(x) + 1, backend="eager")
    for _ in range(3):
        assert torch.equal(outer(X), X * 2 + 1)
    assert region(outer).hits == 2
    assert region(inner).calls == 0
    assert torch.equal(inner(X), X * 2)
    assert region(inner).calls == 1


def test_a_region_that_calls_itself() -> None:
    def f(x: torch.Tensor, n: int) -> torch.Tensor:
        return x if n == 0 else compiled(x + n, n - 1)

    compiled = magpy_core.compile(f, backend="eager")
    for _ in range(3):
        assert torch.equal(compiled(X, 3), X + 6)
    assert region(compiled).calls == 3


def test_two_threads_in_one_region() -> None:
    state = threading.local()

    def f(x: torch.Tensor, k: float) -> torch.Tensor:
        return torch.relu(x * k) + k

    c = magpy_core.compile(f, backend="eager")
    wrong: list[Any] = []
    barrier = threading.Barrier(4)

    def work(seed: int) -> None:
        state.seed = seed
        barrier.wait()
        for i in range(60):
            x, k = torch.full((3,), float(i)), float((i + seed) % 5)
            if not torch.equal(c(x, k), torch.relu(x * k) + k):
                wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not wrong and not any(t.is_alive() for t in threads)
    hits = region(c).hits  # while one thread records, the others run in eager mode: how often is chance
    assert torch.equal(c(X, 2.0), torch.relu(X * 2) + 2) and torch.equal(c(X, 3.0), torch.relu(X * 3) + 3)
    assert region(c).hits == hits + 2
    assert not any(f.code == "MP901" for f in region(c).findings.values())


def test_two_threads_in_two_regions_while_one_records() -> None:
    # locks, as an Event's flag that another thread sets meanwhile is state of Python's that no entry state explains
    entered, go_on = threading.Lock(), threading.Lock()
    entered.acquire()
    go_on.acquire()

    def slow(x: torch.Tensor) -> torch.Tensor:
        entered.release()
        assert go_on.acquire(timeout=30)
        return x + 1

    def quick(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    a, b = magpy_core.compile(slow, backend="eager"), magpy_core.compile(quick, backend="eager")
    results: list[Any] = []
    t = threading.Thread(target=lambda: results.append(a(X)))
    t.start()
    assert entered.acquire(timeout=30)
    assert torch.equal(b(X), X * 2)  # eager mode meanwhile, and no wait
    go_on.release()
    t.join(30)
    assert torch.equal(results[0], X + 1)
    assert torch.equal(b(X), X * 2) and torch.equal(b(X), X * 2)
    assert region(b).hits == 1


@pytest.mark.torch_compile
def test_beside_torch_compile() -> None:
    theirs = torch.compile(lambda x: x * 3, backend="eager")
    mine = magpy_core.compile(lambda x: x + 1, backend="eager")
    for _ in range(3):
        assert torch.equal(theirs(X), X * 3)
        assert torch.equal(mine(X), X + 1)
    assert region(mine).hits == 2


@pytest.mark.torch_compile
def test_torch_compile_inside_a_region_is_captured_with_it() -> None:
    scale = {"k": 3}
    theirs = torch.compile(lambda x: x * scale["k"], backend="eager")
    mine = magpy_core.compile(lambda x: theirs(x) + 1, backend="eager")
    for _ in range(3):
        assert torch.equal(mine(X), X * 3 + 1)
    assert region(mine).hits == 2 and code_of(mine).is_complete
    scale["k"] = 5
    assert torch.equal(mine(X), X * 5 + 1)


def test_gradients_flow_through_a_replay() -> None:
    w = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
    c = magpy_core.compile(lambda x: (x * w).pow(2).sum(), backend="aot_eager")
    for i in range(3):
        x = (X + i).requires_grad_()
        c(x).backward()
        got = (x.grad, w.grad)
        w.grad = None
        y = (X + i).requires_grad_()
        (y * w).pow(2).sum().backward()
        assert same(got, (y.grad, w.grad))
        w.grad = None
    assert region(c).hits == 2


def test_random_operations_follow_eagers_stream_with_the_eager_backend() -> None:
    p = pair(lambda x: torch.nn.functional.dropout(x, 0.5) + torch.rand(3) + torch.randn_like(x))
    p.calls((X,), (X,), (X,))
    assert p.counts == (1, 2)


class Scaled:
    factor = 2.0

    def __init__(self) -> None:
        self.offset = 1.0

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor + self.offset

    def method(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.offset


class OtherFactor(Scaled):
    factor = 5.0


class OtherCall(Scaled):
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return -x


class OffsetOfTheClass(Scaled):
    offset = property(lambda self: 7.0, lambda self, value: None)  # type: ignore[assignment]


@pytest.mark.parametrize("get", [lambda o: o, lambda o: o.method, lambda o: o.__call__])
@pytest.mark.parametrize("cls", [OtherFactor, OtherCall, OffsetOfTheClass])
def test_the_class_of_what_is_called_may_change(cls: type, get: Any) -> None:
    plain, target = Scaled(), Scaled()
    want, compiled = get(plain), magpy_core.compile(get(target), backend="eager")
    for now in (Scaled, Scaled, Scaled, cls, cls, Scaled):
        plain.__class__ = target.__class__ = now
        assert torch.equal(compiled(torch.ones(2)), want(torch.ones(2)))
    assert region_of(compiled).hits >= 2


def test_a_capture_whose_graph_only_raises_is_dropped() -> None:
    compiled = magpy_core.compile(lambda x: x * 2, backend="eager")
    compiled(torch.ones(2))
    region = region_of(compiled)
    (capture,) = region.captures
    capture.run = lambda args, kwargs: NotRun.RAISED
    for _ in range(3):
        assert region.captures == [capture]
        assert compiled(torch.ones(2)).tolist() == [2.0, 2.0]
    assert not region.captures and "eager mode does not" in region.disabled
    assert [f.code for f in region.findings.values()] == ["MP902"]


def test_code_that_was_replaced_is_named_in_words() -> None:
    def scaled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    def shifted(x: torch.Tensor) -> torch.Tensor:
        return x + 2

    c = magpy_core.compile(lambda x: scaled(x), backend="eager")
    assert torch.equal(c(X), X * 2)
    scaled.__code__ = shifted.__code__
    assert torch.equal(c(X), X + 2)
    (changed,) = region(c).summary().recompiles
    assert changed.name.endswith("scaled.__code__") and changed.old.startswith("<code of test_code")
    messages = [f.message for f in region(c).findings.values() if f.code == "MP201"]
    assert len(messages) == 1 and "scaled` has other code than before" in messages[0]


def test_values_of_one_text_are_told_apart() -> None:
    c = magpy_core.compile(lambda x, f: x if f is None else x * 2, backend="eager")
    for function in (lambda: 1, lambda: 2):
        c(X, function)
    assert region(c).summary().recompiles[0].new == "another object"

"""Beside other tools in one process: profilers, debuggers, coverage, threads, DDP, DataLoader workers, cells of a notebook,
code that pytest has rewritten. Every test compares with eager mode."""

from __future__ import annotations

import contextlib
import copy
import functools
import linecache
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

import magpy_core
from magpy_core.regions.api import region_of

SCALE = {"value": 2.0}


def work(x: torch.Tensor) -> torch.Tensor:
    y = helper(x) * SCALE["value"]
    for i in range(3):
        y = y + i
    return torch.relu(y)


def helper(x: torch.Tensor) -> torch.Tensor:
    return x * x.shape[0]


def make(target: Callable[..., Any] = work) -> Any:
    return magpy_core.compile(target, backend="eager")


def agree(compiled: Any, plain: Callable[..., Any] = work) -> None:
    """The same on a recording, a replay and a changed shape."""
    for n in (2, 2, 2, 3, 3, 4, 2):
        x = torch.arange(3.0 * n).view(n, 3).requires_grad_()
        ours, theirs = compiled(x), plain(x)
        assert torch.equal(ours, theirs)
        assert torch.equal(*(torch.autograd.grad(out.sum(), x)[0] for out in (ours, theirs)))


# -- debuggers, profilers, coverage ----------------------------------------------------------------------------


@pytest.fixture
def tracing() -> Iterator[None]:
    """Whatever a test does, the next one is traced as before."""
    trace, profile = sys.gettrace(), sys.getprofile()
    yield
    sys.settrace(trace)
    sys.setprofile(profile)


@pytest.mark.usefixtures("tracing")
def test_trace_function() -> None:
    seen: list[tuple[str, int]] = []

    def trace(frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename == __file__ and frame.f_code.co_name == "helper" and event == "line":
            seen.append((frame.f_code.co_name, frame.f_lineno))
            assert "x" in frame.f_locals
        return trace

    compiled = make()
    sys.settrace(trace)
    compiled(torch.ones(2, 3))
    assert sys.gettrace() is trace
    sys.settrace(None)
    assert seen == [("helper", helper.__code__.co_firstlineno + 1)], "the recorded run is traced by its own lines"
    sys.settrace(trace)
    agree(compiled)
    assert sys.gettrace() is trace


@pytest.mark.usefixtures("tracing")
def test_trace_function_that_changes_what_is_computed() -> None:
    """A debugger at a line may change the world: what it writes is an effect of the run like any other."""

    def trace(frame: Any, event: str, arg: Any) -> Any:
        if event == "call" and frame.f_code.co_name == "helper":
            SCALE["value"] = 5.0
        return trace

    compiled = make()
    results = []
    for fn in (compiled, work):
        SCALE["value"] = 2.0
        sys.settrace(trace)
        results.append(fn(torch.ones(2, 3)))
        sys.settrace(None)
    assert torch.equal(*results)
    SCALE["value"] = 2.0
    agree(compiled)


@pytest.mark.usefixtures("tracing")
def test_profile_function() -> None:
    calls: list[str] = []

    def profile(frame: Any, event: str, arg: Any) -> None:
        if event == "call" and frame.f_code.co_filename == __file__:
            calls.append(frame.f_code.co_name)

    compiled = make()
    sys.setprofile(profile)
    compiled(torch.ones(2, 3))
    assert sys.getprofile() is profile
    sys.setprofile(None)
    assert [c for c in calls if c in ("work", "helper")] == ["work", "helper"]
    sys.setprofile(profile)
    agree(compiled)


@pytest.mark.usefixtures("tracing")
def test_debugger_stops_at_a_breakpoint() -> None:
    import bdb

    stops: list[int] = []

    class Debugger(bdb.Bdb):
        def user_line(self, frame: Any) -> None:
            if frame.f_lineno == line:
                stops.append(frame.f_locals["x"].shape[0])
            self.set_continue()

    line = helper.__code__.co_firstlineno + 1
    debugger = Debugger()
    debugger.set_break(__file__, line)
    compiled = make()
    result = debugger.runcall(compiled, torch.ones(2, 3))
    sys.settrace(None)
    assert stops == [2] and torch.equal(result, work(torch.ones(2, 3)))
    agree(compiled)


@pytest.mark.usefixtures("tracing")
def test_coverage() -> None:
    coverage = pytest.importorskip("coverage")
    measured = coverage.Coverage(data_file=None, include=[__file__], config_file=False)
    measured.start()
    compiled = make()
    compiled(torch.ones(2, 3))
    measured.stop()
    lines = set(measured.get_data().lines(__file__) or ())
    first = helper.__code__.co_firstlineno
    assert first + 1 in lines, "lines of a recorded run count as run, under their own file"
    measured.start()
    agree(compiled)
    measured.stop()


def test_torch_profiler() -> None:
    def named(x: torch.Tensor) -> torch.Tensor:
        with torch.profiler.record_function("named part"):
            return torch.relu(x) * 2

    compiled = make(named)
    for _ in range(3):
        names = []
        for fn in (named, compiled):
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
                result = fn(torch.ones(2, 3))
            names.append({e.key for e in profile.key_averages()})
            assert torch.equal(result, torch.full((2, 3), 2.0))
        assert {"aten::relu", "aten::mul"} <= names[1]
    agree(compiled, named)


# -- threads and processes -------------------------------------------------------------------------------------


def in_threads(count: int, act: Callable[[int], None]) -> None:
    failed: list[BaseException] = []
    start = threading.Barrier(count)

    def run(n: int) -> None:
        try:
            start.wait(timeout=60)
            act(n)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(timeout=120)
    assert not any(t.is_alive() for t in threads)
    if failed:
        raise failed[0]


def test_threads_call_one_compiled_function() -> None:
    compiled = make()

    def act(n: int) -> None:
        for i in range(12):
            x = torch.full((2 + (n + i) % 3, 3), float(n))
            with torch.no_grad() if n % 2 else contextlib.nullcontext():
                assert torch.equal(compiled(x), work(x))
                assert torch.is_grad_enabled() is (n % 2 == 0)

    in_threads(4, act)
    agree(compiled)


def test_threads_keep_their_effects_apart() -> None:
    def note(x: torch.Tensor, log: list[Any]) -> torch.Tensor:
        log.append(x.shape[0])
        return x + len(log)

    compiled = make(note)

    def act(n: int) -> None:
        ours: list[Any] = []
        theirs: list[Any] = []
        for i in range(10):
            x = torch.full((1 + i % 2, 2), float(n))
            assert torch.equal(compiled(x, ours), note(x, theirs))
            assert ours == theirs

    in_threads(3, act)


def test_thread_locals_stay_the_threads_own() -> None:
    local = threading.local()

    def counted(x: torch.Tensor) -> torch.Tensor:
        local.n = getattr(local, "n", 0) + 1
        return x * local.n

    compiled = make(counted)

    def act(n: int) -> None:
        for i in range(6):
            assert compiled(torch.ones(2))[0].item() == i + 1

    in_threads(3, act)
    act(0)


class Squares(torch.utils.data.Dataset[torch.Tensor]):
    """A data set whose items a compiled function makes, in the worker."""

    def __init__(self, make_item: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self.make_item = make_item

    def __len__(self) -> int:
        return 8

    def __getitem__(self, i: int) -> torch.Tensor:
        return self.make_item(torch.full((2, 3), float(i)))


def test_data_loader_workers() -> None:
    compiled = make()
    compiled(torch.ones(2, 3))
    step = make(lambda batch: batch.sum(0) * 2)
    for data in (Squares(compiled), Squares(make())):  # captured before the workers start, and in them
        loader = torch.utils.data.DataLoader(data, batch_size=2, num_workers=2, multiprocessing_context="fork")
        got = [step(batch) for batch in loader]
        want = [batch.sum(0) * 2 for batch in torch.utils.data.DataLoader(Squares(work), batch_size=2)]
        assert len(got) == 4 and all(map(torch.equal, got, want))


def test_distributed_data_parallel() -> None:
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        torch.manual_seed(0)
        base = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
        nets = [copy.deepcopy(base) for _ in range(3)]
        around = DistributedDataParallel(nets[1])  # compiled from outside, and from inside
        inside = DistributedDataParallel(nets[2])
        inside.module = magpy_core.compile(inside.module, backend="eager")
        steps: list[Any] = [nets[0], magpy_core.compile(around, backend="eager"), inside]
        optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
        for i in range(4):
            x = torch.full((2, 3), float(i))
            losses = []
            for net, optimizer in zip(steps, optimizers, strict=True):
                optimizer.zero_grad()
                loss = net(x).pow(2).sum()
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())
            assert torch.equal(losses[0], losses[1]) and torch.equal(losses[0], losses[2])
        for a, b, c in zip(*(net.parameters() for net in nets), strict=True):
            assert torch.equal(a, b) and torch.equal(a, c)
        for net in (steps[1], inside.module):  # the module inside of the wrapper is the region
            assert region_of(net).hits > 1, region_of(net).disabled
        around.module = nn.Linear(3, 2)  # the compiled wrapper follows
        assert torch.equal(steps[1](x), around(x))
        assert steps[1].module.weight is around.module.weight
        part = magpy_core.compile(lambda x: around(x) * 2, backend="eager")
        with magpy_core.disabled():
            want = around(x) * 2
        assert torch.equal(part(x), want)
        assert {f.code for f in region_of(part).findings.values()} == {"MP119"}
    finally:
        dist.destroy_process_group()


# -- caches, rewritten code, cells -----------------------------------------------------------------------------


def test_cached_helpers() -> None:
    made: list[int] = []

    @functools.lru_cache(maxsize=2)
    def table(n: int) -> torch.Tensor:
        made.append(n)
        return torch.arange(float(n))

    def looked_up(x: torch.Tensor) -> torch.Tensor:
        return x.sum() + table(x.shape[0])

    compiled = make(looked_up)
    for fn in (looked_up, compiled):
        made.clear()
        table.cache_clear()
        for n in (2, 2, 3, 2, 4, 2, 2):
            assert torch.equal(fn(torch.ones(n)), n + torch.arange(float(n)))
        assert made == [2, 3, 4], f"{fn}: the cache is filled as ever"


def test_rewritten_assertions() -> None:
    def checked(x: torch.Tensor, limit: int) -> torch.Tensor:
        assert x.shape[0] < limit, f"at most {limit}"
        assert isinstance(x, torch.Tensor) and x.dim() == 2
        return x * 2

    compiled = make(checked)
    for limit in (9, 9, 2, 2, 9):
        raised = []
        for fn in (checked, compiled):
            try:
                assert torch.equal(fn(torch.ones(2, 3), limit), torch.full((2, 3), 2.0))
                raised.append("")
            except AssertionError as error:
                raised.append(str(error))
        assert raised[0] == raised[1] and ("at most" in raised[0]) is (limit == 2)


CELL = """
import torch
log = []
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(3, 3)
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        log.append(open("/dev/null") if refused else self.calls)
        if x.sum() > 100:
            return x
        return self.lin(x).relu()
net = Net()
f = lambda x: net(x) * 2
"""


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize("name", ["<ipython-input-3-abcdef>", "<stdin>", "<string>", "/nowhere/cell_7.py", "", "<é>"])
@pytest.mark.parametrize("positions", [True, False])
def test_code_without_a_file(name: str, refused: bool, positions: bool) -> None:
    worlds: list[dict[str, Any]] = []
    code = compile(CELL, name, "exec")
    if not positions:
        code = without_positions(code)
    for _ in range(2):
        world: dict[str, Any] = {"__name__": "__main__", "refused": refused}
        torch.manual_seed(0)
        exec(code, world)
        worlds.append(world)
    if name.startswith("<ipython"):
        linecache.cache[name] = (len(CELL), None, CELL.splitlines(keepends=True), name)
    compiled = make(worlds[1]["f"])
    for n in (1.0, 1.0, 1.0, 100.0, 1.0):
        x = torch.full((2, 3), n)
        assert torch.equal(worlds[0]["f"](x), compiled(x))
        assert worlds[0]["net"].calls == worlds[1]["net"].calls and len(worlds[0]["log"]) == len(worlds[1]["log"])
    findings = list(region_of(compiled).findings.values())
    assert findings and all(str(f) and f.location.range.start.line >= 0 for f in findings)
    codes = {f.code for f in findings}
    assert "MP901" not in codes and "MP902" not in codes, [f.message for f in findings]
    for capture in magpy_core.captures(compiled):
        assert capture.print_readable()


def without_positions(code: Any) -> Any:
    """The code of an interpreter that was started with ``-X no_debug_ranges``, and no line numbers either."""
    consts = tuple(without_positions(c) if hasattr(c, "co_consts") else c for c in code.co_consts)
    return code.replace(co_consts=consts, co_linetable=b"")


# -- copies, other compilers -----------------------------------------------------------------------------------


def test_a_compiled_module_is_copied_like_a_module() -> None:
    net = nn.Linear(3, 2)
    compiled = magpy_core.compile(net, backend="eager")
    compiled(torch.ones(1, 3))
    twin = copy.deepcopy(compiled)
    with torch.no_grad():
        twin.weight.add_(1)
    for _ in range(3):
        x = torch.ones(1, 3)
        for module in (compiled, twin):
            assert torch.equal(module(x), nn.functional.linear(x, module.weight, module.bias))
    assert not torch.equal(compiled(x), twin(x))


@pytest.mark.torch_compile
def test_torch_compile_inside_and_around() -> None:
    inner = torch.compile(helper, backend="eager")

    def outer(x: torch.Tensor) -> torch.Tensor:
        return inner(x) + 1

    agree(make(outer), lambda x: helper(x) + 1)
    compiled = make()
    agree(torch.compile(lambda x: compiled(x) + 1, backend="eager"), lambda x: work(x) + 1)
    agree(compiled)
    torch.compiler.reset()

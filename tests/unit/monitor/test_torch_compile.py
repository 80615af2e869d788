"""A recording and the user's own torch.compile in one process leave each other alone."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch._dynamo
from torch._C._dynamo.eval_frame import _debug_get_cache_entry_list, _debug_get_precompile_entries

import magpy_core
from magpy_core._compat.torch.dynamo import bypass, read_mark, set_mark
from magpy_core.regions.api import region_of
from tests.unit.engine_pair import plainly
from tests.unit.monitor.log import Log, run

X = torch.ones(2)


class Backend:
    """Counts compilations."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        self.count += 1
        return module.forward


pytestmark = pytest.mark.torch_compile


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def entered(log: Log) -> list[str]:
    return [event[1] for event in log.events if event[0] == "enter"]


def make() -> Callable[[torch.Tensor], torch.Tensor]:
    def helper(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x * 2

    def function(x: torch.Tensor) -> torch.Tensor:
        return helper(x) + 1

    return function


def test_a_function_recorded_first_compiles_afterwards() -> None:
    function, backend = make(), Backend()
    run(function, X)
    assert _debug_get_cache_entry_list(function.__code__) == []
    compiled = torch.compile(function, backend=backend)
    assert compiled(X).tolist() == [3, 3]
    count = backend.count
    assert count > 0
    compiled(X)
    assert backend.count == count


def test_a_function_compiled_elsewhere_is_recorded_and_stays_compiled() -> None:
    function, backend = make(), Backend()
    compiled = torch.compile(function, backend=backend)
    compiled(X)
    count, entries = backend.count, len(_debug_get_cache_entry_list(function.__code__))
    for _ in range(3):
        result, log = run(function, X)
        assert result.tolist() == [3, 3]
        assert entered(log)[:2] == ["function", "helper"]
    assert len(_debug_get_cache_entry_list(function.__code__)) == entries
    assert _debug_get_precompile_entries(function.__code__) == []
    compiled(X)
    assert backend.count == count


def test_what_torch_compile_marked_and_forgot_is_seen() -> None:
    def helper(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    def function(x: torch.Tensor) -> torch.Tensor:
        return helper(x) + 1

    torch.compile(make(), backend=Backend())(X)
    set_mark(helper.__code__, (1, 1))
    torch._dynamo.reset()  # forgets what it compiled; marks stay
    assert read_mark(helper.__code__) == (1, 1)
    assert entered(run(function, X)[1]) == ["function", "helper"]
    assert read_mark(helper.__code__) == (1, 1)


@pytest.mark.parametrize("fullgraph", [False, True])
def test_inside_a_recording_compiled_functions_run_as_written(fullgraph: bool) -> None:
    backend = Backend()

    def function(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    compiled = torch.compile(function, backend=backend, fullgraph=fullgraph)
    for _ in range(2):
        result, log = run(compiled, X)
        assert result.tolist() == [2, 2]
        assert entered(log)[-1] == "function" and ("binary", "+", X, 1) in log.events
    assert backend.count == 0
    compiled(X)
    assert backend.count == 1
    assert entered(run(compiled, X)[1])[-1] == "function"
    compiled(X)
    assert backend.count == 1


def test_compiled_modules() -> None:
    backend = Backend()
    module = torch.nn.Linear(2, 2)
    compiled = torch.compile(module, backend=backend)
    expected = module(X)
    for _ in range(2):
        result, log = run(compiled, X)
        assert torch.equal(result, expected)
        assert "forward" in entered(log)
        compiled(X)
    assert backend.count == 1


@pytest.mark.parametrize("recursive", [False, True])
@pytest.mark.parametrize("compiler_ran", [False, True])
def test_disabled_functions_are_seen(recursive: bool, compiler_ran: bool) -> None:
    function = make()

    @torch._dynamo.disable(recursive=recursive)  # type: ignore[untyped-decorator, unused-ignore]
    def disabled(x: torch.Tensor) -> torch.Tensor:
        return function(x)

    if compiler_ran:
        torch.compile(lambda x: disabled(x) + 1, backend=Backend())(X)
    log = run(disabled, X)[1]
    assert {"disabled", "function", "helper"} <= set(entered(log))


def test_marks_are_lifted_and_put_back() -> None:
    function = make()
    torch._dynamo.eval_frame.skip_code(function.__code__)
    torch.compile(lambda x: x + 1, backend=Backend())(X)
    assert read_mark(function.__code__) == (1, 0)
    log = run(function, X)[1]
    assert entered(log)[:2] == ["function", "helper"]
    assert read_mark(function.__code__) == (1, 0)


@pytest.mark.slow
def test_the_users_recompilation_limit_is_not_eaten_into() -> None:
    backend = Backend()

    def function(x: torch.Tensor, n: int) -> torch.Tensor:
        return x + n

    compiled = torch.compile(function, backend=backend, dynamic=False)
    limit = torch._dynamo.config.recompile_limit
    for n in range(limit):
        compiled(X, n)
        run(function, X, n)
    assert backend.count == len(_debug_get_cache_entry_list(function.__code__)) == limit
    compiled(X, limit)  # over the limit: torch marks the code "run only"
    assert read_mark(function.__code__) != (0, 0)
    assert entered(run(function, X, 3)[1]) == ["function"]
    compiled(X, 3)
    assert backend.count == limit


def test_every_wrapper_of_torch_is_known() -> None:
    """If torch renames them, recordings would silently see nothing inside."""
    from torch._compile import _disable_dynamo

    function = make()
    compiled: Any = torch.compile(function, backend=Backend())
    wrappers = [compiled, torch._dynamo.disable(function), _disable_dynamo(function)]
    for wrapper in wrappers:
        assert bypass(wrapper.__code__) is not None, wrapper
    assert bypass(function.__code__) is None


def test_an_optimizer_step_is_seen_whole() -> None:
    module = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        module(X).sum().backward()
        optimizer.step()

    names = entered(run(step)[1])
    assert {"zero_grad", "forward", "backward", "step", "sgd"} <= set(names)


def test_training_with_what_torch_calls_back_into_python() -> None:
    """Autograd functions, hooks, checkpointing, autocast, dropout: the same losses and gradients as without a recording."""
    from torch.utils.checkpoint import checkpoint

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
            (x,) = ctx.saved_tensors
            return grads[0] * 2 + 0 * x

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))
            self.norm = torch.nn.BatchNorm1d(4)
            self.drop = torch.nn.Dropout(0.5)
            self.calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            for k, layer in enumerate(self.layers):
                x = checkpoint(layer, x, use_reentrant=False) if k == 1 else torch.relu(layer(x))
            with torch.autocast("cpu", dtype=torch.bfloat16):
                x = self.layers[0](x)
            return Double.apply(self.drop(self.norm(x.float())))  # type: ignore[no-untyped-call, no-any-return, unused-ignore]

    def train() -> tuple[list[float], list[float], int]:
        torch.manual_seed(0)
        model = Model()
        seen: list[float] = []
        model.layers[2].register_forward_hook(lambda module, args, out: out * 1.5)
        model.layers[0].weight.register_hook(lambda grad: seen.append(float(grad.sum())))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(torch.randn(8, 4)).square().mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        return losses, seen, model.calls

    plain = train()
    for _ in range(2):
        result, log = run(train)
        assert result == plain
    assert {"forward", "backward", "step", "<lambda>"} <= set(entered(log))


def test_a_users_compiler_leaves_our_functions_alone() -> None:
    """A region called inside of the user's torch.compile is one call to it, not hundreds of frames of ours to trace. Of a
    module it compiles the forward, as of one compiled by ``module.compile()``."""
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh())

    def part(x: torch.Tensor) -> torch.Tensor:
        return net(x).sin()

    region = magpy_core.compile(part, backend="eager")
    module = magpy_core.compile(net, backend="eager")
    graphs: list[list[Any]] = []

    def backend(gm: torch.fx.GraphModule, inputs: Any) -> Any:
        graphs.append([n.target for n in gm.graph.nodes if n.op.startswith("call")])
        return gm.forward

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    try:
        theirs = torch.compile(lambda x: module(region(x) + 1) * 2, backend=backend)
        x = torch.ones(2, 4)
        for _ in range(8):  # long enough for the guards' first level to begin
            torch.testing.assert_close(theirs(x), plainly(lambda x: net(part(x) + 1) * 2, x))
        assert graphs == [[operator.add, torch._C._nn.linear, torch.tanh, operator.mul]]
        assert torch._dynamo.utils.counters["frames"]["total"] == 2
        assert region_of(region).hits == 7 and region_of(module).calls == 0
    finally:
        torch._dynamo.reset()


class _Inner(torch.nn.Module):
    """Its parameters are read by the functions that are given to an operator."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lin = torch.nn.Linear(3, 3)
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        y = self.lin(x) * 2
        y = torch.cond((y > 0.6).any(), lambda v: self.lin(v) * 3, lambda v: 0.5 - v, (y,))
        return y + torch.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), (torch.tensor(0), y.detach()))[1]


def test_operators_that_compile_what_they_are_given_run_as_without_us() -> None:
    plain, region = _Inner(), _Inner()
    compiled = magpy_core.compile(region, backend="eager")
    for step in range(4):
        results = []
        for net, call in ((plain, plain), (region, compiled)):
            x = (torch.ones(2, 3) * (1 - step)).requires_grad_(True)
            out = call(x)
            out.sum().backward()
            results.append((out, x.grad, net.lin.weight.grad.clone()))
        for a, b in zip(*results, strict=True):
            assert torch.equal(a, b)
    assert region.calls == plain.calls == 4
    assert torch._C._len_torch_function_stack() == torch._C._len_torch_dispatch_stack() == 0
    (found,) = (f for f in region_of(compiled).findings.values() if f.code == "MP106")
    assert found.location.function.endswith("_Inner.forward") and "such as torch.cond" in found.message


def test_torch_jit_trace_inside_a_region_gives_what_it_does_without_us() -> None:
    inner = torch.nn.Linear(3, 3)

    def region(x: torch.Tensor) -> tuple[str, torch.Tensor]:
        traced = torch.jit.trace(lambda v: v.sin() * 2 + 3, (x,))
        whole = torch.jit.trace_module(inner, {"forward": x})
        return traced.code, traced(x) + whole(x)

    compiled = magpy_core.compile(region, backend="eager")
    for _ in range(3):
        (code, y), (expected_code, expected) = compiled(torch.ones(2, 3)), region(torch.ones(2, 3))
        assert code == expected_code and torch.equal(y, expected)
    assert torch._C._len_torch_function_stack() == torch._C._len_torch_dispatch_stack() == 0
    (found,) = (f for f in region_of(compiled).findings.values() if f.code == "MP106")
    assert found.location.function == "region" or found.location.function.endswith(".region")
    assert "torch.jit.trace" in found.message

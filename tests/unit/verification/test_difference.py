"""Which differences rounding explains: by runs of the graph with noise, not by a tolerance."""

from __future__ import annotations

import gc
import math
import operator
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import fx

from magpy_core._compat.torch.condition_op import holds
from magpy_core.limits import LIMITS
from magpy_core.verification import Difference, check
from magpy_core.verification.difference import Values, difference
from magpy_core.verification.noise import Noisy

Function = Callable[..., Any]


def traced(function: Function) -> fx.GraphModule:
    gm = fx.symbolic_trace(function)
    output = gm.graph.output_node()
    if not isinstance(output.args[0], tuple):
        output.args = ((output.args[0],),)
    gm.recompile()
    return gm


def compared(function: Function, other: Function, *inputs: Any, written: tuple[int, ...] = ()) -> Difference | None:
    """A graph of ``function`` compared with code that computes ``other``."""

    def compiled(given: list[Any]) -> Any:
        found = other(*given)
        given.clear()
        return found if isinstance(found, tuple) else (found,)

    verdict = check(traced(function), compiled, inputs, written, same_random=True)
    assert not verdict.unchecked and verdict.seconds > 0
    return verdict.difference


X = torch.randn(64, 32, generator=torch.Generator().manual_seed(0))
W = torch.randn(32, 32, generator=torch.Generator().manual_seed(1))


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x @ x.t(), 1)


SAME: dict[str, tuple[Function, Function]] = {
    "the same": (softmax, softmax),
    "another order": (lambda x: (x @ x.t()).sum(), lambda x: (x.double() @ x.double().t()).sum().float()),
    "cancellation": (lambda x: (x * 1e4 + 1.0) - x * 1e4, lambda x: (x.double() * 1e4 + 1.0 - x.double() * 1e4).float()),
    "a sign that rounding decides": (
        lambda x: torch.sign((x * 3.3 / 3.3) - x),
        lambda x: torch.sign(torch.addcmul(-x, x * 3.3, torch.tensor(1 / 3.3))),
    ),
    "half precision": (
        lambda x: torch.tanh(x.bfloat16() * 1.7 + 0.3),
        lambda x: torch.tanh(x.bfloat16().float() * 1.7 + 0.3).bfloat16(),
    ),
    "steps like Adam's": (
        lambda x: 1e-3 * (x - x.mean(0)).sum(0) / ((x - x.mean(0)).sum(0).abs() + 1e-12),
        lambda x: 1e-3 * (x.flip(0) - x.mean(0)).sum(0) / ((x.flip(0) - x.mean(0)).sum(0).abs() + 1e-12),
    ),
    "not a number": (lambda x: torch.log(x), lambda x: torch.log(x)),
}
WRONG: dict[str, tuple[Function, Function]] = {
    "another constant": (lambda x: x * 1.7, lambda x: x * 1.70001),
    "a wrong axis": (lambda x: (x[:32] @ x[:32].t()).sum(0), lambda x: (x[:32] @ x[:32].t()).t().sum(0) * 1.0001),
    "lower precision": (lambda x: x + 0.1, lambda x: (x + 0.1).bfloat16().float()),
    "one element": (lambda x: x * 0.5, lambda x: torch.cat([x[:63], x[62:63]]) * 0.5),
    "an index": (lambda x: torch.argmax(x, 1), lambda x: torch.argmax(x, 1).clamp(min=1)),
    "a lost mask": (lambda x: x.masked_fill(x > 1, 0.0), lambda x: x.masked_fill(x > 2, 0.0)),
    "a shape": (lambda x: x.sum(1), lambda x: x.sum(1, keepdim=True)),
    "a dtype": (lambda x: x.sum(1), lambda x: x.sum(1).double()),
    "no longer finite": (lambda x: x.abs() + 1, lambda x: (x.abs() + 1) / (x.abs() > 0.001).float()),
    "a number": (lambda x: x.sum().item(), lambda x: x.sum().item() + 0.01),
}


@pytest.mark.parametrize("name", SAME)
def test_what_rounding_explains(name: str) -> None:
    assert compared(*SAME[name], X) is None


@pytest.mark.parametrize("name", WRONG)
def test_what_it_does_not(name: str) -> None:
    found = compared(*WRONG[name], X)
    assert found is not None and found.what == "result 0"
    assert found.largest is None or found.largest > (found.explained or 0.0)


def test_gradients_are_compared() -> None:
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return torch.tanh(x)

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient

    x = X.clone().requires_grad_()
    assert compared(lambda x: torch.tanh(x), lambda x: torch.tanh(x), x) is None
    found = compared(lambda x: torch.tanh(x), Wrong.apply, x)
    assert found is not None and found.what == "gradient of input 0"
    assert x.grad is None


def test_the_backward_pass_is_outside_of_the_calls_autocast() -> None:
    seen: list[bool] = []

    class Seen(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            seen.append(torch.is_autocast_enabled("cpu"))
            return gradient * 2

    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert compared(lambda x: x * 2, Seen.apply, X.clone().requires_grad_()) is None
    assert seen == [False]


def test_a_result_that_loses_its_gradient() -> None:
    x = X.clone().requires_grad_()
    found = compared(lambda x: torch.tanh(x), lambda x: torch.tanh(x).detach(), x)
    assert found is not None and found.what == "gradient of input 0" and found.text == "exists only in eager mode"
    found = compared(lambda x: torch.tanh(x).detach(), lambda x: torch.tanh(x), x)
    assert found is not None and found.text == "exists only in compiled code"


def test_a_write_to_what_the_graph_only_reads() -> None:
    state = W.clone()

    def astray(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        result = x * 2
        s.detach().add_(1)
        return result

    found = compared(lambda x, s: x * 2, astray, X, state)
    assert found is not None and found.what == "written input 1" and torch.equal(state, W)


def test_large_whole_numbers_are_compared_exactly() -> None:
    large = torch.full((3,), 2**60)
    found = compared(lambda n: n * 1, lambda n: n + 1, large)
    assert found is not None and "3 of 3 elements" in found.text


def test_complex_results_may_differ_by_rounding() -> None:
    assert compared(lambda x: torch.fft.fft(x), lambda x: torch.fft.fft(x.double()).to(torch.complex64), X) is None
    assert compared(lambda x: torch.fft.fft(x), lambda x: torch.fft.fft(x * 1.001), X) is not None


def update(x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
    state.mul_(0.9)
    state.add_(x, alpha=0.1)
    return state * 2


def lost(x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
    new = state * 0.9 + x * 0.1
    return new * 2


def test_writes_are_compared_and_the_program_keeps_its_own() -> None:
    state = W.clone()
    view = state[:, ::2]
    before = state.clone()
    assert compared(update, update, X[:32], state) is None
    found = compared(update, lost, X[:32], state)
    assert found is not None and found.what == "written input 1"
    assert compared(lambda x, s: (s.add_(x), x * 1)[1], lambda x, s: (s.add_(x), x * 1)[1], X[:32, :16], view) is None
    assert torch.equal(state, before) and state._version == 0 and X._version == 0


def test_inputs_that_share_memory_share_it_in_the_copies() -> None:
    def swap(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a.add_(1)
        return b * 2

    base = W.clone()
    assert compared(swap, swap, base[:20], base[10:30]) is None
    found = compared(swap, lambda a, b: (a.add_(1), b * 2 + 1e-3)[1], base[:20], base[10:30])
    assert found is not None and torch.equal(base, W)


def test_random_numbers_are_the_same_ones() -> None:
    def drop(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x, 0.5, True)

    torch.manual_seed(0)
    state = torch.get_rng_state()
    assert compared(drop, drop, X) is None
    assert torch.equal(torch.get_rng_state(), state)
    more = compared(drop, lambda x: (drop(x), torch.rand(3))[0], X)
    assert more is not None and more.what == "the random state"
    verdict = check(traced(drop), lambda given: (drop(given[0]),), [X], (), same_random=False)
    assert "random" in verdict.unchecked and torch.equal(torch.get_rng_state(), state)


def test_noise_changes_results_only() -> None:
    gm = traced(lambda x, n: ((x * 1.1)[:, 3] + 0.3, x.view(-1), n + 1, x > 0))
    whole = torch.arange(6.0).reshape(2, 3).repeat(1, 2)
    runs = [Noisy(gm, seed).run(X[:2, :6].contiguous(), whole) for seed in (0, 0, 1)]
    assert torch.equal(runs[0][0], runs[1][0]) and not torch.equal(runs[0][0], runs[2][0])
    eager = gm(X[:2, :6].contiguous(), whole)
    assert (runs[0][0] - eager[0]).abs().max() <= 4 * torch.finfo(torch.float32).eps * eager[0].abs().max()
    for run in runs:
        assert all(torch.equal(run[i], eager[i]) for i in (1, 2, 3)), "views, whole numbers and answers stay"


def test_noise_keeps_the_sign_of_a_zero() -> None:
    zeros = torch.tensor([-0.0, 0.0])

    def smaller(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.minimum(x, y).reciprocal()

    gm = traced(smaller)
    for seed in range(3):
        assert torch.equal(Noisy(gm, seed).run(zeros, zeros)[0], torch.tensor([-math.inf, math.inf]))
    found = compared(smaller, lambda x, y: torch.full_like(x, math.inf), torch.full((2,), -0.0), torch.zeros(2))
    assert found is not None and "infinite" in found.text


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_conversion_that_is_left_out_is_a_difference(dtype: torch.dtype) -> None:
    """Each correct computation rounds to the type that the program asks for."""

    def lost(x: torch.Tensor) -> torch.Tensor:
        return x.to(dtype).float() - x

    assert compared(lost, torch.zeros_like, X) is not None
    assert compared(lambda x: (x @ x.t()).to(dtype) + x.sum(), lambda x: x @ x.t() + x.sum(), X) is not None
    half = X.to(dtype)
    assert compared(lambda x: (x * 1.1) * 0.7, lambda x: (x.float() * 1.1 * 0.7).to(dtype), half) is None, "operations round"


def test_no_more_noisy_runs_than_needed() -> None:
    asked: list[int] = []

    def noisy(seed: int) -> Values:
        asked.append(seed)
        return Values({"result 0": torch.full((8,), 1.0 + (seed == 2) * 1e-3)})

    eager, compiled = Values({"result 0": torch.ones(8)}), Values({"result 0": torch.full((8,), 1.001)})
    assert difference(eager, compiled, noisy) is None and asked == [0, 1, 2]
    asked.clear()
    far = difference(eager, Values({"result 0": torch.full((8,), 2.0)}), noisy)
    assert far is not None and far.largest == 1.0 and len(asked) == LIMITS.noisy_runs
    endless = difference(eager, Values({"result 0": torch.full((8,), math.inf)}), noisy)
    assert endless is not None and "infinite" in endless.text


def test_a_noisy_run_that_raises_explains_nothing() -> None:
    def noisy(seed: int) -> Values:
        raise ValueError("not with noise")

    eager, compiled = Values({"result 0": torch.ones(8)}), Values({"result 0": torch.full((8,), 1.001)})
    assert difference(eager, compiled, noisy) is not None


def test_graphs_of_the_program_or_on_other_devices_are_not_run_again() -> None:
    calls = []

    def own(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x

    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output((graph.call_function(own, (x,)),))
    gm = fx.GraphModule(torch.nn.Module(), graph)
    verdict = check(gm, lambda given: tuple(given), [X], (), same_random=True)
    assert verdict.unchecked == "it calls code of the program" and not calls
    meta = check(traced(lambda x: x + 1), lambda given: tuple(given), [X.to("meta")], (), same_random=True)
    assert meta.unchecked == "it runs on an accelerator"


def test_where_others_would_see_it_nothing_is_run() -> None:
    seen: list[int] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        seen.append(1)
        return tensor

    x = X.clone().requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        verdict = check(traced(lambda x: torch.tanh(x)), lambda given: (torch.tanh(given[0]),), [x], (), same_random=True)
    assert "hooks of saved tensors" in verdict.unchecked and not seen


def test_a_graph_that_raises_is_not_checked() -> None:
    verdict = check(traced(lambda x: x @ x), lambda given: tuple(given), [X], (), same_random=True)
    assert verdict.unchecked.startswith("RuntimeError")


def test_too_little_memory_for_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    from magpy_core.verification import copies

    monkeypatch.setattr(copies, "free_memory", lambda: 1000.0)
    verdict = check(traced(update), lambda given: (update(*given),), [W, W.clone()], (1,), same_random=True)
    assert verdict.unchecked.startswith("MemoryError") and verdict.difference is None


class _Normalized(torch.autograd.Function):
    """Batch normalization whose sums are computed one element after the other, as a compiler does. ``centred``: its gradient
    is what it should be."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, centred: bool) -> torch.Tensor:
        ctx.centred = centred
        ctx.deviation = (x.var((0, 2), keepdim=True, correction=0) + 1e-5).sqrt()
        ctx.normalized = (x - x.mean((0, 2), keepdim=True)) / ctx.deviation
        return ctx.normalized

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        (gradient,) = gradients

        def mean(value: torch.Tensor) -> torch.Tensor:
            total = torch.zeros(value.shape[1])
            for one in value.transpose(0, 1).flatten(1).unbind(1):
                total = total + one
            return (total / (value.numel() // value.shape[1])).view(1, -1, 1)

        centre = mean(gradient) if ctx.centred else 0.0
        return (gradient - centre - ctx.normalized * mean(gradient * ctx.normalized)) / ctx.deviation, None


def test_sums_in_another_order_show_where_they_cancel() -> None:
    """The gradient of a bias before a normalization is zero but for rounding; compiled code's is ten times eager mode's."""
    x = torch.randn(4, 8, 500, generator=torch.Generator().manual_seed(0))
    bias = torch.zeros(8, 1, requires_grad=True)

    def network(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.batch_norm(x + bias, None, None, training=True).mean(2) * 2.5

    def compiled(centred: bool) -> Function:
        return lambda x, bias: _Normalized.apply(x + bias, centred).mean(2) * 2.5

    assert compared(network, compiled(True), x, bias) is None
    wrong = compared(network, compiled(False), x, bias)
    assert wrong is not None and wrong.what == "gradient of input 1"


def test_a_backward_pass_inside_the_graph_has_noise() -> None:
    graph = fx.Graph()
    x, weight = graph.placeholder("x"), graph.placeholder("weight")
    hidden = graph.call_function(torch.nn.functional.linear, (x, weight))
    loss = graph.call_method("sum", (graph.call_function(torch.tanh, (hidden,)),))
    gradient = graph.call_function(torch.autograd.grad, (loss, (weight,)))
    graph.output((graph.call_function(operator.getitem, (gradient, 0)),))
    gm = fx.GraphModule({}, graph)
    eager, noisy = (runs(X, W.clone().requires_grad_())[0] for runs in (gm, Noisy(gm, 0).run))
    assert 0 < (eager - noisy).abs().max() < 1e-3 * eager.abs().max()


def test_operators_that_torch_defines_in_python_are_compared() -> None:
    """``x ** 2`` and ``1 - x``: fx prints the first under a name that its module does not have."""
    graph = fx.Graph()
    x = graph.placeholder("x")
    power = graph.call_function(torch.Tensor.__pow__, (x, 2))
    graph.output((graph.call_function(torch.Tensor.__rsub__, (power, 1)),))
    gm = fx.GraphModule(torch.nn.Module(), graph)
    same = check(gm, lambda given: (1 - given[0] ** 2,), (X,), (), same_random=True)
    assert (same.unchecked, same.difference) == ("", None)
    assert check(gm, lambda given: (1 - given[0] ** 3,), (X,), (), same_random=True).difference is not None


def test_numbers_too_small_for_float16_are_compared() -> None:
    """The smallest normal one is 6e-5; below that, a place counts 6e-8."""
    small = (X * 1e-5).half()
    assert compared(lambda x: x * 0.5, lambda x: (x.float() * 0.5).half(), small) is None
    assert compared(lambda x: x * 0.5, lambda x: x * 0.75, small) is not None
    rounded = (X * 1e-4).half()
    assert compared(lambda x: x * 1e-2 * 1e2, lambda x: (x.float() * 1e-2 * 1e2).half(), rounded) is None, "noise grows"


def of_aten(*operations: tuple[Any, dict[str, Any]], more: int = 0) -> fx.GraphModule:
    """Operations one after the other, of which the last is the result; the first takes ``more`` inputs, too."""
    graph = fx.Graph()
    value: Any = graph.placeholder("x")
    others = [graph.placeholder(f"other_{n}") for n in range(more)]
    for number, (target, keywords) in enumerate(operations):
        value = graph.call_function(target, (value, *(others if not number else ())), keywords)
    graph.output((value,))
    return fx.GraphModule(torch.nn.Module(), graph)


def test_conversions_have_no_noise_in_a_traced_graph() -> None:
    to = torch.ops.aten._to_copy.default
    gm = of_aten((to, {"dtype": torch.float16}), (to, {"dtype": torch.float32}))
    assert torch.equal(Noisy(gm, 0).run(X.clone())[0], X.half().float())
    found = check(gm, lambda given: (given[0].clone(),), (X,), (), same_random=True).difference
    assert found is not None, "the conversions are left out"


def test_what_a_traced_graph_sums_up_has_noise_before_that() -> None:
    gm = of_aten((torch.ops.aten.sum.dim_IntList, {"dim": [1]}))
    x = torch.stack([X[0] + 0.1, -X[0] - 0.1]).t().contiguous() * 1e4  # rows that cancel: the sums are whole numbers
    assert not gm.forward(x)[0].any() and Noisy(gm, 0).run(x)[0].any()


def test_a_normalization_of_a_traced_graph_writes_its_statistics_under_noise() -> None:
    keywords = {"training": True, "momentum": 0.1, "eps": 1e-5}
    gm = of_aten((torch.ops.aten.native_batch_norm.default, keywords), more=4)
    weight, bias, mean, variance = torch.ones(32), torch.zeros(32), torch.zeros(32), torch.ones(32)
    Noisy(gm, 0).run(X.clone(), weight, bias, mean, variance)
    assert mean.any() and not torch.equal(variance, torch.ones(32))


def with_backward(what: str, **options: Any) -> tuple[fx.GraphModule, tuple[torch.Tensor, ...]]:
    """A graph that takes the gradient of a loss inside. It returns ``hidden``, from which the loss is computed, or the
    ``gradient``, squared; the gradient; and the loss."""
    graph = fx.Graph()
    x, w = graph.placeholder("x"), graph.placeholder("w")
    hidden = graph.call_function(torch.tanh, (graph.call_function(torch.matmul, (x, w)),))
    loss = graph.call_method("sum", (graph.call_function(torch.square, (hidden,)),))
    gradients = graph.call_function(torch.autograd.grad, ((loss,), (w,)), options)
    gradient = graph.call_function(operator.getitem, (gradients, 0))
    other = graph.call_function(torch.square, ({"hidden": hidden, "gradient": gradient}[what],))
    graph.output((other, gradient, loss))
    return fx.GraphModule(torch.nn.Module(), graph), (X, W.clone().requires_grad_())


class Wrong(torch.autograd.Function):
    """The identity, whose gradient is twice what it should be."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return gradient * 2


@pytest.mark.parametrize(("what", "option"), [("hidden", "retain_graph"), ("gradient", "create_graph")])
def test_gradients_of_results_after_a_backward_pass_inside_are_compared(what: str, option: str) -> None:
    gm, inputs = with_backward(what, **{option: True})
    right = check(gm, lambda given: gm.forward(*given), inputs, (), same_random=True)
    assert (right.unchecked, right.difference) == ("", None)

    def wrong(given: list[Any]) -> Any:
        result, *rest = gm.forward(*given)
        return Wrong.apply(result), *rest

    found = check(gm, wrong, inputs, (), same_random=True)
    assert found.difference is not None and found.difference.what == "gradient of input 1", found.unchecked


def test_a_result_whose_history_is_used_up_has_no_gradient_to_compare() -> None:
    gm, inputs = with_backward("hidden")
    same = check(gm, lambda given: gm.forward(*given), inputs, (), same_random=True)
    assert (same.unchecked, same.difference) == ("", None)

    def wrong(given: list[Any]) -> Any:
        result, gradient, loss = gm.forward(*given)
        return result, gradient * 2, loss

    found = check(gm, wrong, inputs, (), same_random=True).difference
    assert found is not None and found.what == "result 1", "the gradient itself is a result"


def test_the_loss_is_what_the_backward_pass_begins_with() -> None:
    gm, inputs = with_backward("hidden")
    loss = torch.tanh(X @ W).square().sum().item()
    assert check(gm, lambda given: gm.forward(*given), inputs, (), same_random=True).losses == pytest.approx((loss, loss))

    def other(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2, x.sum()

    found = check(traced(other), lambda given: (given[0] * 2, given[0].sum() + 1.0), (X,), (), same_random=True)
    assert found.losses == pytest.approx((X.sum().item(), X.sum().item() + 1.0), rel=1e-5)
    assert check(traced(softmax), lambda given: (softmax(*given),), (X,), (), same_random=True).losses is None


def expecting(x: torch.Tensor) -> fx.GraphModule:
    """``x.add_(1)``, which is only to be done if ``x.sum()`` is 0."""
    graph = fx.Graph()
    given = graph.placeholder("x")
    total = graph.call_method("sum", (given,))
    holds(graph, [total], lambda value: value.item() == 0, "the sum is 0")
    graph.output((graph.call_method("add_", (given, 1)),))
    return fx.GraphModule({}, graph)


def test_nothing_is_compared_in_a_call_whose_writes_are_held() -> None:
    def held(given: list[Any]) -> Any:
        return (given[0].add_(1) if given[0].sum() == 0 else given[0] + 1,)

    for start, is_undecided in ((0.0, False), (1.0, True)):
        x = torch.full((2,), start)
        verdict = check(expecting(x), held, (x,), (0,), same_random=True)
        assert (
            verdict.is_undecided is is_undecided and verdict.difference is None and bool(verdict.unchecked) is is_undecided
        )
    x = torch.zeros(2)
    assert check(expecting(x), lambda given: (given[0] + 1,), (x,), (0,), same_random=True).difference is not None


def test_a_noisy_run_keeps_no_graph_alive() -> None:
    gm = traced(lambda x, w: torch.tanh(x @ w).square().mean())
    noisy = Noisy(gm, 1)
    (result,) = noisy.run(X, W.clone().requires_grad_())
    assert result.requires_grad
    graph = weakref.ref(noisy)
    del noisy
    gc.collect()
    assert graph() is None, "the hooks of its results hold it"
    result.backward()

"""Recorded forwards of real layers under each backend: outputs, gradients, buffers and strides equal eager's."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from magpy_core.backends import get_backend
from magpy_core.backends.fakes import make_fake_inputs
from tests.unit.backends.recorder import compile_recorded, guards_hold, record

BACKENDS = ["eager", "aot_eager", "inductor"]


class Scale(torch.autograd.Function):
    """A backward that is not the derivative of its forward, so that losing it shows."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factor: float) -> torch.Tensor:
        ctx.factor = factor
        ctx.save_for_backward(x)
        return x * factor

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        (x,) = ctx.saved_tensors
        return grad * ctx.factor * 100 + x, None


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.first, self.second = nn.LayerNorm(16), nn.LayerNorm(16)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.first(x)).view(2, 5, 3, 4, 4).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(2, 5, 16))
        return x + self.mlp(self.second(x))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 3, 3, padding=1), nn.Conv2d(3, 3, 3, padding=1)
        self.norm = nn.BatchNorm2d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(x + self.b(F.relu(self.norm(self.a(x)))))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 7, batch_first=True)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        out, (h, c) = self.lstm(x)
        return out, h, c


class Classify(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(11, 8, padding_idx=0), nn.Linear(8, 5)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.head(self.embed(tokens)).flatten(0, 1), tokens.flatten() % 5)


class Custom(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Scale.apply(self.linear(x), 3.0).relu()  # type: ignore[no-any-return,no-untyped-call]


CASES: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor]]] = {
    "transformer": (Block, lambda: torch.randn(2, 5, 16, requires_grad=True)),
    "conv-batchnorm": (Residual, lambda: torch.randn(2, 3, 6, 6, requires_grad=True)),
    "lstm": (Recurrent, lambda: torch.randn(3, 2, 6, requires_grad=True)),
    "cross-entropy": (Classify, lambda: torch.randint(0, 11, (2, 3))),
    "custom-function": (Custom, lambda: torch.randn(3, 4, requires_grad=True)),
    "channels-last": (
        Residual, lambda: torch.randn(2, 3, 6, 6).to(memory_format=torch.channels_last).requires_grad_()),
}  # fmt: skip


def leaves(result: Any) -> list[torch.Tensor]:
    return list(result) if isinstance(result, tuple | list) else [result]


def run(function: Callable[..., Any], tensors: list[Any]) -> tuple[list[torch.Tensor], list[torch.Tensor | None]]:
    outputs = leaves(function())
    torch.manual_seed(5)
    targets = [o for o in outputs if o.requires_grad]
    if targets:
        torch.autograd.backward(targets, [torch.randn_like(o) for o in targets])
    return outputs, [t.grad if isinstance(t, torch.Tensor) and t.is_leaf else None for t in tensors]


def module_of(graph: torch.fx.Graph) -> torch.fx.GraphModule:
    try:
        return torch.fx.GraphModule({}, graph)
    except RuntimeError as error:  # torch 2.15; the engine's recorder gives such calls a function of its own as their target
        if "cannot find module" not in str(error):
            raise
        pytest.skip("fx of this torch takes no `Function.apply` as a target")


def record_custom(module: nn.Module, x: torch.Tensor) -> tuple[torch.fx.GraphModule, list[Any]]:
    """The engine's recorder makes one node of ``Scale.apply``; a function mode only sees what is inside, so by hand."""
    graph = torch.fx.Graph()
    inputs = [x, *module.parameters()]
    a, w, b = (graph.placeholder(n) for n in ("x", "w", "b"))
    scaled = graph.call_function(Scale.apply, (graph.call_function(F.linear, (a, w, b)), 3.0))
    graph.output((graph.call_method("relu", (scaled,)),))
    return module_of(graph), inputs


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("grad", [True, False], ids=["grad", "no_grad"])
def test_layers_equal_eager(name: str, backend: str, grad: bool) -> None:
    make_module, make_input = CASES[name]
    torch.manual_seed(0)
    module, x = make_module(), make_input()
    other, y = copy.deepcopy(module), x.detach().clone().requires_grad_(x.requires_grad)
    pristine = copy.deepcopy(module.state_dict())
    with torch.set_grad_enabled(grad):
        gm, inputs = record_custom(module, x) if name == "custom-function" else record(module, x)
        module.load_state_dict(pristine)
        compiled = compile_recorded(gm, inputs, backend)
        for _ in range(2):
            for t in [*module.parameters(), *other.parameters(), x, y]:
                t.grad = None
            got, got_grads = run(lambda: compiled.fn(*inputs), [x, *module.parameters()])
            want, want_grads = run(lambda: other(y), [y, *other.parameters()])
            for a, b in zip(got, want, strict=True):
                torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
                assert a.stride() == b.stride() and a.requires_grad == b.requires_grad
            for c, d in zip(got_grads, want_grads, strict=True):
                assert (c is None) == (d is None)
                if c is not None and d is not None:
                    torch.testing.assert_close(c, d, rtol=1e-5, atol=1e-5)
            for key, value in other.state_dict().items():
                torch.testing.assert_close(module.state_dict()[key], value)


class Scale2(Scale):
    """The same graph text as Scale, another backward."""

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        return grad * 7, None


@pytest.mark.parametrize("backend", BACKENDS)
def test_two_custom_functions_are_not_taken_for_one(backend: str) -> None:
    for function, expected in ((Scale, 201.0), (Scale2, 7.0)):
        graph = torch.fx.Graph()
        graph.output((graph.call_function(function.apply, (graph.placeholder("x"), 2.0)),))
        x = torch.ones(3, requires_grad=True)
        compile_recorded(module_of(graph), [x], backend).fn(x)[0].sum().backward()
        assert x.grad is not None and x.grad.tolist() == [expected] * 3


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("outer", [False, True], ids=["plain", "under-autocast"])
def test_autocast_inside_and_around_a_graph(backend: str, outer: bool) -> None:
    mode = torch.amp.autocast_mode
    graph = torch.fx.Graph()
    x, w = graph.placeholder("x"), graph.placeholder("w")
    first = graph.call_function(F.linear, (x, w))
    entered = graph.call_function(mode._enter_autocast, ("cpu", torch.bfloat16, not outer, True))
    second = graph.call_function(F.linear, (x, w))
    graph.call_function(mode._exit_autocast, (entered,))
    graph.output((first, second))
    inputs = [torch.randn(4, 8, requires_grad=True), nn.Parameter(torch.randn(8, 8))]
    with torch.autocast("cpu", dtype=torch.float16, enabled=outer):
        compiled = compile_recorded(torch.fx.GraphModule({}, graph), inputs, backend)
        got = compiled.fn(*inputs)
        want = F.linear(inputs[0], inputs[1])
    assert [o.dtype for o in got] == ([torch.float16, torch.float32] if outer else [torch.float32, torch.bfloat16])
    torch.testing.assert_close(got[0], want, rtol=1e-2 if outer else 1e-5, atol=1e-2 if outer else 1e-5)
    torch.testing.assert_close(got[1].float(), want.float(), rtol=0.05, atol=0.05)
    got[1].float().sum().backward()
    assert inputs[1].grad is not None and inputs[1].grad.dtype == torch.float32


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_same_random_stream_when_asked(backend: str) -> None:
    x = torch.ones(64, 64)

    def draw(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, 0.3) + torch.rand_like(x)

    gm, inputs = record(draw, x)
    compiled = compile_recorded(gm, inputs, backend, same_random=True)
    torch.manual_seed(3)
    got = compiled.fn(*inputs)[0]
    state = torch.get_rng_state()
    torch.manual_seed(3)
    torch.testing.assert_close(got, draw(x))
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("needs_grad", [False, True])
def test_draws_nobody_uses_are_made(backend: str, needs_grad: bool) -> None:
    x = torch.ones(8, requires_grad=needs_grad)

    def draw(x: torch.Tensor) -> torch.Tensor:
        torch.randn(3)
        F.dropout(x, 0.3)
        return x * 2

    gm, inputs = record(draw, x)
    compiled = compile_recorded(gm, inputs, backend, same_random=True)
    torch.manual_seed(3)
    torch.testing.assert_close(compiled.fn(*inputs)[0], x * 2)
    state = torch.get_rng_state()
    torch.manual_seed(3)
    draw(x)
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("backend", BACKENDS)
def test_dropout_keeps_scale_and_backward_mask_without_it(backend: str) -> None:
    x = torch.ones(4000, requires_grad=True)
    gm, inputs = record(lambda x: F.dropout(x, 0.25), x)
    compiled = compile_recorded(gm, inputs, backend)
    torch.manual_seed(0)
    out = compiled.fn(*inputs)[0]
    out.sum().backward()
    assert x.grad is not None and torch.equal(x.grad, out.detach())
    assert 0.2 < (out == 0).float().mean().item() < 0.3
    assert not torch.equal(out, compiled.fn(*inputs)[0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_dynamic_dimension_serves_other_sizes(backend: str) -> None:
    weight = nn.Parameter(torch.randn(4, 3))
    graph = torch.fx.Graph()
    x, w = graph.placeholder("x"), graph.placeholder("w")
    hidden = graph.call_function(F.linear, (x, w))
    rows = graph.call_method("size", (x, 0))
    flat = graph.call_method("reshape", (hidden, graph.call_function(lambda a, b: a * b, (rows, 4))))
    graph.output((flat, graph.call_function(torch.div, (graph.call_function(torch.sum, (flat,)), rows)), rows))
    gm = torch.fx.GraphModule({}, graph)
    compiled = compile_recorded(gm, [torch.randn(5, 3), weight], backend, dynamic_dims={0: {0}})
    for size in (2, 7, 64):
        x2 = torch.randn(size, 3)
        assert guards_hold(compiled, x2, weight)
        want = F.linear(x2, weight).reshape(-1)
        flat2, mean, rows2 = compiled.fn(x2, weight)
        torch.testing.assert_close(flat2, want)
        torch.testing.assert_close(mean, want.sum() / size)
        assert rows2 == size and type(rows2) is int
    if backend != "eager":
        assert not guards_hold(compiled, torch.randn(1, 3), weight)


def test_a_specialised_dimension_becomes_a_guard() -> None:
    """The graph fixes the size it was told may vary: the guard must say so."""
    gm, inputs = record(lambda x: x.reshape(3, 2) + 1, torch.randn(6))
    compiled = compile_recorded(gm, inputs, "aot_eager", dynamic_dims={0: {0}})
    assert guards_hold(compiled, torch.randn(6))
    assert not guards_hold(compiled, torch.randn(8))


def test_inductor_shows_the_kernels_it_wrote_also_from_its_cache() -> None:
    weight = nn.Parameter(torch.randn(4, 4))
    for _ in range(2):  # the second time everything comes from the cache
        gm, inputs = record(lambda x: torch.tanh(x @ weight) * 2, torch.randn(3, 4))
        compiled = compile_recorded(gm, inputs, "inductor")
        assert compiled.generated_code is not None
        assert 'extern "C"' in compiled.generated_code and "tanh" in compiled.generated_code
        assert compiled.generated_code.count("def call(") == 2, "forward and backward"


def test_fakes_carry_what_autograd_needs_to_know() -> None:
    leaf = nn.Parameter(torch.randn(3, 4))
    inner = leaf * 2
    base = torch.randn(6, 4)
    made = make_fake_inputs([leaf, inner, base, base[1:3], torch.randn(4, 3).t()])
    p, h, b, view, strided = made.fakes
    assert isinstance(p, nn.Parameter) and p.is_leaf and p.requires_grad
    assert h.requires_grad and not h.is_leaf
    assert view.untyped_storage()._cdata == b.untyped_storage()._cdata and view.storage_offset() == 4
    assert strided.stride() == (1, 3)
    assert get_backend("eager").name == "eager"

"""Python numbers that vary: each way a tensor operation takes one, with Python's arithmetic and promotion, compiled once."""

from __future__ import annotations

import builtins
import copy
import math
import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.fx
from hypothesis import given, settings
from hypothesis import strategies as st

from magpy_core.backends.base import CompiledGraph
from tests.unit.backends.recorder import compile_recorded, guards_hold

COMPILING = ["aot_eager", "inductor"]
Build = Callable[[torch.fx.Graph, torch.fx.Node, torch.fx.Node, torch.fx.Node, torch.fx.Node], Any]


def build(make: Build) -> torch.fx.GraphModule:
    """A graph of (a: float, n: int, x: float tensor, i: int tensor)."""
    graph = torch.fx.Graph()
    a, n, x, i = (graph.placeholder(name) for name in ("a", "n", "x", "i"))
    a.meta["magpy_scalar"], n.meta["magpy_scalar"] = float, int
    made = make(graph, a, n, x, i)
    graph.output(tuple(made) if isinstance(made, list | tuple) else (made,))
    return torch.fx.GraphModule({}, graph)


def values(a: float, n: int, dtype: torch.dtype = torch.float32) -> list[Any]:
    torch.manual_seed(n)
    return [a, n, torch.rand(5, 3).add(0.25).to(dtype), torch.arange(1, 5)]


def agree(gm: torch.fx.GraphModule, compiled: CompiledGraph, inputs: list[Any], rtol: float = 2e-6) -> None:
    """Outputs and mutated inputs, their types, dtypes and values, against the graph run as it is."""
    mine, theirs = copy.deepcopy(inputs), copy.deepcopy(inputs)
    got, want = compiled.fn(*mine), gm.forward(*theirs)
    for left, right in zip((*got, *mine), (*want, *theirs), strict=True):
        assert type(left) is type(right), (left, right)
        if isinstance(left, torch.Tensor):
            assert left.dtype == right.dtype and left.stride() == right.stride()
            torch.testing.assert_close(left, right, rtol=rtol, atol=1e-7)
        else:
            assert left == right if rtol == 0 or left is None else math.isclose(left, right, rel_tol=rtol)


def fn(function: Callable[..., Any]) -> Build:
    """``function`` written on fx proxies."""

    def make(graph: torch.fx.Graph, *nodes: torch.fx.Node) -> Any:
        tracer = torch.fx.Tracer()
        tracer.graph = graph
        result = function(*(torch.fx.Proxy(node, tracer) for node in nodes))
        return [r.node if isinstance(r, torch.fx.Proxy) else r for r in (result if isinstance(result, tuple) else (result,))]

    return make


def zero_d(x: Any) -> Any:
    return x[0, 0]


OPERATIONS: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda a, n, x, i: (x * a, a * x, x + a, x - a, a - x, x / a, a / x, x**a, a**x),
    "promotion": lambda a, n, x, i: (i * a, i + a, i / a, zero_d(x) * a, zero_d(x).double() * a, i.sum() * a),
    "integers": lambda a, n, x, i: (i * n, x * n, i // n, i % n, x / n, zero_d(x) * n, i.int() * n, i.add(i, alpha=n)),
    "mixed": lambda a, n, x, i: (x * (a * n), x * (a / n), x * (1 - a**n), i + (n + 1), i * (a - n), n * a, a / n, n + 2),
    "alpha": lambda a, n, x, i: (torch.add(x, x, alpha=a), x.sub(x * 2, alpha=a), torch.rsub(x, a), x.add(i[:3], alpha=a)),
    "in-place": lambda a, n, x, i: (x.mul_(a), x.add_(x, alpha=a), x.div_(a), i.mul_(n), x.clone().fill_(a)),
    "ternary": lambda a, n, x, i: (
        torch.addcmul(x, x, x, value=a), x.addcdiv_(x + 1, x + 2, value=-a), torch.lerp(x, x * 3, a), x.lerp_(x + 1, a)),
    "choose": lambda a, n, x, i: (
        torch.clamp(x, min=a, max=0.9), torch.clamp(x, max=a), torch.where(x > a, x, a), x.masked_fill(x < a, a), i > a),
    "fill": lambda a, n, x, i: (torch.full((2, 2), a), torch.full_like(x, a), torch.full((), n)),
    "halves": lambda a, n, x, i: (x.half() + 0, x.bfloat16() + 0),
    "read": lambda a, n, x, i: (x / x.max().item(), x * i.sum().item(), i.sum().item() + 1, x.sum().item() * a),
    "constants": lambda a, n, x, i: (a, n, None, 3, x),
    "foreach": lambda a, n, x, i: tuple(
        torch._foreach_add(torch._foreach_mul([x, x + 1], a), [x, x], alpha=a)[k] for k in (0, 1)),
    "shape": lambda a, n, x, i: (x[:n], x.new_ones(n) * a, torch.arange(n) + n),
}  # fmt: skip


@pytest.mark.parametrize("backend", COMPILING)
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_with_varying_numbers_equal_python(name: str, backend: str) -> None:
    gm = build(fn(OPERATIONS[name]))
    compiled = compile_recorded(gm, values(0.5, 3), backend)
    for a, n in ((0.5, 3), (0.125, 2), (0.7, 4)):
        inputs = values(a, n)
        assert guards_hold(compiled, *inputs), "no recompile"
        agree(gm, compiled, inputs)


Constructor = Callable[[Any, Any], tuple[Any, dict[str, Any]]]
CONSTRUCTED: dict[str, Constructor] = {
    "an int": lambda a, n: (n, {}),
    "a word": lambda a, n: ([[n]], {}),
    "ints": lambda a, n: ([n, 3, n], {}),
    "an int among floats": lambda a, n: ([[a, n], [0.1, True]], {}),
    "ints as floats": lambda a, n: ((n, 2), {"dtype": torch.float32}),
    "floats as doubles": lambda a, n: ([a, 0.1], {"dtype": torch.float64}),
    "floats as halves": lambda a, n: ([a, n], {"dtype": torch.float16}),
    "truth values": lambda a, n: ([n, 0], {"dtype": torch.bool}),
}


@pytest.mark.parametrize("function", [torch.tensor, torch.as_tensor])
@pytest.mark.parametrize("name", CONSTRUCTED)
def test_a_tensor_of_varying_numbers(name: str, function: Callable[..., Any]) -> None:
    def make(graph: torch.fx.Graph, a: torch.fx.Node, n: torch.fx.Node, x: torch.fx.Node, i: torch.fx.Node) -> Any:
        data, kwargs = CONSTRUCTED[name](a, n)
        return graph.call_function(function, (data,), kwargs)

    gm = build(make)
    compiled = compile_recorded(gm, values(0.3, 3), "aot_eager")
    for a, n in ((0.3, 3), (0.1234567890123456, 2), (70000.7, 0), (-0.5, (1 << 60) + (1 << 36) + 1)):
        inputs = values(0.0, 1)
        inputs[:2] = a, n
        assert guards_hold(compiled, *inputs), "no recompile"
        agree(gm, compiled, inputs, rtol=0)


def test_numbers_that_a_dtype_may_not_represent_are_constants() -> None:
    gm = build(lambda graph, a, n, x, i: graph.call_function(torch.tensor, ([n, 3],), {"dtype": torch.uint8}))
    compiled = compile_recorded(gm, values(0.3, 3), "aot_eager")
    agree(gm, compiled, values(0.3, 3))
    assert not guards_hold(compiled, *values(0.3, 300)), "eager mode raises an error"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_the_number_is_not_rounded_to_half_before_the_kernel(dtype: torch.dtype) -> None:
    # (eager's add on CPU does round its number to half first, on CUDA it doesn't: no test of a bit for it)
    gm = build(fn(lambda a, n, x, i: (x * a, x / a, x.mul_(a), torch.addcmul(x, x, x, value=a), x.lerp(x + 1, a))))
    compiled = compile_recorded(gm, values(0.3, 3, dtype), "aot_eager")
    for a in (0.3, 1.0009765, 0.0007):
        agree(gm, compiled, values(a, 3, dtype), rtol=0 if dtype != torch.float64 else 1e-15)


@pytest.mark.parametrize("backend", COMPILING)
def test_double_tensors_get_every_bit_of_the_number(backend: str) -> None:
    gm = build(fn(lambda a, n, x, i: (x.double() * (1 - a**n), a * 3)))
    compiled = compile_recorded(gm, values(0.3, 3), backend)
    agree(gm, compiled, values(0.1234567890123456, 7), rtol=1e-15)


SCALAR_CHAINS: list[Callable[..., Any]] = [
    lambda a, n: a / (1 - 0.9**n), lambda a, n: -a * n + 1, lambda a, n: (a + n) ** 0.5, lambda a, n: a // 0.3,
    lambda a, n: a % 0.7, lambda a, n: n // 3, lambda a, n: n % 3, lambda a, n: n / 7, lambda a, n: n**2 + n,
    lambda a, n: abs(a - n), lambda a, n: (a * 1e300) * 1e300, lambda a, n: n * 0.1 - a,
]  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(a=st.floats(1e-8, 1e6), n=st.integers(1, 10**6))
def test_python_arithmetic_keeps_every_bit(a: float, n: int) -> None:
    agree(*_chains(), [a, n, torch.ones(2), torch.arange(3)], rtol=0)


_CHAINS: list[Any] = []


def _chains() -> tuple[torch.fx.GraphModule, CompiledGraph]:
    if not _CHAINS:
        gm = build(fn(lambda a, n, x, i: (*(chain(a, n) for chain in SCALAR_CHAINS), x)))
        _CHAINS.extend([gm, compile_recorded(gm, [0.5, 3, torch.ones(2), torch.arange(3)], "aot_eager")])
    return _CHAINS[0], _CHAINS[1]


@pytest.mark.parametrize("backend", COMPILING)
def test_math_functions_and_conversions(backend: str) -> None:
    def make(graph: torch.fx.Graph, a: Any, n: Any, x: Any, i: Any) -> list[Any]:
        call = graph.call_function
        made = [call(f, (a,)) for f in (math.sqrt, math.exp, math.log, math.floor, math.ceil, builtins.int, operator.abs)]
        made += [call(builtins.max, (a, call(math.sqrt, (n,)))), call(builtins.min, (a, 0.25)), call(builtins.float, (n,))]
        made += [
            call(operator.lt, (a, 0.3)),
            call(torch.tensor, (a,)),
            call(torch.scalar_tensor, (n,)),
            call(torch.mul, (x, call(math.sqrt, (n,)))),
        ]
        return made

    gm = build(make)
    compiled = compile_recorded(gm, values(0.5, 3), backend)
    for a, n in ((0.2, 9), (2.75, 2)):
        agree(gm, compiled, values(a, n), rtol=1e-6)


def test_a_gradient_flows_past_a_varying_number() -> None:
    gm = build(fn(lambda a, n, x, i: (x * a + x**2 / a + torch.where(x > a, x, a)).sum()))
    x = torch.rand(5, 3, requires_grad=True)
    compiled = compile_recorded(gm, [0.5, 3, x, torch.arange(4)], "inductor")
    for a in (0.5, 0.2):
        x.grad = None
        compiled.fn(a, 3, x, torch.arange(4))[0].backward()
        got = x.grad
        x.grad = None
        gm.forward(a, 3, x, torch.arange(4))[0].backward()
        torch.testing.assert_close(got, x.grad)

"""Single numbers of the host, computed as vectors: the same values, in few operations, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.fx

from magpy_core._compat.torch.condition_op import holds
from magpy_core._compat.torch.operators_trace import trace_operators
from magpy_core.backends.cuda_graphs.numbers import vectorized
from magpy_core.backends.fakes import make_fake_inputs


def _graph(fn: Callable[..., Any], given: Sequence[torch.Tensor]) -> torch.fx.GraphModule | None:
    mode, fakes = make_fake_inputs(given, None)
    return vectorized(trace_operators(lambda *values: tuple(fn(*values)), fakes, mode), fakes, mode)


def _operations(gm: torch.fx.GraphModule) -> int:
    return sum(node.op == "call_function" for node in gm.graph.nodes)


def _adam(rate: Any, *steps: Any) -> Any:
    """The numbers of AdamW: every parameter has a count."""
    torch._foreach_add_(list(steps), torch.tensor(1.0))
    found = [1 - rate * 0.01]
    for step in steps:
        count = step.detach().double()
        found += [(1 - 0.999**count) ** 0.5, rate / (1 - 0.9**count) * -1]
    return (torch.stack([value.float() for value in found]),)


def test_as_many_operations_for_many_parameters_as_for_few() -> None:
    rate = torch.tensor(0.003, dtype=torch.float64)
    counts = {}
    for parameters in (2, 100):
        steps = [torch.tensor(float(i % 7)) for i in range(parameters)]
        gm = _graph(_adam, [rate, *steps])
        assert gm is not None
        before = [step.clone() for step in steps]
        (found,) = gm(rate, *steps)
        assert all(torch.equal(one, other) for one, other in zip(steps, before, strict=True)), "nothing is written"
        (wanted,) = _adam(rate, *steps)
        torch.testing.assert_close(found, wanted, rtol=1e-6, atol=0)
        counts[parameters] = _operations(gm)
    assert counts[2] == counts[100] < 30


def _several_dtypes(a: Any, b: Any, c: Any, n: Any) -> Any:
    return torch.stack([a * 2, b * 2, (a + n).float()]), torch.stack([c * n, c, c / 3]), torch.stack([n, n + 1])


def _same_twice(a: Any, b: Any, c: Any, n: Any) -> Any:
    return (torch.stack([a, a, b, (a * b), a]),)


def _written_in_between(a: Any, b: Any, c: Any, n: Any) -> Any:
    first = a * 2
    a.mul_(3).add_(b)
    return (torch.stack([first, a, a * 2]),)


def _uneven(a: Any, b: Any, c: Any, n: Any) -> Any:
    torch._foreach_mul_([a, b], [2.0, 3.0])
    return (torch.stack([a + b, b + a, a.exp(), b - 1, torch.where(a > b, a, b)]),)


def _tested(a: Any, b: Any, c: Any, n: Any) -> Any:
    """Tests by Python code take one number at a time; some take several."""
    of_two = [torch.ops.magpy.holds([one, other], "in order") for one, other in ((a, b), (b, a), (c, b))]
    return (torch.stack([*of_two, torch.ops.magpy.holds([c.float()], "positive"), torch.logical_and(of_two[1], of_two[2])]),)


def _not_all_used(a: Any, b: Any, c: Any, n: Any) -> Any:
    """What only later results on the host need may be anything."""
    n.add_(1)
    return (torch.stack([a, b]),) if torch.stack([a, b]).cumsum(0) is not None else ()


def _copied(a: Any, b: Any, c: Any, n: Any) -> Any:
    """As a number that is written back into a tensor: the same one to several, in their own types."""
    a.copy_(c * 2)
    b.copy_(c * 2)
    n.copy_(c * 50)
    return torch.stack([a, b]), torch.stack([n])


@pytest.mark.parametrize("fn", [_several_dtypes, _same_twice, _written_in_between, _uneven, _copied, _tested, _not_all_used])
def test_values(fn: Callable[..., Any]) -> None:
    holds(torch.fx.Graph(), [], lambda one, other: bool(one < other), "in order")
    holds(torch.fx.Graph(), [], lambda number: bool(number > 0), "positive")
    given = [torch.tensor(2.0), torch.tensor(-1.5), torch.tensor(0.1, dtype=torch.float64), torch.tensor(5)]
    gm = _graph(fn, given)
    assert gm is not None
    found = gm(*(value.clone() for value in given))
    torch.testing.assert_close(tuple(found), tuple(fn(*given)))


def _of_a_tensor(a: Any) -> Any:
    return (torch.stack([a[0], a[1]]),)


def _not_elementwise(a: Any) -> Any:
    return (torch.stack([a.cumsum(0), a]),)


def _no_stack(a: Any) -> Any:
    return (a + 1,)


def _power(a: Any) -> Any:
    """Its variant for one tensor has other arguments."""
    return (torch.stack(list(torch._foreach_pow([a, a + 1], 2.0))),)


def _bits(a: Any) -> Any:
    return (torch.stack([a.view(torch.int32)]),)


_OTHERS = {
    _power: torch.tensor(1.0),
    _bits: torch.tensor(1.0),
    _of_a_tensor: torch.ones(2),
    _not_elementwise: torch.tensor(1.0),
    _no_stack: torch.tensor(1.0),
}


@pytest.mark.parametrize(("fn", "given"), _OTHERS.items())
def test_anything_else_is_left_to_a_compiler(fn: Callable[..., Any], given: torch.Tensor) -> None:
    assert _graph(fn, [given]) is None

"""Recurrent layers as one operator compute bit for bit what eager mode computes, and have its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from magpy_core._compat.torch.recurrent_operator import Layer, one_operator, recurrent

KINDS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn_tanh": nn.RNN, "rnn_relu": nn.RNN}
_Tensors = Sequence[torch.Tensor]


class _Case:
    """A layer with the tensors that it is called with, all of which require a gradient."""

    def __init__(self, kind: str, *, packed: bool = False, **options: Any) -> None:
        torch.manual_seed(0)
        options |= {"nonlinearity": kind[4:]} if kind.startswith("rnn") else {}
        self.kind, self.module = kind, KINDS[kind](3, 4, **options)
        dtype, places = options.get("dtype", torch.float32), self.module.num_layers * (1 + self.module.bidirectional)
        self.input = torch.randn((9, 3) if packed else (5, 2, 3), dtype=dtype, requires_grad=True)
        self.sizes = torch.tensor([2, 2, 2, 2, 1]) if packed else None
        sizes = [self.module.proj_size or 4, 4][: 1 + (kind == "lstm")]
        self.states = [torch.randn(places, 2, size, dtype=dtype, requires_grad=True) for size in sizes]

    @property
    def tensors(self) -> list[torch.Tensor]:
        return [self.input, *self.states, *self.module.parameters()]

    def eager(self) -> _Tensors:
        module, states = self.module, tuple(self.states) if self.kind == "lstm" else self.states[0]
        given = self.input if self.sizes is None else nn.utils.rnn.PackedSequence(self.input, self.sizes)
        output, after = module(given, states)
        return (output if self.sizes is None else output.data, *(after if self.kind == "lstm" else (after,)))

    def ours(self) -> _Tensors:
        module, weights = self.module, list(self.module.parameters())
        results = one_operator(
            Layer(self.kind, self.input, self.sizes, self.states, weights, module.bias, module.bidirectional)
        )
        return tuple(results[: 1 + len(self.states)])


def _loss(results: _Tensors) -> torch.Tensor:
    return torch.stack([result.sin().sum() for result in results]).sum()


def _assert_same(found: _Tensors, expected: _Tensors) -> None:
    for a, b in zip(found, expected, strict=True):
        assert a.stride() == b.stride()
        assert torch.equal(a, b)


CASES: list[tuple[str, dict[str, Any]]] = [
    *((kind, {"num_layers": 2, "bidirectional": both}) for kind in KINDS for both in (False, True)),
    ("lstm", {"proj_size": 2, "bidirectional": True}),
    ("lstm", {"dtype": torch.float64}),
    ("gru", {"bias": False, "dtype": torch.float64}),
    ("lstm", {"packed": True, "num_layers": 2}),
    ("gru", {"packed": True, "bidirectional": True}),
]


def test_one_length() -> None:
    """The layer is left to the compiler: eager mode computes it as always."""
    case = _Case("lstm")
    module, weights = case.module, list(case.module.parameters())
    results = recurrent("lstm", case.input, None, case.states, weights, module.bias, module.bidirectional, 0)
    _assert_same(results, case.eager())
    assert "Differentiable" not in type(results[0].grad_fn).__name__


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_results_and_gradients(kind: str, options: dict[str, Any]) -> None:
    case = _Case(kind, **options)
    expected, found = case.eager(), case.ours()
    _assert_same(found, expected)
    gradients = torch.autograd.grad(_loss(expected), case.tensors)
    _assert_same(torch.autograd.grad(_loss(found), case.tensors, retain_graph=True), gradients)
    _assert_same(torch.autograd.grad(_loss(found), case.tensors), gradients)  # again
    with torch.no_grad():
        _assert_same(case.ours(), case.eager())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("used", [0, 1, -1])
def test_gradients_of_one_result(kind: str, used: int) -> None:
    case = _Case(kind)
    expected, found = (torch.autograd.grad(run()[used].sin().sum(), case.tensors) for run in (case.eager, case.ours))
    _assert_same(found, expected)


def test_only_what_is_learned_has_gradients() -> None:
    case = _Case("gru")
    case.input.requires_grad_(False)
    case.module.bias_hh_l0.requires_grad_(False)
    case.ours()[0].sum().backward()
    missing = [name for name, parameter in case.module.named_parameters() if parameter.grad is None]
    assert missing == ["bias_hh_l0"]
    assert case.input.grad is None
    assert case.states[0].grad is not None


def test_a_history_that_a_hook_replaces() -> None:
    """Then the layer is computed again."""
    case = _Case("lstm", num_layers=2)
    expected = torch.autograd.grad(_loss(case.eager()), case.tensors)
    with torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda saved: saved):
        found = case.ours()
    _assert_same(torch.autograd.grad(_loss(found), case.tensors), expected)


def test_results_may_be_written() -> None:
    """Eager mode saves an LSTM's output for its backward pass; compiled code may reuse its memory."""
    case = _Case("lstm")
    expected = torch.autograd.grad(case.eager()[1].sum(), case.tensors)
    results = case.ours()
    with torch.no_grad():
        results[0].fill_(5)
        results[2].fill_(5)
    _assert_same(torch.autograd.grad(results[1].sum(), case.tensors), expected)


def test_a_second_derivative_is_refused() -> None:
    case = _Case("gru")
    with pytest.raises(RuntimeError, match="can't be differentiated"):
        torch.autograd.grad(case.ours()[0].sum(), case.input, create_graph=True)


def test_a_freed_history_raises() -> None:
    loss = _Case("gru").ours()[0].sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        loss.backward()


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_shapes(kind: str, options: dict[str, Any]) -> None:
    case = _Case(kind, **options)
    expected = [*case.ours(), *torch.autograd.grad(_loss(case.ours()), case.tensors)]
    mode = FakeTensorMode()
    convert = mode.from_tensor
    weights = [convert(weight) for weight in case.module.parameters()]
    sizes, states = None if case.sizes is None else convert(case.sizes), [convert(state) for state in case.states]
    tensors = [convert(case.input), *states, *weights]
    with mode:
        results = recurrent(kind, tensors[0], sizes, states, weights, case.module.bias, case.module.bidirectional, 0)
        found = [*results[: 1 + len(states)]]
        found += torch.autograd.grad(_loss(found), tensors)
    assert [(t.shape, t.stride(), t.dtype) for t in found] == [(t.shape, t.stride(), t.dtype) for t in expected]

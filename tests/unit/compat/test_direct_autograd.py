"""Graphs with gradients are called without AOTAutograd's wrapper and with less work in its autograd function."""

from __future__ import annotations

import contextvars
from typing import Any

import pytest
import torch
import torch.fx

from magpy_core._compat.torch import direct_autograd, direct_calls
from magpy_core.backends.base import CompiledGraph
from tests.unit.backends.recorder import compile_recorded
from tests.unit.compat.test_direct_calls import Operation, count_wrapped, graph_of

BACKENDS = ("aot_eager", "inductor")


@pytest.fixture
def through_the_wrapper(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return count_wrapped(monkeypatch, "_direct_with_gradients")


def compiled_for(operation: Operation, *inputs: torch.Tensor, backend: str = "aot_eager") -> CompiledGraph:
    return compile_recorded(graph_of(operation), list(inputs), backend)


def leaf(*size: int) -> torch.Tensor:
    return torch.rand(*size or (3,), requires_grad=True)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_only_the_first_call_goes_through_the_wrapper(backend: str, through_the_wrapper: list[int]) -> None:
    def operation(x: torch.Tensor) -> Any:
        return (x.sin() * x).exp(), x.cos().sum(), (x > 0.5).long(), x.detach() * 2

    compiled = compiled_for(operation, leaf(), backend=backend)
    for _ in range(4):
        x = leaf()
        y = x.detach().clone().requires_grad_()
        got, expected = compiled.fn(x), operation(y)
        torch.testing.assert_close(tuple(got), expected)
        assert [one.requires_grad for one in got] == [True, True, False, False]
        (got[0].sum() + 2 * got[1]).backward()
        (expected[0].sum() + 2 * expected[1]).backward()
        torch.testing.assert_close(x.grad, y.grad)
    assert len(through_the_wrapper) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_only_the_first_backward_pass_is_that_of_torch(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = direct_autograd._backward
    calls: list[str] = []

    class Counted:
        def __init__(self, function: Any) -> None:
            self.function = function

        def __getattr__(self, name: str) -> Any:
            calls.append(name)
            return getattr(self.function, name)

    monkeypatch.setattr(direct_autograd, "_backward", lambda function, *rest: original(Counted(function), *rest))
    compiled = compiled_for(lambda x: ((x.sin() * x).exp(), x.cos().sum()), leaf(), backend=backend)
    for _ in range(4):
        x = leaf()
        first, second = compiled.fn(x)
        (first.sum() + 2 * second).backward()
        y = x.detach().clone().requires_grad_()
        ((y.sin() * y).exp().sum() + 2 * y.cos().sum()).backward()
        torch.testing.assert_close(x.grad, y.grad)
    # the first call of all goes through the wrapper, and the next one is the first of the direct function
    assert (calls.count("backward"), calls.count("compiled_bw")) == (1, 2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_result_without_gradient_is_none_in_backward(backend: str) -> None:
    compiled = compiled_for(lambda x: (x.sin(), x.cos()), leaf(), backend=backend)
    for used in (0, 1, 0):
        x = leaf()
        compiled.fn(x)[used].sum().backward()
        torch.testing.assert_close(x.grad, (x.cos(), -x.sin())[used].detach())


def test_the_node_is_named_as_before_and_saves_the_same(through_the_wrapper: list[int]) -> None:
    compiled = compiled_for(lambda x: x.sin() * 2, leaf())
    names, saved = [], []
    for _ in range(3):
        x = leaf()
        result = compiled.fn(x)[0]  # in torch 2.11 its node can't be used without it
        node: Any = result.grad_fn
        names.append(node.name())
        saved.append([torch.equal(one, x) and one.data_ptr() == x.data_ptr() for one in node.saved_tensors])
    assert set(names) == {"CompiledFunctionBackward"}
    assert saved[0] == saved[1] == saved[2]
    assert len(through_the_wrapper) == 1


@pytest.mark.parametrize("calls", [1, 3])
def test_backward_passes_are_refused_as_before(calls: int) -> None:
    compiled = compiled_for(lambda x: x.sin() * x, leaf())
    for _ in range(calls):
        x = leaf()
        result = compiled.fn(x)[0].sum()
        result.backward(retain_graph=True)
        result.backward()
        torch.testing.assert_close(x.grad, (2 * (x.cos() * x + x.sin())).detach())
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            result.backward()
        y = compiled.fn(x)[0].sum()
        (gradient,) = torch.autograd.grad(y, x, create_graph=True)
        with pytest.raises(RuntimeError, match="double backward"):
            gradient.sum().backward()


def test_a_write_to_a_saved_tensor_is_noticed() -> None:
    compiled = compiled_for(lambda x: x.sin(), leaf())
    for _ in range(3):
        x = leaf()
        result = compiled.fn(x)[0].sum()
        with torch.no_grad():
            x.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.backward()


def test_hooks_on_saved_tensors_are_called() -> None:
    compiled = compiled_for(lambda x: x.sin(), leaf())
    packed: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        packed.append(tensor)
        return tensor * 2

    for count in range(3):
        x = leaf()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor / 2):
            result = compiled.fn(x)[0].sum()
        result.backward()
        assert len(packed) == count + 1
        torch.testing.assert_close(x.grad, x.cos().detach())


@pytest.mark.parametrize("operation", [lambda x: x.view(-1), lambda x: (x * 2, x)], ids=["a view", "an input"])
def test_other_graphs_keep_their_wrapper(operation: Operation, through_the_wrapper: list[int]) -> None:
    compiled = compiled_for(operation, leaf(3, 1))
    for _ in range(3):
        x = leaf(3, 1)
        expected = operation(x)
        got = compiled.fn(x)
        for one, other in zip(got, expected if isinstance(expected, tuple) else (expected,), strict=True):
            torch.testing.assert_close(one, other)
            assert one.requires_grad is other.requires_grad
    assert not through_the_wrapper


def test_without_grad_mode_under_a_profiler_or_a_transform_the_wrapper_is_called(through_the_wrapper: list[int]) -> None:
    compiled = compiled_for(lambda x: x.sin() * 2, leaf())
    for _ in range(2):
        compiled.fn(leaf())
    with torch.no_grad():
        compiled.fn(leaf())
    assert len(through_the_wrapper) == 2
    with torch.profiler.profile():
        compiled.fn(leaf())[0].sum().backward()
    assert len(through_the_wrapper) == 3
    with torch._functorch.eager_transforms.grad_increment_nesting(), pytest.raises(RuntimeError):
        compiled.fn(leaf())
    assert len(through_the_wrapper) == 4


def test_a_tensor_left_over_from_a_transform_is_unwrapped(through_the_wrapper: list[int]) -> None:
    left: list[torch.Tensor] = []

    def function(x: torch.Tensor) -> torch.Tensor:
        left.append(x * 1)
        return (x * x).sum()

    compiled = compiled_for(lambda x: x.sin() * 2, leaf())
    for _ in range(3):
        torch.func.grad(function)(torch.rand(3))
        assert compiled.fn(left[-1])[0].shape == (3,)
    assert len(through_the_wrapper) == 3  # the first call showed that there are such tensors


def test_the_backward_pass_has_the_context_variables_of_its_caller() -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)
    seen: list[int] = []

    @torch.library.custom_op("magpy_tests::seen_in_backward", mutates_args=())
    def operation(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @torch.library.custom_op("magpy_tests::backward_that_sees", mutates_args=())
    def backward(gradient: torch.Tensor) -> torch.Tensor:
        seen.append(variable.get())
        return gradient * 2

    operation.register_fake(torch.empty_like)
    backward.register_fake(torch.empty_like)
    operation.register_autograd(lambda ctx, gradient: backward(gradient))
    compiled = compiled_for(lambda x: torch.ops.magpy_tests.seen_in_backward(x), leaf())
    for value in (1, 2, 3):
        x = leaf()
        variable.set(value)
        compiled.fn(x)[0].sum().backward()
        torch.testing.assert_close(x.grad, torch.full((3,), 2.0))
    assert seen[-3:] == [1, 2, 3]


def test_a_failure_in_the_forward_graph_is_raised() -> None:
    compiled = compiled_for(lambda x: x.sin() * 2, leaf())
    for _ in range(3):
        compiled.fn(leaf())
        with pytest.raises(Exception, match=r"argument|tensor|attribute"):
            compiled.fn("no tensor")
        assert torch.is_grad_enabled()


def test_a_node_with_other_attributes_keeps_the_wrapper(
    monkeypatch: pytest.MonkeyPatch, through_the_wrapper: list[int]
) -> None:
    monkeypatch.setattr(direct_autograd, "_KEPT", direct_autograd._KEPT | {"of_a_later_version"})
    compiled = compiled_for(lambda x: x.sin() * 2, leaf())
    for _ in range(3):
        assert compiled.fn(leaf())[0].requires_grad
    assert len(through_the_wrapper) == 3


@pytest.mark.parametrize("name", ["num_unsafe_view_outputs", "tokens", "tensors_saved_for_backwards_no_vc_check_slice"])
def test_metadata_of_another_version_of_torch_keeps_the_wrapper(
    name: str, monkeypatch: pytest.MonkeyPatch, through_the_wrapper: list[int]
) -> None:
    original = direct_calls.direct_function

    class Other:
        def __init__(self, metadata: Any) -> None:
            self.metadata = metadata

        def __getattr__(self, attribute: str) -> Any:
            if attribute == name:
                raise AttributeError(attribute)
            return getattr(self.metadata, attribute)

    monkeypatch.setattr(direct_calls, "direct_function", lambda compiled, metadata: original(compiled, Other(metadata)))
    compiled = compiled_for(lambda x: x.sin() * 2, leaf())
    for _ in range(3):
        x = leaf()
        compiled.fn(x)[0].sum().backward()
        torch.testing.assert_close(x.grad, (2 * x.cos()).detach())
    assert not through_the_wrapper

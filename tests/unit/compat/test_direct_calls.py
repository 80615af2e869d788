"""Graphs without gradients are called without AOTAutograd's wrapper where it would do nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.fx

from magpy_core._compat.torch import direct_calls
from tests.unit.backends.recorder import compile_recorded

Operation = Callable[[torch.Tensor], Any]


def count_wrapped(monkeypatch: pytest.MonkeyPatch, name: str) -> list[int]:
    """One entry for each call that goes through AOTAutograd's wrapper, of graphs for which ``name`` makes a direct call."""
    calls: list[int] = []
    original = getattr(direct_calls, name)

    def direct(called: Callable[..., Any], wrapped: Any, *details: Any) -> Any:
        def counted(inputs: list[Any]) -> Any:
            calls.append(len(inputs))
            return wrapped(inputs)

        counted.__dict__.update(vars(wrapped))
        return original(called, counted, *details)

    monkeypatch.setattr(direct_calls, name, direct)
    return calls


@pytest.fixture
def through_the_wrapper(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return count_wrapped(monkeypatch, "_direct")


def graph_of(operation: Operation) -> torch.fx.GraphModule:
    graph = torch.fx.Graph()
    tracer = torch.fx.Tracer()
    tracer.graph = graph
    result = operation(torch.fx.Proxy(graph.placeholder("x"), tracer))  # type: ignore[arg-type]
    graph.output(tuple(r.node for r in (result if isinstance(result, tuple) else (result,))))
    return torch.fx.GraphModule({}, graph)


def test_only_the_first_call_goes_through_the_wrapper(through_the_wrapper: list[int]) -> None:
    compiled = compile_recorded(graph_of(lambda x: (x.sin() + 1, x.cos())), [torch.rand(3)], "aot_eager")
    for count in range(4):
        x = torch.rand(3)
        got = compiled.fn(x)
        assert torch.equal(got[0], x.sin() + 1) and torch.equal(got[1], x.cos())
        assert len(through_the_wrapper) == 1, count


def test_the_grad_mode_is_off_inside_and_as_before_after_an_error(through_the_wrapper: list[int]) -> None:
    compiled = compile_recorded(graph_of(lambda x: x.sin() + 1), [torch.rand(3)], "aot_eager")
    compiled.fn(torch.rand(3))
    weight = torch.rand(3, requires_grad=True)
    for enabled in (True, False):
        with torch.set_grad_enabled(enabled):
            assert not compiled.fn(weight)[0].requires_grad
            with pytest.raises(Exception, match=r"argument|tensor|attribute"):
                compiled.fn("no tensor")
            assert torch.is_grad_enabled() is enabled
    assert len(through_the_wrapper) == 1


def test_a_wrapper_that_does_something_is_kept(through_the_wrapper: list[int]) -> None:
    compiled = compile_recorded(graph_of(lambda x: (x + 1, x.view(-1))), [torch.rand(3, 1, requires_grad=True)], "aot_eager")
    for _ in range(3):
        x = torch.rand(3, 1, requires_grad=True)
        result, view = compiled.fn(x)
        assert view._base is x and torch.equal(view, x.view(-1)) and torch.equal(result, x + 1)
        (result.sum() + 2 * view.sum()).backward()
        assert x.grad is not None and x.grad.tolist() == [[3.0]] * 3
    assert not through_the_wrapper


@pytest.mark.parametrize(
    "operation",
    [lambda x: (x + 1, x), lambda x: (x.mul_(2), x + 1), lambda x: (x.add_(1).amax(), x.mul_(2), x)],
    ids=["read", "written", "written and returned twice"],
)
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_result_that_is_an_input_is_that_tensor(
    operation: Operation, backend: str, through_the_wrapper: list[int]
) -> None:
    compiled = compile_recorded(graph_of(operation), [torch.rand(3, 1)], backend)
    versions = set()
    for _ in range(3):
        x = torch.rand(3, 1)
        y = x.clone()
        got, expected = compiled.fn(x), operation(y)
        assert all(map(torch.equal, got, expected)) and torch.equal(x, y)
        assert [one is x for one in got] == [one is y for one in expected]
        versions.add(x._version)
    assert len(through_the_wrapper) == len(versions) == 1, "written as often as by the wrapper"


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x.view(-1),
        lambda x: (x + 1, x, x[1:], x.t()),
        lambda x: (torch.view_as_complex(x.unflatten(1, (2, 2))[1:]), x.cos()),
        lambda x: (x.view(torch.int32)[1:], x.cos()),
    ],
    ids=["a view", "with an input", "of another kind", "of another type"],
)
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_view_of_an_input_is_one_for_autograd(operation: Operation, backend: str, through_the_wrapper: list[int]) -> None:
    compiled = compile_recorded(graph_of(operation), [torch.rand(4, 4)], backend)
    for _ in range(3):
        x = torch.rand(4, 4)
        y = x.clone()
        got, expected = compiled.fn(x), operation(y)
        expected = expected if isinstance(expected, tuple) else (expected,)
        assert torch.equal(x, y)
        torch.testing.assert_close(tuple(got), expected)
        assert [one._base is x for one in got] == [one._base is y for one in expected]
        assert [one.stride() for one in got] == [one.stride() for one in expected]
        with torch.no_grad():
            x.zero_(), y.zero_()
        torch.testing.assert_close(tuple(got), expected)
        assert [one._version == x._version for one in got] == [one._version == y._version for one in expected]
    assert len(through_the_wrapper) == 1


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_view_of_an_input_that_gets_a_value_of_other_strides(backend: str, through_the_wrapper: list[int]) -> None:
    def operation(x: torch.Tensor) -> Any:
        x.t().copy_(x.rot90())
        return x[1:, -2:]

    compiled = compile_recorded(graph_of(operation), [torch.rand(4, 4)], backend)
    for _ in range(3):
        x = torch.rand(4, 4)
        y = x.clone()
        (view,), expected = compiled.fn(x), operation(y)
        assert torch.equal(view, expected) and torch.equal(x, y) and view._base is x
    assert not through_the_wrapper


@pytest.mark.parametrize("grad", [True, False])
def test_writes_are_counted_as_by_the_wrapper(grad: bool, through_the_wrapper: list[int]) -> None:
    operation: Operation = lambda x: x.mul_(2) + 1  # noqa: E731
    compiled = compile_recorded(graph_of(operation), [torch.rand(3)], "aot_eager")
    versions = set()
    for _ in range(3):
        x = torch.rand(3)
        y = x.clone()
        with torch.set_grad_enabled(grad):
            assert torch.equal(compiled.fn(x)[0], operation(y)) and torch.equal(x, y)
        versions.add(x._version)
    assert len(versions) == 1 and versions != {0} and len(through_the_wrapper) == 1


def test_a_profiler_sees_the_call(through_the_wrapper: list[int]) -> None:
    compiled = compile_recorded(graph_of(lambda x: x.sin() + 1), [torch.rand(3)], "aot_eager")
    compiled.fn(torch.rand(3))
    compiled.fn(torch.rand(3))
    with torch.profiler.profile():
        compiled.fn(torch.rand(3))
    assert len(through_the_wrapper) == 2


def test_without_the_function_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_calls, "_CREATES", "no_such_function")
    compiled = compile_recorded(graph_of(lambda x: x.sin() + 1), [torch.rand(3)], "aot_eager")
    x = torch.rand(3)
    assert torch.equal(compiled.fn(x)[0], x.sin() + 1)

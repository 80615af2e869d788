"""Inputs of a compiled graph that share memory: what overlaps is compiled in, and guarded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import magpy_core
from magpy_core.backends.sharing import changed
from magpy_core.regions.api import region_of

PLACES = [(0, 2), (0, 2), (0, 2), (0, 4), (2, 0), (1, 3), (0, 1), (0, 1), (1, 2), (4, 4), (0, 0), (3, 2)]


def read_after_write(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a.add_(1)
    return b * 2


def both_written(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a.mul_(2)
    b.add_(1)
    return a + b


def list_written(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    torch._foreach_add_([a, b], 1)
    return a * b


def outcome(function: Callable[..., Any], place: tuple[int, int]) -> Any:
    memory = torch.arange(6.0)
    first, second = place
    result = function(memory[first : first + 2], memory[second : second + 2])
    return result.tolist(), memory.tolist()


@pytest.mark.parametrize("region", [read_after_write, both_written, list_written])
def test_windows_of_one_memory(region: Callable[..., Any]) -> None:
    compiled = magpy_core.compile(region, backend="aot_eager")
    for place in PLACES:
        assert outcome(compiled, place) == outcome(region, place), place


def test_one_tensor_twice_in_a_list() -> None:
    def region(a: torch.Tensor) -> torch.Tensor:
        torch._foreach_add_([a, a], 1)
        return a * 2

    compiled = magpy_core.compile(region, backend="aot_eager")
    assert [compiled(torch.zeros(2)).tolist() for _ in range(3)] == [[4.0, 4.0]] * 3


def test_a_parameter_taken_out_of_the_graph() -> None:
    compiled = magpy_core.compile(lambda p: p.detach_() * 2, backend="aot_eager")
    for _ in range(3):
        parameter = torch.nn.Parameter(torch.ones(2))
        assert not compiled(parameter).requires_grad and not parameter.requires_grad


def test_inputs_are_put_back_when_a_compiled_graph_fails_in_its_first_run() -> None:
    """torch's wrapper can't make these views of an interleaved input again, and says so after the addition."""

    def region(a: torch.Tensor, b: torch.Tensor) -> Any:
        a += b
        return a.view(-1), a.view(-1)

    compiled = magpy_core.compile(region, backend="aot_eager")
    for _ in range(3):
        memory, plain = torch.arange(8.0), torch.arange(8.0)
        got, want = compiled(memory[::2], memory[1::2]), region(plain[::2], plain[1::2])
        assert [t.tolist() for t in got] == [t.tolist() for t in want] and torch.equal(memory, plain)


def chunks_of_written(a: torch.Tensor, b: torch.Tensor) -> Any:
    a.data.mul_(2)
    return a.chunk(2)


def slice_of_written(a: torch.Tensor, b: torch.Tensor) -> Any:
    a.add_(b)
    return (a[:1].unsqueeze(0),)


def test_views_that_leave_share_the_memory_of_what_was_written() -> None:
    def shown(function: Callable[..., Any], a: torch.Tensor, b: torch.Tensor) -> Any:
        results = function(a, b)
        with torch.no_grad():
            a.add_(100)
        return [(r.detach().tolist(), r.stride()) for r in results]

    compiled = magpy_core.compile(chunks_of_written, backend="aot_eager")
    for _ in range(3):
        outcomes = [shown(f, torch.ones(4, requires_grad=True), torch.ones(4)) for f in (compiled, chunks_of_written)]
        assert outcomes[0] == outcomes[1]
    compiled = magpy_core.compile(slice_of_written, backend="aot_eager")
    for _ in range(3):
        memories = torch.arange(8.0), torch.arange(8.0)
        assert shown(compiled, memories[0][::2], memories[0][1::2]) == shown(
            slice_of_written, memories[1][::2], memories[1][1::2]
        )


def named_out(a: torch.Tensor, b: torch.Tensor) -> Any:
    torch.add(b, 1, out=a)
    return a.chunk(2)


def result_of_out(a: torch.Tensor, b: torch.Tensor) -> Any:
    return torch.add(b, 1, out=a).chunk(2)


def told_in_place(a: torch.Tensor, b: torch.Tensor) -> Any:
    return torch.nn.functional.relu(a, inplace=True).chunk(2)


def told_in_place_by_position(a: torch.Tensor, b: torch.Tensor) -> Any:
    return torch.nn.functional.relu(a, True).chunk(2)


@pytest.mark.parametrize("region", [named_out, result_of_out, told_in_place, told_in_place_by_position])
def test_views_share_memory_with_what_a_function_wrote(region: Callable[..., Any]) -> None:
    def shared(function: Callable[..., Any]) -> list[bool]:
        written = torch.ones(4, requires_grad=True) * 1 if "told" in region.__name__ else torch.zeros(4)
        parts = function(written, torch.ones(4))
        with torch.no_grad():
            written.add_(100)
        return [bool((part > 50).all()) for part in parts]

    compiled = magpy_core.compile(region, backend="aot_eager")
    for _ in range(3):
        assert shared(compiled) == shared(region) == [True, True]


def test_an_assigned_part_is_a_write() -> None:
    graph = torch.fx.Graph()
    given = graph.placeholder("x")
    assert changed(graph.call_function(torch.Tensor.real.__set__, (given, given)))
    assert changed(graph.call_method("add_", (given, 1))) and not changed(graph.call_method("add", (given, 1)))


def test_detach_of_a_view_raises_after_another_tensor_did_not() -> None:
    compiled = magpy_core.compile(lambda x: x.detach_() * 2, backend="aot_eager")
    for _ in range(3):
        compiled(torch.ones(4))
    with pytest.raises(RuntimeError, match="detach"):
        compiled(torch.ones(4)[:2])


def test_a_leaf_is_not_written_after_a_result_was() -> None:
    def region(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        a.mul_(2)
        b.mul_(2)
        return a + b

    compiled = magpy_core.compile(region, backend="aot_eager")
    leaf = torch.ones(2, requires_grad=True)
    for _ in range(3):
        assert compiled(leaf * 1, leaf * 2).tolist() == [6.0, 6.0]
    first = leaf * 1
    with pytest.raises(RuntimeError, match="a leaf Variable"):
        compiled(first, leaf)
    assert first.tolist() == [2.0, 2.0] and leaf.tolist() == [1.0, 1.0]


def _step_of_two(
    places: tuple[int, int], memory: torch.Tensor
) -> tuple[Callable[[], torch.Tensor], list[torch.nn.Parameter]]:
    """A training step with clipping, whose two parameters of four elements are at these places of one memory."""
    parameters = [torch.nn.Parameter(memory[at : at + 4]) for at in places]
    optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
    x = torch.linspace(-1, 1, 4)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (torch.tanh(parameters[0] * x) * parameters[1]).square().sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 0.5)
        optimizer.step()
        return loss.detach()

    return step, parameters


@pytest.mark.parametrize("places", [(0, 4), (4, 0), (0, 6), (0, 2), (3, 0)])
def test_a_whole_step_of_parameters_in_one_memory(places: tuple[int, int]) -> None:
    """As those of a recurrent layer on CUDA, and flat parameters; they move to where they overlap, or no longer do."""
    memories = [torch.linspace(0.1, 2, 10) for _ in range(2)]
    (plain, expected), (step, parameters) = (_step_of_two(places, memory) for memory in memories)
    compiled = magpy_core.compile(step, backend="aot_eager", wait=True)
    for second in (None, 2, 6):
        for memory, (_, moved) in zip(memories, (expected, parameters), strict=True):
            if second is not None:
                moved.data = memory[second : second + 4]
        for _ in range(4):
            torch.testing.assert_close(compiled(), plain())
            torch.testing.assert_close(memories[1], memories[0])
    assert region_of(compiled).hits >= 6


def test_flat_parameters_outside_of_the_step() -> None:
    """The memory itself is written between the steps, by a view that the step doesn't know."""
    memories = [torch.linspace(0.1, 2, 8) for _ in range(2)]
    (plain, _), (step, _) = (_step_of_two((0, 4), memory) for memory in memories)
    compiled = magpy_core.compile(step, backend="aot_eager", wait=True)
    for _ in range(5):
        torch.testing.assert_close(compiled(), plain())
        for memory in memories:
            memory[2:6] *= 0.5
        torch.testing.assert_close(memories[1], memories[0])
    assert region_of(compiled).hits >= 2

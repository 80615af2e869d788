"""The parts of a step, compiled one by one and joined: which of them a compiler gets, and that the whole computes the same.

As in ``test_parts``, a step is on a fake device; what is compiled runs on the CPU.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.fx

from magpy_core.backends.cuda_graphs import compiling
from magpy_core.backends.cuda_graphs.parts import Separated, separate
from tests.unit.backends.cuda_graphs.test_parts import CPU, adam, given_to_adam, moved, traced


class _Runs:
    """In place of what replays: runs the code."""

    def __init__(self, call: Callable[..., Any], written: frozenset[int], device: int, reason: str = "") -> None:
        self.call, self.reason = call, reason

    def __call__(self, inputs: list[Any]) -> Any:
        return self.call(inputs)


@pytest.fixture
def on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def separated(*arguments: Any) -> Separated | None:
        parts = separate(*arguments)
        return None if parts is None else dataclasses.replace(parts, place=CPU)

    monkeypatch.setattr(compiling, "separate", separated)
    monkeypatch.setattr(compiling, "Replayed", _Runs)


def _compiled(fn: Callable[..., Any], given: Sequence[torch.Tensor]) -> tuple[Callable[..., Any], Any, list[int]]:
    """The whole, what replays it, and the number of operations of each graph that the compiler got."""
    sizes = list[int]()

    def compile_graph(gm: torch.fx.GraphModule, fakes: Sequence[Any]) -> Any:
        sizes.append(len(gm.graph.nodes))
        module = moved(gm, CPU)
        return (lambda *inputs: list(module(*inputs))), None, [f"# {len(sizes)}"]

    (call, _, sources), replayed = compiling.compile_replayed(*traced(fn, *given), (), compile_graph)
    assert len(sources) == len(sizes)
    return call, replayed, sizes


def test_only_the_part_of_the_device_needs_a_compiler(on_cpu: None) -> None:
    given = given_to_adam()
    call, replayed, sizes = _compiled(adam, given)
    assert len(sizes) == 1 and not replayed.reason
    ours, plain = [t.clone() for t in given], [t.clone() for t in given]
    for _ in range(3):
        torch.testing.assert_close(list(call(*ours)), list(adam(*plain)))
        torch.testing.assert_close(ours, plain)


def test_what_is_written_and_not_returned(on_cpu: None) -> None:
    """The counts of an optimizer: no result needs them, the next step does."""

    def step(x: Any, count: Any) -> Any:
        torch._foreach_add_([count], 1.0)
        return (x * count,)

    call, _, sizes = _compiled(step, given := [torch.randn(4), torch.tensor(2.0)])
    assert len(sizes) == 1
    ours = [t.clone() for t in given]
    for number in (3.0, 4.0):
        torch.testing.assert_close(call(*ours)[0], given[0] * number)
        assert ours[1] == number


def test_other_numbers_are_compiled(on_cpu: None) -> None:
    def step(x: Any, count: Any) -> Any:
        count.add_(1)
        return x * count.cumsum(0), count * 1

    given = [torch.randn(4), torch.tensor(2.0)]
    call, _, sizes = _compiled(step, given)
    assert len(sizes) == 3, "numbers, device, counts"
    ours, plain = [t.clone() for t in given], [t.clone() for t in given]
    torch.testing.assert_close(list(call(*ours)), list(step(*plain)))
    torch.testing.assert_close(ours, plain)


def test_what_can_not_be_separated_is_compiled_as_one(on_cpu: None) -> None:
    def step(x: Any, count: Any) -> Any:
        result = x * count
        count.add_(1)
        return (result,)

    _, replayed, sizes = _compiled(step, [torch.randn(4), torch.tensor(2.0)])
    assert len(sizes) == 1 and "the device has read" in replayed.reason

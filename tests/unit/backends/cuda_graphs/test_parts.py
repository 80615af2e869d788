"""What a step computes on the host is separated from what it computes on the device.

There is no device here: a step's graph is traced on the CPU and moved, so that everything but single numbers is on a fake
CUDA device; the separated parts are moved back, run, and compared with the whole graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.fx
import torch.nn.functional as F
from torch.fx.node import map_aggregate

from magpy_core._compat.torch.operators_trace import trace_operators
from magpy_core.backends.cuda_graphs.parts import NotSeparable, Part, Separated, joined, separate
from magpy_core.backends.fakes import make_fake_inputs

CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")


def moved(gm: torch.fx.GraphModule, to: torch.device) -> torch.fx.GraphModule:
    """A copy with everything that has dimensions made on ``to``."""
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    for node in graph.nodes:
        if node.kwargs.get("device") is not None and (to == CPU or node.args[0] != []) and node.target is not torch.tensor:
            node.kwargs = {**node.kwargs, "device": to}
        node.args = map_aggregate(node.args, lambda value: to if value == CUDA else value)
    return torch.fx.GraphModule({}, graph)


def traced(fn: Callable[..., Any], *given: torch.Tensor) -> tuple[torch.fx.GraphModule, list[Any], Any]:
    """The graph of ``fn`` on the device, its inputs and their mode."""
    mode, fakes = make_fake_inputs(given, None)
    graph = trace_operators(lambda *values: tuple(fn(*values)), fakes, mode)
    with mode:
        placed = [torch.empty_strided(f.shape, f.stride(), dtype=f.dtype, device=CUDA if f.dim() else CPU) for f in fakes]
    return moved(graph, CUDA), placed, mode


def _called(parts: Separated) -> Callable[..., list[Any]]:
    """All parts, run on the CPU."""

    def run(part: Part | None) -> Any:
        if part is None:
            return None
        module = moved(part.graph, CPU)
        return lambda inputs: list(module(*inputs))

    object.__setattr__(parts, "place", CPU)
    whole = joined(parts, run(parts.numbers), run(parts.device), run(parts.counts))
    return lambda *inputs: list(whole(list(inputs)))


def _same(fn: Callable[..., Any], parts: Separated, given: Sequence[torch.Tensor]) -> None:
    """Results, and what is written, are those of ``fn``."""
    wanted_inputs, found_inputs = [t.clone() for t in given], [t.clone() for t in given]
    wanted, found = fn(*wanted_inputs), _called(parts)(*found_inputs)
    torch.testing.assert_close(list(found), list(wanted))
    torch.testing.assert_close(found_inputs, wanted_inputs)


def adam(weight: Any, bias: Any, mean: Any, square: Any, step: Any, x: Any, y: Any, rate: Any) -> Any:
    """A step of Adam as PyTorch makes it on a device: the count is a tensor of the host."""
    loss = F.cross_entropy(F.linear(x, weight, bias), y)
    gradient = (F.linear(x, weight, bias).softmax(1) - F.one_hot(y, 4)).t() @ x / len(x)
    step += 1
    mean.lerp_(gradient, 0.1)
    square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
    count = step.double()
    scale = rate / (1 - 0.9**count)
    weight.addcdiv_(mean * scale.float(), (square.sqrt() / (1 - 0.999**count).sqrt().float()).add_(1e-8), value=-1)
    return loss, gradient, step * 2, weight


def given_to_adam() -> list[torch.Tensor]:
    torch.manual_seed(0)
    weight, x = torch.randn(4, 8), torch.randn(16, 8)
    y, rate = torch.randint(4, (16,)), torch.tensor(0.01, dtype=torch.float64)
    return [weight, torch.randn(4), torch.zeros(4, 8), torch.zeros(4, 8), torch.tensor(2.0), x, y, rate]


def test_a_step_whose_counts_are_on_the_host() -> None:
    given = given_to_adam()
    parts = separate(*traced(adam, *given), written=())
    assert parts is not None and parts.numbers is not None and parts.counts is not None
    assert all(fake.device.type == "cuda" for fake in parts.device.fakes), "the device's part takes nothing of the host"
    assert parts.sent == 1, "two numbers of one dtype go in one copy"
    assert [where for where, _ in parts.outputs] == ["device", "device", "host", "input"]
    names = [parts.device.inputs[i] for i in sorted(parts.written)]
    assert names == [0, 2, 3], "weight, mean and square are written"
    _same(adam, parts, given)


def test_what_the_host_writes_is_written_last() -> None:
    """If the device's part raises, the count is as before."""
    given = given_to_adam()
    parts = separate(*traced(adam, *given), written=())
    assert parts is not None and parts.numbers is not None and parts.counts is not None
    numbers, counts = moved(parts.numbers.graph, CPU), moved(parts.counts.graph, CPU)

    def fails(inputs: list[Any]) -> Any:
        raise torch.OutOfMemoryError("no memory")

    object.__setattr__(parts, "place", CPU)
    whole = joined(parts, lambda i: list(numbers(*i)), fails, lambda i: list(counts(*i)))
    with pytest.raises(torch.OutOfMemoryError):
        whole(list(given))
    assert given[4] == 2.0


def test_a_step_without_numbers_of_the_host() -> None:
    def step(weight: Any, x: Any) -> Any:
        weight.sub_(x.t() @ x, alpha=0.1)
        return (weight.sum(),)

    given = [torch.randn(8, 8), torch.randn(4, 8)]
    parts = separate(*traced(step, *given), written=())
    assert parts is not None and parts.numbers is None and parts.counts is None and parts.written == {0}
    _same(step, parts, given)


def test_numbers_of_several_dtypes() -> None:
    def step(x: Any, count: Any, rate: Any) -> Any:
        count += 1
        return x * rate, x * (count * 2).to(torch.float32), rate + 1

    given = [torch.randn(8), torch.tensor(3), torch.tensor(0.5, dtype=torch.float64)]
    parts = separate(*traced(step, *given), written=())
    assert parts is not None and parts.sent == 2
    _same(step, parts, given)


def test_an_operation_without_a_result() -> None:
    """An optimizer increments the counts of all parameters at once."""

    def step(x: Any, one: Any, other: Any) -> Any:
        torch._foreach_add_([one, other], 1.0)
        return (x * one * other,)

    given = [torch.randn(4), torch.tensor(1.0), torch.tensor(2.0)]
    parts = separate(*traced(lambda x, one, other: step(x, one, other), *given), written=())
    assert parts is not None and parts.counts is not None
    _same(step, parts, given)


def _reads_the_device(x: Any, count: Any) -> Any:
    count.copy_(x.sum())
    return (x * 2,)


def _sends_what_is_written_later(x: Any, count: Any) -> Any:
    result = x * count
    count += 1
    return (result,)


def _draws(x: Any, count: Any) -> Any:
    return (x * torch.rand_like(count),)


def _waits(x: Any, count: Any) -> Any:
    x.index_put_((x > 0,), x[0])  # of a number, it is no index operation in torch 2.15
    return (x * count,)


def _draws_in_place(x: Any, count: Any) -> Any:
    noise = torch.empty(()).uniform_()
    count += 1
    return x * noise, noise * 1


@torch.library.custom_op("magpy_tests::counted", mutates_args=())
def _counted(x: torch.Tensor) -> torch.Tensor:
    """Whatever a program's operator does on the host would not be repeated."""
    return x.clone()


_counted.register_fake(torch.empty_like)


def _calls_an_operator_of_the_programs(x: Any, count: Any) -> Any:
    return (torch.ops.magpy_tests.counted(x) * count,)


_NOT_SEPARATED = {
    _reads_the_device: "needs a result of the device",
    _sends_what_is_written_later: "that the device has read",
    _draws: "rand_like.* runs on the host",
    _waits: "waits for the device",
    _draws_in_place: "uniform.* runs on the host",
    _calls_an_operator_of_the_programs: "counted.default` may do more than launch kernels",
}


@pytest.mark.parametrize(("step", "reason"), _NOT_SEPARATED.items())
def test_it_is_not_separated(step: Callable[..., Any], reason: str) -> None:
    """The host's part can't go first, its numbers change later, or it can't run twice."""
    given = [torch.randn(8), torch.tensor(1.0)]
    with pytest.raises(NotSeparable, match=reason):
        separate(*traced(step, *given), written=())


def test_nothing_on_a_device() -> None:
    mode, fakes = make_fake_inputs([torch.randn(4)], None)
    graph = trace_operators(lambda x: (x * 2,), fakes, mode)
    assert separate(graph, fakes, mode, written=()) is None


def test_running_statistics_that_schemas_do_not_name() -> None:
    def step(x: Any, mean: Any) -> Any:
        return (x - mean,)

    parts = separate(*traced(step, torch.randn(4, 2), torch.zeros(2)), written=[1])
    assert parts is not None and parts.written == {1}


def test_written_memory_that_another_input_has() -> None:
    """The copy of one that is written would leave the other as it was."""

    def step(x: Any, one: Any, other: Any) -> Any:
        one.add_(1)
        return (x * other,)

    count = torch.tensor(0.0)
    mode, fakes = make_fake_inputs([torch.randn(4), count, count.view(())], None)
    graph = trace_operators(step, fakes, mode)
    with mode:
        placed = [torch.empty(4, device=CUDA), *fakes[1:]]
    with pytest.raises(NotSeparable, match="shares memory with another"):
        separate(moved(graph, CUDA), placed, mode, written=())

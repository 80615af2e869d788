"""Graphs for another device: which operations and which inputs change."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import magpy_core
from magpy_core._compat.torch import fake
from magpy_core.findings import Unsupported
from magpy_core.guards.explain import TensorFacts
from magpy_core.products.targets.retarget import attention, dropout, example_inputs, retarget, stays_on_cpu


def captured(target: Any, *args: Any) -> Any:
    monitored = magpy_core.monitor(target)(*args)
    assert monitored.captures, monitored.findings
    return monitored.captures[0]


def retargeted(target: Any, *args: Any) -> list[torch.fx.Node]:
    graph = retarget(captured(target, *args).segments[0].module()).graph
    return [node for node in graph.nodes if node.op in ("call_function", "call_method")]


def test_nodes_know_their_lines() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        return y * 2

    first = f.__code__.co_firstlineno
    traces = [node.meta["stack_trace"] for node in retargeted(f, torch.ones(3))]
    assert [f'File "{__file__}", line {first + i}, in' in trace for i, trace in enumerate(traces, 1)] == [True, True]


def test_operations_in_a_library_have_the_line_of_their_call() -> None:
    layer = nn.LayerNorm(4)

    def f(x: torch.Tensor) -> torch.Tensor:
        return layer(x)

    (norm,) = retargeted(f, torch.ones(3, 4))
    assert f'File "{__file__}", line {f.__code__.co_firstlineno + 1}, in' in norm.meta["stack_trace"]


def test_dropout_is_one_operation_with_a_mask() -> None:
    nodes = retargeted(lambda x: F.dropout(x, 0.25), torch.ones(8))
    assert [(node.target, node.args[1]) for node in nodes] == [(dropout, 0.25)]


def test_dropout_that_drops_nothing_stays() -> None:
    assert dropout not in [node.target for node in retargeted(lambda x: F.dropout(x, 0.25, training=False), torch.ones(8))]


def test_attention_is_the_kernel_of_cuda() -> None:
    q = torch.ones(2, 4, 8, 16)
    (node,) = retargeted(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), q)
    assert node.target is attention and node.kwargs["is_causal"] is True


@pytest.mark.parametrize(
    ("dtype", "width", "mask", "kernel"),
    [
        (torch.float32, 16, False, "_scaled_dot_product_efficient_attention"),
        (torch.bfloat16, 64, False, "_scaled_dot_product_flash_attention"),
        (torch.bfloat16, 64, True, "_scaled_dot_product_efficient_attention"),
        (torch.float32, 15, False, "bmm"),
    ],
)
def test_the_type_and_the_width_decide_which(dtype: torch.dtype, width: int, mask: bool, kernel: str) -> None:
    mode, _ = fake.new_fake_mode(dynamic=False)
    called: list[str] = []

    class Note(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            called.append(func.overloadpacket.__name__)
            return func(*args, **(kwargs or {}))

    with mode, Note():
        q = torch.empty(2, 4, 8, width, dtype=dtype)
        given = torch.ones(8, 8, dtype=torch.bool) if mask else None
        result = attention(q, q, q, given)
    assert kernel in called and result.shape == q.shape


def test_devices_become_the_cpu() -> None:
    (node,) = retargeted(lambda x: torch.zeros(3, device=torch.device("cpu")) + x, torch.ones(3))[:1]
    node.kwargs = {"device": torch.device("cuda", 1)}
    module = torch.fx.GraphModule({}, node.graph)
    (again,) = [n for n in retarget(module).graph.nodes if n.op == "call_function"][:1]
    assert again.kwargs["device"] == torch.device("cpu")


def test_recurrent_layers_are_refused() -> None:
    layer = nn.LSTM(4, 4)
    with pytest.raises(Unsupported, match="cuDNN"):
        retargeted(layer, torch.ones(2, 3, 4))


def test_inputs_are_fakes_with_the_recorded_facts() -> None:
    weight = nn.Parameter(torch.ones(4, 3).t())
    capture = captured(lambda x: x @ weight, torch.ones(2, 3))
    (segment,) = capture.segments
    facts = {given.node: given.facts for given in capture.trace.inputs}
    _, fakes = example_inputs(segment.inputs, facts, {})
    assert sorted((tuple(f.shape), f.stride(), f.requires_grad) for f in fakes) == [
        ((2, 3), (3, 1), False), ((3, 4), (1, 3), True),
    ]  # fmt: skip
    assert all(fake.is_fake(f) and f.device.type == "cpu" for f in fakes)


def test_step_counters_stay_on_the_cpu() -> None:
    scalar, vector = TensorFacts.of(torch.ones(())), TensorFacts.of(torch.ones(2))
    assert stays_on_cpu("optimizer.state[weight]['step']", scalar)
    assert not stays_on_cpu("optimizer.state[weight]['step']", vector) and not stays_on_cpu("model.temperature", scalar)

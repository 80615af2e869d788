"""A captured graph for another device: its fake inputs, and the operations that torch runs differently there.

AOTAutograd traces on the CPU (`_compat.torch.triton_lowering` moves its result), so devices in the graph become the CPU, and
composite operations that choose their kernels by device are replaced by what they choose on CUDA. No real tensor is used.
Key functions: retarget, example_inputs, place_of, stays_on_cpu.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.fx
from torch.fx.node import map_aggregate

from magpy_core._compat.torch import fake
from magpy_core._compat.torch.kernel_work import trace_text
from magpy_core._compat.torch.operators import is_recurrent
from magpy_core.backends.fakes import FakeInputs
from magpy_core.findings import Unsupported
from magpy_core.guards.explain import TensorFacts
from magpy_core.opgraph.functions import argument, operator_name

_CPU = torch.device("cpu")
_HALF = (torch.float16, torch.bfloat16)
_LARGEST_HEAD = 256  # of flash attention
_ATTENTION = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")


def example_inputs(
    nodes: Sequence[torch.fx.Node], facts: Mapping[torch.fx.Node, TensorFacts], known: Mapping[Any, Any]
) -> FakeInputs:
    """Fake CPU tensors and numbers like the recorded inputs of a graph. ``known``: results of an earlier graph, as fakes.
    The recorded sizes are the sizes: nothing varies. Inputs that share memory don't here. Raises Unsupported."""
    mode, _ = fake.new_fake_mode(dynamic=False)
    return FakeInputs(mode, [_example(node, facts, known, mode) for node in nodes])


def _example(node: torch.fx.Node, facts: Mapping[torch.fx.Node, TensorFacts], known: Mapping[Any, Any], mode: Any) -> Any:
    if node in facts:
        return _fake(facts[node], mode)
    if node in known:
        value = known[node]
        if not isinstance(value, torch.Tensor):
            return value
        return _fake(TensorFacts.of(value), mode)
    if "magpy_hint" in node.meta:
        return node.meta["magpy_hint"]
    raise Unsupported("MP902", f"The input `{node.name}` of the graph has no recorded value.")


def _fake(facts: TensorFacts, mode: Any) -> torch.Tensor:
    if len(facts.stride) != len(facts.shape):
        raise Unsupported("MP902", "A sparse or nested tensor has no counterpart on the target.")
    with mode:
        made = torch.empty_strided(facts.shape, facts.stride, dtype=facts.dtype, device=_CPU)
    return made.requires_grad_(facts.requires_grad)


def stays_on_cpu(path: str, facts: TensorFacts) -> bool:
    """Whether a CUDA program has this input on the CPU, too: an optimizer's step counter."""
    return not facts.shape and path.endswith(("['step']", '["step"]'))


def retarget(gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """A copy of ``gm`` whose nodes know their places (``meta["stack_trace"]``). Raises Unsupported for operations that have
    no counterpart."""
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    for node in graph.nodes:
        if place := place_of(node):
            node.meta["stack_trace"] = trace_text(*place)
        if node.op in ("call_function", "call_method"):
            _change(node)
    graph.lint()
    return torch.fx.GraphModule(gm, graph)


def place_of(node: torch.fx.Node) -> tuple[str, int] | None:
    """The user's line: the operation's own, or that of the call into the library."""
    if node.meta.get("magpy_user"):
        file, line = node.meta["magpy_user"]
        return str(file), int(line)
    site = node.meta.get("magpy_site")
    return None if site is None or not site.lineno else (str(site.code.co_filename), int(site.lineno))


def _change(node: torch.fx.Node) -> None:
    name = operator_name(node)
    if is_recurrent(node):
        raise Unsupported("MP902", f"`{name}` is a call of cuDNN on the target, which is not modelled.")
    if name == "scaled_dot_product_attention":
        given = {key: argument(node, key, i) for i, key in enumerate(_ATTENTION)}
        given |= {key: value for key, value in node.kwargs.items() if key not in given}
        node.op, node.target, node.args = "call_function", attention, ()
        node.kwargs = {key: value for key, value in given.items() if value is not None}
    elif name == "dropout" and argument(node, "training", 2) is not False and not argument(node, "inplace", 3):
        rate = argument(node, "p", 1)
        if rate is None or 0 < rate < 1:
            node.op, node.target, node.kwargs = "call_function", dropout, {}
            node.args = (node.args[0] if node.args else argument(node, "input", 0), 0.5 if rate is None else rate)
    elif name == "cuda":
        node.op, node.target, node.args, node.kwargs = "call_method", "cpu", node.args[:1], {}
    node.args, node.kwargs = map_aggregate(node.args, _on_cpu), map_aggregate(node.kwargs, _on_cpu)


def _on_cpu(value: Any) -> Any:
    if isinstance(value, torch.device) or (isinstance(value, str) and value.partition(":")[0] == "cuda"):
        return _CPU if isinstance(value, torch.device) else "cpu"
    return value


def dropout(value: torch.Tensor, rate: float) -> torch.Tensor:
    """Dropout as CUDA runs it: one operation, with a mask of bools for the backward pass."""
    return torch.native_dropout(value, rate, True)[0]


def attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> torch.Tensor:  # fmt: skip
    """``scaled_dot_product_attention`` by the kernel that torch prefers on CUDA: flash attention in half precision, then
    memory-efficient attention, then products and a softmax."""
    aten = torch.ops.aten
    if enable_gqa:
        groups = query.size(-3) // key.size(-3)
        key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
    width = query.size(-1)
    four = all(tensor.dim() == 4 for tensor in (query, key, value)) and value.size(-1) == width
    if four and attn_mask is None and query.dtype in _HALF and width <= _LARGEST_HEAD and width % 8 == 0:
        return aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, scale=scale)[0]  # type: ignore[no-any-return]
    if four and width % (8 if query.dtype in _HALF else 4) == 0 and query.dtype is not torch.float64:
        needed = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (query, key, value))
        bias = None if attn_mask is None else _bias(attn_mask, query, key)
        return aten._scaled_dot_product_efficient_attention(  # type: ignore[no-any-return]
            query, key, value, bias, needed, dropout_p, is_causal, scale=scale
        )[0]
    return aten._scaled_dot_product_attention_math(  # type: ignore[no-any-return]
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale
    )[0]


def _bias(mask: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """A mask as what is added to the scores, for each head."""
    if mask.dtype is torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill(~mask, float("-inf"))
    return mask.expand(query.size(0), query.size(1), query.size(2), key.size(2))

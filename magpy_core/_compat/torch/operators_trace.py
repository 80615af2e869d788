"""A function's ATen operations as a graph, and an operator that orders them.

Key functions: trace_operators, trace_without_writes, traced_nodes, after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, get_proxy_mode, make_fx

from magpy_core._compat.torch.fused_updates import FUSED_UPDATES
from magpy_core._compat.torch.rnn_kernels import RNN_LAYERS

_LIBRARY = torch.library.Library("magpy", "FRAGMENT")
_LIBRARY.define("after(Tensor value, Tensor other) -> Tensor")
_LIBRARY.impl("after", lambda value, other: value.clone(), "CompositeExplicitAutograd")
_LIBRARY.impl("after", lambda value, other: torch.empty_like(value), "Meta")
_LARGEST = 4096  # maximum number of elements of a constant


def after(value: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """A copy of ``value``, which a compiler computes when ``other`` has been computed: it has no code for the operator."""
    copy: torch.Tensor = torch.ops.magpy.after(value.detach(), other.detach())
    return copy


def traced_nodes() -> list[torch.fx.Node]:
    """The nodes that the running trace has so far."""
    mode = get_proxy_mode()
    assert mode is not None, "nothing is traced"
    return list(mode.tracer.graph.nodes)


def untraced() -> Any:
    """A block in which the running trace records nothing."""
    return disable_proxy_modes_tracing()


def trace_operators(fn: Callable[..., Any], fakes: Sequence[Any], fake_mode: Any) -> torch.fx.GraphModule:
    """The operations that ``fn(*fakes)`` runs, including those of autograd, which the graph itself does not use.

    Nodes have no example values, which compilers would use for early transformations."""
    with fake_mode:
        traced: torch.fx.GraphModule = make_fx(fn, decomposition_table=RNN_LAYERS | FUSED_UPDATES)(*fakes)
    for node in list(traced.graph.nodes):
        place = node.meta.get("stack_trace")
        node.meta.clear()
        if place:  # only where the caller keeps the nodes' places
            node.meta["stack_trace"] = place
        if node.op == "get_attr":
            _make_in_graph(traced, node)
    traced.graph.lint()
    traced.recompile()
    return traced


def trace_without_writes(gm: torch.fx.GraphModule, fakes: Sequence[Any], fake_mode: Any) -> torch.fx.GraphModule:
    """The operations of ``gm`` as ones that write nothing but, at the end, its inputs."""
    run = torch.func.functionalize(lambda *values: tuple(gm(*values)), remove="mutations")
    return trace_operators(run, fakes, fake_mode)


def _make_in_graph(traced: torch.fx.GraphModule, node: torch.fx.Node) -> None:
    """Create a small constant inside the graph: a compiler would treat an attribute as an additional input."""
    constant = getattr(traced, str(node.target))
    if type(constant) is not torch.Tensor or constant.numel() > _LARGEST:
        raise RuntimeError("the traced graph has a constant that is too large or not a plain tensor")
    numbers = constant.reshape(-1).tolist()
    with traced.graph.inserting_before(node):
        made = traced.graph.call_function(torch.tensor, (numbers,), {"dtype": constant.dtype, "device": constant.device})
        shaped = traced.graph.call_method("reshape", (made, tuple(constant.shape)))
    node.replace_all_uses_with(shaped)
    traced.graph.erase_node(node)
    delattr(traced, str(node.target))

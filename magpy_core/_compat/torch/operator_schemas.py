"""What the schemas of a traced graph's operations say: which share memory or write it, and which can run again.

Key functions: memory, written_memory, written_by, computed, written_with_lists, changes_layout, can_repeat, is_tensor,
unrecordable.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Mapping
from typing import Any

import torch
import torch.fx

_Node = torch.fx.Node


def memory(node: _Node) -> set[_Node]:
    """The nodes that may have created the memory of a node's value."""
    found, left = set(), [node]
    while left:
        node = left.pop()
        shared = list(_aliased(node, written=False))
        found.update([] if shared else [node])
        left += shared
    return found


def written_memory(graph: torch.fx.Graph, end: _Node | None = None) -> set[_Node]:
    """The nodes that may have created the memory that the operations of ``graph`` write, those before ``end``."""
    found: set[_Node] = set()
    for node in graph.nodes:
        if node is end:
            break
        found |= written_by(node)
    return found


def written_by(node: _Node) -> set[_Node]:
    """The nodes that may have created the memory that an operation writes."""
    return set[_Node]().union(*(memory(target) for target in _aliased(node, written=True)))


def can_repeat(node: _Node) -> bool:
    """Whether an operation gives the same values when it runs again."""
    if node.target is operator.getitem:
        return True
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable:
        return False
    return torch.Tag.nondeterministic_seeded not in target.tags


def unrecordable(gm: torch.fx.GraphModule, values: Mapping[_Node, Any]) -> str:
    """The first operation of ``gm`` that no CUDA graph can record, because its kernel waits for the device; empty if there
    is none. ``values``: the nodes' example values."""
    from torch._inductor.utils import get_first_incompatible_cudagraph_node

    before = {node: node.meta.get("val") for node in gm.graph.nodes}
    for node in gm.graph.nodes:
        node.meta["val"] = values.get(node)
    try:
        found = get_first_incompatible_cudagraph_node(gm)
    finally:
        for node, value in before.items():
            node.meta["val"] = value
            if value is None:
                del node.meta["val"]
    return "" if found is None else str(found.target)


def is_mutable(node: _Node) -> bool:
    """Whether an operation writes an argument."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def computed(node: _Node) -> Iterator[tuple[_Node, _Node]]:
    """Each tensor that is new or written when ``node`` has run: the operation that has computed it, and the node that has
    it. Several results are there when they are taken apart. A view is neither new nor written."""
    maker = node.args[0] if node.target is operator.getitem else node
    if not isinstance(maker, _Node) or not isinstance(maker.target, torch._ops.OpOverload):
        return
    returns = maker.target._schema.returns
    written = list(_aliased(node, written=True))
    yield from ((node, one) for one in written)
    is_taken_apart = maker is node and (len(returns) != 1 or returns[0].type.kind() == "ListType")
    if not (written or is_taken_apart or any(one.alias_info is not None for one in returns)):
        yield maker, node


@functools.cache
def written_with_lists(name: str) -> tuple[int, ...]:
    """The positions of the arguments that an operation in place writes, if it writes lists of tensors: ``_foreach_add_``,
    ``_fused_adam_``."""
    packet = getattr(torch.ops.aten, name, None) if name.startswith("_") and name.endswith("_") else None
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        return ()
    for overload in packet.overloads():
        arguments = getattr(packet, overload)._schema.arguments
        written = [i for i, one in enumerate(arguments) if one.is_write and not one.kwarg_only]
        if any(arguments[i].type.kind() == "ListType" for i in written):
            return tuple(written)
    return ()


@functools.cache
def changes_layout(name: str) -> bool:
    """Whether an operation in place changes sizes, strides or memory of its tensor instead of its elements: ``t_``."""
    packet = getattr(torch.ops.aten, name, None)
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        return False
    return any(torch.Tag.inplace_view in getattr(packet, overload).tags for overload in packet.overloads())


def is_pointwise(target: torch._ops.OpOverload) -> bool:
    """Whether an operation computes each element of its result from the elements in the same place, and writes nothing."""
    return torch.Tag.pointwise in target.tags and not target._schema.is_mutable


@functools.cache
def combines_elements(name: str) -> bool:
    """Whether an operation of this name may compute an element from several elements of an argument, in new memory: a sum, a
    product of matrices, a convolution, a normalization."""
    packet = getattr(torch.ops.aten, name, None)
    if not isinstance(packet, torch._ops.OpOverloadPacket):
        return False
    overloads = [getattr(packet, overload) for overload in packet.overloads()]
    if not any(torch._C._dispatch_has_kernel(one.name()) for one in overloads):
        return False  # of TorchScript only: `grad`
    if any(one.alias_info is not None and not one.alias_info.is_write for o in overloads for one in o._schema.returns):
        return False
    return not any(torch.Tag.pointwise in one.tags for one in overloads)


def is_random(node: _Node) -> bool:
    """Whether an operation draws random numbers."""
    return isinstance(node.target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in node.target.tags


def is_kernels_alone(node: _Node) -> bool:
    """Whether an operation of a traced graph does nothing but launch kernels: one of torch's, or ours. A program's own
    operator may run any Python, and a collective waits for other processes."""
    if isinstance(node.target, torch._ops.OpOverload):
        return node.target.namespace in ("aten", "prims", "magpy")
    return node.op == "call_method" or node.target in (operator.getitem, torch.tensor)


def is_tensor(node: _Node) -> bool:
    """Whether the value of an operation is one tensor."""
    if node.target is operator.getitem:
        return True
    returns = node.target._schema.returns if isinstance(node.target, torch._ops.OpOverload) else ()
    return len(returns) == 1 and returns[0].type.kind() == "TensorType"


def _aliased(node: _Node, *, written: bool) -> Iterator[_Node]:
    """The arguments whose memory an operation writes, or whose memory its result may share."""
    if node.target is operator.getitem and not written:
        yield from node.all_input_nodes
    if not isinstance(node.target, torch._ops.OpOverload):
        return
    for i, argument in enumerate(node.target._schema.arguments):
        if argument.alias_info is not None and (argument.is_write or not written):
            given = node.args[i] if i < len(node.args) else node.kwargs.get(argument.name)
            yield from (n for n in (given if isinstance(given, list | tuple) else (given,)) if isinstance(n, _Node))

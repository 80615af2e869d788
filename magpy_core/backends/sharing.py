"""Detects memory shared by inputs and outputs that compilers would separate. Key functions: `may_overlap`, `split_views`.

AOTAutograd recreates outputs that are views of an input, outside the compiled graph. It does not do so for several views
that one operation creates of an input that is written in the graph and takes part in autograd, and it gets their strides
wrong if the input shares its storage with another one.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.views import many_views, views
from magpy_core.backends.scalar_ops import name_of
from magpy_core.opgraph.functions import IN_PLACE


def may_overlap(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether two of these fakes may share an element: they are in one storage, and their ranges overlap."""
    ranges: dict[int, list[tuple[Any, Any]]] = {}
    for tensor in {id(t): t for t in tensors}.values():
        if tensor.numel() == 0:
            continue
        start = tensor.storage_offset()
        end = start + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
        known = ranges.setdefault(tensor.untyped_storage()._cdata, [])
        if any(start <= other_end and other_start <= end for other_start, other_end in known):
            return True
        known.append((start, end))
    return False


def writes(node: torch.fx.Node) -> bool:
    """Whether an operation writes to one of its arguments."""
    if node.op not in ("call_function", "call_method"):
        return False
    name = name_of(node.op, node.target)
    operator = f"__{name}__" in IN_PLACE or name in ("setitem", "set")  # the latter: `x.real = y`
    return (
        "out" in node.kwargs or operator or (name.endswith("_") and not name.endswith("__")) or _has_inplace_argument(node)
    )


def _has_inplace_argument(node: torch.fx.Node) -> bool:
    """Whether a function of `torch.nn.functional` is called with ``inplace=True``, by name or by position."""
    at = _inplace_position(node.target) if node.op == "call_function" else None
    return node.kwargs.get("inplace", at is not None and len(node.args) > at and node.args[at]) is True


@functools.cache
def _inplace_position(target: Any) -> int | None:
    try:
        names = list(inspect.signature(target).parameters)
    except (TypeError, ValueError):  # built-in functions have names that end with "_" instead
        return None
    return names.index("inplace") if "inplace" in names else None


def split_views(graph: torch.fx.Graph, inputs: dict[torch.fx.Node, Any]) -> str | None:
    """Why an output would not share an input's memory as in eager mode; None if all outputs would."""
    if not any(writes(node) for node in graph.nodes):
        return None
    tensors = [t for t in inputs.values() if isinstance(t, torch.Tensor)]
    storages = [t.untyped_storage()._cdata for t in {id(t): t for t in tensors}.values()]
    learning = any(t.requires_grad for t in tensors)
    for output in next(n for n in graph.nodes if n.op == "output").all_input_nodes:
        chain = [output, *viewed(output)]
        given = inputs.get(chain[-1])
        if not isinstance(given, torch.Tensor) or len(chain) == 1:
            continue
        if learning and any(_stem(n) in many_views() for n in chain[:-1]):
            return "several views of a tensor from outside that is written leave the graph"
        if storages.count(given.untyped_storage()._cdata) > 1:
            return "a view of a tensor from outside leaves the graph, which writes another one that shares its memory"
    return None


def _stem(node: torch.fx.Node) -> str:
    return name_of(node.op, node.target).strip("_") if node.op in ("call_function", "call_method") else ""


def viewed(node: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """The chain of nodes that a node is a view of, or the in-place result of."""
    while (_stem(node) in views() or writes(node)) and node.all_input_nodes:
        given = node.kwargs.get("out")
        node = given if isinstance(given, torch.fx.Node) else node.all_input_nodes[0]
        yield node

"""Which operations of a graph may raise because of tensor data, even if all guards hold.

An operation may raise unless it is known to be safe. Key functions: ``can_raise``; ``may_end_process``, on a GPU;
``at_risk_in_order`` and ``at_risk_when_compiled``: which inputs may have changed by then.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence

import torch
import torch.fx

from magpy_core._compat.torch.torch_state import switches_modes
from magpy_core.knowledge.modules import ARITHMETIC
from magpy_core.knowledge.operators import Fact, named
from magpy_core.opgraph.functions import IS_BACKWARD, MAY_RAISE, node_name
from magpy_core.opgraph.scalars import cannot_overflow

_SAFE = named(Fact.SAFE)
_PLAIN_INDEX = (int, slice, type(None), type(Ellipsis))


def can_raise(node: torch.fx.Node) -> bool:
    """Whether a call may raise for some tensor data."""
    if MAY_RAISE in node.meta:
        return True
    name = node_name(node)
    if name == "getattr" or switches_modes(node.target) or name.startswith(("_foreach_", "_fused_")):
        return False
    if name in ("getitem", "setitem", "__getitem__", "__setitem__"):
        index = node.args[1]
        parts = index if isinstance(index, tuple) else (index,)
        return not all(isinstance(p, _PLAIN_INDEX) for p in parts)
    if name == "pow":
        # copying every parameter of an optimizer at each step, in case the step count is a huge negative number, would cost
        # more than compiling saves
        return not isinstance(node.args[1], (int, float)) and not cannot_overflow(node.args[0])
    if "rounding_mode" in node.kwargs:
        return True
    plain = name.removesuffix("_") if name not in _SAFE else name
    return plain.removeprefix("i") not in _SAFE and plain not in _SAFE


def may_end_process(graph: torch.fx.Graph, after: torch.fx.Node | None) -> bool:
    """Whether an operation after ``after`` (None: any) might end the process on a GPU, where a check of data that fails does
    not raise: if the program takes another path there, it must not run. Gradients are of operations that have run."""
    nodes = list(graph.nodes)
    start = 0 if after is None else nodes.index(after) + 1
    return any(map(_may_end_process, nodes[start:]))


def _may_end_process(node: torch.fx.Node) -> bool:
    if node.op not in ("call_function", "call_method") or not can_raise(node):
        return False
    if node.target is torch.autograd.grad or node_name(node) == "new_gradient":
        return False
    is_arithmetic = getattr(node.target, "__module__", None) in ARITHMETIC  # of numbers, unless a tensor results
    return not is_arithmetic or node.target in (operator.getitem, operator.setitem) or "magpy_tensor" in node.meta


def nodes_before_raise(graph: torch.fx.Graph) -> frozenset[torch.fx.Node]:
    """The operations up to the last one that may raise, and that one."""
    calls = [node for node in graph.nodes if node.op in ("call_function", "call_method")]
    last = next((i for i in reversed(range(len(calls))) if can_raise(calls[i])), -1)
    return frozenset(calls[: last + 1])


Written = Mapping[torch.fx.Node, Sequence[torch.fx.Node]]
"""Placeholders, with the operations that write them."""


def at_risk_in_order(graph: torch.fx.Graph, written: Written) -> frozenset[torch.fx.Node]:
    """The inputs that have changed when an operation raises, if the operations run in their order."""
    before = nodes_before_raise(graph)
    return frozenset(node for node, writes in written.items() if writes[0] in before)


def at_risk_when_compiled(graph: torch.fx.Graph, written: Written) -> frozenset[torch.fx.Node]:
    """The inputs that may have changed when an operation raises, if a compiler arranges the operations.

    It may run what does not depend on that operation before it, and what depends on it element by element in the same
    loop. A backward pass begins when its root has been computed (``backends.gradients``), so what depends on the gradients
    is written after everything that the root depends on.
    """
    raising: dict[torch.fx.Node, int] = {}  # a bit for each operation
    above: dict[torch.fx.Node, int] = {}  # the bits of those that a value depends on
    passed: dict[torch.fx.Node, int] = {}  # of those that have run when a value is computed
    writes: dict[torch.fx.Node, list[torch.fx.Node]] = {}
    for placeholder, operations in written.items():
        for operation in operations:
            writes.setdefault(operation, []).append(placeholder)
    for node in graph.nodes:
        given = node.all_input_nodes
        above[node] = passed[node] = 0
        for one in given:
            above[node] |= above.get(one, 0)
            passed[node] |= passed.get(one, 0)
        if node.op not in ("call_function", "call_method"):
            continue
        if node.target is torch.autograd.grad:
            if IS_BACKWARD in node.meta:
                passed[node] |= above[node]
        elif can_raise(node) and node_name(node) != "new_gradient":
            raising[node] = 1 << len(raising)
            above[node] |= raising[node]
        for placeholder in writes.get(node, ()):
            above[placeholder] |= above[node]
            passed[placeholder] |= passed[node]
    everything = (1 << len(raising)) - 1
    return frozenset(node for node in written if passed[node] != everything)

"""Which operations of a graph may raise because of tensor data, even if all guards hold.

An operation may raise unless it is known to be safe. Key functions: ``can_raise``, ``nodes_before_raise``.
"""

from __future__ import annotations

import torch.fx

from magpy_core._compat.torch.torch_state import switches_modes
from magpy_core.knowledge.operators import Fact, named
from magpy_core.opgraph.functions import MAY_RAISE, node_name
from magpy_core.opgraph.scalars import cannot_overflow

_SAFE = named(Fact.SAFE)
_PLAIN_INDEX = (int, slice, type(None), type(Ellipsis))


def can_raise(node: torch.fx.Node) -> bool:
    """Whether a call may raise for some tensor data."""
    if MAY_RAISE in node.meta:
        return True
    name = node_name(node)
    if name == "getattr" or switches_modes(node.target) or name.startswith("_foreach_"):
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


def nodes_before_raise(graph: torch.fx.Graph) -> frozenset[torch.fx.Node]:
    """The operations up to the last one that may raise, and that one."""
    calls = [node for node in graph.nodes if node.op in ("call_function", "call_method")]
    last = next((i for i in reversed(range(len(calls))) if can_raise(calls[i])), -1)
    return frozenset(calls[: last + 1])

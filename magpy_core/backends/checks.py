"""Adds data checks of eager kernels to graphs whose compiler omits them.

Inductor's CPU kernels check only indices (negative ones count from the end) and most integer divisors. A check is an index
that is out of bounds exactly if the data is invalid: then the compiled graph raises, its results are discarded, and the
program runs in eager mode, which raises the proper exception. Key function: `write_checks`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.fx

from magpy_core._compat.torch.operators import kernels_check
from magpy_core.findings import Unsupported
from magpy_core.opgraph.functions import argument, operator_name

#: Operations with indices at position 2 that raise for negative ones, while a compiled graph counts them from the end.
_FROM_ZERO = frozenset({"index_select", "index_add", "index_copy", "index_reduce"})
_REVERSED = frozenset({"rfloordiv", "rmod"})
_DIVISIONS = _REVERSED | {"div", "divide", "floor_divide", "floordiv", "ifloordiv", "remainder", "mod", "imod", "fmod"}


def write_checks(graph: torch.fx.Graph) -> None:
    """Changes ``graph`` in place; its inputs are on the CPU."""
    for node in list(graph.nodes):
        name = operator_name(node).removesuffix("_")
        if name in _FROM_ZERO:
            _bounded(graph, node, "index", 2, argument(node, "input", 0), argument(node, "dim", 1))
        elif name == "embedding" and not kernels_check():
            _bounded(graph, node, "input", 0, argument(node, "weight", 1), 0)
        elif name == "binary_cross_entropy":
            _checked(graph, node, "input", 0, lambda x: _in_unit(graph, x))
            _checked(graph, node, "target", 1, lambda x: _in_unit(graph, x))
        elif name == "scatter" and not _is_tensor(argument(node, "value", 3)) and "src" not in node.kwargs:
            _checked(
                graph, node, "index", 2, partial(_in_dimension, graph, argument(node, "input", 0), argument(node, "dim", 1))
            )
        elif name == "repeat_interleave" and (size := argument(node, "output_size", 3)) is not None:
            _checked(
                graph,
                node,
                "repeats",
                1,
                partial(_repeated, graph, argument(node, "input", 0), argument(node, "dim", 2), size),
            )
        elif name == "bernoulli":
            alone = argument(node, "p", 1) is None and node.target != "bernoulli_"
            _checked(graph, node, "input" if alone else "p", 0 if alone else 1, lambda x: _in_unit(graph, x))
        elif name == "normal" and node.target is torch.normal:
            _checked(graph, node, "std", 1, lambda x: graph.call_function(torch.ge, (x, 0)))
        elif name in _DIVISIONS and (not kernels_check() or node.kwargs.get("rounding_mode") == "trunc"):
            _divided(graph, node, 0 if name in _REVERSED else 1)


def _in_unit(graph: torch.fx.Graph, x: torch.fx.Node) -> torch.fx.Node:
    above = graph.call_function(torch.ge, (x, 0))
    return graph.call_function(torch.logical_and, (above, graph.call_function(torch.le, (x, 1))))


def _in_dimension(graph: torch.fx.Graph, table: Any, dim: Any, index: torch.fx.Node) -> torch.fx.Node:
    """Inductor writes a number to a constant tensor by comparing positions with the indices."""
    below = graph.call_function(torch.lt, (index, graph.call_method("size", (table, dim))))
    return graph.call_function(torch.logical_and, (below, graph.call_function(torch.ge, (index, 0))))


def _repeated(graph: torch.fx.Graph, table: Any, dim: Any, size: Any, repeats: torch.fx.Node) -> torch.fx.Node:
    """Whether the numbers of repetitions, one for all or one for each element, give the size that the caller expects."""
    count = graph.call_method("numel", (table,)) if dim is None else graph.call_method("size", (table, dim))
    total = graph.call_method("sum", (graph.call_method("expand", (repeats, count)),))
    return graph.call_function(torch.eq, (total, size))


Check = Callable[[torch.fx.Node], torch.fx.Node]


def _replace(node: torch.fx.Node, key: str, position: int, value: Any) -> None:
    if key in node.kwargs:
        node.kwargs = {**node.kwargs, key: value}
    else:
        node.args = (*node.args[:position], value, *node.args[position + 1 :])


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.fx.Node) and "magpy_scalar" not in value.meta


def _bounded(graph: torch.fx.Graph, node: torch.fx.Node, key: str, position: int, table: Any, dim: Any) -> None:
    """Replaces negative indices into a dimension of ``table`` with one that is too large."""
    index = argument(node, key, position)
    if _is_tensor(index):
        with graph.inserting_before(node):
            below = graph.call_function(torch.lt, (index, 0))
            beyond = graph.call_method("size", (table, dim))
            _replace(node, key, position, graph.call_function(torch.where, (below, beyond, index)))


def _checked(graph: torch.fx.Graph, node: torch.fx.Node, key: str, position: int, good: Check) -> None:
    """Adds a zero to the argument; reading that zero is out of bounds unless the whole argument is ``good``."""
    value = argument(node, key, position)
    if not _is_tensor(value):
        return
    with graph.inserting_before(node):
        passes = graph.call_method("all", (good(value),))
        index = graph.call_method("long", (graph.call_function(torch.logical_not, (passes,)),))
        zeros = graph.call_method("new_zeros", (value, (1,)))
        zero = graph.call_method("index_select", (zeros, 0, graph.call_method("view", (index, (1,)))))
        _replace(node, key, position, graph.call_function(torch.add, (value, graph.call_method("squeeze", (zero, 0)))))


def _divided(graph: torch.fx.Graph, node: torch.fx.Node, position: int) -> None:
    """Refuses an integer division by a number that may be zero, which would kill the process."""
    dtype = node.meta.get("magpy_tensor", (torch.float32,))[0]  # numbers have no tensor metadata
    if dtype.is_floating_point or dtype.is_complex:
        return
    divisor = argument(node, "other", position)
    if _is_tensor(divisor):
        _checked(graph, node, "other", position, lambda x: graph.call_function(torch.ne, (x, 0)))
    elif isinstance(divisor, torch.fx.Node) or divisor == 0:
        raise Unsupported("MP916", "The integer division may divide by zero, which would kill the process in compiled code.")

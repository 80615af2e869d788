"""Behavior of torch's operators in this version: views by their schemas, Python decompositions, known miscompilations.

Key functions: `views`, `arguments_by_schema`, `known_miscompilation`, `kernels_check`, `is_recurrent`.
"""

from __future__ import annotations

import functools

import torch
import torch.fx

_VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
_RECURRENT = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"})


def known_miscompilation(name: str) -> str | None:
    """How this version of torch compiles an operator incorrectly; None if it doesn't."""
    if name == "rrelu" and _VERSION < (2, 12):
        return f"In this torch version, compiled code has other random numbers for `{name}`."
    return None


def kernels_check() -> bool:
    """Whether kernels of this torch's Inductor raise for an integer division by zero (others crash the process), and for a
    negative index of an embedding."""
    return _VERSION >= (2, 13)


def is_recurrent(node: torch.fx.Node) -> bool:
    """Whether a node is a recurrent operator, which torch decomposes in Python."""
    return node.op == "call_function" and getattr(node.target, "__name__", "") in _RECURRENT


def arguments_by_schema(node: torch.fx.Node, *, written: bool) -> list[torch.fx.Node] | None:
    """What an ATen operation writes, or of what its result may be a view; None if the node calls no single overload."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return None
    found: list[torch.fx.Node] = []
    for i, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write is written:
            value = node.args[i] if i < len(node.args) else node.kwargs.get(argument.name)
            found += [
                one for one in (value if isinstance(value, list | tuple) else [value]) if isinstance(one, torch.fx.Node)
            ]
    return found


#: Views whose names are in no schema: attributes (`Tensor.T`: a getter), subscripts, composites in Python.
_OF_PYTHON = frozenset(
    {"get", "getattr", "getitem", "iter", "data", "T", "H", "type", "type_as", "float", "double", "half", "bfloat16",
     "long", "int", "short", "char", "byte", "bool", "cdouble", "cfloat", "atleast_1d", "atleast_2d", "atleast_3d",
     "broadcast_tensors", "dropout", "meshgrid", "identity", "new_leaf"}  # the last: `opgraph.leaves`
)  # fmt: skip
_MANY_OF_PYTHON = frozenset({"iter", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_tensors", "meshgrid"})


@functools.cache
def views(*, many: bool = False) -> frozenset[str]:
    """Names (without leading and trailing underscores) of operations whose result may share memory with their arguments;
    with ``many``, of those that return several views."""
    found = set(_MANY_OF_PYTHON if many else _OF_PYTHON)
    for schema in torch._C._jit_get_all_schemas():
        several = len(schema.returns) > 1 or any(r.type.kind() == "ListType" for r in schema.returns)
        if (several or not many) and any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns):
            found.add(schema.name.rpartition("::")[2].strip("_"))
    return frozenset(found)


@functools.cache
def several_results() -> frozenset[str]:
    """Names (as in `views`) of operations that return several tensors, each in memory of its own."""
    found = set()
    for schema in torch._C._jit_get_all_schemas():
        several = len(schema.returns) > 1 or any(r.type.kind() == "ListType" for r in schema.returns)
        if several and not any(r.alias_info is not None for r in schema.returns):
            found.add(schema.name.rpartition("::")[2].strip("_"))
    return (frozenset(found) - views()) | {"grad"}  # `torch.autograd.grad`, too

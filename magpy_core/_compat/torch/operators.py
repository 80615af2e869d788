"""What torch's operators do in this version: views by their schemas, decompositions in Python and where those are wrong.

Key functions: `views`, `wrong_here`, `kernels_check`, `is_recurrent`.
"""

from __future__ import annotations

import functools

import torch
import torch.fx

_VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
_RECURRENT = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"})


def wrong_here(name: str) -> str | None:
    """What this version of torch does wrong when it compiles an operator."""
    if name == "rrelu" and _VERSION < (2, 12):
        return f"compiled code draws other random numbers for {name} in this torch version"
    # seen in 2.11, which takes an LSTM whose input requires a gradient apart into states with a dimension too many
    if name == "lstm" and _VERSION < (2, 13):
        return f"this torch compiles `{name}` incorrectly: its states get another shape"
    return None


def kernels_check() -> bool:
    """Whether kernels of this torch's Inductor raise for an integer divided by zero (others end the process), and for an
    index of an embedding below zero."""
    return _VERSION >= (2, 13)


def is_recurrent(node: torch.fx.Node) -> bool:
    """Whether a node is one of the operators that torch takes apart in Python."""
    return node.op == "call_function" and getattr(node.target, "__name__", "") in _RECURRENT


#: Views by names that no schema has: attributes (`Tensor.T`: a getter), subscripts, composites of Python.
_OF_PYTHON = frozenset(
    {"get", "getattr", "getitem", "iter", "data", "T", "H", "type", "type_as", "float", "double", "half", "bfloat16",
     "long", "int", "short", "char", "byte", "bool", "cdouble", "cfloat", "atleast_1d", "atleast_2d", "atleast_3d",
     "broadcast_tensors", "dropout", "meshgrid", "identity"}
)  # fmt: skip
_MANY_OF_PYTHON = frozenset({"iter", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_tensors", "meshgrid"})


@functools.cache
def views(*, many: bool = False) -> frozenset[str]:
    """Names (without underscores at their ends) of operations whose result may share memory with what they are given; with
    ``many``, of those that give several views at once."""
    found = set(_MANY_OF_PYTHON if many else _OF_PYTHON)
    for schema in torch._C._jit_get_all_schemas():
        several = len(schema.returns) > 1 or any(r.type.kind() == "ListType" for r in schema.returns)
        if (several or not many) and any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns):
            found.add(schema.name.rpartition("::")[2].strip("_"))
    return frozenset(found)

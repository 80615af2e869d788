"""Which operations may give a view of what they are given, by torch's schemas. Key functions: `views`, `many_views`."""

from __future__ import annotations

import functools

import torch

#: Views by names that no schema has: attributes (`Tensor.T`: a getter), subscripts, composites of Python.
_OF_PYTHON = frozenset(
    {"get", "getattr", "getitem", "iter", "data", "T", "H", "type", "type_as", "float", "double", "half", "bfloat16",
     "long", "int", "short", "char", "byte", "bool", "cdouble", "cfloat", "atleast_1d", "atleast_2d", "atleast_3d",
     "broadcast_tensors", "dropout", "meshgrid", "identity"}
)  # fmt: skip
_MANY_OF_PYTHON = frozenset({"iter", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_tensors", "meshgrid"})


@functools.cache
def _of_schemas() -> tuple[frozenset[str], frozenset[str]]:
    views, many = set(), set()
    for schema in torch._C._jit_get_all_schemas():
        if any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns):
            name = schema.name.rpartition("::")[2].strip("_")
            views.add(name)
            if len(schema.returns) > 1 or any(r.type.kind() == "ListType" for r in schema.returns):
                many.add(name)
    return frozenset(views), frozenset(many)


def views() -> frozenset[str]:
    """Names (without underscores at their ends) of operations whose result may share memory with what they are given."""
    return _of_schemas()[0] | _OF_PYTHON


def many_views() -> frozenset[str]:
    """Those of `views` that give several views at once."""
    return _of_schemas()[1] | _MANY_OF_PYTHON

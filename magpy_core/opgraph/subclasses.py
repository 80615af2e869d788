"""Tensor subclasses whose operations are Python code of their own, which an operator graph can't hold.

What such code reads and does is not recorded, and no kernel would do it again. Key functions: `refuse_own_functions`,
`refuse_own_kernels`.
"""

from __future__ import annotations

from typing import Any

from magpy_core._compat.torch.tensor_guards import has_own_functions, has_own_kernels
from magpy_core.findings import HERE, Unsupported

_HINT = "Take its plain tensor outside the region: `x.as_subclass(torch.Tensor)`, or what the class keeps inside."


def _refuse(cls: type, method: str) -> Unsupported:
    return Unsupported("MP106", f"{HERE} takes a `{cls.__name__}`, whose `{method}` is Python code.", hint=_HINT)


def refuse_own_functions(types: Any) -> None:
    """Refuse an operation on classes (``types`` of ``__torch_function__``) one of which handles it with its own code."""
    for cls in types:
        if has_own_functions(cls):
            raise _refuse(cls, "__torch_function__")


def refuse_own_kernels(cls: type) -> None:
    """Refuse a graph input of a class that runs Python in place of kernels."""
    if has_own_kernels(cls):
        raise _refuse(cls, "__torch_dispatch__")

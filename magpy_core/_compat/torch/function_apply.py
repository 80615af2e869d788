"""Calls of custom functions (``torch.autograd.Function``), whose ``apply`` is written in Python up to torch 2.13 and in C
in 2.15.

Key functions: :func:`applied_class`, :func:`starts_custom_function`.
"""

from __future__ import annotations

import types
from typing import Any, Final, cast

import torch

_APPLY: Final[Any] = getattr(torch.autograd.Function.apply, "__func__", None)
"""The Python function; None if it is written in C, so that calling it starts no frame."""


def applied_class(fn: Any) -> type | None:
    """The custom function's class, if ``fn`` is a ``SomeFunction.apply``."""
    if _APPLY is not None:
        return cast(type, fn.__self__) if type(fn) is types.MethodType and fn.__func__ is _APPLY else None
    if type(fn) is not types.BuiltinMethodType or fn.__name__ != "apply":
        return None
    owner = fn.__self__
    return owner if isinstance(owner, type) and issubclass(owner, torch.autograd.Function) else None


def starts_custom_function(code: types.CodeType, f_locals: Any) -> bool:
    """Whether a frame about to start is a custom function's ``forward``, called by an ``apply`` without a frame.

    Its first argument is then the context. Always False if ``apply`` has a frame.
    """
    if _APPLY is not None or not code.co_argcount:
        return False
    # by type: `isinstance` could run the program's ``__getattribute__``
    return issubclass(type(f_locals.get(code.co_varnames[0])), torch._C._FunctionBase)

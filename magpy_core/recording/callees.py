"""What a callee is: native or not, what it does with what it is given back, whose number it reads.

Key functions: ``taker``, ``read_from``.
"""

from __future__ import annotations

import collections
import functools
import operator
import types
from typing import Any

import torch

from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.lookup import class_lookup

BUILTIN_FUNCTION = (types.BuiltinFunctionType, types.MethodWrapperType)
DESCRIPTOR = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)
# Native functions that hand what Python returns to them to the program as it is.
_PASSING_ON = frozenset(
    {getattr, next, iter, list, tuple, enumerate, zip, map, reversed, collections.deque, object, type, super}
)
GETTERS = (operator.attrgetter, operator.itemgetter, operator.methodcaller)
_LRU = type(functools.lru_cache(lambda: None))
_NUMBERS = ("item", "tolist", "__int__", "__float__")


def taker(fn: Any) -> str:
    """What a callee does with what Python functions return to it (a key function, ``__len__``): native code "keeps" it for
    itself or "passes" it on as it is; "" for Python code."""
    tp = type(fn)
    if tp in (types.FunctionType, types.MethodType, functools.partial, _LRU):
        return ""
    python_class = is_a(fn, type) and fn.__flags__ & (1 << 9)
    if python_class or is_a(class_lookup(tp, "__call__")[0], types.FunctionType):
        return ""
    # of other things, a weak reference's for one, the hash is that of what it stands for
    return "passes" if tp in (type, types.BuiltinFunctionType) and fn in _PASSING_ON else "keeps"


def read_from(fn: Any, args: tuple[Any, ...]) -> Any:
    """The tensor of which a call gives numbers: ``x.item()``, ``int(x)``; None for any other call."""
    if fn is int or fn is float:
        return args[0] if len(args) == 1 else None
    if type(fn) is types.BuiltinFunctionType:
        return fn.__self__ if fn.__name__ in _NUMBERS and is_a(fn.__self__, torch.Tensor) else None
    return args[0] if args and type(fn) is types.MethodDescriptorType and fn.__name__ in _NUMBERS else None

"""Facts about a callee: whether it is native, how it uses results of its callbacks, which tensor's number it reads.

Key functions: consumer_of, number_read_from.
"""

from __future__ import annotations

import copy
import functools
import operator
import types
from typing import Any

import torch

from magpy_core.knowledge.callables import LRU_CACHE, entry
from magpy_core.knowledge.operators import Fact, named
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.call_stack import Consumer
from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.lookup import class_lookup

BUILTIN_FUNCTION = (types.BuiltinFunctionType, types.MethodWrapperType)
MEMBER = (types.MemberDescriptorType, types.GetSetDescriptorType)
DESCRIPTOR = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)
CALLBACKS = (types.FunctionType, types.MethodType, functools.partial)
GETTERS = (operator.attrgetter, operator.itemgetter, operator.methodcaller)
# Without `__index__`, which native code calls for numbers that it uses itself (`range`, a subscript), and complex numbers,
# which carry no symbol.
_GIVES_NUMBERS = named(Fact.READS_ITEM | Fact.READS_FLOAT | Fact.READS_INT | Fact.GIVES_LIST) - {"__index__"}


_COPY = [f.__code__ for f in vars(copy).values() if is_a(f, types.FunctionType) and f.__module__ == "copy"]
_COPYING = frozenset([*_COPY, *(c for code in _COPY for c in code.co_consts if is_a(c, types.CodeType))])


def is_copying(site: MaybeSite) -> bool:
    """Whether this is ``copy.deepcopy`` itself, which uses ids as keys of its memo. They reveal only which objects are the
    same, which is guarded for objects from outside."""
    return site is not None and site.code in _COPYING


def consumer_of(fn: Any) -> Consumer:
    """How a callee uses the results of Python functions that it calls."""
    tp = type(fn)
    if tp in (types.FunctionType, types.MethodType, functools.partial, LRU_CACHE):
        return Consumer.PYTHON
    python_class = is_a(fn, type) and kinds.is_heap_type(fn)
    if python_class or is_a(class_lookup(tp, "__call__")[0], types.FunctionType):
        return Consumer.PYTHON
    return Consumer.PASSES if entry(fn).returns_callback_result else Consumer.KEEPS


def number_read_from(fn: Any, args: tuple[Any, ...]) -> Any:
    """The tensor whose numbers a call returns: ``x.item()``, ``int(x)``; None for any other call."""
    if fn is int or fn is float:
        return args[0] if len(args) == 1 else None
    if type(fn) is types.BuiltinFunctionType:
        return fn.__self__ if fn.__name__ in _GIVES_NUMBERS and is_a(fn.__self__, torch.Tensor) else None
    return args[0] if args and type(fn) is types.MethodDescriptorType and fn.__name__ in _GIVES_NUMBERS else None

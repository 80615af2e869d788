"""Call policy: the verdict on calling a native function, from its entry, its module and the user's ``call-policy`` in
``[tool.magpy]``. Key functions: ``verdict``, ``extend``.
"""

from __future__ import annotations

import datetime
import decimal
import types
from collections.abc import Callable
from typing import Any, TypeGuard

from magpy_core._compat.cpython.layout import bound_object, is_heap_type
from magpy_core._compat.cpython.weak_caches import class_by_object
from magpy_core.knowledge.callables import entry
from magpy_core.knowledge.modules import MODULES, UNKNOWN_MODULE, Module, Verdict

_CLOCKS = frozenset({"now", "today", "utcnow"})
_CLOCK_MODULES = ("time.", "datetime.")

_extra: dict[str, Verdict] = {}


def _is_module(obj: Any) -> TypeGuard[types.ModuleType]:
    """By the object's type only: ``isinstance`` would also read its ``__class__``, which may run user code."""
    return issubclass(type(obj), types.ModuleType)


def extend(table: dict[str, str]) -> None:
    """Add user policy: dotted name -> ``pure`` | ``torch`` | ``host``. Raises ValueError for another verdict."""
    for name, what in table.items():
        if what not in (Verdict.PURE, Verdict.TORCH, Verdict.HOST):
            raise ValueError(f"call policy of {name!r} is {what!r}; it must be pure, torch or host")
        _extra[name] = Verdict(what)


def module_of(fn: Any) -> str:
    """The ``__module__`` of a function or class, if it is a string; a program may have set it to anything."""
    module = getattr(fn, "__module__", None)
    return module if type(module) is str else ""


def dotted_name(fn: Any) -> str:
    module = module_of(fn) or module_of(getattr(fn, "__objclass__", None))
    if not module:
        owner = getattr(fn, "__self__", None)
        module = owner.__name__ if _is_module(owner) else type(owner).__module__
    if type(fn) is types.BuiltinFunctionType and bound_object(fn) is None:
        return f"{module}.{fn.__name__}"
    name = getattr(fn, "__qualname__", None) or getattr(fn, "__name__", None) or type(fn).__name__
    return f"{module}.{name}"


def shown_name(fn: Any) -> str:
    """:func:`dotted_name` as the user would write it."""
    return dotted_name(fn).replace("._VariableFunctionsClass.", ".").removeprefix("builtins.").removeprefix("_")


# Prefixes of NumPy functions that are not pure: input and output, settings, the clock.
_HOST_NUMPY = ("load", "save", "from", "gen", "mem", "set", "get", "show", "print", "info", "err", "test", "tofile", "dump",
               "datetime", "to_device", "nested_iters", "who", "lookfor", "deprecat", "include")  # fmt: skip
_NUMPY_MODULES = ("numpy", "numpy.linalg", "numpy.fft", "numpy.lib", "numpy.core", "numpy._core")


def is_pure_numpy(fn: Any) -> bool:
    """Whether the result of a NumPy function, or method of an array, depends only on its arguments."""
    module = module_of(fn) or "numpy"  # methods have none
    known = module in _NUMPY_MODULES or module.startswith(("numpy._core.", "numpy.core.", "numpy.lib."))
    return known and not getattr(fn, "__name__", "").startswith(_HOST_NUMPY)


def is_decimal(fn: Any) -> bool:
    """Whether this creates or computes with decimal numbers, so that it depends on its arguments and the current context."""
    owners = (type(getattr(fn, "__self__", None)), getattr(fn, "__objclass__", None))
    return fn is decimal.Decimal or decimal.Decimal in owners


_NATIVE_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType)


def _native_base(tp: type) -> type | None:
    """The class among ``tp`` and its bases that is written in C and may keep state that no attribute shows (zlib's
    compressors, classes of extension modules); None for Python classes. Extension modules create heap types too, so the
    methods show whether a class was created by a ``class`` statement."""
    for k in tp.__mro__:
        if not is_heap_type(k):
            plain = module_facts(k).values or module_facts(k).stateless or module_of(k).partition(".")[0] == "torch"
            # calls of streams themselves are handled elsewhere, but not those of a user-defined subclass
            return k if not plain and verdict(k) in (Verdict.UNKNOWN, *([Verdict.IO] if k is not tp else [])) else None
        for v in k.__dict__.values():
            if (type(v) in _NATIVE_METHODS and v.__objclass__ is k) or type(v).__name__ == "instancemethod":
                return None if module_facts(k).stateless or module_of(k).split(".")[0] == "torch" else k
    return None


native_base: Callable[[type], type | None] = class_by_object(_native_base)


def keeps_state(tp: type) -> bool:
    """Whether objects of this class have state in C."""
    return native_base(tp) is not None


def is_pure_module(module: str) -> bool:
    """Whether results of this module's native functions depend only on their arguments."""
    return MODULES.get(module, UNKNOWN_MODULE).verdict == Verdict.PURE


def is_host_module(module: str) -> bool:
    """Whether native code of this module may return something else at every call."""
    return MODULES.get(module, UNKNOWN_MODULE).host


def module_facts(fn: Any) -> Module:
    """What is known about the module of a function or class."""
    return MODULES.get(module_of(fn), UNKNOWN_MODULE)


def is_clock(name: str) -> bool:
    """Whether a function of this dotted name reads a clock."""
    return name.startswith(_CLOCK_MODULES)


def fills_arguments(fn: Any) -> bool:
    """Whether a native function may change containers passed to it."""
    return module_facts(fn).fills_arguments


def verdict(fn: Any) -> Verdict:
    """The policy of a native function that is not a method of a container or tensor."""
    if _extra and (given := _extra.get(dotted_name(fn))):
        return given
    if listed := entry(fn).verdict:
        return listed
    owner = getattr(fn, "__self__", None)
    module = owner.__name__ if _is_module(owner) else getattr(fn, "__module__", None)
    if module is None:
        objclass = getattr(fn, "__objclass__", None)
        module = objclass.__module__ if objclass is not None else type(owner).__module__
    if owner is datetime.datetime or owner is datetime.date:
        return Verdict.HOST if fn.__name__ in _CLOCKS else Verdict.UNKNOWN
    known = MODULES.get(module, UNKNOWN_MODULE)
    if known.functions:
        return known.functions.get(fn.__name__, known.verdict)
    if known.verdict is not Verdict.UNKNOWN:
        return known.verdict
    if dotted_name(fn).startswith("numpy.random."):
        return Verdict.HOST
    if isinstance(module, str) and (module == "torch" or module.startswith("torch.")):
        return Verdict.TORCH
    return Verdict.UNKNOWN

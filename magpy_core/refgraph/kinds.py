"""What a value is to the reference graph: a scalar (guarded by value), an identity (guarded by ``is``), a tensor,
a container, an object with attributes, or opaque. Key function: ``kind_of``."""

from __future__ import annotations

import array
import collections
import enum
import functools
import re
import sys
import threading
import types
import typing
from typing import Any

import torch

from magpy_core._compat.cpython.layout import is_heap_type as is_heap_type
from magpy_core._compat.cpython.weak_caches import by_object
from magpy_core._compat.torch.tensor_guards import no_torch_function
from magpy_core.knowledge.callables import LRU_CACHE
from magpy_core.refgraph.stand_in import StandIn
from magpy_core.refgraph.weak import ObjectRef

SCALAR, IDENTITY, TENSOR, LIST, TUPLE, DICT, SET, DEQUE, OBJECT, OPAQUE = range(10)
NAMES = ("scalar", "identity", "tensor", "list", "tuple", "dict", "set", "deque", "object", "opaque")
CONTAINERS = frozenset({LIST, TUPLE, DICT, SET, DEQUE})
HASHED: Any = (set, frozenset, dict, type({}.keys()), type({}.items()))
"""Types that find their elements by hash."""
MUTABLE = frozenset({LIST, DICT, SET, DEQUE, OBJECT})

LOCKS = (type(threading.Lock()), type(threading.RLock()))
PYTHON_NUMBERS = frozenset({int, float})


def _numpy_types(*names: str) -> frozenset[type]:
    numpy = sys.modules.get("numpy")  # torch has imported it if there is one
    return frozenset(getattr(numpy, name) for name in names) if numpy is not None else frozenset()


NUMPY_FLOATS = _numpy_types("float64", "float32", "float16")
NUMPY_NUMBERS = NUMPY_FLOATS | _numpy_types(
    "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "longlong", "ulonglong",
)  # fmt: skip
NUMBER_TYPES = PYTHON_NUMBERS | NUMPY_NUMBERS
"""Types of numbers, which are immutable."""
BOOLS = frozenset({bool}) | _numpy_types("bool_")
TEXT_TYPE = frozenset({str})
_MAKE = collections.namedtuple("_MAKE", "")._make.__func__.__code__  # type: ignore[attr-defined]
CARRYING = NUMBER_TYPES | TEXT_TYPE
"""Types of values that may carry a symbol."""
_SCALAR_TYPES = frozenset({
    int, float, bool, complex, str, bytes, type(None), type(Ellipsis), type(NotImplemented),
    torch.dtype, torch.device, torch.layout, torch.memory_format, *NUMPY_NUMBERS, *BOOLS,
})  # fmt: skip
_IDENTITY_TYPES = frozenset({
    types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.CodeType, types.MethodDescriptorType,
    types.WrapperDescriptorType, types.MethodWrapperType, types.GetSetDescriptorType, types.MemberDescriptorType,
    types.ClassMethodDescriptorType, property, classmethod, staticmethod, functools.cached_property, type,
    LRU_CACHE, types.GenericAlias, types.UnionType, re.Pattern,
    *LOCKS,  # they affect no result
    type(typing.List[int]), type(typing.Union[int, str]), torch._ops.OpOverloadPacket, torch._ops.OpOverload,  # noqa: UP006, UP007
})  # fmt: skip
# Identity types that refer to other objects: a metaclass's methods, the object that a native method is bound to.
REFERRING = (type, types.BuiltinFunctionType, types.MethodWrapperType)

_BASES: dict[type, int] = {
    torch.Tensor: TENSOR, tuple: TUPLE, list: LIST, dict: DICT, set: SET, frozenset: SET, collections.deque: DEQUE,
}  # fmt: skip
_PLAIN_BASES = (object, dict, list, tuple, set, collections.OrderedDict, collections.defaultdict, collections.deque)


def is_device_properties(tp: type) -> bool:
    """Whether objects of a type say what a device is (`torch.cuda.get_device_properties`): they never change."""
    return tp.__name__ == "_CudaDeviceProperties" and tp.__module__ == "torch._C"


def is_named_tuple(tp: type) -> bool:
    """Whether `collections.namedtuple` has made a class, and nothing has been derived from it."""
    make = tp.__dict__.get("_make") if tp.__mro__ == (tp, tuple, object) else None
    return getattr(getattr(make, "__func__", None), "__code__", None) is _MAKE and "__del__" not in tp.__dict__


@by_object
def kind_of_type(tp: type) -> int:
    """The kind of exact instances of a type."""
    if tp in _SCALAR_TYPES:
        return SCALAR
    if tp in _IDENTITY_TYPES or issubclass(tp, (type, enum.Enum, types.ModuleType, StandIn)):
        return IDENTITY
    if str(tp.__module__).startswith("numpy") and tp.__name__ in ("finfo", "iinfo"):
        return IDENTITY  # one immutable object for each dtype
    if is_device_properties(tp):
        return IDENTITY
    for base, kind in _BASES.items():
        if issubclass(tp, base):
            return kind
    in_parts = (types.MethodType, functools.partial, types.SimpleNamespace, slice, range, types.MappingProxyType)
    return OBJECT if is_heap_type(tp) or tp in in_parts else OPAQUE


def is_a(value: Any, classes: Any) -> bool:
    """``isinstance`` by the object's type only: ``isinstance`` also reads ``value.__class__``, which may run user code."""
    return issubclass(type(value), classes)


def kind_of(value: Any) -> int:
    return kind_of_type(type(value))


_ORDERED: Any = collections.OrderedDict()
DICT_VIEWS: tuple[type, ...] = (
    types.MappingProxyType, type({}.keys()), type({}.values()), type({}.items()),
    type(_ORDERED.keys()), type(_ORDERED.values()), type(_ORDERED.items()),
)  # fmt: skip
"""Views of a dict, from which Python code can't get the dict."""


@by_object
def holds_memory(tp: type) -> bool:
    """Whether objects of a type hold memory that can change unobserved: NumPy arrays, bytearrays, views, mapped files."""
    return any(
        k in (bytearray, memoryview, array.array)
        or (k.__module__ == "numpy" and k.__name__ in ("ndarray", "flatiter"))
        or k.__module__ in ("mmap", "_ctypes")
        for k in tp.__mro__
    )


@by_object
def _in_numpy(tp: type) -> frozenset[str]:
    """The names of the NumPy classes that a type is derived from."""
    return frozenset(k.__name__ for k in tp.__mro__ if k.__module__ == "numpy")


def is_numpy_number(value: Any) -> bool:
    """Whether ``value`` is a NumPy number (``numpy.float32(2)``), which is immutable."""
    return not _in_numpy(type(value)).isdisjoint(("number", "bool", "bool_"))


def is_numpy_value(tp: type) -> bool:
    """Whether objects of a type are immutable objects of NumPy: numbers, dtypes, functions."""
    return not _in_numpy(tp).isdisjoint(("generic", "dtype", "ufunc", "_ArrayFunctionDispatcher"))


@by_object
def has_finalizer(cls: type) -> bool:
    """Whether user code runs when an instance is deallocated: a ``__del__`` in Python."""
    own = next((k.__dict__["__del__"] for k in cls.__mro__ if "__del__" in k.__dict__), None)
    return type(own) is types.FunctionType


def plain_key(key: Any) -> Any:
    """The plain string equal to ``key``, if its class is a subclass of ``str`` that doesn't override hash and comparison."""
    tp: Any = type(key)
    if tp is not str and is_a(key, str) and tp.__hash__ is str.__hash__ and tp.__eq__ is str.__eq__:
        return str.__str__(key)
    return key


_FLOATS = frozenset({float, complex}) | NUMPY_FLOATS


def same_scalar(a: Any, b: Any) -> bool:
    """Whether two scalars are equal in type and value; for floats, NaN equals NaN and 0.0 differs from -0.0."""
    if type(a) is not type(b):
        return False
    if a is b:
        return True
    if type(a) in _FLOATS:
        return repr(a) == repr(b)
    return bool(a == b)


def bounded_repr(value: Any, limit: int = 80) -> str:
    """A short text for messages. Never tensor data, never a user's ``__repr__``."""
    if type(value) is ObjectRef:
        return value.text
    kind = kind_of(value)
    if kind == TENSOR:
        with no_torch_function():
            return f"Tensor{tuple(value.shape)} {value.dtype}".replace("torch.", "")
    if kind == SCALAR:
        text = repr(value)
    elif kind == IDENTITY:
        name = "co_qualname" if type(value) is types.CodeType else "__qualname__"
        text = getattr(value, name, None) or getattr(value, "__name__", None) or type(value).__name__
        text = f"<{type(value).__name__} {'of ' if type(value) is types.CodeType else ''}{text}>"
    elif kind in CONTAINERS:
        text = f"{type(value).__name__} of {len(value)}"
    else:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def released(value: Any) -> Any:
    """What a guard keeps in order to compare objects with ``value``: the value itself for definitions, scalars and types
    without weak references (``re.Match``, subclasses of int), else an ObjectRef."""
    itself = kind_of(value) in (SCALAR, IDENTITY) or not type(value).__weakrefoffset__
    return value if itself else ObjectRef(value, bounded_repr(value))


def layout_base(tp: type) -> type | None:
    """The built-in base whose C layout ``tp`` has, if replay can rebuild it; None otherwise."""
    base = next(base for base in tp.__mro__ if not is_heap_type(base))
    return base if base in _PLAIN_BASES else None

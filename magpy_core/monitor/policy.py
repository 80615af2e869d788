"""Call policy: what calling a native function means to a recording. One table, data only.

Verdicts: ``PURE`` (result follows from arguments, which it may read deeply), ``TORCH`` (seen by the operator recorder),
``EFFECT`` (output, replayed), ``HOST`` (result or effect is not a function of guarded state), ``UNKNOWN``.
Users add to it in ``[tool.magpy]`` (``call-policy``). Key functions: ``verdict``, ``extend``.
"""

from __future__ import annotations

import builtins
import datetime
import decimal
import functools
import io
import os
import types
from collections.abc import Callable
from typing import Any

PURE, TORCH, EFFECT, HOST, IO, UNKNOWN = "pure", "torch", "effect", "host", "io", "unknown"

_PURE_MODULES = frozenset({
    "math", "cmath", "operator", "_operator", "itertools", "functools", "_functools", "collections", "_collections",
    "re", "_sre", "_struct", "struct", "_bisect", "_heapq", "unicodedata", "_abc", "_string", "_json", "binascii",
    "types", "_typing", "typing", "_contextvars", "enum", "copy", "copyreg", "_decimal",
    "fractions", "_statistics", "zlib", "_datetime_math", "_collections_abc", "string", "textwrap",
    "difflib", "_opcode", "_ast", "array", "_blake2", "_md5", "_sha1", "_sha256", "_sha512", "_sha2", "_hashlib", "_csv",
    "_pickle", "marshal",
})  # fmt: skip
_HOST_MODULES = frozenset({
    "time", "_random", "random", "posix", "os", "nt", "_socket", "socket", "select", "_ssl", "signal", "_signal",
    "subprocess", "_posixsubprocess", "threading", "_asyncio", "_queue", "_multiprocessing", "mmap", "fcntl", "resource",
    "secrets", "uuid", "_uuid", "_datetime", "gc", "faulthandler", "ctypes", "_ctypes", "atexit", "sqlite3", "_sqlite3",
    "pwd", "locale", "_locale", "_thread", "readline", "tracemalloc", "_tracemalloc",
})  # fmt: skip
_IO_MODULES = frozenset({"io", "_io"})
# Of the host's modules, those that reach files, sockets and processes; and what in them is about this process only.
_DEVICE_MODULES = frozenset({"posix", "nt", "_socket", "socket", "select", "_ssl", "_posixsubprocess", "mmap", "fcntl"})
_OF_PROCESS = frozenset({
    "urandom", "getrandom", "getpid", "getppid", "getcwd", "getcwdb", "times", "cpu_count", "getlogin", "uname", "umask",
    "getuid", "geteuid", "getgid", "getegid", "getloadavg", "sched_getaffinity", "sched_yield", "sysconf", "strerror",
    "putenv", "unsetenv", "chdir",
})  # fmt: skip
ERROR_WRITES = frozenset({"add_note", "with_traceback", "__setstate__"})  # of BaseException, written in C
_CLOCKS = frozenset({"now", "today", "utcnow"})
_TORCH_MODULES = ("torch", "torch._C", "torch._C._nn", "torch._C._fft", "torch._C._linalg", "torch._C._special", "torch._VF")

_HOST_BUILTINS = {builtins.input: IO, builtins.open: IO, builtins.exec: HOST, builtins.eval: HOST, builtins.compile: HOST,
                  builtins.breakpoint: IO, builtins.globals: HOST, builtins.locals: PURE}  # fmt: skip
_PURE_SYS = frozenset(
    {"intern", "getrecursionlimit", "exc_info", "exception", "is_finalizing", "getdefaultencoding", "audit"}
)
_PURE_THREAD = frozenset({"allocate_lock", "RLock"})

_extra: dict[str, str] = {}


def extend(table: dict[str, str]) -> None:
    """Add user policy: dotted name -> ``pure`` | ``torch`` | ``host``. Raises ValueError for another verdict."""
    for name, what in table.items():
        if what not in (PURE, TORCH, HOST):
            raise ValueError(f"call policy of {name!r} is {what!r}; it must be pure, torch or host")
        _extra[name] = what


def module_of(fn: Any) -> str:
    """The module that a function or class says it is of; a program may have put anything there."""
    module = getattr(fn, "__module__", None)
    return module if type(module) is str else ""


def dotted_name(fn: Any) -> str:
    module = module_of(fn) or module_of(getattr(fn, "__objclass__", None))
    if not module:
        owner = getattr(fn, "__self__", None)
        module = owner.__name__ if issubclass(type(owner), types.ModuleType) else type(owner).__module__
    name = getattr(fn, "__qualname__", None) or getattr(fn, "__name__", None) or type(fn).__name__
    return f"{module}.{name}"


def shown_name(fn: Any) -> str:
    """:func:`dotted_name` as the user would write it."""
    return dotted_name(fn).replace("._VariableFunctionsClass.", ".").removeprefix("builtins.").removeprefix("_")


# NumPy's functions by the beginnings of their names: input and output, its own settings, the clock.
_HOST_NUMPY = ("load", "save", "from", "gen", "mem", "set", "get", "show", "print", "info", "err", "test", "tofile", "dump",
               "datetime", "to_device", "nested_iters", "who", "lookfor", "deprecat", "include")  # fmt: skip
_NUMPY_MODULES = ("numpy", "numpy.linalg", "numpy.fft", "numpy.lib", "numpy.core", "numpy._core")


def is_pure_numpy(fn: Any) -> bool:
    """Whether a NumPy function, or method of an array, gives what follows from its arguments."""
    module = module_of(fn) or "numpy"  # methods have none
    known = module in _NUMPY_MODULES or module.startswith(("numpy._core.", "numpy.core.", "numpy.lib."))
    return known and not getattr(fn, "__name__", "").startswith(_HOST_NUMPY)


def is_decimal(fn: Any) -> bool:
    """Whether this makes or computes with decimal numbers: a function of its arguments and the context in force."""
    return fn is decimal.Decimal or decimal.Decimal in (
        type(getattr(fn, "__self__", None)),
        getattr(fn, "__objclass__", None),
    )


# Classes written in C whose objects are what they were made as, or whose state is watched otherwise.
_STATELESS_MODULES = frozenset({
    "struct", "_struct", "re", "operator", "_operator", "functools", "_functools", "weakref", "_weakref", "_thread",
    "types", "typing", "_typing", "abc", "_abc", "json", "_json", "string", "_string", "collections", "_collections",
    "numpy",
})  # fmt: skip


_VALUE_MODULES = frozenset({"builtins", "datetime", "decimal", *_STATELESS_MODULES})  # of objects that never change
_NATIVE_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType)


def _native_base(tp: type) -> type | None:
    """The class among ``tp`` and its bases that is written in C and may keep state which no attribute shows (zlib's
    compressors, classes of extension modules); None for Python's own classes and what they build on. Whether a class was
    made by a ``class`` statement is told by its methods: extension modules make heap types too."""
    for k in tp.__mro__:
        if not k.__flags__ & (1 << 9):  # a static type
            plain = k.__module__ in _VALUE_MODULES or module_of(k).partition(".")[0] == "torch"
            # streams themselves are seen to where they are called; a class of the user's that builds on one is not
            return k if not plain and verdict(k) in (UNKNOWN, *([IO] if k is not tp else [])) else None
        for v in k.__dict__.values():
            if (type(v) in _NATIVE_METHODS and v.__objclass__ is k) or type(v).__name__ == "instancemethod":
                module = module_of(k)
                return None if module in _STATELESS_MODULES or module.split(".")[0] == "torch" else k
    return None


native_base: Callable[[type], type | None] = functools.lru_cache(maxsize=4096)(_native_base)


def keeps_state(tp: type) -> bool:
    """Whether objects of this class have state in C."""
    return native_base(tp) is not None


def is_host_module(module: str) -> bool:
    """Whether native code of this module answers differently at every call."""
    return module in _HOST_MODULES


def verdict(fn: Any) -> str:
    """The policy of a native function that is no method of a container or tensor."""
    if _extra:
        found = _extra.get(dotted_name(fn))
        if found is not None:
            return found
    try:
        special = _HOST_BUILTINS.get(fn)
    except TypeError:  # unhashable: a bound method of an unhashable object
        special = None
    if special is not None:
        return special
    if fn is builtins.print:
        return EFFECT
    owner = getattr(fn, "__self__", None)
    module = owner.__name__ if issubclass(type(owner), types.ModuleType) else getattr(fn, "__module__", None)
    if module is None:
        objclass = getattr(fn, "__objclass__", None)
        module = objclass.__module__ if objclass is not None else type(owner).__module__
    if owner is datetime.datetime or owner is datetime.date:
        return HOST if fn.__name__ in _CLOCKS else UNKNOWN
    if module == "builtins" or module in _PURE_MODULES:
        return PURE
    if module == "sys":
        return PURE if fn.__name__ in _PURE_SYS else HOST
    if module == "_thread" and fn.__name__ in _PURE_THREAD:
        return PURE
    if module in _IO_MODULES:
        return PURE if fn is io.text_encoding else IO
    if module in _HOST_MODULES:
        return PURE if fn is os.fspath else IO if module in _DEVICE_MODULES and fn.__name__ not in _OF_PROCESS else HOST
    if dotted_name(fn).startswith("numpy.random."):
        return HOST
    if isinstance(module, str) and (module in _TORCH_MODULES or module.startswith("torch.")):
        return TORCH
    return UNKNOWN


# Methods of built-in containers. READ: reads the content; WRITE: changes it without reading; both otherwise.
READ_METHODS = frozenset({
    "index", "count", "copy", "__len__", "__iter__", "__contains__", "__reversed__", "__eq__", "__ne__", "__lt__",
    "__le__", "__gt__", "__ge__", "__add__", "__mul__", "__rmul__", "__or__", "__ror__", "__and__", "__sub__", "__xor__",
    "keys", "values", "items", "union", "intersection", "difference", "symmetric_difference", "issubset", "issuperset",
    "isdisjoint", "__repr__", "__str__", "__format__", "__sizeof__", "most_common", "elements", "__reduce__",
    "__reduce_ex__", "__copy__", "__hash__", "__rand__", "__rsub__", "__rxor__", "__class_getitem__",
})  # fmt: skip
WRITE_METHODS = frozenset({
    "append", "extend", "appendleft", "extendleft", "add", "update", "clear", "discard", "__setitem__", "__iadd__",
    "__ior__", "difference_update", "__init__",
})  # fmt: skip
KEYED_READS = frozenset({"get", "__getitem__", "__contains__"})

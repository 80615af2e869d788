"""Modules: one entry for each library module: the verdict on its native functions, and facts about its classes.

Key types: Verdict, Module.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Verdict(StrEnum):
    """What calling a native function means to a recording."""

    PURE = "pure"  # the result depends only on the arguments, including everything reachable from them
    TORCH = "torch"  # recorded by the operator recorder
    HOST = "host"  # the result depends on state that no guard checks, or the function has an effect
    IO = "io"  # the same, for files, sockets and processes
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Module:
    """Facts about a module."""

    verdict: Verdict = Verdict.UNKNOWN
    functions: Mapping[str, Verdict] = field(default_factory=dict)  # those with another verdict
    host: bool = False  # its native code may return something else at every call
    stateless: bool = False  # the C state of objects of its classes never changes, or is tracked elsewhere
    values: bool = False  # objects of its static classes are immutable
    opaque: bool = False  # objects of its classes show no state in attributes, even where the classes are heap types
    streams: bool = False  # objects of its classes read and write files
    of_threads: bool = False  # objects of its classes are locks, and the state of one thread: using them affects no result
    pure_objects: bool = False  # calling an object of its classes is pure: `operator.itemgetter`, a generic alias
    fills_arguments: bool = False  # its functions change containers passed to them: heappush, insort, setitem


UNKNOWN_MODULE = Module()
# Functions of I/O modules that concern only this process.
_OF_PROCESS = dict.fromkeys((
    "urandom", "getrandom", "getpid", "getppid", "getcwd", "getcwdb", "times", "cpu_count", "getlogin", "uname", "umask",
    "getuid", "geteuid", "getgid", "getegid", "getloadavg", "sched_getaffinity", "sched_yield", "sysconf", "strerror",
    "putenv", "unsetenv", "chdir",
), Verdict.HOST)  # fmt: skip
_PURE_SYS = dict.fromkeys((
    "intern", "getrecursionlimit", "exc_info", "exception", "is_finalizing", "getdefaultencoding", "audit",
), Verdict.PURE)  # fmt: skip
_PURE_THREAD = dict.fromkeys(("allocate_lock", "RLock"), Verdict.PURE)


def _all(known: Module, *names: str) -> dict[str, Module]:
    return dict.fromkeys(names, known)


MODULES: dict[str, Module] = {
    **_all(
        Module(Verdict.PURE),
        "math", "cmath", "itertools", "_sre", "unicodedata", "binascii", "_contextvars", "enum", "copy", "copyreg",
        "_decimal", "fractions", "_statistics", "zlib", "_collections_abc", "textwrap", "difflib", "_opcode", "_ast",
        "array", "_blake2", "_md5", "_sha1", "_sha256", "_sha512", "_sha2", "_hashlib", "_pickle", "marshal",
    ),
    **_all(Module(Verdict.PURE, fills_arguments=True), "_heapq", "_bisect"),
    **_all(
        Module(Verdict.PURE, stateless=True),
        "struct", "_struct", "_functools", "_typing", "_json", "string", "_string", "collections",
    ),
    **_all(Module(Verdict.PURE, stateless=True, pure_objects=True), "operator", "functools", "types", "typing"),
    "re": Module(Verdict.PURE, stateless=True, pure_objects=True, opaque=True),
    **_all(Module(Verdict.PURE, stateless=True, fills_arguments=True), "_operator", "_collections"),
    **_all(Module(stateless=True), "weakref", "_weakref", "abc", "json"),
    "numpy": Module(stateless=True, opaque=True),
    **_all(Module(values=True), "datetime", "decimal"),
    "builtins": Module(Verdict.PURE, values=True),
    **_all(
        Module(Verdict.HOST, host=True),
        "time", "_random", "random", "os", "signal", "_signal", "subprocess", "threading", "_asyncio", "_queue",
        "_multiprocessing", "resource", "secrets", "uuid", "_uuid", "_datetime", "gc", "faulthandler", "ctypes", "_ctypes",
        "atexit", "sqlite3", "_sqlite3", "pwd", "locale", "_locale", "readline", "tracemalloc", "_tracemalloc",
    ),
    "_thread": Module(Verdict.HOST, _PURE_THREAD, host=True, stateless=True, opaque=True, of_threads=True),
    **_all(  # they access files, sockets and processes
        Module(Verdict.IO, _OF_PROCESS, host=True),
        "posix", "nt", "_socket", "socket", "select", "_ssl", "_posixsubprocess", "mmap", "fcntl",
    ),
    "_abc": Module(Verdict.PURE, {"get_cache_token": Verdict.HOST}, stateless=True),
    "sys": Module(Verdict.HOST, _PURE_SYS),
    **_all(Module(Verdict.IO, opaque=True, streams=True), "io", "_io"),
}  # fmt: skip

# -- packages, by the beginning of a dotted name -------------------------------------------------------------------------

UNCHANGED_CLASSES = ("torch.", "collections", "enum", "typing", "abc")
"""Their classes have too many attributes, and change too rarely, to guard all names."""

UNCHANGED_METACLASSES = frozenset({"abc", "enum", "typing", "torch"})
"""A program does not change their metaclasses."""

HASH_RUNS_NO_USER_CODE = frozenset({*sys.stdlib_module_names, "torch", "numpy"})
"""Their ``__hash__`` and ``__eq__`` in Python run no code of a program."""

PRINTABLE_CONTAINERS = ("builtins", "collections", "torch")
"""The text of their containers consists of that of the elements."""

ARITHMETIC = ("_operator", "math")
"""Their functions compute with numbers."""

ENTERS_OWN_MODES = ("torch._subclasses", "torch.utils.checkpoint")
"""They enter dispatch modes around operations of torch itself."""

"""Modules: one entry for each library module: the verdict on its native functions, and what its classes keep.

Key types: Verdict, Module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Verdict(StrEnum):
    """What calling a native function means to a recording."""

    PURE = "pure"  # the result follows from the arguments, which it may read deeply
    TORCH = "torch"  # seen by the operator recorder
    HOST = "host"  # result or effect does not follow from anything that guards watch
    IO = "io"  # the same, of files, sockets and processes
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Module:
    """What is known of a module."""

    verdict: Verdict = Verdict.UNKNOWN
    functions: Mapping[str, Verdict] = field(default_factory=dict)  # those with another verdict
    host: bool = False  # its native code answers differently at every call
    stateless: bool = False  # the state of objects of its classes written in C never changes, or is watched otherwise
    values: bool = False  # objects of its static classes never change
    fills_arguments: bool = False  # its functions change the containers that they are given: heappush, insort, setitem


UNKNOWN_MODULE = Module()
# Functions of devices' modules that are about this process only.
_OF_PROCESS = dict.fromkeys((
    "urandom", "getrandom", "getpid", "getppid", "getcwd", "getcwdb", "times", "cpu_count", "getlogin", "uname", "umask",
    "getuid", "geteuid", "getgid", "getegid", "getloadavg", "sched_getaffinity", "sched_yield", "sysconf", "strerror",
    "putenv", "unsetenv", "chdir",
), Verdict.HOST)  # fmt: skip
_PURE_SYS = dict.fromkeys((
    "intern", "getrecursionlimit", "exc_info", "exception", "is_finalizing", "getdefaultencoding", "audit",
), Verdict.PURE)  # fmt: skip
_PURE_THREAD = dict.fromkeys(("allocate_lock", "RLock"), Verdict.PURE)


def _alike(known: Module, *names: str) -> dict[str, Module]:
    return dict.fromkeys(names, known)


MODULES: dict[str, Module] = {
    **_alike(
        Module(Verdict.PURE),
        "math", "cmath", "itertools", "_sre", "unicodedata", "binascii", "_contextvars", "enum", "copy", "copyreg",
        "_decimal", "fractions", "_statistics", "zlib", "_collections_abc", "textwrap", "difflib", "_opcode", "_ast",
        "array", "_blake2", "_md5", "_sha1", "_sha256", "_sha512", "_sha2", "_hashlib", "_pickle", "marshal",
    ),
    **_alike(Module(Verdict.PURE, fills_arguments=True), "_heapq", "_bisect"),
    **_alike(
        Module(Verdict.PURE, stateless=True),
        "struct", "_struct", "re", "operator", "functools", "_functools", "types", "typing", "_typing", "_json",
        "string", "_string", "collections",
    ),
    **_alike(Module(Verdict.PURE, stateless=True, fills_arguments=True), "_operator", "_collections"),
    **_alike(Module(stateless=True), "weakref", "_weakref", "abc", "json", "numpy"),
    **_alike(Module(values=True), "datetime", "decimal"),
    "builtins": Module(Verdict.PURE, values=True),
    **_alike(
        Module(Verdict.HOST, host=True),
        "time", "_random", "random", "os", "signal", "_signal", "subprocess", "threading", "_asyncio", "_queue",
        "_multiprocessing", "resource", "secrets", "uuid", "_uuid", "_datetime", "gc", "faulthandler", "ctypes", "_ctypes",
        "atexit", "sqlite3", "_sqlite3", "pwd", "locale", "_locale", "readline", "tracemalloc", "_tracemalloc",
    ),
    "_thread": Module(Verdict.HOST, _PURE_THREAD, host=True, stateless=True),
    **_alike(  # they reach files, sockets and processes
        Module(Verdict.IO, _OF_PROCESS, host=True),
        "posix", "nt", "_socket", "socket", "select", "_ssl", "_posixsubprocess", "mmap", "fcntl",
    ),
    "_abc": Module(Verdict.PURE, {"get_cache_token": Verdict.HOST}, stateless=True),
    "sys": Module(Verdict.HOST, _PURE_SYS),
    **_alike(Module(Verdict.IO), "io", "_io"),
}  # fmt: skip

"""Callables: one entry for each builtin or library callable about which more is known than its module's verdict.

To add one, add its entry here; a callable that needs special code also has a rule (``recording.calls.rules``).
Key type: Entry. Key function: entry.
"""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]
import _warnings
import bisect
import builtins
import collections
import functools
import gc
import inspect
import io
import itertools
import linecache
import math
import operator
import os
import sys
import tokenize
import traceback
import types
import typing
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import torch

from magpy_core._compat.cpython.paths import NATIVE_PATHS
from magpy_core._compat.torch.state_changers import SET_SAVED_TENSORS_HOOKS
from magpy_core.knowledge.modules import Verdict

LRU_CACHE: Any = type(functools.lru_cache(lambda: None))
"""The type of functions wrapped by ``functools.lru_cache``."""


class Callback(Enum):
    """Which of its arguments a native callable calls, and with which arguments."""

    KEY = auto()  # its ``key``, with each element of its first argument
    KEY_OF_ALL = auto()  # its ``key``, with each of its arguments; if there is only one, with its elements
    KEY_OF_TWO = auto()  # its ``key``, with each element of its first argument, and with the second
    EACH = auto()  # its first argument, with the elements of the others
    SPREAD = auto()  # its first argument, with the elements of each element of the second
    FACTORY = auto()  # its first argument, without arguments
    FIRST = auto()  # its first argument, with values that are not known in advance
    SECOND = auto()  # its second argument, or the keyword for it, with values that are not known in advance


class Reads(Enum):
    """What a callable reads from its arguments if other native code calls it, so that no event shows the call."""

    ANYTHING = auto()
    NOTHING = auto()  # except what an event or the guards of the arguments show
    CONTENT = auto()  # the content of a container
    TEXT = auto()  # what the text of a value shows


@dataclass(frozen=True, slots=True)
class Entry:
    """Facts about a callable."""

    verdict: Verdict | None = None  # None: that of its module
    reads_inside: Reads = Reads.ANYTHING
    levels: int | None = None  # how many levels of nested containers a class reads in its arguments; None: all
    calls: Callback | None = None
    selects: bool = False  # results of its callback decide which elements it returns
    keeps_elements: bool = False  # a class: it holds the elements of its arguments by identity, without reading them
    returns_callback_result: bool = False  # it returns results of Python functions that it calls unchanged
    computes: bool = False  # its result is a number computed only from numbers: a dynamic number stays symbolic
    bisects: bool = False  # it only compares its second argument with the elements of its first
    to_text: bool = False
    reads_attributes: bool = False  # of its argument; recorded if Python calls it
    ignores_arguments: bool = False  # a class that reads nothing from its arguments
    is_random_stream: bool = False  # a class: its objects are streams of random numbers, whose state no graph holds
    ignores_values: bool = False  # a library function that only looks at the types of numbers, or returns them unchanged


_COMPUTES = Entry(computes=True)
_NUMBER = Entry(computes=True, reads_inside=Reads.NOTHING)
_HARMLESS = Entry(reads_inside=Reads.NOTHING)
_RULE = Entry()  # it has a rule and no other facts
_CONTENT = Entry(reads_inside=Reads.CONTENT)
_EXTREME = Entry(reads_inside=Reads.CONTENT, calls=Callback.KEY_OF_ALL, computes=True)
_BISECT = Entry(calls=Callback.KEY, bisects=True)
_INSORT = Entry(calls=Callback.KEY_OF_TWO)
_SEQUENCE = Entry(reads_inside=Reads.CONTENT, levels=0, keeps_elements=True, returns_callback_result=True)
_SET = Entry(reads_inside=Reads.CONTENT, levels=1)
_CHOOSES = Entry(calls=Callback.EACH, selects=True)
_SHALLOW = Entry(levels=1)
_IGNORES = Entry(ignores_arguments=True)
_IGNORES_VALUES = Entry(ignores_values=True)
_TEXT = Entry(reads_inside=Reads.TEXT, to_text=True)
_READS_ATTRIBUTES = Entry(reads_attributes=True)
_HOST = Entry(verdict=Verdict.HOST)
_IO = Entry(verdict=Verdict.IO)
_PURE = Entry(verdict=Verdict.PURE)
_UNKNOWN = Entry(verdict=Verdict.UNKNOWN)
_UNLISTED = Entry()

CALLABLES: dict[Callable[..., Any], Entry] = {
    # numbers
    int: _NUMBER, float: _NUMBER, abs: _NUMBER, round: _NUMBER, pow: _COMPUTES, min: _EXTREME, max: _EXTREME,
    complex: _HARMLESS, bool: _HARMLESS, ord: _HARMLESS, chr: _HARMLESS, hex: _HARMLESS, oct: _HARMLESS, bin: _HARMLESS,
    math.sqrt: _COMPUTES, math.exp: _COMPUTES, math.log: _COMPUTES, math.cos: _COMPUTES, math.sin: _COMPUTES,
    math.tan: _COMPUTES, math.tanh: _COMPUTES, math.floor: _COMPUTES, math.ceil: _COMPUTES, math.pow: _COMPUTES,
    math.isfinite: _COMPUTES, math.isnan: _COMPUTES, math.isinf: _COMPUTES,
    math.fabs: _COMPUTES, math.log2: _COMPUTES, math.log10: _COMPUTES, math.log1p: _COMPUTES, math.expm1: _COMPUTES,
    # containers
    list: _SEQUENCE, tuple: _SEQUENCE, set: _SET, frozenset: _SET, bytes: _SHALLOW, bytearray: _SHALLOW,
    dict: Entry(reads_inside=Reads.CONTENT, levels=1, keeps_elements=True),
    collections.deque: _SEQUENCE, collections.OrderedDict: _SHALLOW,
    collections.defaultdict: Entry(levels=1, calls=Callback.FACTORY),
    # iterators and functions that consume them
    enumerate: _SEQUENCE, zip: _SEQUENCE, reversed: _SEQUENCE,
    map: Entry(levels=1, calls=Callback.EACH, returns_callback_result=True),
    filter: Entry(levels=1, calls=Callback.EACH, selects=True),
    iter: Entry(calls=Callback.FACTORY, returns_callback_result=True), next: Entry(returns_callback_result=True),
    itertools.filterfalse: _CHOOSES, itertools.takewhile: _CHOOSES, itertools.dropwhile: _CHOOSES,
    itertools.groupby: Entry(calls=Callback.SECOND, selects=True), itertools.accumulate: Entry(calls=Callback.SECOND),
    itertools.starmap: Entry(calls=Callback.SPREAD), functools.reduce: Entry(calls=Callback.FIRST),
    len: _CONTENT, sum: _CONTENT, any: _CONTENT, all: _CONTENT,
    sorted: Entry(reads_inside=Reads.CONTENT, calls=Callback.KEY),
    bisect.bisect_left: _BISECT, bisect.bisect_right: _BISECT, bisect.insort_left: _INSORT,
    bisect.insort_right: _INSORT,
    # objects and classes
    type: Entry(reads_inside=Reads.NOTHING, returns_callback_result=True), callable: _HARMLESS,
    object: Entry(returns_callback_result=True), super: Entry(returns_callback_result=True, ignores_arguments=True),
    isinstance: _RULE, issubclass: _RULE, _abc._abc_instancecheck: _RULE, _abc._abc_subclasscheck: _RULE,
    id: _RULE, hash: _RULE, operator.index: _RULE,
    getattr: Entry(returns_callback_result=True, reads_attributes=True), hasattr: _READS_ATTRIBUTES,
    vars: _READS_ATTRIBUTES, dir: _READS_ATTRIBUTES,
    setattr: _RULE, delattr: _RULE, builtins.__build_class__: _RULE, slice: _IGNORES, types.MethodType: _IGNORES,
    types.SimpleNamespace: _IGNORES, weakref.ref: _IGNORES,
    torch.Generator: Entry(is_random_stream=True), torch.is_tensor: _IGNORES_VALUES, typing.cast: _IGNORES_VALUES,
    # text; what `format` reads depends on its format specification
    str: _TEXT, repr: _TEXT, ascii: _TEXT, format: Entry(to_text=True), print: _RULE, _warnings.warn: _RULE,
    # the world outside
    input: _IO, open: _IO, breakpoint: _IO, exec: _HOST, eval: _HOST, compile: _HOST, globals: _HOST, __import__: _UNKNOWN,
    linecache.getlines: _IO, linecache.updatecache: _IO, linecache.checkcache: _IO, linecache.lazycache: _IO,
    linecache.clearcache: _IO, tokenize.open: _IO, inspect.currentframe: _HOST, traceback.extract_stack: _HOST,
    traceback.format_stack: _HOST, traceback.print_stack: _HOST, traceback.walk_stack: _HOST,
    os.fspath: _PURE, **dict.fromkeys(NATIVE_PATHS, _PURE), io.text_encoding: _PURE,
    sys.getrecursionlimit: _RULE, sys.getswitchinterval: _RULE,
    SET_SAVED_TENSORS_HOOKS: _RULE, gc.isenabled: _RULE, gc.enable: _RULE, gc.disable: _RULE,
}  # fmt: skip
_BY_ID = {id(fn): known for fn, known in CALLABLES.items()}
WITH_VERDICT: dict[types.CodeType, types.FunctionType] = {
    fn.__code__: fn for fn, known in CALLABLES.items() if type(fn) is types.FunctionType and known.verdict is not None
}
"""Python functions of libraries that are not monitored and depend on more than their arguments, by their code."""


def entry(fn: Any) -> Entry:
    """The facts about ``fn``, found by identity: hashing it might run user code."""
    return _BY_ID.get(id(fn), _UNLISTED)

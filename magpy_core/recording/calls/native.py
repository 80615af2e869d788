"""NativeCalls: TODO."""

from __future__ import annotations

import _warnings
import builtins
import collections
import functools
import gc
import itertools
import sys
import types
from typing import TYPE_CHECKING, Any

import torch
import torch.fx
import torch.utils.checkpoint

from magpy_core._compat.torch.settings import changes_setting
from magpy_core.monitor import policy
from magpy_core.opgraph.scalars import CARRYING
from magpy_core.recording.access.callbacks import _BLIND_CALLS, _FIRST_CALLS, _TAKES_KEY
from magpy_core.recording.call_stack import CallStack
from magpy_core.recording.ledger import Ledger
from magpy_core.recording.numbers import Numbers
from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import is_a

if TYPE_CHECKING:
    from magpy_core.recording.groups import Access, Calls

SPECIAL: dict[Any, str] = {
    len: "b_len", isinstance: "b_isinstance", issubclass: "b_isinstance", getattr: "b_getattr", hasattr: "b_getattr",
    __import__: "b_import",
    setattr: "b_setattr", delattr: "b_setattr", id: "b_id", hash: "b_id", repr: "b_repr", ascii: "b_repr", format: "b_repr",
    sorted: "b_iterate", sum: "b_iterate", min: "b_iterate", max: "b_iterate", any: "b_iterate", all: "b_iterate",
    iter: "b_iterate", functools.reduce: "b_iterate", next: "b_next", vars: "b_vars", dir: "b_vars", print: "b_print",
    _warnings.warn: "b_warn", builtins.__build_class__: "b_build_class",
    sys.getrecursionlimit: "b_process", sys.getswitchinterval: "b_process", gc.isenabled: "b_process",
    gc.enable: "b_collector", gc.disable: "b_collector",
}  # fmt: skip


# Class methods that read only their arguments.
_CLASS_METHODS = frozenset({
    "__new__", "fromkeys", "fromhex", "from_bytes", "maketrans", "__subclasscheck__", "__instancecheck__", "mro",
    "__prepare__", "__init_subclass__", "__subclasshook__", "from_iterable", "__class_getitem__",
})  # fmt: skip


# Pure but for the containers they are given: heappush, insort, Counter's counting, operator.setitem.
_MUTATING_MODULES = frozenset({"_heapq", "_bisect", "_collections", "_operator"})


HIGHER = _FIRST_CALLS | _BLIND_CALLS | _TAKES_KEY | {itertools.starmap, iter, collections.defaultdict}
"""Native callables that may call what they are given."""


CALLBACKS = (types.FunctionType, types.MethodType, functools.partial)


class NativeCalls:
    """TODO."""

    def __init__(self, ledger: Ledger, stack: CallStack, numbers: Numbers, access: Access, calls: Calls) -> None:
        self.ledger = ledger
        self.stack = stack
        self.numbers = numbers
        self.access = access
        self.calls = calls
        self.refgraph, self.sources = ledger.refgraph, ledger.sources

    def class_method(self, site: Any, fn: Any, owner: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        name = fn.__name__
        if name in _CLASS_METHODS:
            self.access.arguments.read(site, args, kwargs)
            self.numbers.escape_all(site, args, kwargs)
        elif name == "__call__" and is_a(fn, types.MethodWrapperType):
            self.calls.class_calls.call(site, owner, args, kwargs)  # ``super().__call__`` of a metaclass
        elif issubclass(owner, torch.autograd.Function) or policy.module_of(owner).startswith("torch"):
            self.stack.torch = (site, fn)
        else:
            self.calls.outside.host_call(
                site, fn, policy.verdict(fn) if policy.verdict(fn) != policy.PURE else policy.UNKNOWN
            )

    def call(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        special = SPECIAL.get(fn)
        if fn in HIGHER:
            self.access.callbacks.guard(site, fn, args, kwargs)
        if special is not None:
            getattr(self, special)(site, fn, args, kwargs)
            return
        what = policy.verdict(fn) if not self.access.natives.pickles(fn, args) else policy.UNKNOWN
        if what == policy.TORCH and changes_setting(fn) and not self.ledger.ops.op_depth:
            self.calls.outside.setting_written(site)
        elif what == policy.TORCH:
            self.calls.torch.expected(site, fn, args)
        elif what == policy.PURE:
            if fn in CARRYING and self.numbers.carries(args, kwargs):
                self.numbers.escape_raising(fn, args, site)
                self.stack.awaited = (site, fn, args)
                return
            self.numbers.escape_all(site, args, kwargs)
            if self.ledger.scalars and any(is_a(a, CALLBACKS) for a in (*args, *kwargs.values())):
                self.numbers.escape_hidden(site)
            self.access.arguments.read(site, args, kwargs)
            if getattr(fn, "__module__", None) in _MUTATING_MODULES:
                for a in args:
                    if kinds.kind_of(a) in kinds.CONTAINERS:
                        self.access.writes.before_write(a, site)
        elif what == policy.UNKNOWN and (getattr(fn, "__module__", None) or "").startswith("numpy"):
            self.calls.outside.call_numpy(site, fn, args, kwargs)
        else:
            self.calls.outside.host_call(site, fn, what)

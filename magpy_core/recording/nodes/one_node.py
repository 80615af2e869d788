"""OneNode: TODO."""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
import torch.fx
import torch.utils.checkpoint

from magpy_core._compat.torch.function_apply import starts_custom_function
from magpy_core.recording.call_stack import CallStack
from magpy_core.recording.journal import FAILED, Journal
from magpy_core.recording.ledger import Ledger
from magpy_core.recording.numbers import Numbers
from magpy_core.refgraph import kinds, lookup
from magpy_core.refgraph.kinds import is_a

if TYPE_CHECKING:
    from magpy_core.recording.groups import Calls, Facts

_METHODS = ("forward", "backward", "setup_context", "vjp", "jvp", "vmap")


_IN_CALL = ("forward", "setup_context")  # what runs when the function is applied


_PLAIN = (bool, int, float, str, type(None), torch.dtype)


@dataclass
class _Applied:
    """A call that is one node: its site, what was prepared for it, the effects before it. ``void``: the node gives nothing,
    as what the program gets can be no part of a graph."""

    site: Any
    target: Callable[..., Any]
    before: Any
    args: tuple[Any, ...]
    effects: int
    void: bool = False
    checked: bool = False  # whether what it gives may follow from data
    held: list[tuple[int, list[int]]] = field(default_factory=list)
    """What the containers among its arguments hold, by id, if it is checked."""


def _held(tree: Any) -> list[tuple[int, list[int]]]:
    """Which objects the containers in ``tree`` hold."""
    found: list[tuple[int, list[int]]] = []
    waiting, seen = [tree], set()
    while waiting:
        container = waiting.pop()
        if kinds.kind_of(container) not in kinds.CONTAINERS or id(container) in seen:
            continue
        seen.add(id(container))
        parts = [*container, *container.values()] if is_a(container, dict) else list(container)
        found.append((id(container), [id(v) for v in parts]))
        waiting += parts
    return found


@functools.lru_cache(maxsize=1024)
def applier(cls: Any) -> Callable[..., Any]:
    """A plain function that calls ``cls.apply``: what a graph node can hold."""

    def apply(*args: Any) -> Any:
        return cls.apply(*args)

    apply.__name__ = f"apply_{cls.__name__}"
    return apply


def applier_with(cls: Any, modules: dict[int, Any]) -> Callable[..., Any]:
    """The same for a call with modules among its arguments, at these positions: they belong to the program, which keeps
    them alive."""
    held = {i: weakref.ref(module) for i, module in modules.items()}

    def apply(*args: Any) -> Any:
        rest = iter(args)
        return cls.apply(*(held[i]() if i in held else next(rest) for i in range(len(args) + len(held))))

    apply.__name__ = f"apply_{cls.__name__}"
    return apply


def globals_read(fn: Any) -> list[tuple[dict[str, Any], str]] | None:
    """The globals, other than modules, that a Python function and the functions among these globals may read: plain values
    and functions. None if it may read anything else besides its arguments and builtins."""
    found: list[tuple[dict[str, Any], str]] = []
    seen: set[int] = set()
    waiting = [fn]
    while waiting:
        fn = waiting.pop()
        if is_a(fn, (staticmethod, classmethod)):
            fn = fn.__func__
        if fn is None or id(fn) in seen:
            continue
        if not is_a(fn, types.FunctionType) or fn.__closure__:
            return None
        seen.add(id(fn))
        waiting_values = [*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values()]
        codes = [fn.__code__]
        while codes:
            code = codes.pop()
            codes += [c for c in code.co_consts if is_a(c, types.CodeType)]
            names = [n for n in code.co_names if n in fn.__globals__ and not is_a(fn.__globals__[n], types.ModuleType)]
            found += [(fn.__globals__, name) for name in names]
            waiting_values += [fn.__globals__[name] for name in names]
        waiting += [v for v in waiting_values if is_a(v, types.FunctionType)]
        if not all(is_a(v, (types.FunctionType, *_PLAIN)) for v in waiting_values):
            return None
    return found


def self_contained(fn: Any) -> bool:
    """Whether a Python function reads nothing but its arguments, builtins and modules."""
    return globals_read(fn) == []


def _unrecorded() -> None:
    """Stands in the graph of a refused recording for a value no operation gave; such a graph is never run."""
    raise AssertionError("the graph of a refused recording was run")


class OneNode:
    """TODO."""

    def __init__(
        self, ledger: Ledger, journal: Journal, stack: CallStack, numbers: Numbers, facts: Facts, calls: Calls
    ) -> None:
        self.ledger = ledger
        self.journal = journal
        self.stack = stack
        self.numbers = numbers
        self.facts = facts
        self.calls = calls
        self.refgraph = ledger.refgraph
        self.active: _Applied | None = None

    def call_function_class(self, site: Any, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """``cls.apply(*args)`` is about to run."""
        if self.ledger.ops.op_depth or self.active is not None:
            return
        for name in _METHODS:
            self.facts.classes.member(cls, name, site)
        methods = {n: m for n in _METHODS if not lookup.missing(m := lookup.class_lookup(cls, n)[0])}
        closed = all(map(self_contained, methods.values()))
        if kwargs or (not closed and not self._reads_entry_state([methods[n] for n in _IN_CALL if n in methods], site)):
            self.journal.refuse(
                "MP107", f"The autograd.Function `{cls.__name__}` may read what the region has changed.", site=site
            )
            return
        if not closed:
            text = f"The autograd.Function `{cls.__name__}` reads state from outside, which a compiled graph would freeze."
            self.ledger.ops.eager_only.append(("MP107", text, site))
        self.numbers.escape_all(site, args)
        modules = {i: a for i, a in enumerate(args) if is_a(a, torch.nn.Module)}
        if modules and not self._takes_modules(cls, list(modules.values()), site):
            return
        call = applier_with(cls, modules) if modules else applier(cls)
        self.apply(site, call, tuple(a for i, a in enumerate(args) if i not in modules), {}, checked=True)

    def apply(
        self, site: Any, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], void: bool = False,
        checked: bool = False,
    ) -> None:  # fmt: skip
        """The call about to run is one node of the graph, ``target(*args, **kwargs)``; what runs inside is part of it."""
        self.ledger.ops.op_depth += 1
        before = self.journal.contained(self.ledger.ops.prepare, target, args, kwargs)
        self.stack.torch = None
        self.ledger.ops._numbers = []  # the node reads them again itself
        self.active = _Applied(site, target, before, args, self._effects(), void, checked, _held(args) if checked else [])
        self.calls.torch.alone = False

    def _effects(self) -> int:
        written = sum(1 + len(n.forced) for n in self.refgraph.written())
        return written + len(self.ledger.outputs) + len(self.ledger.tensor_writes) + len(self.ledger.field_writes)

    def function_apply(self, frame: Any) -> bool:
        """``Function.apply`` itself: reached without an event (from a library), its node can't be recorded."""
        if self.active is None and not self.ledger.ops.op_depth and not self.journal.refused:
            self.journal.refuse("MP107", "An autograd.Function is called from a library, where its call can't be recorded.")
        return False

    def applied_by_library(self, frame: Any) -> bool:
        """Whether a custom function's own frame starts whose ``apply``, having no frame, was seen by nobody."""
        if self.active is not None or self.ledger.ops.op_depth or not starts_custom_function(frame.f_code, frame.f_locals):
            return False
        return not self.function_apply(frame)

    def guarded_result(self, fn: Callable[..., Any], result: Any, before: Any, *args: Any) -> Any:
        if before is not FAILED:
            after = self.journal.contained(fn, result, before, *args)
            if after is not FAILED:
                return after
        self.adopt(result)
        return result

    def adopt(self, result: Any) -> None:
        """Give the tensors of an operation that was refused a place, so that later operations are not refused for them."""
        for tensor in self.ledger.ops._tensors(result):
            if id(tensor) not in self.ledger.ops.values:
                self.ledger.ops.values[id(tensor)] = (tensor, self.ledger.ops.graph.call_function(_unrecorded, ()))

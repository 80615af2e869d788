"""ClassCalls: calls of classes, and what the construction reads. Key type: ClassCalls."""

from __future__ import annotations

import functools
import random
import threading
import types
from collections.abc import Callable
from typing import Any

import torch

from magpy_core._compat.torch.tensor_guards import TENSOR_NEW
from magpy_core.findings import HERE
from magpy_core.knowledge import policy
from magpy_core.knowledge.callables import entry
from magpy_core.knowledge.modules import Verdict
from magpy_core.monitor.events import MaybeSite
from magpy_core.opgraph.functions import GENERATOR_HINT
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds, lookup
from magpy_core.refgraph.draws import is_seed
from magpy_core.refgraph.kinds import is_a

_TENSOR_TYPE = type(torch.FloatTensor)  # the class of torch.FloatTensor and similar


class ClassCalls(Tracker):
    """Calls of classes. The first row of ``_CASES`` that applies handles a call."""

    def call(self, site: MaybeSite, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._observe(site, cls, args, kwargs)
        for applies, handle in _CASES:
            if applies(self, cls, args, kwargs):
                handle(self, site, cls, args, kwargs)
                return
        self.context.outside.host_call(site, cls, policy.verdict(cls))

    def _observe(self, site: MaybeSite, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """What matters beside the case: lifetimes, threads, callbacks, leaves."""
        self.context.lifetimes.constructed(cls, args, site)
        if issubclass(cls, threading.Thread):  # it keeps weak references to itself, and numbers all threads
            hint = "Start threads outside the region."
            self.journal.abort(f"{HERE} creates a thread: compiled code can't repeat its work.", site, "MP103", hint)
        known = entry(cls)
        self.context.callbacks.selects |= known.selects
        if known.calls is not None:
            self.context.callbacks.guard(site, cls, args, kwargs)
        if cls is torch.nn.Parameter or cls is torch.autograd.Variable:
            self.context.constructors.made_by_constructor(site, cls, args, kwargs)

    # -- cases ---------------------------------------------------------------------------------------------------------

    def _computes_symbol(self, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return entry(cls).computes and self.context.numbers.carries(args, kwargs)

    def _expect_symbol(self, site: MaybeSite, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.context.numbers.escape_raising(cls, args, site)
        self.context.numbers.expect_computed(site, cls, args)

    def _is_tensor_class(self, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return issubclass(cls, torch.Tensor) or type(cls) is _TENSOR_TYPE

    def _tensor(self, site: MaybeSite, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.context.stack.torch = None
        if self.context.constructors.makes_of_array(site, cls, args, kwargs):
            return
        self.context.arguments.read(site, args, kwargs)
        if cls is torch.Tensor or type(cls) is _TENSOR_TYPE:
            self.context.constructors.constructor_call(site, cls, args, kwargs)
        elif lookup.class_lookup(cls, "__new__")[0] is TENSOR_NEW:
            self.context.scripts.constructs_tensor(site)

    def _returns_type(self, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return cls is type and len(args) == 1

    def _type_of(self, site: MaybeSite, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.context.contents.type_of(args[0], site)

    def _hides_state(self, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        if not kinds.is_heap_type(cls):
            return False
        base = policy.native_base(cls)
        seeded = cls is random.Random and is_seed(args)  # every call creates the same stream
        return base is not None and policy.verdict(base) != Verdict.PURE and not seeded

    def _hidden_state(self, site: MaybeSite, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        base = policy.native_base(cls)
        self.context.outside.host_call(site, base, policy.verdict(base))

    def _is_heap_type(self, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return kinds.is_heap_type(cls)

    def _python_class(self, site: MaybeSite, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Events show what constructors in Python read; native ones may read all of their arguments."""
        self.context.classes.shape(cls, site)
        for name in ("__new__", "__init__"):
            self.context.classes.member(cls, name, site)
        if type(cls) is not type:
            self.context.classes.member(type(cls), "__call__", site)
        if _is_constructed_natively(cls):
            self.context.arguments.read(site, args, kwargs)
            self.context.numbers.escape_all(site, args, kwargs)

    def _ignores_arguments(self, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return entry(cls).ignores_arguments

    def _nothing(self, site: MaybeSite, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None: ...

    def _is_pure(self, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return policy.verdict(cls) == Verdict.PURE

    def _pure(self, site: MaybeSite, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        known = entry(cls)
        if not known.keeps_elements:
            self.context.numbers.escape_all(site, args, kwargs)
        elif cls is dict:  # keys and values of another dict move; pairs are read
            self.context.numbers.escape_all(site, *(a for a in args if not is_a(a, dict)))
        elif cls is not zip:  # elements of the first argument move; the others (a start, a length) are read
            self.context.numbers.escape_all(site, args[1:], kwargs)
        if cls is str:
            self.context.texts.formatted(args, site)
        elif cls is map and args and entry(args[0]).to_text:
            self.context.texts.formatted(args[1:], site)
        self.context.arguments.read(site, args, kwargs, shallow=known.levels, carry=known.keeps_elements)

    def _is_numpy_value(self, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return kinds.is_numpy_value(cls)

    def _numpy_value(self, site: MaybeSite, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.context.outside.call_numpy(site, cls, args, kwargs)

    def _is_generator(self, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return entry(cls).is_random_stream

    def _generator(self, site: MaybeSite, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.context.arguments.read(site, args, kwargs)
        text = f"{HERE} creates a torch.Generator: its state can't be part of a graph."
        self.journal.refuse("MP116", text, hint=GENERATOR_HINT, site=site)

    def _is_of_torch(self, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return policy.module_of(cls).startswith("torch")

    def _of_torch(self, site: MaybeSite, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.context.arguments.read(site, args, kwargs)


_Applies = Callable[[ClassCalls, type, tuple[Any, ...], dict[str, Any]], bool]
_Handler = Callable[[ClassCalls, Any, type, tuple[Any, ...], dict[str, Any]], None]
# In order of precedence: which call it is, and its handler. Predicates change nothing.
_CASES: tuple[tuple[_Applies, _Handler], ...] = (
    (ClassCalls._computes_symbol, ClassCalls._expect_symbol),
    (ClassCalls._is_tensor_class, ClassCalls._tensor),
    (ClassCalls._returns_type, ClassCalls._type_of),
    (ClassCalls._hides_state, ClassCalls._hidden_state),
    (ClassCalls._is_heap_type, ClassCalls._python_class),
    (ClassCalls._ignores_arguments, ClassCalls._nothing),
    (ClassCalls._is_pure, ClassCalls._pure),
    (ClassCalls._is_numpy_value, ClassCalls._numpy_value),
    (ClassCalls._is_generator, ClassCalls._generator),
    (ClassCalls._is_of_torch, ClassCalls._of_torch),
)


def _is_constructed_natively(cls: type) -> bool:
    """Whether native code of the constructors of a Python class may read their arguments."""
    base = next(k for k in cls.__mro__ if not kinds.is_heap_type(k))
    if base is not object and base.__module__ == "builtins":
        return True
    makers = (lookup.class_lookup(cls, name)[0] for name in ("__new__", "__init__"))
    in_python = any(is_a(maker, (types.FunctionType, staticmethod)) for maker in makers)
    return not in_python and cls is not functools.partial

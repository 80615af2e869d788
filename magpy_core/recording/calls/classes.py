"""ClassCalls: calls of classes, and what the construction reads. Key type: ClassCalls."""

from __future__ import annotations

import functools
import random
import threading
import types
from typing import Any

import torch

from magpy_core._compat.torch.tensor_guards import TENSOR_NEW
from magpy_core.findings import HERE
from magpy_core.knowledge import policy
from magpy_core.knowledge.callables import entry
from magpy_core.knowledge.modules import Verdict
from magpy_core.opgraph.functions import GENERATOR_HINT
from magpy_core.recording.lifetimes import Lifetimes
from magpy_core.recording.nodes.group import Nodes
from magpy_core.recording.outside import Outside
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds, lookup
from magpy_core.refgraph.draws import is_seed
from magpy_core.refgraph.kinds import is_a

_TENSOR_TYPE = type(torch.FloatTensor)  # the class of torch.FloatTensor and similar


class ClassCalls(Tracker):
    """Calls of classes."""

    nodes: Nodes
    outside: Outside
    lifetimes: Lifetimes

    def call(self, site: Any, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.lifetimes.constructed(cls, args, site)
        if issubclass(cls, threading.Thread):  # it keeps weak references to itself, and numbers all threads
            hint = "Start threads outside the region."
            self.journal.abort(f"{HERE} creates a thread, whose work replay can't repeat.", site, "MP103", hint)
        known = entry(cls)
        self.access.callbacks.selects |= known.selects
        if known.calls is not None:
            self.access.callbacks.guard(site, cls, args, kwargs)
        if known.computes and self.basics.numbers.carries(args, kwargs):
            self.basics.numbers.escape_raising(cls, args, site)
            self.basics.numbers.expect_computed(site, cls, args)
            return
        if cls is torch.nn.Parameter or cls is torch.autograd.Variable:
            self.nodes.constructors.made_by_constructor(site, cls, args, kwargs)
        if issubclass(cls, torch.Tensor) or type(cls) is _TENSOR_TYPE:
            self.basics.stack.torch = None
            self.access.arguments.read(site, args, kwargs)
            if cls is torch.Tensor or type(cls) is _TENSOR_TYPE:
                self.nodes.constructors.constructor_call(site, cls, args, kwargs)
            elif lookup.class_lookup(cls, "__new__")[0] is TENSOR_NEW:
                self.nodes.scripts.constructs_tensor(site)
            return
        if cls is type and len(args) == 1:
            self.facts.contents.type_of(args[0], site)
            return
        if kinds.is_heap_type(cls):
            base = policy.native_base(cls)
            seeded = cls is random.Random and is_seed(args)  # every call creates the same stream
            if base is not None and policy.verdict(base) != Verdict.PURE and not seeded:
                self.outside.host_call(site, base, policy.verdict(base))
                return
            self.facts.classes.shape(cls, site)
            for name in ("__new__", "__init__"):
                self.facts.classes.member(cls, name, site)
            if type(cls) is not type:
                self.facts.classes.member(type(cls), "__call__", site)
            base = next(k for k in cls.__mro__ if not kinds.is_heap_type(k))
            makers = (lookup.class_lookup(cls, name)[0] for name in ("__new__", "__init__"))
            native = cls is not functools.partial and not any(is_a(m, (types.FunctionType, staticmethod)) for m in makers)
            if native or (base is not object and base.__module__ == "builtins"):
                self.access.arguments.read(site, args, kwargs)
                self.basics.numbers.escape_all(site, args, kwargs)
            return
        if known.ignores_arguments:
            return
        if policy.verdict(cls) == Verdict.PURE:
            if not known.keeps_elements:
                self.basics.numbers.escape_all(site, args, kwargs)
            elif cls is dict:
                self.basics.numbers.escape_all(site, *(a for a in args if not is_a(a, dict)))
            elif cls is not zip:
                self.basics.numbers.escape_all(site, args[1:], kwargs)
            if cls is str or (cls is map and args and entry(args[0]).to_text):
                self.access.texts.formatted(args if cls is str else args[1:], site)
            self.access.arguments.read(site, args, kwargs, shallow=known.levels, carry=known.keeps_elements)
        elif kinds.is_numpy_value(cls):
            self.outside.call_numpy(site, cls, args, kwargs)
        elif policy.module_of(cls).startswith("torch"):
            self.access.arguments.read(site, args, kwargs)
            if cls.__name__ == "Generator":
                text = f"{HERE} creates a torch.Generator, whose state can't be part of a graph."
                self.journal.refuse("MP106", text, hint=GENERATOR_HINT, site=site)
        else:
            self.outside.host_call(site, cls, policy.verdict(cls))

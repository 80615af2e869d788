"""Caches: calls of ``functools.lru_cache`` functions. The cached value for the arguments is a source.

Key type: Caches.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import torch

from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.tracker import Tracker
from magpy_core.recording.wording import a_type
from magpy_core.refgraph import kinds
from magpy_core.refgraph.hashing import has_pure_hash
from magpy_core.refgraph.kinds import is_a


def _is_plain(value: Any) -> bool:
    """Whether a value consists of scalars and tuples of them of any depth."""
    if type(value) in (tuple, torch.Size):
        return all(map(_is_plain, value))
    return kinds.kind_of(value) == kinds.SCALAR


class Caches(Tracker):
    """Calls of cached functions."""

    # functions with room for one value that have kept a tensor of the region, by id, and where they were called
    _occupied: dict[int, tuple[Any, Any]] = field(default_factory=dict, init=False)
    _hits: int = field(default=0, init=False)

    def call(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A function wrapped by ``functools.lru_cache``."""
        if self.ledger.ops.op_depth:
            self.context.torch_calls.alone = True
            return  # part of the node being recorded
        impure = next((a for a in (*args, *kwargs.values()) if not has_pure_hash(a)), None)
        if impure is not None:
            text = f"{HERE} passes {a_type(impure)} to a cache: guards would run its `__hash__` and `__eq__`."
            self.journal.refuse("MP111", text, hint="Pass numbers, strings or tuples of them.", site=site)
            return
        self.context.roots.const_root(fn)
        wrapped = getattr(fn, "__wrapped__", None)
        self.context.functions.guard(wrapped)
        self.context.numbers.escape_all(site, args, kwargs)
        tensors = [a for a in (*args, *kwargs.values()) if is_a(a, torch.Tensor)]
        before = fn.cache_info()
        made_inside = all(t in self.ledger.ops.values and self.ledger.ops.inputs.is_inside(t) for t in tensors)
        if tensors and not (made_inside and before.maxsize in (1, None)):  # of several values, it evicts one after the other
            text = f"`{getattr(fn, '__name__', '?')}` keeps tensors in its cache: a graph can't do that."
            hint = "Call the function without its cache (`f.__wrapped__(x)`), or cache by numbers such as `x.shape`."
            self.journal.refuse_call("MP106", text, hint=hint, site=site)
            return
        self.context.arguments.read(site, args, kwargs)

        def returned(result: Any) -> Any:
            if not tensors:
                self._returned(site, fn, args, kwargs, before, result)
            elif fn.cache_info().misses == before.misses:
                text = f"`{getattr(fn, '__name__', '?')}` returns a value that its cache kept for a tensor of the region."
                hint = "Call the function without its cache: `f.__wrapped__(x)`."
                self.journal.refuse("MP106", text, hint=hint, site=site)
            elif before.maxsize == 1:
                self._occupied[id(fn)] = (fn, site)
            return result  # a cache can't know a tensor that was created in this call: the function runs each time

        self.context.stack.on_return(returned)

    def guard_occupied(self) -> None:
        """At exit: what else the program had in these caches has been evicted. A replay evicts nothing, so it needs a cache
        that nobody has filled since."""
        for fn, site in self._occupied.values():
            self._guard_state(fn, fn.cache_info(), site)

    def _guard_state(self, fn: Any, info: Any, site: MaybeSite) -> None:
        counts = self.sources.make("cache_state", self.context.roots.const_root(fn).source, None)
        self.refgraph.read(counts, guard.EQUAL, f"{info.misses} misses, {info.currsize} entries", site)

    def _returned(self, site: MaybeSite, fn: Any, args: Any, kwargs: Any, before: Any, result: Any) -> None:
        after = fn.cache_info()
        if after.misses != before.misses:
            name = getattr(fn, "__name__", "A cached function")
            if before.currsize == before.maxsize:
                text = f"`{name}` has a full cache: this call evicts an entry, and compiled code can't repeat that."
                self.journal.refuse("MP111", text, hint="Increase the cache's `maxsize`.", site=site)
            else:  # the run filled the cache: the next one finds the value there
                self.journal.skip_call(f"`{name}` filled its cache in this call.")
            return
        if kinds.kind_of(result) == kinds.TENSOR and result in self.ledger.ops.values:
            return
        for a in (*args, *kwargs.values()):
            kind = kinds.kind_of(a)
            node = self.refgraph.node(a)
            if _is_plain(a):
                continue  # already guarded as an argument
            if kind == kinds.OBJECT and node is not None:
                self.refgraph.read(node.source, guard.IDENTITY, a, site)
            elif kind not in (kinds.SCALAR, kinds.IDENTITY):
                text = f"{HERE} calls a cached function with {a_type(a)}: MagPy can't check whether that has changed."
                self.journal.refuse("MP111", text, hint="Pass numbers, strings or tuples of them.", site=site)
                return
        root = self.context.roots.const_root(fn).source
        self._guard_state(fn, before, site)
        # a replay makes each of these calls as well, in their order: the cache counts them, and forgets what was not used
        self._hits += 1
        key = tuple(args), tuple(kwargs.items()), self._hits
        self.context.values.read(self.sources.make("cached", root, key), result, site)

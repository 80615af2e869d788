"""Caches: TODO."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.fx
import torch.utils.checkpoint

from magpy_core.findings import HERE
from magpy_core.recording.journal import Journal
from magpy_core.recording.ledger import Ledger
from magpy_core.recording.numbers import Numbers
from magpy_core.recording.wording import a_type
from magpy_core.refgraph import kinds
from magpy_core.refgraph.hashing import quiet
from magpy_core.refgraph.kinds import is_a

if TYPE_CHECKING:
    from magpy_core.recording.groups import Access, Calls, Facts, Nodes


@functools.lru_cache(maxsize=1024)
def caching(fn: Any) -> Callable[..., Any]:
    """A plain function that calls a ``functools.lru_cache`` function."""

    def ask(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    ask.__name__ = f"cached_{getattr(fn, '__name__', 'function')}"
    return ask


def _is_plain(value: Any) -> bool:
    """Scalars, and tuples of them of any depth."""
    if type(value) in (tuple, torch.Size):
        return all(map(_is_plain, value))
    return kinds.kind_of(value) == kinds.SCALAR


def _name(fn: Any) -> str:
    return f"{getattr(fn, '__module__', '')}.{getattr(fn, '__qualname__', '')}"


class Caches:
    """TODO."""

    def __init__(
        self, ledger: Ledger, journal: Journal, numbers: Numbers, facts: Facts, access: Access, calls: Calls, nodes: Nodes
    ) -> None:
        self.ledger = ledger
        self.journal = journal
        self.numbers = numbers
        self.facts = facts
        self.access = access
        self.calls = calls
        self.nodes = nodes
        self.refgraph = ledger.refgraph
        self.sources = ledger.sources
        self._asked = []

    def call(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A function wrapped by ``functools.lru_cache``."""
        if self.ledger.ops.op_depth or self.nodes.one_node.active is not None:
            self.calls.torch.alone = True
            return  # part of the node that is being made
        loud = next((a for a in (*args, *kwargs.values()) if not quiet(a)), None)
        if loud is not None:
            text = f"{HERE} hands {a_type(loud)} to a cache, which hashes or compares it by code of its own once more."
            self.journal.refuse("MP111", text, site=site)
            return
        self.facts.roots.const_root(fn)
        wrapped = getattr(fn, "__wrapped__", None)
        self.facts.functions.guard(wrapped)
        self.numbers.escape_all(site, args, kwargs)
        asked_anew = (
            any(is_a(a, torch.Tensor) for a in (*args, *kwargs.values())) or _name(fn) in self.ledger.learned.evicting
        )
        if asked_anew and self._reads_entry_state([wrapped], site):
            # its cache asks which tensor it is, which is another one at each call, or has made room for something else: a
            # node that asks the cache, and fills it
            text = f"`{getattr(fn, '__name__', '?')}` keeps tensors in its cache, which a compiled graph can't do."
            self.ledger.ops.eager_only.append(("MP106", text, site))
            self.nodes.one_node.apply(site, caching(fn), args, kwargs, checked=True)
            self.calls.torch.alone = True
            return
        self.access.arguments.read(site, args, kwargs)
        self._asked.append((site, fn, args, kwargs, fn.cache_info()))

    def returned(self, site: Any, fn: Any, args: Any, kwargs: Any, before: Any, result: Any) -> None:
        after = fn.cache_info()
        if after.misses != before.misses:
            # the run filled the cache: the next one finds the value there
            self.journal.skip_call(f"`{getattr(fn, '__name__', 'A cached function')}` filled its cache in this call.")
            if before.currsize == before.maxsize:
                self.ledger.learned.evicting.add(_name(fn))
            return
        if kinds.kind_of(result) == kinds.TENSOR and self.ledger.ops.values.get(id(result)) is not None:
            return
        for a in (*args, *kwargs.values()):
            kind = kinds.kind_of(a)
            node = self.refgraph.node(a)
            if _is_plain(a):
                continue  # read_deep has guarded it
            if kind == kinds.OBJECT and node is not None:
                self.refgraph.read(node.source, "identity", a, site)
            elif kind not in (kinds.SCALAR, kinds.IDENTITY):
                self.journal.refuse("MP111", f"A cached function is called with a {type(a).__name__}.", site=site)
                return
        root = self.facts.roots.const_root(fn).source
        counts = self.sources.make("cache_state", root, None)
        self.refgraph.read(counts, "eq", f"{before.misses} misses, {before.currsize} entries", site)
        self.facts.values.read(self.sources.make("cached", root, (tuple(args), tuple(kwargs.items()))), result, site)

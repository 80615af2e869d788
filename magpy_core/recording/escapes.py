"""EscapeEvents: symbols and memory that come where only exact values will do, or where nothing watches.

Key type: EscapeEvents.
"""

from __future__ import annotations

import collections
import contextvars
import functools
import types
from typing import Any

import torch

from magpy_core._compat.cpython.layout import native_state
from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.monitor import policy
from magpy_core.opgraph.scalars import Sym
from magpy_core.recording.base import memory_owner
from magpy_core.recording.contents import ContentReads
from magpy_core.recording.wording import a_type
from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.source import Source

# What the C state of objects of these classes is made of. SimpleNamespace has a ``__dict__``, which is looked at.
_FIELDS: dict[type, tuple[str, ...]] = {
    slice: ("start", "stop", "step"), range: ("start", "stop", "step"), types.SimpleNamespace: (),
    types.MethodType: ("__func__", "__self__"), functools.partial: ("func", "args", "keywords"),
}  # fmt: skip


class EscapeEvents(ContentReads):
    """What escapes the graph, and which memory is watched."""

    def memory_read(self, site: Any, *values: Any) -> bool:
        """Bytes are used that no event shows, if one of these holds some: refused, and True. That is memory from outside,
        and memory that a tensor shares."""
        for value in values:
            if id(value) in self.data:
                continue
            if not kinds.holds_memory(type(value)):
                tp = type(value)
                outside = self.refgraph.nodes.get(id(value)) is not None
                if tp is contextvars.Context or (outside and (tp in kinds.DICT_VIEWS or policy.keeps_state(tp))):
                    self.refuse(
                        "MP104",
                        f"{HERE} reads {a_type(value)} from outside, whose state is in C, where no guard sees it.",
                        hint="Read what you need of it outside the region, and pass that in.",
                        site=site,
                    )
                    return True
                continue
            outside = self.refgraph.nodes.get(id(value)) is not None
            owner = memory_owner(value) if self.shared_memory else None
            if not outside and is_a(owner, torch.Tensor) and id(owner) in self.shared_memory:
                self.refuse(
                    "MP102", f"{HERE} reads a tensor's data through `.numpy()`, where the graph can't follow.",
                    hint="Compute with torch, or move what NumPy does out of the region.", site=site,
                )  # fmt: skip
                return True
            if outside or (owner is not None and id(owner) in self.shared_memory):
                where = "from outside" if outside else "that shares its memory with a tensor"
                self.refuse(
                    "MP104",
                    f"{HERE} uses the data of {a_type(value)} {where}, which can change without a trace.",
                    hint="Keep the data in a tensor or a list, or compute with it outside the region.",
                    site=site,
                )
                return True
        return False

    def is_plain_array(self, value: Any) -> bool:
        """Whether this is a NumPy array that the region made of plain numbers, or a view of one."""
        if id(value) in self.arrays:
            return True
        if not self.arrays or not kinds.holds_memory(type(value)) or id(value) in self.refgraph.nodes:
            return False
        if id(memory_owner(value)) not in self.arrays:
            return False
        self.arrays[id(value)] = value
        return True

    def share_array(self, array: Any) -> None:
        """A tensor and an array that the region made share memory: what has it as an array may not be used any more."""
        owner = memory_owner(array)
        self.shared_memory[id(owner)] = owner
        self.arrays = {k: v for k, v in self.arrays.items() if memory_owner(v) is not owner}

    def native_facts(self, source: Source, value: Any, site: Any) -> None:
        """An object that keeps something in C, where native code may read it unseen: an instance of a subclass of ``int`` or
        ``str``, a ``re.Match``. Only the same object has the same, unless all it has is in fields."""
        native = native_state(type(value))
        if native is None:
            return
        fields = _FIELDS.get(type(value))
        if fields is None:
            self.refgraph.read(source, guard.IS, value, site)
            fields = ("args",) if issubclass(native, BaseException) else ()
        for name in fields:
            part = getattr(value, name)
            self.value(self.sources.make("field", source, name), part, site, exact=True)
            if kinds.kind_of(part) in (kinds.TUPLE, kinds.DICT) and (node := self.refgraph.node(part)) is not None:
                self.contents(node, site)

    # -- symbols -----------------------------------------------------------------------------------------------

    def escape(self, sym: Sym, site: Any) -> None:
        """A symbolic scalar is used where only its exact value will do."""
        self.branch_on(sym, sym.hint, "value", site)

    def escape_all(self, site: Any, *trees: Any) -> None:
        """Every symbol inside the given values escapes, and every number and array of NumPy that holds data."""
        if not self.scalars and not self.data:
            return
        stack, budget = list(trees), 100_000
        while stack:
            v = stack.pop()
            budget -= 1
            if budget < 0:
                self.refuse("MP111", f"{HERE} passes too large a container to native code for guards.", site=site)
                return
            if type(v) in kinds.NUMBER_TYPES:
                sym = self.scalars.get(v)
                if sym is not None:
                    self.escape(sym, site)
            elif id(v) in self.data:
                self.escape_data(v, site)
            elif is_a(v, (dict, types.MappingProxyType)):
                stack.extend(v.keys())
                stack.extend(v.values())
            elif is_a(v, (list, tuple, set, frozenset, collections.deque)) or type(v) in kinds.DICT_VIEWS:
                stack.extend(v)
            elif is_a(v, slice):
                stack.extend((v.start, v.stop, v.step))
            elif hasattr(type(v), "__next__") and type(v) is not types.GeneratorType:
                self.escape_hidden(site)  # what a generator yields is seen

    def escape_hidden(self, site: Any) -> None:
        """Native code gets numbers that no event shows (what an iterator yields, what a callback returns)."""
        for leaf in self.scalars.leaves():
            if leaf.kind != "address" or self.loose_addresses:
                self.escape(leaf, site)

    # -- addresses ---------------------------------------------------------------------------------------------

    loose_addresses = False  # whether the program has had addresses in hand: its own, or the memo of ``copy.deepcopy``

    def keyed_by_address(self, obj: Any, key: Any) -> bool:
        """``obj[id(x)]`` of a dict that the region made: which of its objects are one is all that it tells."""
        return (
            bool(self.scalars) and type(obj) is dict and self.scalars.is_address(key) and id(obj) not in self.refgraph.nodes
        )

    def address_shown(self, sym: Sym, site: Any) -> None:
        """The number itself is used: that of an object from outside can be guarded."""
        for leaf in sym.leaves():
            node = self.refgraph.node(leaf.payload) if leaf.kind == "address" else None
            if node is not None:
                self.refgraph.read(node.source, guard.IDENTITY, leaf.payload, site)
            else:
                text = f"{HERE} uses the address of an object that the region makes, which differs at every call."
                self.refuse("MP103", text, site=site)

"""Arguments: guards the content of containers and iterators that native code gets as arguments and may read.

Key type: Arguments.
"""

from __future__ import annotations

import itertools
import types
from typing import Any

from magpy_core.findings import HERE
from magpy_core.knowledge.callables import entry
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.callees import GETTERS
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds, natives
from magpy_core.refgraph.fields import instance_dict
from magpy_core.refgraph.kinds import is_a


class Arguments(Tracker):
    """Guards what native code may read from its arguments."""

    def read(self, site: MaybeSite, args: Any, kwargs: Any, shallow: int | None = None, *, carry: bool = False) -> None:
        """Guard the content of containers from outside among the arguments of native code. ``shallow``: the number of levels
        of nested containers that it reads; None: all."""
        nodes = self.refgraph.nodes
        seen: set[int] = set()
        if not shallow and site is not self.context.callbacks.last_site:
            self._getters(args, kwargs, site)
        if carry:
            self.context.contents.compared_or_hashed(site, False, *args)
        stack = [(a, 0) for a in (*args, *kwargs.values())]
        budget = 50_000
        while stack:
            v, depth = stack.pop()
            kind = kinds.kind_of(v)
            if kind not in kinds.CONTAINERS or id(v) in seen:
                self.context.arrays.memory_read(site, v)
                self.context.contents.compared_or_hashed(site, False, v)
                if kind == kinds.OBJECT:
                    self.context.classes.special_methods(v, site)
                    if is_a(v, types.SimpleNamespace) and id(v) not in seen:
                        seen.add(id(v))
                        self.context.natives.state_read(v, site)
                        self.context.numbers.escape_all(site, vars(v))
                        stack.extend((x, depth + 1) for x in vars(v).values())
                elif type(v) is types.FunctionType and id(v) in nodes:
                    self.context.functions.guard(v)
                elif kind == kinds.OPAQUE and id(v) in nodes and hasattr(type(v), "__next__"):
                    self.context.container_calls.read_iterator(v, site)
                continue
            seen.add(id(v))
            node = nodes.get(id(v))
            if node is not None:
                node.must_be_distinct |= kind == kinds.TUPLE
                self.context.contents.read_all(node, site, carry=carry)
            budget -= natives.length(v)
            if budget < 0:
                text = f"{HERE} passes a very large container to C code: too many elements to check."
                self.journal.refuse(
                    "MP111", text, hint="Read only the elements that are needed, or keep the data in a tensor.", site=site
                )
                return
            if shallow is None or depth < shallow:
                stack.extend((x, depth + 1) for x in (natives.values(v) if is_a(v, dict) else natives.elements(v)))

    def _getters(self, args: Any, kwargs: dict[str, Any], site: MaybeSite) -> None:
        """Guard what an ``operator.attrgetter`` or similar callable reads from the elements if it is passed to native code
        (``sorted``, ``map``)."""
        for getter in (v for v in (*args, *kwargs.values()) if is_a(v, GETTERS) or entry(v).reads_attributes):
            others = [a for a in args if a is not getter]
            if is_a(getter, GETTERS) and others and all(type(a) in (list, tuple) for a in others):
                for value in itertools.chain(*others):
                    self.context.natives.call_getter(site, getter, (value,))
            else:
                name = getattr(getter, "__name__", type(getter).__name__)
                text = f"{HERE} passes `{name}` to C code: MagPy can't see what reads it."
                self.journal.refuse("MP104", text, hint="Use a lambda: its reads are observed.", site=site)

    def read_state(self, obj: Any, site: MaybeSite) -> None:
        """Guard all state of an object that unmonitored Python code may read."""
        self.context.natives.state_read(obj, site)
        held = tuple((instance_dict(obj) or {}).values())
        self.context.numbers.escape_all(site, held)
        self.read(site, held, {})

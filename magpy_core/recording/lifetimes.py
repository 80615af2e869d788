"""Lifetimes: objects with finalizers, and weak references. A recording must not extend an object's lifetime.

Key type: Lifetimes.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from magpy_core.findings import HERE
from magpy_core.knowledge import policy
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds
from magpy_core.refgraph.snapshot import Snapshot


class Lifetimes(Tracker):
    """Finalizers, weak references and their callbacks."""

    def constructed(self, cls: type, args: tuple[Any, ...], site: MaybeSite) -> None:
        """Effects of an object's death can't be replayed: replay creates and drops other objects than the run."""
        if kinds.has_finalizer(cls) and not policy.is_host_module(cls.__module__):  # calls of a host module are refused
            text = f"A {cls.__name__} is created here; compiled code can't repeat when its `__del__` runs."
            hint = "Create it outside the region, or compile the code that uses it as smaller regions."
            self.journal.abort(text, site, hint=hint)
        elif issubclass(cls, weakref.ref) and len(args) > 1 and args[1] is not None:
            text = "A weak reference with a callback is created here; compiled code can't repeat when the callback runs."
            self.journal.abort(text, site, hint="Create the weak reference outside the region.")

    def call_weakref(self, site: MaybeSite, fn: Any) -> None:
        if (node := self.refgraph.node(fn)) is None:
            hint = "Keep the object itself."
            self.journal.abort(f"{HERE} reads a weak reference created in the region.", site, "MP111", hint)
        target = weakref.ref.__call__(fn)
        if self.held_only_by_snapshots(target):
            del target
            text = f"{HERE} reads a weak reference that would already be dead without MagPy."
            self.journal.abort(text, site, hint="Keep the object itself.")
        self.context.values.read(self.sources.make("deref", node.source, None), target, site)

    def on_snapshot(self, snapshot: Snapshot) -> None:
        """A container is about to change: the snapshot must not keep objects with finalizers alive."""
        content = snapshot.content
        if type(content) in (list, set):
            for value in itertools.chain.from_iterable(content) if snapshot.kind == kinds.DICT else content:
                if kinds.has_finalizer(type(value)):
                    text = f"This holds a {type(value).__name__}; compiled code can't repeat when its `__del__` runs."
                    self.journal.abort(text, self.journal.site, hint="Change the container outside the region.")

    def held_only_by_snapshots(self, obj: Any) -> bool:
        """Whether the region has removed ``obj`` from an object that it has changed, so that only the snapshot holds it."""
        return any(
            node.snapshot is not None and node.snapshot.holds(obj) and not Snapshot(node.obj, node.kind).holds(obj)
            for node in self.refgraph.written()
        )

"""Lifetimes: objects whose death has an effect, and weak references. No recording makes an object live longer than it
would.

Key type: Lifetimes.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from magpy_core.findings import HERE
from magpy_core.knowledge import policy
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds
from magpy_core.refgraph.snapshot import Snapshot


class Lifetimes(Tracker):
    """Finalizers, weak references and their callbacks."""

    def constructed(self, cls: type, args: tuple[Any, ...], site: Any) -> None:
        """What is to happen when an object dies can't be replayed: a replay makes and drops other objects than the run."""
        if kinds.has_finalizer(cls) and not policy.is_host_module(cls.__module__):  # what that does is refused as it does it
            text = f"A {cls.__name__} is created here; replay can't repeat when its `__del__` runs."
            self.journal.abort(text, site, hint="Make it outside the region, or compile what uses it piece by piece.")
        elif issubclass(cls, weakref.ref) and len(args) > 1 and args[1] is not None:
            text = "A weak reference with a callback is created here; replay can't repeat when the callback runs."
            self.journal.abort(text, site)

    def call_weakref(self, site: Any, fn: Any) -> None:
        if (node := self.refgraph.node(fn)) is None:
            hint = "Keep the object itself."
            self.journal.abort(f"{HERE} reads a weak reference made in the region.", site, "MP111", hint)
        target = weakref.ref.__call__(fn)
        if self.held_only_by_snapshots(target):
            del target
            self.journal.abort("A weak reference is read whose object only a snapshot of the recording still holds.", site)
        self.facts.values.read(self.sources.make("deref", node.source, None), target, site)

    def on_snapshot(self, snapshot: Snapshot) -> None:
        """A container is about to change: what has a finalizer must not live on in our copy of it."""
        content = snapshot.content
        if type(content) in (list, set):
            for value in itertools.chain.from_iterable(content) if snapshot.kind == kinds.DICT else content:
                if kinds.has_finalizer(type(value)):
                    text = f"This holds a {type(value).__name__}; replay can't repeat when its `__del__` runs."
                    self.journal.abort(text, self.journal.site)

    def held_only_by_snapshots(self, obj: Any) -> bool:
        """Whether the region has taken ``obj`` out of something that it has changed: our copy of that still holds it."""
        return any(
            node.snapshot is not None and node.snapshot.holds(obj) and not Snapshot(node.obj, node.kind).holds(obj)
            for node in self.refgraph.written()
        )

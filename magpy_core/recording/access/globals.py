"""Globals: reads and writes of global variables and of attributes of Python modules. Key type: Globals."""

from __future__ import annotations

import builtins
import types
from dataclasses import field
from typing import Any

from magpy_core.guards import kinds as guard
from magpy_core.monitor.events import MaybeSite, Site
from magpy_core.monitor.positions import current_globals
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import lookup
from magpy_core.refgraph.fields import ABSENT
from magpy_core.refgraph.kinds import is_a

_BUILTINS = vars(builtins)


class Globals(Tracker):
    """Handlers of globals."""

    _of_code: dict[types.CodeType, dict[str, Any]] = field(default_factory=dict, init=False)
    _sites_read: set[Any] = field(default_factory=set, init=False)

    def read_module(self, module: types.ModuleType, name: str, site: MaybeSite) -> None:
        d = module.__dict__
        if name == "__dict__":
            self.context.roots.globals_root(d)
            return
        root, written = self.context.roots.const_root(module, module.__name__), self.refgraph.node(d)
        if written is not None and written.snapshot is not None and written.snapshot.entry(name) is not d.get(name, ABSENT):
            return  # functions of the module have written it
        if name in d:
            self.context.values.read(self.sources.attr(root.source, name), d[name], site, None)
            self.context.functions.guard(d[name])
            return
        self.context.roots.guard_absent(root.source, name, site)
        if lookup.class_lookup(type(module), name)[1] is not None:
            self.context.classes.member(type(module), name, site)
        elif name != "__getattr__":
            self.read_module(module, "__getattr__", site)  # called for missing names

    def import_from(self, site: Site, module: Any) -> None:
        self.journal.site = site
        if is_a(module, types.ModuleType) and site.name is not None:
            self.read_module(module, site.name, site)

    def global_read(self, site: Site) -> None:
        if site in self._sites_read:
            return
        self._sites_read.add(site)
        self.journal.site = site
        self.read(self.globals_of(site.code), site.name, site)

    def globals_of(self, code: types.CodeType) -> dict[str, Any]:
        """The globals of the running frame of ``code``; a code object that runs with two different ones is refused."""
        if code not in self._of_code:
            self._of_code[code] = current_globals()
        return self._of_code[code]

    def read(self, g: dict[str, Any], name: str, site: MaybeSite) -> None:
        root = self.context.roots.globals_root(g)
        if root.snapshot is not None and (entry := root.snapshot.entry(name)) is not g.get(name, ABSENT):
            if entry is not ABSENT:
                self._sites_read.discard(site)
            return  # written by the region
        source = self.sources.item(root.source, name)
        if name in g:
            self.context.values.read(source, g[name], site, self.context.values.item_slot(root, name))
        elif name in _BUILTINS:
            self.refgraph.read(source, guard.ABSENT, None, site)
            b = self.refgraph.node(_BUILTINS) or self.refgraph.add(_BUILTINS, self.sources.const(_BUILTINS, "builtins"))
            self.context.values.read(self.sources.item(b.source, name), _BUILTINS[name], site)
        else:
            self.refgraph.read(source, guard.ABSENT, None, site)

    def global_write(self, site: Site, value: Any = ABSENT) -> None:
        self.journal.site = site
        self.changed(self.globals_of(site.code), site.name, site, value)

    global_delete = global_write

    def changed(self, g: dict[str, Any], name: str, site: MaybeSite, value: Any) -> None:
        # later reads of the name see the region's value: handle every site again
        self._sites_read = {s for s in self._sites_read if s.name != name}
        self.context.writes.variable_written(self.context.roots.globals_root(g), name, value, site)

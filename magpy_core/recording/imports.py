"""Imports: the first import of a module runs its body once, unmonitored; the imported module is guarded, and so is what was
asked about it.

Key type: Imports.
"""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Callable
from dataclasses import field
from typing import Any

from magpy_core._compat.cpython.imports import FIND_AND_LOAD, FROM_LIST
from magpy_core.guards import kinds as guard
from magpy_core.monitor.events import MaybeSite
from magpy_core.monitor.record import OWN_DIRECTORY
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph.kinds import is_a


class Imports(Tracker):
    """Import statements and ``importlib.import_module``."""

    _failed: dict[str, Any] = field(default_factory=dict, init=False)

    def importing(self) -> bool:
        """Whether the starting frame was called by the import system or a module's body (an import without an event)."""
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and (name := frame.f_code.co_filename).startswith(OWN_DIRECTORY):
            frame = frame.f_back
        if frame is None or not (name.startswith("<frozen importlib") or frame.f_code.co_name == "<module>"):
            return False
        while frame is not None and frame.f_code is not FIND_AND_LOAD:
            if frame.f_code.co_filename.startswith(OWN_DIRECTORY):
                return False  # the call of the region itself, in the program's main module
            frame = frame.f_back
        return frame is not None

    def import_name(self, site: MaybeSite, name: str) -> None:
        """The first import of a module runs its body once, which is not part of the region's computation."""
        self.journal.site = site
        parts = name.split(".")
        for n in range(1, len(parts) + 1):
            self.module_imported(".".join(parts[:n]), site)
        if self.context.pauses.code is None and name not in sys.modules:
            self.context.pauses.code = FIND_AND_LOAD
            self._failed[name] = site

    def module_imported(self, name: str, site: MaybeSite) -> None:
        """Guard the entry of ``sys.modules`` that an import returns."""
        module = sys.modules.get(name)
        if is_a(module, types.ModuleType):
            self.refgraph.read(self._module_entry(name), guard.IS, module, site)

    def imports_failed(self) -> None:
        """At exit: guard that modules that could not be imported are still absent."""
        for name, site in self._failed.items():
            if name not in sys.modules:
                self.refgraph.read(self._module_entry(name), guard.ABSENT, None, site)

    def _module_entry(self, name: str) -> Any:
        node = self.refgraph.node(sys.modules)
        if node is None:
            node = self.refgraph.add(sys.modules, self.sources.const(sys.modules, "sys.modules"))
        return self.sources.item(node.source, name)

    def import_call(self, frame: Any) -> bool:
        """``importlib.import_module``, which packages call to load modules lazily."""
        if self.context.pauses.code is None:
            name, package = frame.f_locals.get("name"), frame.f_locals.get("package")
            if is_a(name, str) and (package or not name.startswith(".")):
                self.import_name(self.journal.site, importlib.util.resolve_name(name, package))
            self.context.pauses.code = frame.f_code
        return False

    def spec_call(self, frame: Any) -> bool:
        """``importlib.util.find_spec``: that of an imported module is an attribute. Others are looked for among files."""
        name, package = frame.f_locals.get("name"), frame.f_locals.get("package")
        if self.context.pauses.code is None and is_a(name, str) and (package or not name.startswith(".")):
            found = importlib.util.resolve_name(name, package)
            if is_a(module := sys.modules.get(found), types.ModuleType):
                self.module_imported(found, self.journal.site)
                self.context.reads.attr(module, "__spec__", self.journal.site)
                self.context.pauses.code = frame.f_code
        return False

    def by_statement(self, frame: Any) -> bool:
        """The import system was called by the interpreter, or by native code."""
        self.context.pauses.code = frame.f_code
        return False


FRAMES: dict[Callable[..., Any], Callable[..., bool]] = {
    importlib.import_module: Imports.import_call,
    importlib.util.find_spec: Imports.spec_call,
}
CODES = {FIND_AND_LOAD: Imports.by_statement, FROM_LIST: Imports.by_statement}

"""UnobservedCode: guards the reads of Python code that runs without events, such as a backward pass.

Key type: UnobservedCode.
"""

from __future__ import annotations

import builtins
import dis
import types
from dataclasses import field
from typing import Any

import torch

from magpy_core._compat.cpython.weak_caches import by_object
from magpy_core.guards import kinds as guard
from magpy_core.knowledge import policy
from magpy_core.knowledge.modules import Verdict
from magpy_core.knowledge.torch_functions import SHOWS_BACKWARD_PASS
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph.fields import cell_value
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.source import Source

_CONSTANTS = (bool, int, float, str, type(None), torch.dtype)
_DEFINITIONS = (type, types.FunctionType, types.BuiltinFunctionType)
_EFFECTS = (print, setattr, delattr)
_OTHER_NAMES = ("STORE_GLOBAL", "DELETE_GLOBAL", "IMPORT_NAME", "LOAD_NAME", "STORE_NAME")


@by_object
def _globals_of(code: types.CodeType) -> frozenset[str] | None:
    """Names of the globals and builtins that ``code`` and functions in it read; None if they use names in other ways, or
    state of the backward pass."""
    names = set()
    before: Any = ""
    for instruction in dis.get_instructions(code):
        if instruction.opname in _OTHER_NAMES:
            return None
        # the function `torch.autograd.grad` is another thing, and so is a local variable with such a name
        is_local = instruction.opcode in dis.haslocal or instruction.opcode in dis.hasfree
        if instruction.argval in SHOWS_BACKWARD_PASS and before != "autograd" and not is_local:
            return None
        before = instruction.argval
        if instruction.opname == "LOAD_GLOBAL":
            names.add(instruction.argval)
    for constant in code.co_consts:
        if is_a(constant, types.CodeType):
            inside = _globals_of(constant)
            if inside is None:
                return None
            names |= inside
    return frozenset(names)


def _is_of_torch(value: Any) -> bool:
    """Whether this is a module, class or function of torch (but not an instance, such as a tensor)."""
    if is_a(value, types.ModuleType):
        return bool(value.__name__.partition(".")[0] == "torch")
    if is_a(value, types.FunctionType):  # functools.wraps copies `__module__`, so it isn't reliable
        return str(value.__globals__.get("__name__")).partition(".")[0] == "torch"
    return is_a(value, _DEFINITIONS) and policy.module_of(value).partition(".")[0] == "torch"


class UnobservedCode(Tracker):
    """Guards functions that read only constants, builtins, torch, pure modules and functions of the same kind, as globals or
    in closures."""

    _supported: dict[int, bool] = field(default_factory=dict, init=False)

    def guard(self, fn: Any, site: MaybeSite) -> bool:
        """Guard everything that ``fn`` reads besides its arguments; returns whether that is possible."""
        if is_a(fn, (staticmethod, classmethod)):
            fn = fn.__func__
        if fn is None:
            return True
        if id(fn) not in self._supported:
            self._supported[id(fn)] = True  # for functions that call each other
            self._supported[id(fn)] = self._guard_function(fn, site)
        return self._supported[id(fn)]

    def _guard_function(self, fn: Any, site: MaybeSite) -> bool:
        if not is_a(fn, types.FunctionType):
            return False
        if (fn.__closure__ or fn.__defaults__ or fn.__kwdefaults__) and self.context.age.is_made_inside(fn):
            return False  # their values may depend on what varies
        if not all(is_a(v, _CONSTANTS) for v in (*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values())):
            return False
        self.context.functions.guard(fn)
        if not all(self._guard_value(self._cell(cell), cell_value(cell), site) for cell in fn.__closure__ or ()):
            return False
        names = _globals_of(fn.__code__)
        return names is not None and all(self._guard_global(fn.__globals__, name, site) for name in sorted(names))

    def _guard_global(self, table: dict[str, Any], name: str, site: MaybeSite) -> bool:
        root = self.context.roots.globals_root(table)
        if root.snapshot is not None:  # the region writes globals of this module
            return False
        if name not in table:
            known = vars(builtins).get(name)
            if is_a(known, type) or (policy.verdict(known) == Verdict.PURE and known not in _EFFECTS):
                self.context.globals.read(table, name, site)
                return True
            return False
        return self._guard_value(self.sources.item(root.source, name), table[name], site)

    def _cell(self, cell: Any) -> Source | None:
        """The source of a cell's value; None if the region writes it."""
        node = self.refgraph.node(cell)
        return None if node is None or node.snapshot is not None else self.sources.make("cell", node.source, None)

    def _guard_value(self, source: Source | None, value: Any, site: MaybeSite) -> bool:
        if source is None:
            return False
        if is_a(value, _CONSTANTS):
            self.context.values.read(source, value, site, exact=True)
            return True
        self.refgraph.read(source, guard.IS, value, site)
        if _is_of_torch(value) or (is_a(value, types.ModuleType) and policy.is_pure_module(value.__name__)):
            return True
        return is_a(value, types.FunctionType) and self.guard(value, site)

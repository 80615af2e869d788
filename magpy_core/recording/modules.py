"""ModuleCalls: ``nn.Module.__call__`` and attribute access, summarized as fixed guards instead of monitored.

Key type: ModuleCalls.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import field
from typing import Any

import torch
from torch import nn

from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.guards.helpers import HOOK_DICTS
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import lookup
from magpy_core.refgraph.fields import instance_dict
from magpy_core.refgraph.kinds import is_a

_module = nn.modules.module
_FORWARD_HOOKS = ("_global_forward_hooks", "_global_forward_pre_hooks")


class ModuleCalls(Tracker):
    """Handlers of the frames of ``nn.Module``."""

    _global_hooks_read: bool = field(default=False, init=False)

    def module_call(self, frame: Any) -> bool:
        """``nn.Module._call_impl``: fixed edges instead of events (module summary), unless hooks have to run."""
        module = frame.f_locals.get("self")
        if module is None:
            return True
        if is_a(module, torch.jit.ScriptModule):
            return not self.ledger.ops.op_depth  # its code reads its attributes, which is refused
        return self.module_summary(module, self.journal.site)

    def module_summary(self, module: nn.Module, site: MaybeSite) -> bool:
        """Guard what ``_call_impl`` reads; True if hooks must run, so that its frame must be monitored."""
        d = instance_dict(module)
        if d is None:
            return True
        if not self._global_hooks_read:
            self._global_hooks_read = True
            root = self.context.roots.const_root(_module, "torch.nn.modules.module").source
            for name in (*_FORWARD_HOOKS, "_global_backward_hooks", "_global_backward_pre_hooks"):
                self.refgraph.read(self.sources.attr(root, name), guard.TRUTH, bool(getattr(_module, name)), site)
        if any(getattr(_module, n) for n in _FORWARD_HOOKS):
            return True
        if any(d.get(name) for name in ("_backward_hooks", "_backward_pre_hooks")) or _module._global_backward_hooks:
            text = f"{HERE} calls a module with backward hooks: MagPy can't record them."
            hint = "Hook the gradient of the region's result instead, outside of it."
            self.journal.refuse("MP118", text, site=site, hint=hint)
            return True
        node = self.refgraph.node(module)
        hooked = any(d.get(name) for name in HOOK_DICTS) or "forward" in d
        if node is not None and not hooked:
            self.refgraph.read(node.source, guard.PLAIN_MODULE, type(module), site)
        elif node is not None:
            for name in HOOK_DICTS:
                self.refgraph.read(self.sources.attr(node.source, name), guard.TRUTH, bool(d[name]), site)
        self.context.classes.member(type(module), "forward", site)
        self.context.classes.member(type(module), "__call__", site)
        return hooked

    def module_getattr(self, frame: Any) -> bool:
        module, name = frame.f_locals.get("self"), frame.f_locals.get("name")
        getter = lookup.class_lookup(type(module), "__getattribute__")[0]
        if is_a(getter, types.FunctionType):
            self.context.reads.module_member(module, name, self.journal.site)
        return False  # otherwise resolved in attr_read

    def module_setattr(self, frame: Any) -> bool:
        """``nn.Module.__setattr__``: snapshots of the module's tables show its effect."""
        module = frame.f_locals.get("self")
        name = frame.f_locals.get("name")
        if is_a(module, nn.Module) and is_a(name, str):
            value = frame.f_locals.get("value")
            self._guard_absent_names(module, name, self.journal.site)
            self.context.writes.attr(module, name, self.journal.site, value, native=True)
        return False

    def _guard_absent_names(self, module: nn.Module, name: str, site: MaybeSite) -> None:
        """Guard that tables without ``name`` stay so: setting a parameter, module or buffer works differently."""
        node = self.refgraph.node(module)
        if node is not None:
            tables = tuple(
                table for table in lookup.MODULE_TABLES if name not in (instance_dict(module) or {}).get(table, ())
            )
            self.context.reads.absent_members(node, module, tables, name, site)


FRAMES: dict[Callable[..., Any], Callable[..., bool]] = {
    nn.Module._wrapped_call_impl: ModuleCalls.module_getattr,
    nn.Module._call_impl: ModuleCalls.module_call,
    nn.Module.__getattr__: ModuleCalls.module_getattr,
    nn.Module.__setattr__: ModuleCalls.module_setattr,
    nn.Module.__delattr__: ModuleCalls.module_setattr,
}
# the helpers inside __setattr__ read the same tables
CODES = {code: ModuleCalls.module_getattr for code in nn.Module.__setattr__.__code__.co_consts if is_a(code, types.CodeType)}

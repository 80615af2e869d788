"""ModuleCalls: ``nn.Module.__call__`` and attribute access, summarized as fixed guards instead of monitored.

Key type: ModuleCalls.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from dataclasses import field
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from magpy_core._compat.torch import data_parallel
from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.guards.helpers import HOOK_DICTS
from magpy_core.opgraph.recorder import record_call, unrecorded
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import lookup
from magpy_core.refgraph.fields import instance_dict
from magpy_core.refgraph.kinds import is_a

_module = nn.modules.module
_FORWARD_HOOKS = ("_global_forward_hooks", "_global_forward_pre_hooks")


class ModuleCalls(Tracker):
    """Handlers of the frames of ``nn.Module``."""

    _global_hooks_read: bool = field(default=False, init=False)
    _copied: list[DistributedDataParallel] = field(default_factory=list, init=False)
    """Those in a call that has copied its buffers."""

    def module_call(self, frame: Any) -> bool:
        """``nn.Module._call_impl``: fixed edges instead of events (module summary), unless hooks have to run."""
        module = frame.f_locals.get("self")
        if module is None:
            return True
        if is_a(module, torch.jit.ScriptModule):
            return not self.ledger.ops.op_depth  # its code reads its attributes, which is refused
        return self.module_summary(module, self.journal.site)

    def parallel_call(self, frame: Any) -> bool:
        """DistributedDataParallel inside the region: its communication becomes part of the graph."""
        module = frame.f_locals.get("self")
        if self.ledger.ops.op_depth:
            return False
        replicas = self.ledger.ops.leaves.replicas
        for name in data_parallel.fields_read(module):
            self.access.reads.attr(module, name, None)  # not worth a finding each
        self.access.reads.module_member(module, "module", self.journal.site)
        with unrecorded(self.ledger.ops):
            reason = data_parallel.reason_to_refuse(module)
        if reason is not None:
            replicas.cannot_record = True
            text = f"{HERE} calls a DistributedDataParallel module whose communication can't be part of the graph: {reason}."
            self.journal.refuse_call("MP106", text, hint="Compile the wrapper itself, or the module inside it.")
        elif not module._has_rebuilt_buckets:
            replicas.cannot_record = True
            self.journal.skip_call("DistributedDataParallel has not yet arranged the gradients")
            self.journal.graph_incomplete = True  # the gradients of this call are not recorded
        else:
            self._communicate(module)
        return False

    def _communicate(self, module: DistributedDataParallel) -> None:
        """Record what a DistributedDataParallel module does at the beginning of a call. What it prepares for its hooks,
        which will not run, does no harm."""
        ops, fields = self.ledger.ops, vars(module)
        self.access.reads.attr(module, "process_group", self.journal.site)
        if data_parallel.copies_buffers(module):
            self._read_buffers(module.module)
        with unrecorded(self.ledger.ops):
            copies = data_parallel.copies_buffers(module)
            replica = ops.leaves.replicas.of(module) or data_parallel.replica(module)
        learns = bool(fields[data_parallel.SYNCS_GRADIENTS]) and torch.is_grad_enabled()
        record = functools.partial(record_call, ops)
        if (node := self.refgraph.node(module)) is not None:
            self.refgraph.snapshot(node)  # before its fields are replaced for a while
        if fields[data_parallel.SYNCS_BUFFERS] is not learns:  # the call sets it when it ends
            self.access.writes.attr(module, data_parallel.SYNCS_BUFFERS, self.journal.site, learns, native=True)
        ops.leaves.replicas.called(replica, record, learns=learns, copies_buffers=copies)
        self.ledger.undo.append(ops.leaves.replicas.run_hooks)
        if copies:  # done
            fields[data_parallel.SYNCS_BUFFERS] = False
            self._copied.append(module)
            self.ledger.undo.append(self._calls_raised)

    def _calls_raised(self) -> None:
        """A call that raises leaves this field as it was."""
        for module in self._copied:
            vars(module)[data_parallel.SYNCS_BUFFERS] = True
        self._copied = []

    def _read_buffers(self, module: nn.Module) -> None:
        for table in ("_buffers", "_modules"):
            for name, value in vars(module)[table].items():
                if value is not None:
                    self.access.reads.module_member(module, name, self.journal.site)
                if table == "_modules" and value is not None:
                    self._read_buffers(value)

    def parallel_preparation(self, frame: Any) -> bool:
        """What DistributedDataParallel does before and after the call of the module in it, for its hooks."""
        if frame.f_code is DistributedDataParallel._post_forward.__code__:
            self._copied = [module for module in self._copied if module is not frame.f_locals.get("self")]
        if self.basics.pauses.code is None:
            self.basics.pauses.code = frame.f_code
        return False

    def parallel_module_call(self, frame: Any) -> bool:
        """DistributedDataParallel notes which module runs, and calls it."""
        self.facts.functions.guard(DistributedDataParallel._inside_ddp_forward)  # its frame is monitored, and reads cells
        return False

    def module_summary(self, module: nn.Module, site: Any) -> bool:
        """Guard what ``_call_impl`` reads; True if hooks must run, so that its frame must be monitored."""
        d = instance_dict(module)
        if d is None:
            return True
        if not self._global_hooks_read:
            self._global_hooks_read = True
            root = self.facts.roots.const_root(_module, "torch.nn.modules.module").source
            for name in (*_FORWARD_HOOKS, "_global_backward_hooks", "_global_backward_pre_hooks"):
                self.refgraph.read(self.sources.attr(root, name), guard.TRUTH, bool(getattr(_module, name)), site)
        if any(getattr(_module, n) for n in _FORWARD_HOOKS):
            return True
        if any(d.get(name) for name in ("_backward_hooks", "_backward_pre_hooks")) or _module._global_backward_hooks:
            text = f"{HERE} calls a module with backward hooks, which can't be recorded."
            hint = "Hook the gradient of the region's result instead, outside of it."
            self.journal.refuse("MP106", text, site=site, hint=hint)
            return True
        node = self.refgraph.node(module)
        hooked = any(d.get(name) for name in HOOK_DICTS) or "forward" in d
        if node is not None and not hooked:
            self.refgraph.read(node.source, guard.PLAIN_MODULE, type(module), site)
        elif node is not None:
            for name in HOOK_DICTS:
                self.refgraph.read(self.sources.attr(node.source, name), guard.TRUTH, bool(d[name]), site)
        self.facts.classes.member(type(module), "forward", site)
        self.facts.classes.member(type(module), "__call__", site)
        return hooked

    def module_getattr(self, frame: Any) -> bool:
        module, name = frame.f_locals.get("self"), frame.f_locals.get("name")
        getter = lookup.class_lookup(type(module), "__getattribute__")[0]
        if is_a(getter, types.FunctionType):
            self.access.reads.module_member(module, name, self.journal.site)
        return False  # otherwise resolved in attr_read

    def module_setattr(self, frame: Any) -> bool:
        """``nn.Module.__setattr__``: snapshots of the module's tables show its effect."""
        module = frame.f_locals.get("self")
        name = frame.f_locals.get("name")
        if is_a(module, nn.Module) and is_a(name, str):
            value = frame.f_locals.get("value")
            self._guard_absent_names(module, name, self.journal.site)
            self.access.writes.attr(module, name, self.journal.site, value, native=True)
        return False

    def _guard_absent_names(self, module: nn.Module, name: str, site: Any) -> None:
        """Guard that tables without ``name`` stay so: setting a parameter, module or buffer works differently."""
        node = self.refgraph.node(module)
        if node is not None:
            tables = tuple(
                table for table in lookup.MODULE_TABLES if name not in (instance_dict(module) or {}).get(table, ())
            )
            self.access.reads.absent_members(node, module, tables, name, site)


FRAMES: dict[Callable[..., Any], Callable[..., bool]] = {
    nn.Module._wrapped_call_impl: ModuleCalls.module_getattr,
    nn.Module._call_impl: ModuleCalls.module_call,
    DistributedDataParallel.forward: ModuleCalls.parallel_call,
    DistributedDataParallel._pre_forward: ModuleCalls.parallel_preparation,
    DistributedDataParallel._post_forward: ModuleCalls.parallel_preparation,
    DistributedDataParallel._run_ddp_forward: ModuleCalls.parallel_module_call,
    inspect.unwrap(DistributedDataParallel._inside_ddp_forward): ModuleCalls.parallel_module_call,
    nn.Module.__getattr__: ModuleCalls.module_getattr,
    nn.Module.__setattr__: ModuleCalls.module_setattr,
    nn.Module.__delattr__: ModuleCalls.module_setattr,
}
# the helpers inside __setattr__ read the same tables
CODES = {code: ModuleCalls.module_getattr for code in nn.Module.__setattr__.__code__.co_consts if is_a(code, types.CodeType)}

"""NativeCalls: calls of builtin functions, by rule or by the call policy. Key type: NativeCalls."""

from __future__ import annotations

import types
from typing import Any

import torch

from magpy_core._compat.torch.state_changers import changes_setting
from magpy_core._compat.torch.tensor_guards import TENSOR_NEW
from magpy_core.knowledge import policy
from magpy_core.knowledge.callables import Reads, entry
from magpy_core.knowledge.methods import CLASS_METHODS
from magpy_core.knowledge.modules import Verdict
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.callees import CALLBACKS
from magpy_core.recording.calls.rules import RULES
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds
from magpy_core.refgraph.kinds import is_a


class NativeCalls(Tracker):
    """Calls of native functions."""

    def class_method(self, site: MaybeSite, fn: Any, owner: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        name = fn.__name__
        if fn is TENSOR_NEW and args and is_a(args[0], type) and args[0] is not torch.Tensor:
            self.context.arguments.read(site, args, kwargs)
            self.context.scripts.constructs_tensor(site)
        elif name in CLASS_METHODS:
            self.context.arguments.read(site, args, kwargs)
            self.context.numbers.escape_all(site, args, kwargs)
        elif name == "__call__" and is_a(fn, types.MethodWrapperType):
            self.context.class_calls.call(site, owner, args, kwargs)  # ``super().__call__`` of a metaclass
        elif issubclass(owner, torch.autograd.Function) or policy.module_of(owner).startswith("torch"):
            self.context.stack.torch = (site, fn)
        else:
            self.context.outside.host_call(site, fn, policy.verdict(fn))

    def call(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        rule, known = RULES.get(fn), entry(fn)
        if known.calls is not None:
            self.context.callbacks.guard(site, fn, args, kwargs)
        if rule is not None:
            rule(self.context.rules, site, fn, args, kwargs)
            return
        if self.context.clocks.reads(site, fn, args, kwargs):
            return
        what = policy.verdict(fn) if not self.context.natives.pickles(fn, args) else Verdict.UNKNOWN
        if what == Verdict.TORCH and changes_setting(fn) and not self.ledger.ops.op_depth:
            self.context.outside.setting_written(site, fn, args)
        elif what == Verdict.TORCH:
            self.context.torch_calls.expected(site, fn, args)
        elif what == Verdict.PURE:
            if known.bisects and self.context.rules.bisects(site, args, kwargs):
                return
            if known.computes and self.context.numbers.carries(args, kwargs):
                self.context.numbers.escape_raising(fn, args, site)
                self.context.numbers.expect_computed(site, fn, args)
                return
            self.context.numbers.escape_all(site, args, kwargs)
            calls = known.reads_inside is not Reads.NOTHING and any(is_a(a, CALLBACKS) for a in (*args, *kwargs.values()))
            if self.ledger.scalars and calls:
                self.context.numbers.escape_hidden(site)
            self.context.arguments.read(site, args, kwargs)
            if policy.fills_arguments(fn):
                for a in args:
                    if kinds.kind_of(a) in kinds.CONTAINERS:
                        self.context.writes.before_write(a, site)
        elif what == Verdict.UNKNOWN and (getattr(fn, "__module__", None) or "").startswith("numpy"):
            self.context.outside.call_numpy(site, fn, args, kwargs)
        else:
            self.context.outside.host_call(site, fn, what)

"""Exit: a finished run becomes a replay plan, or is refused in case of doubt. Key type: Exit."""

from __future__ import annotations

import types
from typing import Any

import torch

from magpy_core.findings import HERE, Unsupported
from magpy_core.opgraph.calls import may_differ
from magpy_core.opgraph.replicas import communicates
from magpy_core.opgraph.scalars import Sym
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph.kinds import is_a
from magpy_core.replay.ir import Const, Plan
from magpy_core.replay.plan import Planner


class Exit(Tracker):
    """Creates the plan."""

    def plan(self, result: Any, error: BaseException | None) -> Plan | None:
        """The plan; None where the run can't be captured."""
        self.context.host_calls.settle()
        self.context.clocks.left()
        self.context.array_values.left()
        self._communication_left()
        self._hooks_left()
        self._left_open()
        self.context.age.check_assumptions()
        self.context.host.hooks_out_of_reach()
        ops = self.ledger.ops
        self._history_left()
        ops.entry.keep_changed(tensor for tensor, _ in ops.inputs.guarded.values())
        if error is not None:
            return self._raised(error)
        self.context.decisions.hold()
        self._found_out_too_late()
        self._outside_errors_raised()
        if self.journal.refused or self.journal.skip_reason:
            return None
        planner = Planner(self.refgraph, self.ledger.ops, self.ledger.scalars, self.context.age.is_made_inside)
        planner.constants = self.context.functions.code_constants()
        planner.error_leaves = self._refuse_kept_error
        planner.array_leaves = self._array_leaves
        planner.change_found = self.context.interference.check
        self._class_writes_explained()
        planner.context_writes = self.ledger.context_writes
        planner.array_writes = self.ledger.fresh.array_writes
        plan = planner.plan(result, self.context.contents.reread_all, self.ledger.outputs, self.ledger.field_writes)
        self.context.numbers.restore_shared_ints()
        return plan if self._leaves_stay(plan) else None

    def _class_writes_explained(self) -> None:
        """Refuse if a class has not the number that an event has shown last."""
        for cls, name, value, sites in self.refgraph.class_writes.values():
            if cls.__dict__.get(name) is not value:
                text = f"`{name}` of the class `{cls.__qualname__}` is set in a way that the monitor can't follow."
                self.journal.refuse("MP110", text, hint="Keep the value on an instance.", site=sites[-1])

    def _communication_left(self) -> None:
        """Modules under DistributedDataParallel must have been differentiated; a pass outside of the region needs their
        hooks."""
        replicas = self.ledger.ops.leaves.replicas
        if replicas.waiting:
            text = "The region calls a DistributedDataParallel module, and its backward pass runs outside."
            self.journal.refuse("MP119", text, hint="Call `backward()` in the region, or compile the module itself.")
        replicas.run_hooks()

    def _found_out_too_late(self) -> None:
        """Refuse a graph that may turn out to take another path after it has communicated: to run the call again would
        communicate twice, and wait for the other processes."""
        nodes = list(self.ledger.ops.graph.nodes)
        first = next((i for i, node in enumerate(nodes) if communicates(node)), None)
        if first is None:
            return
        position = {node: i for i, node in enumerate(nodes)}
        sites = [d.site for d in self.ledger.decisions if d.condition is None and position.get(d.last_node, -1) >= first]
        sites += [node.meta.get("magpy_site") for node in nodes[first:] if may_differ(node)]
        if sites:
            text = f"{HERE} decides about the path after the region has communicated with other processes."
            hint = "Decide before `backward()` and the module's call, or outside the region."
            self.journal.refuse("MP119", text, hint=hint, site=sites[0])

    def _hooks_left(self) -> None:
        """Hooks of values inside are for a backward pass inside."""
        ops = self.ledger.ops
        if ops.leaves.hooks.inside and not any(node.target is torch.autograd.grad for node in ops.graph.nodes):
            text = f"{HERE} registers a hook for a backward pass outside of the region."
            hint = "Register it on the region's result, outside the region."
            self.journal.refuse("MP118", text, hint=hint, site=ops.leaves.hooks.inside[0].meta.get("magpy_site"))

    def _left_open(self) -> None:
        """Check everything that the region began and did not end, and calls into torch that were not recorded."""
        self.context.imports.imports_failed()
        self.context.output.loggers_changed()
        if self.context.stack.torch is not None:
            self.context.torch_calls.missed()
        self.context.outside.context_left()
        self.context.outside.settings_left()
        self.context.caches.guard_occupied()
        if self.context.one_node.active is not None:
            self.journal.skip_call("a custom function raised")
        self.context.modes.left_open()

    def _leaves_stay(self, plan: Plan) -> bool:
        """Whether what becomes a leaf inside can be one in the graph, or need not be."""
        ops, outputs = self.ledger.ops, set(plan.outputs)
        if outputs & {ops.values.node(leaf) for leaf in ops.leaves.with_gradient}:
            text = "The region returns a tensor that already has a `.grad`: compiled code would return it without."
            self.journal.refuse("MP110", text, hint="Return a copy of it: `x.detach()`.")
            return False
        if any(node.target is torch.autograd.grad for node in ops.graph.nodes):
            return True
        results = [tensor for tensor, node in ops.values if node in outputs or id(tensor) in ops.writes.mutated]
        if not ops.leaves.drop(results):
            site = next(iter(ops.leaves.made.values()))
            text = f"{HERE} makes a tensor require a gradient for a backward pass outside of the region."
            self.journal.refuse("MP118", text, hint="Call `requires_grad_()` outside the region.", site=site)
            return False
        return True

    def _history_left(self) -> None:
        """What begins or stops to require a gradient inside must be as before at the end."""
        ops = self.ledger.ops
        for tensor in ops.leaves.left_changed():
            name = ops.inputs.guard(tensor).describe()
            how = "requires a gradient now" if tensor.requires_grad else "no longer requires a gradient"
            hint = "Do it before the region is called, or to a separate tensor: `x.detach().requires_grad_()`."
            self.journal.refuse_if_repeated(Unsupported("MP118", f"The region changes `{name}`: it {how}.", hint=hint))

    # -- exceptions --------------------------------------------------------------------------------------------

    def _raised(self, error: BaseException) -> Plan | None:
        """The region raises ``error``: a call whose guards hold runs in eager mode and raises again."""
        if not is_a(error, Exception):
            self.journal.refuse("MP307", f"The region raises {type(error).__name__}.")
            return None
        text = _own_text(error)
        shown = f"{type(error).__name__}: {text}" if text else type(error).__name__
        message = f"The region raises an exception (`{shown}`); such a call runs in eager mode."
        self.journal.note("MP307", message, place=self.journal.places.raised(error))
        return Plan(Const(None), True, [], [])

    def _outside_errors_raised(self) -> None:
        """Refuse if an exception from outside was raised: its traceback has changed, and perhaps its context."""
        for node, entry in self.refgraph.errors:
            if node.obj.__traceback__ is not entry:
                what = type(node.obj).__name__
                text = f"A `{what}` that existed before is raised and caught; compiled code can't extend its traceback."
                hint = "Create the exception where it is raised."
                self.journal.refuse("MP110", text, hint=hint, place=self.journal.places.raised(node.obj))

    def _array_leaves(self, array: Any) -> Sym | None:
        """What computes an array that leaves the region. Reports one of a tensor where the tensor has become it."""
        values = self.context.array_values
        if (computed := values.leaves(array)) is None and values.refuse(array):
            raise Unsupported("", "reported")
        return computed

    def _refuse_kept_error(self, error: BaseException) -> None:
        """Report an exception that was raised inside and leaves the region, at the line that raised it."""
        if error.__traceback__ is None:
            return
        text = f"A `{type(error).__name__}` that was raised inside is kept; compiled code can't recreate its traceback."
        hint = "Keep its text, or `error.with_traceback(None)`."
        self.journal.refuse("MP110", text, hint=hint, place=self.journal.places.raised(error))
        raise Unsupported("", "reported")


def _own_text(error: BaseException) -> str:
    """What ``str(error)`` returns, where that runs none of the program's code."""
    builtin = type(type(error).__str__) is types.WrapperDescriptorType
    if not builtin or any(
        type(arg) not in (str, int, float, bool, type(None)) for arg in BaseException.__dict__["args"].__get__(error)
    ):
        return ""
    return " ".join(str(error).split())[:120]

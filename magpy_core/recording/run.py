"""Run: TODO."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.fx
import torch.utils.checkpoint

from magpy_core._compat.torch.tensor_guards import global_check
from magpy_core._compat.torch.torch_state import (
    know_accelerator,
    random_streams,
    same_streams,
)
from magpy_core.findings import Finding, Unsupported
from magpy_core.guards.explain import TensorFacts
from magpy_core.monitor.record import record
from magpy_core.opgraph.shadow import ShadowRecorder
from magpy_core.recording.age import Age
from magpy_core.recording.arrays import Arrays, memory_owner
from magpy_core.recording.call_stack import CallStack
from magpy_core.recording.imports import Imports
from magpy_core.recording.journal import FAILED, Journal
from magpy_core.recording.ledger import Ledger
from magpy_core.recording.numbers import Numbers
from magpy_core.recording.output import OutputCalls
from magpy_core.recording.sizes import TensorFactsHost
from magpy_core.refgraph import kinds, verify
from magpy_core.refgraph.fields import ABSENT
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.source import Source
from magpy_core.replay.ir import Const, Plan
from magpy_core.replay.plan import Planner

if TYPE_CHECKING:
    from magpy_core.recording.groups import Calls, Facts, Nodes


@dataclass
class Recorded:
    """What a monitored run left. ``plan`` is None when the run can't be captured; ``findings`` say why."""

    recording: Recording
    result: Any
    exception: BaseException | None
    plan: Plan | None
    findings: list[Finding]
    tensors: list[tuple[Source, TensorFacts, set[int], Any]]
    global_check: Callable[[], bool]

    def forget(self) -> None:
        """Of a run that became no capture: let go of all it held, so that the program's objects live no longer than they
        would have."""
        self.result = self.exception = None
        self.tensors.clear()
        recording, ops = self.recording, self.recording.ops
        recording.release()
        kept: list[Any] = [
            recording.calls, recording.tensor_writes, recording.field_writes, recording.outputs, recording.restores,
            ops.values, ops.guarded, ops.mutated, ops.entry_memory, ops.entry_history, ops.inputs, ops.scalar_inputs,
            ops._keep, recording.arrays, recording.shared_memory,
        ]  # fmt: skip
        for held in kept:
            held.clear()
        recording.refgraph.forget()
        recording.pending_call = recording.pending_torch = None


def _strip(error: BaseException) -> None:
    """Take our own frames off the head of a traceback that goes back to the program."""
    tb = error.__traceback__
    while tb is not None and tb.tb_frame.f_code.co_filename == __file__:
        tb = tb.tb_next
    error.__traceback__ = tb


def parameter_names(target: Any) -> list[str]:
    """Names of the positional parameters, as the caller of ``target`` counts them."""
    fn = target
    if is_a(fn, torch.nn.Module):
        fn = fn.forward
    skip = 0
    if is_a(fn, types.MethodType):
        fn, skip = fn.__func__, 1
    code = getattr(fn, "__code__", None)
    return list(code.co_varnames[skip : code.co_argcount]) if code is not None else []


class Run:
    """TODO."""

    def __init__(
        self,
        ledger: Ledger,
        journal: Journal,
        stack: CallStack,
        age: Age,
        numbers: Numbers,
        arrays: Arrays,
        facts: Facts,
        calls: Calls,
        nodes: Nodes,
        imports: Imports,
        output: OutputCalls,
        tensors: TensorFactsHost,
    ) -> None:
        self.ledger = ledger
        self.journal = journal
        self.stack = stack
        self.age = age
        self.numbers = numbers
        self.arrays = arrays
        self.facts = facts
        self.calls = calls
        self.nodes = nodes
        self.imports = imports
        self.output = output
        self.tensors = tensors
        self.refgraph, self.sources = ledger.refgraph, ledger.sources
        self.active_error: BaseException | None = None

    def run(self, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Recorded:
        """Run ``target`` for real under the monitor. The result or exception is the program's own."""
        self.active_error = sys.exception()
        know_accelerator()
        call_args, call_kwargs = self.enter(target, args, kwargs)
        state = global_check()
        random = random_streams()
        shadow = ShadowRecorder(self.ledger.ops, self.tensors.unrecorded)
        self.calls.rules.collecting = gc.isenabled()
        gc.collect(0)
        gc.disable()
        result: Any = None
        error: BaseException | None = None
        monitor = record(self)
        try:
            try:
                self.journal.places.begin(sys._getframe(), target, args)
                with monitor, self.ledger.ops, shadow:
                    try:
                        result = target(*call_args, **call_kwargs)
                    finally:
                        self.nodes.scripts.restore_modes()
            except BaseException as raised:
                error = raised
            self.journal.places.finished()
            self.ledger.ops.drew_random = not same_streams(random, random_streams())
            if monitor.observer_failure is not None and not self.journal.aborted:
                self.journal.internal_error(monitor.observer_failure)
            plan = self.journal.contained(self.finish, result, error)
            if plan is not FAILED and not self.journal.refused and not self.journal.skip_reason and verify.enabled():
                verify.verify(self.refgraph, args, kwargs, self.age.is_made_inside)
        finally:
            self.journal.places.end()
            for undo in reversed(self.ledger.undo):
                undo()
            if self.calls.rules.collecting:
                gc.enable()
        if plan is FAILED or self.journal.refused or self.journal.skip_reason:
            plan = None
        tensors = []
        for tensor, source in self.ledger.ops.guarded.values():
            tensor = self.ledger.ops.entry_memory.get(id(tensor), tensor)  # as it was, if its `.data` was assigned
            dims = self.tensors.free_dims(source, tensor)
            tensors.append((source, TensorFacts.of(tensor), dims, tensor))
        if error is not None:
            _strip(error)
        return Recorded(self, result, error, plan, self.journal.findings, tensors, state)

    def enter(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Root the target and the arguments; numbers known to vary are passed as private copies."""
        fn = target
        if is_a(fn, types.MethodType):
            self.refgraph.add(fn.__self__, self.sources.const(fn.__self__, "self"))
            fn = fn.__func__
        if is_a(fn, types.FunctionType):
            self.facts.roots.const_root(fn)
            self.facts.functions.guard(fn)
        elif kinds.kind_of(fn) == kinds.OBJECT:
            self.refgraph.add(fn, self.sources.const(fn, "self"))
            self.facts.classes.member(type(fn), "__call__", None)
        names = parameter_names(target)
        if args and is_a(args[0], torch.nn.Module) and not is_a(target, torch.nn.Module):
            names = [*(names[:1] or ["self"]), *parameter_names(args[0])]  # nn.Module.__call__ itself
        names += [f"args[{i}]" for i in range(len(names), len(args))]
        if args and is_a(args[0], torch.optim.Optimizer):
            names[0] = "optimizer"
        new_args = [self.argument(self.sources.arg(i, names[i]), a) for i, a in enumerate(args)]
        new_kwargs = {k: self.argument(self.sources.kwarg(k), v) for k, v in kwargs.items()}
        return tuple(new_args), new_kwargs

    def argument(self, source: Source, value: Any) -> Any:
        return self.facts.values.read(source, value, None, handed=True)

    def finish(self, result: Any, error: BaseException | None) -> Plan | None:
        """Turn what was seen into a plan; refuses when anything is in doubt."""
        self.imports.imports_failed()
        self.output.loggers_changed()
        if self.stack.torch is not None:
            self.calls.torch.missed()
        for var, entry, site in self.calls.outside._context_entry.values():
            if var.get(ABSENT) is not entry:
                self.journal.refuse(
                    "MP110", f"The context variable `{var.name}` is left changed; replay can't repeat it.", site=site
                )
        if self.nodes.one_node.active is not None:
            self.journal.skip_call("a custom function raised")
        if self.nodes.modes._inference:
            self.journal.refuse("MP106", "An inference mode entered inside the region stays open after it.")
        if self.nodes.modes._autocast:
            self.journal.refuse("MP106", "An autocast context entered inside the region stays open after it.")
        self.age.check_assumptions()
        self.tensors.hooks_out_of_reach()
        self.ledger.ops.settle_history()
        if error is not None:
            if not is_a(error, Exception):
                self.journal.refuse("MP307", f"The region was left by {type(error).__name__}.")
                return None
            text = " ".join(str(error).split())[:120]
            said = f"{type(error).__name__}: {text}" if text else type(error).__name__
            self.journal.note("MP307", f"The region leaves by an exception (`{said}`); such a call runs as plain Python.",
                      place=self.journal.places.raised(error))  # fmt: skip
            return Plan(Const(None), True, [], [])
        self.errors_raised()
        self.calls.outside.locks_left()
        if self.journal.refused or self.journal.skip_reason:
            return None
        planner = Planner(self.refgraph, self.ledger.ops, self.ledger.scalars, self.age.is_made_inside)
        planner.constants = self.facts.functions.code_constants()
        planner.active_error = self.active_error
        planner.error_leaves = self.error_leaves
        planner.plain_array = lambda value: (
            type(value).__name__ == "ndarray"
            and self.arrays.is_plain_array(value)
            and self.arrays.is_plain_array(memory_owner(value))
        )
        plan = planner.plan(result, self.facts.contents.whole_again, self.ledger.outputs, self.ledger.field_writes)
        self.numbers.restore_shared_ints()
        return plan

    def errors_raised(self) -> None:
        """An exception from outside that was raised has another traceback now, and perhaps another context."""
        for node, entry in self.refgraph.errors:
            if node.obj.__traceback__ is not entry:
                text = f"A `{type(node.obj).__name__}` from outside is raised and caught, so that its traceback grows."
                self.journal.refuse("MP110", text, place=self.journal.places.raised(node.obj))

    def error_leaves(self, error: BaseException) -> None:
        """Replay can make an exception again, but no frames for its traceback to show."""
        if error.__traceback__ is None:
            self.facts.texts.names_in_error(error)
            return
        text = f"A `{type(error).__name__}` that was raised inside is kept; replay can't make its traceback again."
        hint = "Keep its text, or `error.with_traceback(None)`."
        self.journal.refuse("MP110", text, hint=hint, place=self.journal.places.raised(error))
        raise Unsupported("", "told")

    def release(self) -> None:
        """Forget what only the run itself needed: a capture must keep neither tensors nor the user's objects alive."""
        self.refgraph.assumed_internal.clear()
        self.refgraph.errors.clear()
        self.calls.outside._locks.clear()
        self.ledger.scalars.forget_addresses()
        self.facts.functions._attributes.clear()
        self.age.only_inside.clear()
        self.arrays._plain.clear()
        for node in self.refgraph.nodes.values():
            node.summary = node.summary or repr(node)
            if node.kind != kinds.IDENTITY:
                node.obj = None
            node.snapshot = None
            # names of slots stay, for the printer; values and keys that are objects of the user's do not
            node.forced = [(op, k) for op, k in node.forced if op.startswith(("set_", "maybe_")) and type(k) is str]
        self.age._young = None

"""OneNode: a call that becomes one node of the graph, such as a custom ``autograd.Function``: each replay repeats it.

Key type: OneNode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from magpy_core._compat.cpython.weak_caches import made_once
from magpy_core._compat.torch.function_apply import starts_custom_function
from magpy_core.findings import HERE
from magpy_core.monitor.events import MaybeSite
from magpy_core.opgraph.calls import expecting
from magpy_core.opgraph.host import Finish
from magpy_core.opgraph.operation import Operation
from magpy_core.recording.journal import FAILED
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds, lookup
from magpy_core.refgraph.kinds import is_a

_PASS_IT_IN = "Pass the values that it reads as arguments of `apply`."
_METHODS = ("forward", "backward", "setup_context", "vjp", "jvp", "vmap")


@dataclass
class _Applied:
    """A call that becomes one node: the prepared operation, and the number of effects before it."""

    target: Callable[..., Any]
    operation: Finish | None
    args: tuple[Any, ...]
    effects: int
    checked: bool = False  # whether its result may be data-dependent
    held: list[tuple[int, list[int]]] = field(default_factory=list)
    """Ids of the containers among its arguments and of their elements, if it is checked."""


def _held(tree: Any) -> list[tuple[int, list[int]]]:
    """Ids of the containers in ``tree`` and of their elements."""
    found: list[tuple[int, list[int]]] = []
    waiting, seen = [tree], set()
    while waiting:
        container = waiting.pop()
        if kinds.kind_of(container) not in kinds.CONTAINERS or id(container) in seen:
            continue
        seen.add(id(container))
        parts = [*container, *container.values()] if is_a(container, dict) else list(container)
        found.append((id(container), [id(v) for v in parts]))
        waiting += parts
    return found


@made_once
def applier(cls: Any) -> Callable[..., Any]:
    """A plain function that calls ``cls.apply``, as the target of a graph node."""

    def apply(*args: Any) -> Any:
        return cls.apply(*args)

    apply.__name__ = f"apply_{cls.__name__}"
    return apply


class OneNode(Tracker):
    """Begins and ends such calls."""

    active: _Applied | None = field(default=None, init=False)

    def call_function_class(self, site: MaybeSite, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """``cls.apply(*args)`` is about to run."""
        if self.ledger.ops.op_depth:
            return
        for name in _METHODS:
            self.context.classes.member(cls, name, site)
        methods = {n: m for n in _METHODS if not lookup.missing(m := lookup.class_lookup(cls, n)[0])}
        if kwargs or not all(self.context.unobserved.guard(m, site) for m in methods.values()):
            what = "reads an outside variable: compiled code would keep its first value."
            text = f"The autograd.Function `{cls.__name__}` {what}"
            self.journal.refuse_call("MP107", text, hint=_PASS_IT_IN, site=site)
        elif any(is_a(a, torch.nn.Module) for a in args):
            text = f"The autograd.Function `{cls.__name__}` gets a module as an argument: a graph can't contain one."
            self.journal.refuse_call("MP107", text, hint=_PASS_IT_IN, site=site)
        else:
            self.context.numbers.escape_all(site, args)
            self.ledger.ops.custom_functions.add(cls)
            self.apply(site, applier(cls), args, {}, checked=True)

    def apply(
        self,
        site: MaybeSite,
        target: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        checked: bool = False,
    ) -> None:
        """Record the call about to run, with everything inside, as one node of the graph, ``target(*args, **kwargs)``."""
        self.ledger.ops.op_depth += 1
        operation = self.context.host.begin(Operation.prepare, self.ledger.ops, target, args, kwargs)
        self.context.stack.torch = None
        if type(operation) is Operation:
            operation.numbers = []  # the node itself reads them again
        self.active = applied = _Applied(target, operation, args, self._effects(), checked, _held(args) if checked else [])
        self.context.torch_calls.alone = False
        self.context.stack.on_return(lambda result: self._returned(applied, result))

    def _returned(self, applied: _Applied, result: Any) -> Any:
        self.active = None
        if applied.checked and applied.held != _held(applied.args):
            self.journal.refuse("MP107", f"{HERE} changes a container passed as an argument.")
        if self._effects() != applied.effects:
            self.journal.refuse("MP107", "The forward of an autograd.Function changes state outside the region.")
        if applied.checked:
            checked = self.journal.contained(expecting, applied.target, result, not self.ledger.ops.shapes.vary)
            if checked is not FAILED and type(applied.operation) is Operation:
                applied.operation.target = checked
        after = self.context.host.finish(applied.operation, result)
        if applied.checked and not self.journal.refused:
            self.journal.contained(self.ledger.ops.shapes.mark_from_data, after)
        self.ledger.ops.op_depth -= 1
        return after

    def _effects(self) -> int:
        written = sum(1 + len(n.forced) for n in self.refgraph.written()) + self.ledger.other_effects
        return written + len(self.ledger.outputs) + len(self.ledger.tensor_writes) + len(self.ledger.field_writes)

    def function_apply(self, frame: Any) -> bool:
        """``Function.apply`` itself, called without an event (from a library): its node can't be recorded."""
        unrecorded = self.ledger.ops.op_depth or self.context.pauses.in_own_code_of_checkpoint()
        if not unrecorded and not self.journal.refused:
            self.journal.refuse("MP107", "A library calls an autograd.Function, where the call can't be recorded.")
        return False

    def applied_by_library(self, frame: Any) -> bool:
        """Whether the frame of a custom function starts whose ``apply`` had neither a frame nor an event."""
        if self.ledger.ops.op_depth or not starts_custom_function(frame.f_code, frame.f_locals):
            return False
        return not self.function_apply(frame)


FRAMES: dict[Callable[..., Any], Callable[..., bool]] = {torch.autograd.Function.apply: OneNode.function_apply}

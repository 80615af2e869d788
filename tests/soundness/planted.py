"""Mutation of ourselves: ``python -m tests.soundness.planted`` plants bugs in the engine, one at a time, and looks for each.

Every bug replaces a named function of the engine for the time of the search; nothing on disk is touched. A bug is caught
when some program of the corpus then differs from eager. Programs that are likely to show it come first, the others after
them. A bug that survives is a hole in the corpus. Key types: Bug; key function: hunt.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from magpy_core._compat.cpython import dict_tags
from magpy_core.capture import build as capture_build
from magpy_core.capture import code as capture
from magpy_core.capture.build import Capture
from magpy_core.capture.code import CodeWriter
from magpy_core.guards import kinds as guard
from magpy_core.guards.codegen import GuardWriter
from magpy_core.guards.first_level import FirstLevel
from magpy_core.opgraph.operation import Operation
from magpy_core.opgraph.scalars import ScalarTable
from magpy_core.opgraph.segments import Segment
from magpy_core.opgraph.shapes import ShapeTracker
from magpy_core.opgraph.writes import Writes
from magpy_core.recording import run as recording_run
from magpy_core.recording import trace as traces
from magpy_core.refgraph.graph import RefGraph
from magpy_core.refgraph.guard_kind import GuardKind
from magpy_core.refgraph.snapshot import Snapshot
from magpy_core.replay.codegen import ReplayWriter
from magpy_core.replay.ir import Scalar
from tests.soundness.fuzz import possible_changes, random_schedule
from tests.soundness.harness.run import Step, run, standard_schedules
from tests.soundness.harness.world import Program, programs

Patch = tuple[Any, str, Callable[[Any], Any]]
"""Whose attribute is replaced by what is made of it."""


@dataclass(frozen=True)
class Bug:
    """``likely``: programs that should show it."""

    name: str
    patches: tuple[Patch, ...]
    likely: tuple[str, ...] = ()
    backend: str = "eager"
    change: str = ""  # the kind of the generic change that shows it, where no program makes one of its own

    @contextlib.contextmanager
    def planted(self) -> Iterator[None]:
        originals = [(owner, name, owner.__dict__[name]) for owner, name, _ in self.patches]
        for owner, name, make in self.patches:
            setattr(owner, name, make(owner.__dict__[name]))
        try:
            yield
        finally:
            for owner, name, original in originals:
                setattr(owner, name, original)


@dataclass(frozen=True)
class Caught:
    """Which program caught a bug and how; ``program`` is empty for a bug that survived."""

    bug: Bug
    program: str
    schedule: str
    difference: str
    tried: int


def _without_guard(*kinds: GuardKind) -> tuple[Patch, ...]:
    """Guards of some kinds are not written; what they read is."""

    def make(check: Callable[..., None]) -> Callable[..., None]:
        def checked(self: GuardWriter, read: Any) -> None:
            if read.kind in kinds:
                if read.kind not in (guard.ABSENT, guard.OUTCOME):
                    self.var(read.source)
                return
            check(self, read)

        return checked

    def deferred(original: Callable[..., bool]) -> Callable[..., bool]:
        return lambda self, read: read.kind not in kinds and original(self, read)

    return ((GuardWriter, "check", make), (GuardWriter, "_defer_to_entry_loop", deferred))


def _always(value: Any) -> Callable[[Any], Any]:
    return lambda original: lambda *args, **kwargs: value


def _true_check(original: Any) -> Any:
    return lambda *args, **kwargs: lambda *tensors: True


def _effects(change: Callable[[list[Any]], list[Any]]) -> tuple[Patch, ...]:
    """The statements of a replay's effects, changed as a whole."""

    def make(values: Callable[..., Any]) -> Callable[..., Any]:
        def changed(self: ReplayWriter, plan: Any) -> Any:
            result, prepared = values(self, plan)
            return result, change(prepared)

        return changed

    return ((ReplayWriter, "values", make),)


def _without_effect(*ops: str) -> tuple[Patch, ...]:
    def make(prepare: Callable[..., str]) -> Callable[..., str]:
        return lambda self, effect: "" if effect.op in ops else prepare(self, effect)

    return ((ReplayWriter, "prepare", make),)


def _stale_scalars(expr: Callable[..., str]) -> Callable[..., str]:
    return lambda self, e: self.w.const(e.sym.hint) if isinstance(e, Scalar) else expr(self, e)


def _built_twice(build: Callable[..., str]) -> Callable[..., str]:
    def again(self: ReplayWriter, b: Any) -> str:
        name = build(self, b)
        del self._built[id(b)]
        self._built[-len(self._built) - 1] = name  # the name stays taken
        return name

    return again


def _reordered(module: Callable[..., Any]) -> Callable[..., Any]:
    """Operations of a segment run as late as what uses them allows, not in the program's order."""

    def reordered(self: Segment) -> Any:
        kept = list(self.nodes)
        left, order = list(self.nodes), []
        while left:
            ready = [n for n in left if not any(used in left for used in n.all_input_nodes)]
            order.append(ready[-1])
            left.remove(ready[-1])
        self.nodes = order
        try:
            return module(self)
        finally:
            self.nodes = kept

    return reordered


def _without_branches(init: Callable[..., None]) -> Callable[..., None]:
    """A branch on the graph's values is not asked again."""

    def made(self: Capture, trace: Any, *rest: Any) -> None:
        init(self, replace(trace, decisions=()), *rest)

    return made


def _late_snapshot(snapshot: Callable[..., Any]) -> Callable[..., Any]:
    """The state at entry is taken to be the one after the first write."""

    def late(self: RefGraph, node: Any, **how: Any) -> Any:
        if node.snapshot is None and len(self.nodes) > 2:
            node.obj, kept = type(node.obj)(), node.obj
            try:
                taken = snapshot(self, node, **how)
            finally:
                node.obj = kept
            taken.obj = kept
            return taken
        return snapshot(self, node, **how)

    return late


def _unseen_change(original: Any) -> Any:
    return lambda self, tensor, node: None


def _frozen_numbers(get: Callable[..., Any]) -> Callable[..., Any]:
    """A number that a tensor gave is a constant of the graph."""
    return lambda self, value: None


_TRUE, _NOTHING = _true_check, _always(None)
_EAGERLY = (dict_tags, "eagerly", _always(True))


def _after(name: str) -> Callable[[Any], Any]:
    """A method of FirstLevel that first empties one of its lists."""

    def make(method: Any) -> Any:
        def emptied(self: FirstLevel, *args: Any) -> Any:
            getattr(self, name).clear()
            return method(self, *args)

        return emptied

    return make


BUGS = [
    Bug("a scalar's guard dropped", _without_guard(guard.EQUAL), ("inlined_callee_guards",)),
    Bug("an object's identity not guarded", _without_guard(guard.IS, guard.IDENTITY), ("method_replaced",)),
    Bug("a value's type not guarded", _without_guard(guard.TYPE), ("alias_lists",), change="retype global a"),
    Bug("a dict's keys not guarded", _without_guard(guard.KEYS), ("modes_unguarded",)),
    Bug("a name that was absent not guarded", _without_guard(guard.ABSENT), ("getattr_default",)),
    Bug("new class attributes not guarded", _without_guard(guard.NAMES), ("getattr_default",)),
    Bug("a container's truth not guarded", _without_guard(guard.TRUTH), ("linear_net",),
        change="ambient global backward hook"),
    Bug("hooks of a module not guarded", _without_guard(guard.PLAIN_MODULE), ("modes_unguarded",)),
    Bug("two names of one object not guarded", _without_guard(guard.SAME_AS), ("alias_is_checks",)),
    Bug("an outcome of a varying number not guarded", _without_guard(guard.OUTCOME),
        ("counter_threshold",)),
    Bug("grad mode not guarded", ((recording_run, "global_check", _TRUE),), ("grad_mode_read",),
        change="ambient grad=False"),
    Bug("tensors' dtypes and shapes not guarded", ((capture_build, "tensor_check", _TRUE),), ("strides_forced",)),
    Bug("aliased containers not told apart", ((traces, "_distinct", _always([])),), ("alias_two_written",)),
    Bug("shared memory not guarded", ((CodeWriter, "_storages", _NOTHING),), ("alias_memory_of_arguments",), "aot_eager"),
    Bug("the last side effect skipped", _effects(lambda prepared: prepared[:-1]), ("item_writes", "prints")),
    Bug("a side effect doubled", _effects(lambda prepared: prepared + prepared[-1:]), ("prints",)),
    Bug("side effects in reverse order", _effects(lambda prepared: prepared[::-1]), ("print_then_effect_order",)),
    Bug("growing lists forgotten", _without_effect("extend"), ("alias_lists",)),
    Bug("attributes not written back", _without_effect("set_attr", "set_slot"), ("attr_write_tensor",)),
    Bug("output forgotten", _without_effect("print"), ("prints",)),
    Bug("writes that changed nothing forgotten", ((Snapshot, "_forced", _NOTHING),), ("write_back_same",)),
    Bug("moved keys of a dict left in place", ((Snapshot, "_moved_items", _always([])),), ("moved_key",)),
    Bug("a stale scalar stored", ((ReplayWriter, "expr", _stale_scalars),), ("counter_attr",)),
    Bug("numbers read from tensors frozen", ((ScalarTable, "get", _frozen_numbers),), ("item_accumulate",)),
    Bug("a shared result split", ((ReplayWriter, "build", _built_twice),), ("aliasing_result",)),
    Bug("operations of a graph reordered", ((Segment, "module", _reordered),), ("inplace_views",)),
    Bug("a branch on data not asked again", ((Capture, "__init__", _without_branches),), ("branch_item",)),
    Bug("changes in place not seen (versions)", ((Writes, "record", _unseen_change),), ("branch_inplace_before",)),
    Bug("inputs not put back before a branch", ((capture, "restore_input", _NOTHING),), ("branch_inplace_before",)),
    Bug("random stream not put back", ((capture, "restore_streams", _NOTHING),), ("branch_random_before",)),
    Bug("ways of shape functions not guarded", ((ShapeTracker, "_assume", _NOTHING),), ("sizes_that_pass_a_window",)),
    Bug("rates of zero not told apart", ((Operation, "_guard_identity", _NOTHING),), (
        "dropout_whose_rate_starts_at_zero",)),
    Bug("entry state taken after the write", ((RefGraph, "snapshot", _late_snapshot),), ("snapshot_after_mutation",)),
]  # fmt: skip
if dict_tags.supported():  # asked before any of these is planted: it tries the tags out
    BUGS += [
        Bug("tags that never change", (_EAGERLY, (dict_tags.Watch, "holds", _always(True))), ("watched_settings",)),
        Bug(
            "roots that are never looked at",
            (_EAGERLY, (FirstLevel, "_tensor_tables", _after("roots"))),
            ("watched_elements",),
        ),
        Bug("tables' tags not looked at", (_EAGERLY, (FirstLevel, "watch", _after("_tables"))), ("watched_settings",)),
        Bug("words of functions not looked at", (_EAGERLY, (FirstLevel, "watch", _after("_slots"))), ("defaults_changed",)),
        Bug("names of modules not looked at", (_EAGERLY, (FirstLevel, "watch", _after("_names"))), ("getattr_default",)),
    ]


def schedules(bug: Bug, program: Program, tries: int) -> list[tuple[str, list[Step]]]:
    """A program's standard schedules, one with the bug's own change, some random ones."""
    out = standard_schedules(program)
    if bug.change:
        found = [c for made in possible_changes(program)[1].values() for c in made if str(c).startswith(bug.change)]
        out += [(str(c), [Step(), Step(), Step(c), Step(), Step(c), Step()]) for c in found[:3]]
    return out + [(f"random {n}", random_schedule(program, random.Random(n))) for n in range(tries)]


def hunt(bug: Bug, chosen: list[Program], tries: int = 2) -> Caught:
    """Plant a bug and run programs until one differs from eager."""
    order = sorted(chosen, key=lambda p: bug.likely.index(p.name) if p.name in bug.likely else len(bug.likely))
    tried = 0
    with bug.planted():
        for program in order:
            for name, steps in schedules(bug, program, tries):
                tried += 1
                report = run(program, steps, backend=bug.backend)
                if report.differences:
                    return Caught(bug, program.name, name, report.differences[0], tried)
    return Caught(bug, "", "", "", tried)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="part of a bug's name")
    options = parser.parse_args()
    torch.set_num_threads(1)
    chosen = [p for p in programs() if "alone" not in p.options]
    survived = 0
    bugs = [bug for bug in BUGS if options.only in bug.name]
    for bug in bugs:
        start = time.monotonic()
        caught = hunt(bug, chosen)
        survived += not caught.program
        by = f"{caught.program} ({caught.schedule})" if caught.program else "SURVIVED"
        seconds = time.monotonic() - start
        print(f"{bug.name:<48} {by:<48} {caught.tried:>4} schedules {seconds:5.1f} s", flush=True)
        if caught.difference:
            print(f"    {caught.difference[:160]}", flush=True)
    print(f"{len(bugs)} bugs planted, {survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())

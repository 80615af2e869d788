"""Trackers without a run: a ledger, a journal and the lower trackers are real, the groups above are stand-ins.

Key type: World.
"""

from __future__ import annotations

from dataclasses import fields
from inspect import get_annotations
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from magpy_core.findings import Location, Position, Range
from magpy_core.monitor.events import Site
from magpy_core.opgraph.operator_graph import OperatorGraph
from magpy_core.opgraph.scalars import ScalarTable
from magpy_core.recording.age import Age
from magpy_core.recording.basics import Basics
from magpy_core.recording.call_stack import CallStack
from magpy_core.recording.decisions import Decisions
from magpy_core.recording.facts.arrays import Arrays
from magpy_core.recording.facts.classes import Classes
from magpy_core.recording.facts.containers import Contents
from magpy_core.recording.facts.functions import Functions
from magpy_core.recording.facts.group import Facts
from magpy_core.recording.facts.roots import Roots
from magpy_core.recording.facts.settings import Settings
from magpy_core.recording.facts.unseen import Unseen
from magpy_core.recording.facts.values import Values
from magpy_core.recording.journal import Journal
from magpy_core.recording.ledger import Learned, Ledger
from magpy_core.recording.numbers import Numbers
from magpy_core.recording.pauses import Pauses
from magpy_core.refgraph.node import Node
from magpy_core.refgraph.source import Source

_T = TypeVar("_T")
GROUPS = ("facts", "access", "calls", "nodes")
PLACE = Location("program.py", Range(Position(3, 0), Position(3, 9)))


class StandIn:
    """A tracker or a group of trackers that only notes what is called: ``("values.read", arguments)``."""

    def __init__(self, calls: list[tuple[str, tuple[Any, ...]]], name: str = "") -> None:
        self._calls, self._name = calls, name

    def __getattr__(self, name: str) -> StandIn:
        return StandIn(self._calls, f"{self._name}.{name}".lstrip("."))

    def __or__(self, flag: bool) -> bool:
        return flag

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        self._calls.append((self._name, args))


class World:
    """What the trackers of one recording share."""

    def __init__(self, learned: Learned | None = None, fullgraph: bool = False) -> None:
        self.learned = learned or Learned()
        scalars = ScalarTable()
        self.journal = Journal("region", PLACE, self.learned.set_up)
        self.ledger = Ledger(self.learned, scalars, fullgraph)
        self.stack, self.pauses = CallStack(), Pauses(self.journal)
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.above: Any = StandIn(self.calls)
        self.facts = facts = Facts()
        self.age, self.decisions = self.build(Age), self.build(Decisions)
        self.numbers = self.build(Numbers)
        facts.roots, facts.values, facts.classes = self.build(Roots), self.build(Values), self.build(Classes)
        facts.functions, facts.contents, facts.unseen = self.build(Functions), self.build(Contents), self.build(Unseen)
        facts.settings, facts.arrays = self.build(Settings), self.build(Arrays)
        self.ledger.ops = OperatorGraph(scalars, self.above, {})

    def argument(self, index: int = 0, name: str = "x") -> Source:
        return self.ledger.sources.arg(index, name)

    def outside(self, obj: Any, index: int = 0, name: str = "x") -> Node:
        """``obj`` is an argument of the region."""
        return self.ledger.refgraph.add(obj, self.argument(index, name))

    @property
    def guards(self) -> list[str]:
        """What is guarded, in order, by kind and path: ``type x``."""
        return [f"{read.kind.name} {read.source.describe()}" for read in self.ledger.refgraph.reads]

    @property
    def codes(self) -> list[str]:
        return [finding.code for finding in self.journal.findings]

    @property
    def status(self) -> str:
        journal = self.journal
        return (
            "aborted" if journal.aborted else "refused" if journal.refused else "skipped" if journal.skip_reason else "open"
        )

    def build(self, kind: type[_T], **given: Any) -> _T:
        """A tracker on this world: what it needs is the world's own part of that name, or a stand-in."""
        needed = [f.name for f in fields(cast(Any, kind)) if f.init]
        own = {name: part for name, part in vars(self).items() if name != "calls"} | given
        own["basics"] = SimpleNamespace(**{name: own.get(name, self.above) for name in get_annotations(Basics)})
        stand_ins = {name: self.above if name in GROUPS else getattr(self.above, name) for name in needed}
        return kind(*(own.get(name, stand_ins[name]) for name in needed))

    def called(self, name: str) -> list[tuple[Any, ...]]:
        """The arguments of each call of a stand-in's method."""
        return [args for called, args in self.calls if called == name]


def site(name: str | None = None, opname: str = "CALL") -> Site:
    """A site in a function of the program."""
    return Site(site.__code__, 0, opname, name, (3, 3, 0, 9))

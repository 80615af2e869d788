"""Trackers without a run: a ledger, a journal and the lower trackers are real, the groups above are stand-ins.

Key type: World.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from magpy_core.findings import Location, Position, Range
from magpy_core.monitor.events import Site
from magpy_core.opgraph.operator_graph import OperatorGraph
from magpy_core.opgraph.scalars import ScalarTable
from magpy_core.recording.age import Age
from magpy_core.recording.call_stack import CallStack
from magpy_core.recording.decisions import Decisions
from magpy_core.recording.facts.arrays import Arrays
from magpy_core.recording.facts.classes import Classes
from magpy_core.recording.facts.containers import Contents
from magpy_core.recording.facts.functions import Functions
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


class _Context:
    """A context whose parts are stand-ins, but for those that are set."""

    def __init__(self, above: StandIn) -> None:
        self._above = above

    def __getattr__(self, name: str) -> Any:
        return getattr(self._above, name)


class World:
    """What the trackers of one recording share."""

    def __init__(self, learned: Learned | None = None, fullgraph: bool = False) -> None:
        self.learned = learned or Learned()
        scalars = ScalarTable()
        self.journal = Journal("region", PLACE, self.learned.set_up)
        self.ledger = Ledger(self.learned, scalars, fullgraph)
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.above: Any = StandIn(self.calls)
        context: Any = _Context(self.above)
        self.context = context
        context.ledger, context.journal = self.ledger, self.journal
        self.stack = context.stack = CallStack()
        self.pauses = context.pauses = Pauses(self.journal)
        context.age, context.decisions = Age(context), Decisions(context)
        context.numbers, context.roots, context.values = Numbers(context), Roots(context), Values(context)
        context.classes, context.functions, context.contents = Classes(context), Functions(context), Contents(context)
        context.unseen, context.settings, context.arrays = Unseen(context), Settings(context), Arrays(context)
        self.age, self.decisions, self.numbers = context.age, context.decisions, context.numbers
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

    def build(self, kind: Callable[..., _T], **given: Any) -> _T:
        """A tracker on this world. ``given``: parts of the context instead of the world's own, or of stand-ins."""
        if not given:
            return kind(self.context)
        context = _Context(self.above)
        vars(context).update(vars(self.context) | given)
        return kind(context)

    def called(self, name: str) -> list[tuple[Any, ...]]:
        """The arguments of each call of a stand-in's method."""
        return [args for called, args in self.calls if called == name]


def site(name: str | None = None, opname: str = "CALL") -> Site:
    """A site in a function of the program."""
    return Site(site.__code__, 0, opname, name, (3, 3, 0, 9))

"""Recording: the observer of one monitored run. It builds the trackers and sends each event to the one that handles it.

A tracker owns its fields; what several of them write to is the `Ledger`. Key type: Recording.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from magpy_core.findings import Location
from magpy_core.monitor.events import Observer
from magpy_core.opgraph.operator_graph import OperatorGraph
from magpy_core.opgraph.scalars import ScalarTable
from magpy_core.recording.access.arguments import Arguments
from magpy_core.recording.access.callbacks import Callbacks
from magpy_core.recording.access.flow import Flow
from magpy_core.recording.access.globals import Globals
from magpy_core.recording.access.items import Items
from magpy_core.recording.access.natives import Natives
from magpy_core.recording.access.operators import Operators
from magpy_core.recording.access.reads import Reads
from magpy_core.recording.access.writes import Writes
from magpy_core.recording.age import Age
from magpy_core.recording.arrays import Arrays
from magpy_core.recording.call_stack import CallStack
from magpy_core.recording.calls.classes import ClassCalls
from magpy_core.recording.calls.containers import ContainerCalls
from magpy_core.recording.calls.dispatch import Dispatch
from magpy_core.recording.calls.methods import MethodCalls
from magpy_core.recording.calls.native import NativeCalls
from magpy_core.recording.calls.outside import Outside
from magpy_core.recording.calls.python import PythonCalls
from magpy_core.recording.calls.rules import Rules
from magpy_core.recording.calls.torch_calls import TorchCalls
from magpy_core.recording.decisions import Decisions
from magpy_core.recording.exit import Exit
from magpy_core.recording.facts.classes import Classes
from magpy_core.recording.facts.containers import Contents
from magpy_core.recording.facts.functions import Functions
from magpy_core.recording.facts.roots import Roots
from magpy_core.recording.facts.texts import Texts
from magpy_core.recording.facts.unseen import Unseen
from magpy_core.recording.facts.values import Values
from magpy_core.recording.frames import Frames
from magpy_core.recording.groups import Access, Calls, Facts, Nodes
from magpy_core.recording.imports import Imports
from magpy_core.recording.journal import Journal
from magpy_core.recording.ledger import Learned, Ledger
from magpy_core.recording.lifetimes import Lifetimes
from magpy_core.recording.modules import ModuleCalls
from magpy_core.recording.nodes.caches import Caches
from magpy_core.recording.nodes.checkpoints import Checkpoints
from magpy_core.recording.nodes.constructors import Constructors
from magpy_core.recording.nodes.modes import Modes
from magpy_core.recording.nodes.one_node import OneNode
from magpy_core.recording.nodes.random_state import RandomState
from magpy_core.recording.nodes.scripts import Scripts
from magpy_core.recording.nodes.unobserved import UnobservedCode
from magpy_core.recording.numbers import Numbers
from magpy_core.recording.operator_host import OperatorHost
from magpy_core.recording.output import OutputCalls
from magpy_core.recording.pauses import Pauses


class Recording(Observer):
    """Events arrive in the order of the program; each has one handler (`_handlers`)."""

    def __init__(self, learned: Learned, region_id: str, location: Location, fullgraph: bool = False) -> None:
        scalars = ScalarTable()
        self.journal = journal = Journal(region_id, location, learned.set_up)
        self.ledger = ledger = Ledger(learned, scalars, fullgraph)
        self.facts, self.access, self.calls, self.nodes = facts, access, calls, nodes = Facts(), Access(), Calls(), Nodes()
        stack, pauses, age, arrays = CallStack(), Pauses(journal), Age(ledger, journal), Arrays(ledger, journal)
        decisions = Decisions(ledger, journal)
        numbers = Numbers(ledger, journal, decisions)
        lifetimes = Lifetimes(ledger, journal, age, facts)
        imports = Imports(ledger, journal, pauses)
        self.age = age
        self.host = host = OperatorHost(
            ledger, journal, stack, pauses, age, numbers, decisions, arrays, facts, access, calls
        )
        ledger.ops = OperatorGraph(scalars, host, learned.dims)
        ledger.refgraph.watch = lifetimes.on_snapshot

        facts.roots = Roots(ledger, journal, age, facts)
        facts.values = Values(ledger, journal, numbers, facts)
        facts.classes = Classes(ledger, journal, facts)
        facts.functions = Functions(ledger, journal, age, facts)
        facts.contents = Contents(ledger, journal, numbers, facts)
        facts.texts = Texts(ledger, journal, numbers, facts, access, calls)
        facts.unseen = Unseen(ledger, journal, facts)

        access.globals = Globals(ledger, journal, facts, access)
        access.reads = Reads(ledger, journal, age, arrays, facts, access, nodes)
        access.items = Items(ledger, journal, numbers, arrays, facts, access)
        access.writes = Writes(ledger, journal, age, numbers, arrays, facts, access)
        access.natives = Natives(ledger, journal, numbers, facts, access, calls)
        access.callbacks = Callbacks(ledger, journal, stack, numbers, facts, access, calls)
        access.arguments = Arguments(ledger, journal, numbers, arrays, facts, access, calls)
        access.operators = Operators(ledger, journal, numbers, decisions, arrays, facts, access)
        access.flow = Flow(ledger, journal, stack, numbers, arrays, facts, access, calls)

        output = OutputCalls(ledger, journal, pauses, numbers, facts, access)
        calls.dispatch = Dispatch(ledger, journal, stack, pauses, lifetimes, numbers, arrays, facts, access, calls, nodes)
        calls.python = PythonCalls(ledger, journal, pauses, numbers, facts, access, calls, nodes)
        calls.native = NativeCalls(ledger, journal, stack, numbers, access, calls)
        calls.class_calls = ClassCalls(ledger, journal, stack, lifetimes, numbers, facts, access, calls, nodes)
        calls.methods = MethodCalls(ledger, journal, stack, numbers, arrays, facts, access, calls)
        calls.container_calls = ContainerCalls(ledger, journal, stack, numbers, facts, access)
        calls.torch = TorchCalls(ledger, journal, stack, facts)
        calls.outside = Outside(ledger, journal, stack, age, numbers, arrays, facts, access)
        calls.rules = Rules(ledger, journal, stack, pauses, numbers, arrays, facts, access, calls, imports, output)

        nodes.unobserved = UnobservedCode(ledger, journal, facts, access)
        nodes.one_node = OneNode(ledger, journal, stack, numbers, facts, calls, nodes, host)
        nodes.caches = Caches(ledger, journal, stack, numbers, facts, access, calls, nodes)
        nodes.constructors = Constructors(ledger, journal, numbers, arrays, nodes)
        nodes.scripts = Scripts(ledger, journal, stack, facts, access, nodes)
        nodes.checkpoints = Checkpoints(ledger, journal, stack, facts, access)
        nodes.modes = Modes(ledger, journal, calls)
        nodes.random_state = RandomState(ledger, journal, nodes)

        modules = ModuleCalls(ledger, journal, facts, access)
        handlers = (modules, imports, output, *vars(nodes).values())
        self.frames = Frames(ledger, journal, pauses, facts, calls, nodes, imports, handlers)
        self.exit = Exit(ledger, journal, stack, age, numbers, facts, calls, nodes, imports, output, host)
        self._parts = [
            ledger.ops, ledger, stack, pauses, age, arrays, decisions, numbers, lifetimes, imports, host, output, modules,
            self.frames, self.exit,
            *(part for group in (facts, access, calls, nodes) for part in (*vars(group).values(), group)),
        ]  # fmt: skip
        journal.on_abort(self._forget)
        for event, handler in self._handlers().items():
            setattr(self, event, handler)

    def _handlers(self) -> dict[str, Callable[..., Any]]:
        """Which tracker handles which event."""
        access, imports = self.access, self.frames.imports
        owners: dict[Any, str] = {
            self.frames: "enter_frame",
            access.globals: "global_read global_write global_delete import_from",
            access.reads: "cell_read attr_read",
            access.items: "item_read",
            access.writes: "cell_write cell_delete attr_write attr_delete item_write item_delete",
            self.calls.dispatch: "call call_result",
            access.operators: "binary binary_result unary unary_result compare is_ is_result contains truth",
            access.flow: "iterate unpack extend hashed match format with_enter caught yield_ return_",
            access.natives: "match_class",
            imports: "import_name",
        }
        return {event: getattr(owner, event) for owner, events in owners.items() for event in events.split()}

    def _forget(self) -> None:
        """The recording was aborted: from now on it keeps no object of the program alive."""
        self.ledger.refgraph.forget()
        self.ledger.ops.values.clear()
        self.age.only_inside.clear()

    def close(self) -> None:
        """Drop every object of the program now: the trackers refer to each other, and would keep them until a collection."""
        for part in self._parts:
            vars(part).clear()

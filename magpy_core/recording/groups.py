"""Groups of trackers, as the trackers see each other. Key types: Basics, Facts, Access, Calls, Nodes.

What a value is, what is read of it and what a call does with it follow from one another, so trackers of different groups
call each other. They reach each other by these groups, which `build` fills; no tracker imports another one above it.
"""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

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
from magpy_core.recording.facts.classes import Classes
from magpy_core.recording.facts.containers import Contents
from magpy_core.recording.facts.functions import Functions
from magpy_core.recording.facts.roots import Roots
from magpy_core.recording.facts.texts import Texts
from magpy_core.recording.facts.unseen import Unseen
from magpy_core.recording.facts.values import Values
from magpy_core.recording.imports import Imports
from magpy_core.recording.interference import Interference
from magpy_core.recording.journal import Journal
from magpy_core.recording.ledger import Ledger
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


class Basics:
    """What the trackers of all groups stand on, in the order in which each is made."""

    stack: CallStack
    pauses: Pauses
    interference: Interference
    age: Age
    arrays: Arrays
    decisions: Decisions
    numbers: Numbers
    lifetimes: Lifetimes
    imports: Imports
    host: OperatorHost
    output: OutputCalls
    modules: ModuleCalls


class Facts:
    """What values, classes, functions and containers from outside are: one guard for each fact that is used."""

    roots: Roots
    values: Values
    classes: Classes
    functions: Functions
    contents: Contents
    texts: Texts
    unseen: Unseen


class Access:
    """What the program, or native code for it, reads and writes."""

    globals: Globals
    reads: Reads
    items: Items
    writes: Writes
    natives: Natives
    callbacks: Callbacks
    arguments: Arguments
    operators: Operators
    flow: Flow


class Calls:
    """What a call reads and does, by what its callee is."""

    dispatch: Dispatch
    python: PythonCalls
    native: NativeCalls
    class_calls: ClassCalls
    methods: MethodCalls
    container_calls: ContainerCalls
    torch: TorchCalls
    rules: Rules
    outside: Outside


class Nodes:
    """Calls that are one node of the graph, or mark what nodes belong to."""

    one_node: OneNode
    caches: Caches
    constructors: Constructors
    scripts: Scripts
    checkpoints: Checkpoints
    modes: Modes
    random_state: RandomState
    unobserved: UnobservedCode


_MEMBERS: dict[type, dict[str, type]] = {group: get_type_hints(group) for group in (Basics, Facts, Access, Calls, Nodes)}
_TAKES = {part: tuple(inspect.signature(part).parameters) for group in _MEMBERS.values() for part in group.values()}


def build(ledger: Ledger, journal: Journal) -> tuple[Basics, Facts, Access, Calls, Nodes]:
    """The groups of a recording, filled. A part is given what its constructor names: groups, and basics made before it."""
    groups = (Basics(), Facts(), Access(), Calls(), Nodes())
    parts: dict[str, Any] = {"ledger": ledger, "journal": journal, "refgraph": ledger.refgraph}
    parts |= zip(("basics", "facts", "access", "calls", "nodes"), groups, strict=True)
    for group in groups:
        for name, cls in _MEMBERS[type(group)].items():
            made = cls(*[parts[needed] for needed in _TAKES[cls]])
            setattr(group, name, made)
            if type(group) is Basics:
                parts[name] = made
    return groups

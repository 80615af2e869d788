"""Context: all parts of one recording, by name. Key type: Context.

Values, reads and calls lead to each other, so each tracker may call any other, above or below it. Its module imports none of
them for that: it knows their types from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from magpy_core.recording.access.arguments import Arguments
    from magpy_core.recording.access.callbacks import Callbacks
    from magpy_core.recording.access.flow import Flow
    from magpy_core.recording.access.globals import Globals
    from magpy_core.recording.access.items import Items
    from magpy_core.recording.access.natives import Natives
    from magpy_core.recording.access.operators import Operators
    from magpy_core.recording.access.reads import Reads
    from magpy_core.recording.access.texts import Texts
    from magpy_core.recording.access.unobserved import UnobservedCode
    from magpy_core.recording.access.writes import Writes
    from magpy_core.recording.age import Age
    from magpy_core.recording.call_stack import CallStack
    from magpy_core.recording.calls.array_values import ArrayValues
    from magpy_core.recording.calls.classes import ClassCalls
    from magpy_core.recording.calls.clocks import Clocks
    from magpy_core.recording.calls.containers import ContainerCalls
    from magpy_core.recording.calls.devices import Devices
    from magpy_core.recording.calls.folds import Folds
    from magpy_core.recording.calls.host_calls import HostCalls
    from magpy_core.recording.calls.methods import MethodCalls
    from magpy_core.recording.calls.native import NativeCalls
    from magpy_core.recording.calls.python import PythonCalls
    from magpy_core.recording.calls.rules import Rules
    from magpy_core.recording.calls.streams import Streams
    from magpy_core.recording.decisions import Decisions
    from magpy_core.recording.dispatch import Dispatch
    from magpy_core.recording.exit import Exit
    from magpy_core.recording.facts.arrays import Arrays
    from magpy_core.recording.facts.classes import Classes
    from magpy_core.recording.facts.containers import Contents
    from magpy_core.recording.facts.functions import Functions
    from magpy_core.recording.facts.roots import Roots
    from magpy_core.recording.facts.settings import Settings
    from magpy_core.recording.facts.unseen import Unseen
    from magpy_core.recording.facts.values import Values
    from magpy_core.recording.followed import Followed
    from magpy_core.recording.frames import Frames
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
    from magpy_core.recording.nodes.parallel import ParallelCalls
    from magpy_core.recording.nodes.random_state import RandomState
    from magpy_core.recording.nodes.scripts import Scripts
    from magpy_core.recording.numbers import Numbers
    from magpy_core.recording.operator_host import OperatorHost
    from magpy_core.recording.output import OutputCalls
    from magpy_core.recording.outside import Outside
    from magpy_core.recording.pauses import Pauses
    from magpy_core.recording.torch_calls import TorchCalls
    from magpy_core.recording.varying_texts import VaryingTexts


class Context:
    """What trackers share. `trackers.build` makes the parts."""

    ledger: Ledger
    journal: Journal

    # know no values
    stack: CallStack
    pauses: Pauses
    interference: Interference
    age: Age
    decisions: Decisions
    numbers: Numbers
    followed: Followed
    varying_texts: VaryingTexts

    # guard facts
    roots: Roots
    values: Values
    classes: Classes
    functions: Functions
    contents: Contents
    settings: Settings
    unseen: Unseen
    arrays: Arrays

    # reads and writes, also of native code
    globals: Globals
    reads: Reads
    items: Items
    writes: Writes
    natives: Natives
    callbacks: Callbacks
    arguments: Arguments
    operators: Operators
    flow: Flow
    texts: Texts
    unobserved: UnobservedCode

    # torch, and what is outside
    torch_calls: TorchCalls
    host: OperatorHost
    outside: Outside
    imports: Imports
    modules: ModuleCalls
    output: OutputCalls
    lifetimes: Lifetimes

    # calls that become one node, or mark nodes
    one_node: OneNode
    caches: Caches
    constructors: Constructors
    scripts: Scripts
    checkpoints: Checkpoints
    modes: Modes
    random_state: RandomState
    parallel: ParallelCalls

    # calls by the kind of callee; `dispatch` selects the handler
    python: PythonCalls
    native: NativeCalls
    class_calls: ClassCalls
    methods: MethodCalls
    container_calls: ContainerCalls
    folds: Folds
    host_calls: HostCalls
    array_values: ArrayValues
    clocks: Clocks
    streams: Streams
    rules: Rules
    devices: Devices
    dispatch: Dispatch

    # start and end
    frames: Frames
    exit: Exit

"""Trackers: makes all parts of a recording. Key function: build."""

from __future__ import annotations

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
from magpy_core.recording.context import Context
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


def build(ledger: Ledger, journal: Journal) -> Context:
    """The parts of a recording. One that binds others when it is made comes after them."""
    context = Context()
    context.ledger, context.journal = ledger, journal
    context.stack = CallStack()
    context.pauses = Pauses(journal)
    context.interference = Interference(ledger.refgraph)
    context.age = Age(context)
    context.decisions = Decisions(context)
    context.numbers = Numbers(context)
    context.followed = Followed(context)
    context.varying_texts = VaryingTexts(context)
    context.roots = Roots(context)
    context.values = Values(context)
    context.classes = Classes(context)
    context.functions = Functions(context)
    context.contents = Contents(context)
    context.settings = Settings(context)
    context.unseen = Unseen(context)
    context.arrays = Arrays(context)
    context.globals = Globals(context)
    context.reads = Reads(context)
    context.items = Items(context)
    context.writes = Writes(context)
    context.natives = Natives(context)
    context.callbacks = Callbacks(context)
    context.arguments = Arguments(context)
    context.operators = Operators(context)
    context.flow = Flow(context)
    context.texts = Texts(context)
    context.unobserved = UnobservedCode(context)
    context.torch_calls = TorchCalls(context)
    context.host = OperatorHost(context)
    context.outside = Outside(context)
    context.imports = Imports(context)
    context.modules = ModuleCalls(context)
    context.output = OutputCalls(context)
    context.lifetimes = Lifetimes(context)
    context.one_node = OneNode(context)
    context.caches = Caches(context)
    context.constructors = Constructors(context)
    context.scripts = Scripts(context)
    context.checkpoints = Checkpoints(context)
    context.modes = Modes(context)
    context.random_state = RandomState(context)
    context.parallel = ParallelCalls(context)
    context.python = PythonCalls(context)
    context.native = NativeCalls(context)
    context.class_calls = ClassCalls(context)
    context.methods = MethodCalls(context)
    context.container_calls = ContainerCalls(context)
    context.folds = Folds(context)
    context.host_calls = HostCalls(context)
    context.array_values = ArrayValues(context)
    context.clocks = Clocks(context)
    context.streams = Streams(context)
    context.rules = Rules(context)
    context.devices = Devices(context)
    context.dispatch = Dispatch(context)
    context.frames = Frames(context)
    context.exit = Exit(context)
    return context

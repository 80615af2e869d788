"""RecordingState: what one recording knows, and how it says no. Key types: RecordingState, Branch, Output, Learned."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from magpy_core.findings import HERE, Finding, Location, Severity, Unsupported, Value, lookup
from magpy_core.guards import kinds as guard
from magpy_core.monitor.events import Observer
from magpy_core.monitor.policy import module_of
from magpy_core.monitor.positions import is_user_file, site_location, text_at
from magpy_core.opgraph.recorder import OpRecorder
from magpy_core.opgraph.scalars import ScalarTable, Sym
from magpy_core.recording.places import Place, Places
from magpy_core.refgraph import hashing, kinds
from magpy_core.refgraph.fields import ABSENT, cell_value, instance_dict
from magpy_core.refgraph.graph import Node, RefGraph
from magpy_core.refgraph.iterators import can_peek
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.lookup import class_lookup
from magpy_core.refgraph.source import Source
from magpy_core.replay.ir import MadeInside

_OF_TYPES = frozenset({"__dict__", "__weakref__", "__doc__", "__module__"})


@dataclass
class Learned:
    """What earlier calls of the region taught: access paths of numbers that vary, dimensions that vary."""

    numbers: set[str] = field(default_factory=set)
    dims: dict[str, set[int]] = field(default_factory=dict)
    exact: set[str] = field(default_factory=set)
    set_up: set[str] = field(default_factory=set)
    """What earlier calls did that no replay can, and that a program may do once, to set itself up."""
    evicting: set[str] = field(default_factory=set)
    """Functions whose cache had to make room in a recorded call."""
    twice: bool = False
    """Whether a result of the region was differentiated twice."""


@dataclass
class Branch:
    """The program's path depended on a value only the graph knows: a cut after ``last_node``.
    ``asserted``: no cut, as on the other side the program only raises, or as the region is to be one graph; it is looked at
    when the whole graph has run, and everything is undone if it went the other way.
    """

    sym: Sym
    outcome: Any
    last_node: Any
    site: Any
    asserted: bool = False
    condition: tuple[Any, ...] | None = None
    """The operations that decide, if they take nothing but the graph's inputs: no cut, they run ahead of the graph."""
    place: Location | None = None  # of the finding that tells of a cut


@dataclass
class Output:
    """One call with a visible effect, to be repeated in order: ``fn(*args, **kwargs)``."""

    what: str  # "print" | "log" | "warn" | "advance"
    payload: Any
    site: Any


@dataclass(frozen=True)
class Slot:
    """Where a number was read, so that the program can be handed a private copy of it."""

    get: Callable[[], Any]
    set: Callable[[Any], None]

    def put_back(self, copy: Any, value: Any) -> None:
        """The original again, unless the program stored something else there."""
        if self.get() is copy:
            self.set(value)


def memory_owner(array: Any) -> Any:
    """The object whose memory an array or a view of one is."""
    while True:
        under = array.obj if type(array) is memoryview else getattr(array, "base", None)
        if under is None:
            return array
        array = under


class RecordingState(Observer):
    """State and services shared by the event mixins."""

    def __init__(self, learned: Learned, region_id: str, whole: bool = False) -> None:
        self.learned = learned
        self.region_id = region_id
        self.whole = whole  # one graph is asked for: a decision on data is looked at after it, and cuts nothing
        self.refgraph = RefGraph()
        self.sources = self.refgraph.sources
        self.scalars = ScalarTable()
        self.ops = OpRecorder(self, self.scalars)  # type: ignore[arg-type]
        self.branches: list[Branch] = []
        self.outputs: list[Output] = []
        self.draws: list[Source] = []  # random numbers taken from streams of Python and NumPy, in order
        self.advanced: dict[int, int] = {}  # how often the region has advanced iterators from outside, by id
        self.findings: list[Finding] = []
        self.broken = False
        self.gone = False  # the recording has ended before the run
        self.passing = ""  # why this run, though not the next one, can't be captured
        self.site: Any = None  # the site of the event being handled (or the last one)
        self.quiet_keys: dict[int, bool] = {}  # whether a dict or a set may be looked into again, by id of its node
        self.settled: dict[int, Sym] = {}  # numbers that branches made so far have fixed, by id
        self.restores: list[Callable[[], None]] = []
        self.written_sites: dict[int, list[Any]] = {}
        self.tensor_writes: list[tuple[torch.Tensor, Source, Any]] = []
        self.field_writes: list[tuple[torch.Tensor, str, Any, Any]] = []
        # functions and classes to which something was done that only what the region itself made may have done to it, by id
        self.arrays: dict[int, Any] = {}  # NumPy arrays that the region made of plain numbers, by id
        self.data: dict[int, tuple[Any, Any]] = {}  # NumPy values that hold data, by id, with their graph values
        self.data_calls: list[tuple[Any, Any, list[Any], bool]] = []
        self.arrays_from_outside: list[Any] = []
        self.with_history: set[str] = set()  # paths of tensors from outside whose changes autograd took note of
        self.shared_memory: dict[int, Any] = {}  # owners of memory that both a tensor and an array have now, by id
        self.only_inside: dict[int, tuple[Any, Unsupported, Any]] = {}
        self.context_entry: dict[int, tuple[Any, Any, Any]] = {}  # context variables set, with their entry value
        # calls in progress: the site, and what native code there does with what Python functions return to it
        self.calls: list[tuple[Any, str]] = []
        self.judging = False  # whether the program has made iterators that decide by what a function returns
        self.pending_call: tuple[Any, Any, tuple[Any, ...]] | None = None
        self.pending_torch: tuple[Any, Any] | None = None
        self.paused_code: types.CodeType | None = None
        self.printing = False
        self.code_globals: dict[types.CodeType, dict[str, Any]] = {}
        self.class_checked: set[type] = set()
        self.functions_seen: set[int] = set()
        self.known_codes: set[types.CodeType] = set()  # of functions whose calls or guards say which they are
        self.dynamic = bool(learned.dims)
        self.lost = False  # some operator was not recorded: what uses its result is not news
        self._told: dict[Location, dict[str, int]] = {}  # codes told of a place, with the rank of their severity
        self._foreign: set[Location] = set()  # calls of what another compiler made: what runs in them is not told again
        self.places = Places(self.fallback_location)

    # -- refusing ----------------------------------------------------------------------------------------------

    def refuse(
        self, code: str, message: str, *, hint: str = "", values: tuple[Value, ...] = (), site: Any = None,
        place: Place | None = None,
    ) -> None:  # fmt: skip
        """The capture is off: report why at the current line. Recording goes on, to find the other reasons too."""
        self.broken = True
        if HERE in message:
            message = message.replace(HERE, self.words(site) or "The program")
        self.note(code, message, hint=hint, values=values, site=site, place=place)

    def refuse_once(self, why: str) -> None:
        """This run can't be captured, for a reason that may be gone at the next call."""
        self.passing = self.passing or why

    def refuse_again(self, error: Unsupported, site: Any = None) -> None:
        """This call does what replay can't: a program that sets itself up does so once, and the next call is captured. One
        that does it again is refused."""
        if error.message in self.learned.set_up:
            self.refuse(error.code, error.message, hint=error.hint, site=site)
            return
        self.learned.set_up.add(error.message)
        self.refuse_once(error.message)
        hint = error.hint or "Nothing needs to be done if it sets something up, once: the next call is captured."
        self.note(error.code, error.message, hint=hint, site=site, severity=Severity.INFORMATION)

    def note(
        self, code: str, message: str, *, hint: str = "", values: tuple[Value, ...] = (), site: Any = None,
        place: Place | None = None, severity: Severity | None = None,
    ) -> None:  # fmt: skip
        """Report at the current line of the user's (of ``site``, if it is one): once for each place and code. What a call
        into a library leads to is told once: the rest is the library's affair."""
        if place is None:
            place = self.places.now(site, self.site)
        told = self._told.setdefault(place.location, {})
        rank = (severity or lookup(code).severity).rank
        # after the run, all that has no line of its own is at its end
        key = code if self.places.running or site is not None else f"{code} {message}"
        if told.get(key, rank + 1) <= rank or (
            place.deeper and self.places.running and min(told.values(), default=rank + 1) <= rank
        ):
            return
        told[key] = rank
        location = self.places.told(place)
        path = place.path or self.places.path(location)
        finding = Finding(code, message, location, hint=hint, region=self.region_id, path=path, values=values)
        self.findings.append(finding if severity is None else replace(finding, severity_override=severity))

    def fallback_location(self) -> Location:
        raise NotImplementedError

    def code_known(self, code: types.CodeType) -> None:
        raise NotImplementedError

    def unsupported(self, error: Unsupported) -> None:
        if not error.code:  # the consequence of something that has been told
            self.broken = True
            return
        if is_a(error, MadeInside):
            self.refuse_again(error)
            return
        text = self.source_text(self.site)
        values = error.values or ((Value("expression", text),) if text else ())
        self.refuse(error.code, error.message, hint=error.hint, values=values)

    def source_text(self, site: Any) -> str:
        return "" if site is None else text_at(site_location(site))

    def words(self, site: Any = None) -> str:
        """What is being evaluated as the user wrote it, and what of a library's it came to."""
        site = site or self.site
        inner = self.source_text(site)
        if site is None or is_user_file(site.code.co_filename):
            return f"`{inner}`" if inner else ""
        outer = text_at(self.places.now(site).location)
        if not (outer and inner):
            return f"`{outer or inner}`" if outer or inner else ""
        return f"`{outer}` (at `{inner}` in `{site.code.co_qualname}`)"

    # -- nodes -------------------------------------------------------------------------------------------------

    def const_root(self, obj: Any, label: str | None = None) -> Node:
        """An external node for an object whose identity is already fixed by other guards (a class, module or function)."""
        node = self.refgraph.node(obj)
        if node is None:
            name = label or getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None) or type(obj).__name__
            node = self.refgraph.add(obj, self.sources.const(obj, str(name)))
            if is_a(obj, type):
                self.identity_seen(obj, self.site)
        return node

    def node_for(self, obj: Any) -> Node | None:
        """The external node of ``obj`` (a class, module or function is its own root); None for an internal object."""
        node = self.refgraph.nodes.get(id(obj))
        if node is None:
            kind = kinds.kind_of(obj)
            if kind == kinds.IDENTITY:
                return self.const_root(obj)
            if kind in kinds.MUTABLE:
                self.assume_internal(obj)
        return node

    keeps_objects = True  # until one is watched for its end

    def assume_internal(self, obj: Any) -> None:
        """``obj`` has no source: the region must have made it, which is checked at exit."""
        if self.keeps_objects and id(obj) not in self.refgraph.assumed_internal:
            self.refgraph.assumed_internal[id(obj)] = (obj, self.site)

    def class_fact(self, tp: type, name: str, site: Any) -> None:
        """Guard what class lookup of ``name`` finds along the MRO of ``tp`` (rule 6: absent names are facts too)."""
        raw, owner = class_lookup(tp, name)
        self.class_shape(tp, site)
        self.not_overridden(tp, name, owner, site)
        if owner is not None and owner.__flags__ & (1 << 9):
            source = self.sources.attr(self.const_root(owner).source, name)
            if kinds.kind_of(raw) == kinds.IDENTITY:
                self.refgraph.read(source, guard.IS, raw, site)
            elif hasattr(type(raw), "__get__"):
                self.value(source, raw, site)  # a descriptor of the user's own: its methods read it
                self.descriptor_fact(raw, site)
            elif name not in _OF_TYPES:  # an instance's own value comes first so long as this is no data descriptor
                self.refgraph.read(source, guard.TYPE, type(raw), site)
            self.function_fact(raw)

    def descriptor_fact(self, raw: Any, site: Any) -> None:
        raise NotImplementedError

    def not_overridden(self, tp: type, name: str, owner: type | None, site: Any) -> None:
        raise NotImplementedError

    def identity_seen(self, obj: Any, site: Any) -> None:
        raise NotImplementedError

    def class_shape(self, tp: type, site: Any) -> None:
        raise NotImplementedError

    def function_fact(self, fn: Any) -> None:
        """Guard a Python function's code and defaults; root its mutable defaults and its closure's cells."""
        if is_a(fn, property):
            for part in (fn.fget, fn.fset, fn.fdel):
                self.function_fact(part)
            return
        fn = fn.__func__ if is_a(fn, (staticmethod, classmethod)) else fn
        if not is_a(fn, types.FunctionType) or id(fn) in self.functions_seen:
            return
        self.functions_seen.add(id(fn))
        self.code_known(fn.__code__)
        root = self.const_root(fn).source
        if not module_of(fn).startswith("torch."):
            self.refgraph.read(self.sources.make("field", root, "__code__"), guard.IS, fn.__code__, self.site)
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
            node = self.refgraph.add(cell, self.sources.const(cell, name))
            if name == "__class__" and node.snapshot is None and not module_of(fn).startswith("torch."):
                if (value := cell_value(cell)) is ABSENT:  # ``super()`` reads it, which no event shows
                    self.refuse_once("a variable from outside had no value")
                else:
                    self.refgraph.read(self.sources.make("cell", node.source, None), guard.IS, value, self.site)
        if fn.__defaults__:
            self.refgraph.read(self.sources.make("field", root, "__defaults__"), guard.IS, fn.__defaults__, self.site)
            base = self.sources.make("field", root, "__defaults__")
            for i, v in enumerate(fn.__defaults__):
                if kinds.kind_of(v) not in (kinds.SCALAR, kinds.IDENTITY):
                    self.refgraph.add(v, self.sources.item(base, i))
                elif is_a(v, kinds.LEADING):
                    self.identity_seen(v, self.site)
        for k, v in (fn.__kwdefaults__ or {}).items():
            self.value(self.sources.item(self.sources.make("field", root, "__kwdefaults__"), k), v, self.site)

    # -- values ------------------------------------------------------------------------------------------------

    def value(
        self, source: Source, value: Any, site: Any, store: Slot | None = None, *, handed: bool = False, exact: bool = False
    ) -> Any:
        """``value`` was read from outside by ``source``: guard it. Gives it back, or the private copy with its symbol.

        A number is carried as a symbol only where the program gets the copy: through ``store``, or ``handed`` to it by the
        caller. ``exact``: native code reads the number, so only its value will do.
        """
        refgraph = self.refgraph
        kind = kinds.kind_of(value)
        if kind == kinds.SCALAR:
            # a NaN is only found again in a container by its identity, so the program keeps the one it has
            if type(value) in kinds.NUMBER_TYPES and source.path in self.learned.numbers and value == value:
                sym = self.scalars.get(value)
                if sym is not None:
                    if exact:
                        self.escape(sym, site)
                    return value
                if exact or (store is None and not handed):
                    self.learned.exact.add(source.path)
                    refgraph.read(source, guard.EQUAL, value, site)
                    return value
                refgraph.read(source, guard.TYPE, type(value), site)
                if store is not None and store.get() is not value:
                    return value  # the region has written something else there, which must stay
                copy = self.scalars.bind(value, self.scalars.source(source, value))
                if store is not None:
                    store.set(copy)
                    self.restores.append(lambda: store.put_back(copy, value))
                return copy
            if refgraph.read(source, guard.EQUAL if value == value else guard.IS, value, site):
                self.places.remember(source, site)
            return value
        if kind == kinds.IDENTITY:
            refgraph.read(source, guard.IS, value, site)
            if id(value) not in refgraph.nodes:
                refgraph.add(value, self.sources.const(value, source.describe()))
                if is_a(value, kinds.LEADING):
                    self.identity_seen(value, site)
            return value
        node = refgraph.nodes.get(id(value))
        if node is not None:
            if node.source is not source:
                refgraph.read(source, guard.SAME_AS, node.source, site)
            return value
        if kind != kinds.TENSOR:
            if source.kind != "const":
                refgraph.read(source, guard.TYPE, type(value), site)
            if kind == kinds.OPAQUE and not can_peek(value):
                refgraph.read(source, guard.IS, value, site)
                if type(value) in weakref.ProxyTypes:
                    self.refuse("MP111", f"{HERE} reads a weak proxy: what it stands for can't be named.", site=site)
            elif kind == kinds.OBJECT:
                self.native_facts(source, value, site)
        else:
            refgraph.read(source, guard.TENSOR, type(value), site)
        refgraph.add(value, source)
        return value

    def native_facts(self, source: Source, value: Any, site: Any) -> None:
        raise NotImplementedError

    def written_over(self, node: Node, key: Any) -> bool:
        """Whether the region has written there, if only what was there: then it is no place to put a copy of what was."""
        table = instance_dict(node.obj) if node.kind == kinds.OBJECT else None
        handles = [node, self.refgraph.node(table) if table is not None else None]
        if node.source.kind == "dict":
            handles += [n for n in self.refgraph.written() if n.source is node.source.base]
        return any(hashing.same_key(k, key) for n in handles if n for _, k in n.forced)

    def attr_store(self, obj: Any, name: str, node: Node | None) -> Slot | None:
        d = obj.__dict__ if is_a(obj, types.ModuleType) else instance_dict(obj)
        if d is None or (node is not None and self.written_over(node, name)):
            return None

        def set_attr(v: Any) -> None:
            if node is not None and node.snapshot is not None and node.snapshot.attrs is not None:
                if node.snapshot.attrs.get(name) is d.get(name):
                    node.snapshot.attrs[name] = v
            d[name] = v

        return Slot(lambda: d.get(name), set_attr)

    # -- what the parts below are given by those above ---------------------------------------------------------

    def memory_read(self, site: Any, *values: Any) -> bool:
        raise NotImplementedError

    def escape(self, sym: Sym, site: Any) -> None:
        raise NotImplementedError

    def escape_all(self, site: Any, *trees: Any) -> None:
        raise NotImplementedError

    def is_data(self, value: Any) -> bool:
        raise NotImplementedError

    def data_item(self, site: Any, obj: Any, key: Any) -> bool:
        raise NotImplementedError

    def data_item_written(self, site: Any, obj: Any, key: Any, value: Any) -> bool:
        raise NotImplementedError

    def data_attribute(self, site: Any, obj: Any, name: str) -> bool:
        raise NotImplementedError

    def escape_data(self, value: Any, site: Any) -> None:
        raise NotImplementedError

    def branch_on(self, sym: Sym, outcome: Any, what: str, site: Any) -> None:
        raise NotImplementedError

"""HostCalls: NumPy's functions of numbers that vary, and functions of a list of numbers that the region extends: replay
calls them again. Key type: HostCalls.
"""

from __future__ import annotations

import math
import operator
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from magpy_core._compat.cpython.temporaries import Place, taker_of
from magpy_core.guards import kinds as guard
from magpy_core.monitor.events import MaybeSite, Site
from magpy_core.opgraph.host_calls import BOUNDS, ELEMENT, EXTENDED, INDICES, LISTED, PLACES, SLICED, HostCall, called
from magpy_core.opgraph.scalars import BINARY, COMPARE, UNARY, Sym
from magpy_core.recording.calls.array_values import METHODS
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import folds, kinds, natives
from magpy_core.refgraph.arrays import is_array, owner_of
from magpy_core.refgraph.node import Node

_OF_LISTS = (sum, min, max, sorted, len, math.fsum)
_CONSTANTS = (bool, int, float, str, type(None))
_PARTS = (*kinds.NUMBER_TYPES, bool)
_MOST_PARTS = 64  # of a list that the region makes


class _Unknown(Exception):
    """A value of which nobody knows what it is made of."""


@dataclass
class _Made:
    """A list on the stack. ``taken_at``: the operation that takes it, so that no other code can. ``nodes`` and ``numbers``:
    what it is made of."""

    value: list[Any]
    sym: Sym
    taken_at: Place
    nodes: list[Node]
    numbers: list[Any]


@dataclass
class _Parts:
    """What the arguments of a call are made of. ``plain``: arrays whose numbers do not vary."""

    nodes: list[Node] = field(default_factory=list)
    numbers: list[Any] = field(default_factory=list)
    taken: list[_Made] = field(default_factory=list)
    arrays: list[Any] = field(default_factory=list)
    plain: list[Any] = field(default_factory=list)


def _place(site: Site) -> Place:
    return site.lineno, site.end_lineno, site.col, site.end_col


class HostCalls(Tracker):
    """Their results are symbolic, so that neither the numbers in the list nor their number is guarded."""

    _made: dict[int, _Made] = field(default_factory=dict, init=False)  # by id
    # the subscription whose result comes next: site, function, what its arguments are
    _awaited: tuple[Site, Any, tuple[Any, ...], _Parts] | None = field(default=None, init=False)

    def makes(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether the result of a call that is about to begin will be symbolic."""
        if site is None or not (self.ledger.scalars or self._made or any(map(self._holds_array, args))):
            return False
        parts = _Parts()
        try:
            syms = tuple(self._part(value, site, parts) for value in (*args, *kwargs.values()))
        except _Unknown:
            self._give_back(parts)
            return False
        if not any(isinstance(sym, Sym) and sym.leaves() for sym in syms):
            return False
        self.context.stack.expect(
            lambda result: self._of(site, called(fn, tuple(kwargs)), syms, parts, result), lambda: self._settle(site, parts)
        )
        return True

    def _holds_array(self, value: Any) -> bool:
        """Whether this is an array that varies, or a list or tuple of arrays."""
        if type(value) not in (list, tuple):
            return self.context.array_values.varies(value)
        return 0 < len(value) <= _MOST_PARTS and all(map(is_array, value))

    def makes_of_list(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """The same of a builtin function of one list."""
        if kwargs or len(args) != 1 or type(args[0]) not in (list, deque) or not any(fn is one for one in _OF_LISTS):
            return False
        return (id(args[0]) in self._made or self.refgraph.node(args[0]) is not None) and self.makes(site, fn, args, kwargs)

    def reads_item(self, site: MaybeSite, obj: Any, key: Any) -> bool:
        """Whether an element or a slice of numbers that is about to be read will be symbolic."""
        self._awaited = None
        if self.context.array_values.varies(obj) and site is not None:
            return self._reads_array(site, obj, key)
        if type(obj) not in (list, tuple) or site is None or not (self.ledger.scalars or self._made):
            return False
        if type(key) is slice:
            if taker_of(site.code, _place(site)) is None:
                return False
            fn: Any = SLICED
            keys: tuple[Any, ...] = (key.start, key.stop, key.step)
        elif type(key) is int and -len(obj) <= key < len(obj):
            if id(obj) not in self._made and self.ledger.scalars.get(key) is None:
                return False
            fn, keys = ELEMENT, (key,)
        else:
            return False
        parts = _Parts()
        try:
            held = self._part(obj, site, parts) if id(obj) in self._made else self._outside(obj, site, parts, key)
            self._awaited = site, fn, (held, *(self._part(one, site, parts) for one in keys)), parts
        except _Unknown:
            self._give_back(parts)
            return False
        return True

    def _reads_array(self, site: Site, obj: Any, key: Any) -> bool:
        """The same of an array."""
        parts = _Parts()
        try:
            held, place = self._part(obj, site, parts), self._place(key, site, parts)
        except _Unknown:
            return False
        self._awaited = site, ELEMENT, (held, place), parts
        return True

    def _place(self, key: Any, site: Site, parts: _Parts) -> Any:
        """What is in the brackets."""
        if type(key) is tuple:
            return self.ledger.scalars.call(PLACES, tuple(self._place(one, site, parts) for one in key), key)
        if type(key) is slice:
            bounds = tuple(self._part(one, site, parts) for one in (key.start, key.stop, key.step))
            return self.ledger.scalars.call(BOUNDS, bounds, key)
        if type(key) is list or is_array(key):
            sym = self._part(key, site, parts)
            keeps = is_array(key) and key.dtype.kind in "iu" and self.context.array_values.can_fix(key)
            return self.ledger.scalars.call(INDICES, (sym,), None) if keeps else sym
        if type(key) is not int:
            raise _Unknown
        return self._part(key, site, parts)

    def operates(self, site: Site, fn: Any, operands: tuple[Any, ...]) -> bool:
        """Whether an operator is about to be applied to arrays that vary."""
        self._awaited = None
        if fn is None or not any(map(is_array, operands)):
            return False
        if not any(self.context.array_values.varies(one) or self.ledger.scalars.get(one) is not None for one in operands):
            return False
        parts = _Parts()
        try:
            syms = tuple(self._part(value, site, parts) for value in operands)
        except _Unknown:
            return False
        self._awaited = site, called(fn, ()), syms, parts
        return True

    def operated(self, site: Site, result: Any) -> Any:
        """What the program gets of it."""
        awaited, self._awaited = self._awaited, None
        return result if awaited is None or awaited[0] is not site else self._of(*awaited, result)

    def method(self, site: MaybeSite, array: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a method of an array that varies is about to be called."""
        if name not in METHODS or not self.context.array_values.varies(array):
            return False
        return self.makes(site, getattr(type(array), name), (array, *args), kwargs)

    def _outside(self, obj: Any, site: Site, parts: _Parts, key: Any) -> Sym:
        """A list or tuple from outside: it is extended, or one of its numbers is looked up."""
        node = self.refgraph.node(obj)
        if node is None:
            raise _Unknown
        if node.appended or type(key) is slice:
            return self._of_outside(node, site, parts)
        if node.snapshot is not None or len(obj) > _MOST_PARTS or not all(type(v) in _PARTS for v in obj):
            raise _Unknown
        return self._source(node, obj, site, parts)

    def shows(self, site: Site, array: Any) -> bool:
        """Whether what an attribute of an array shows, which is about to be read, will be symbolic."""
        known = site.name in _ATTRIBUTES and self.context.array_values.sym(array, site) is not None
        return known and (site.name == "T" or not self.context.array_values.has_fixed_shape(array))

    def attr_result(self, site: Site, obj: Any, result: Any) -> Any:
        """What the program gets."""
        if not is_array(obj) or not self.shows(site, obj):
            return result
        whole = self.ledger.scalars.call(_ATTRIBUTES[site.name], (self.context.array_values.sym(obj, site),), None)
        if site.name == "T":
            self.context.array_values.keep(result, whole, (obj,), site)
            return result
        if site.name == "size":
            return self.ledger.scalars.bind(result, whole)
        call, bind = self.ledger.scalars.call, self.ledger.scalars.bind
        return tuple(bind(n, call(ELEMENT, (whole, k), n)) for k, n in enumerate(result))

    def item_result(self, site: Site, obj: Any, key: Any, result: Any) -> Any:
        """What the program gets."""
        awaited, self._awaited = self._awaited, None
        if awaited is None or awaited[0] is not site:
            return result
        return self._of(*awaited, result)

    def takes(self, value: Any) -> bool:
        """Whether this is a list on the stack."""
        return id(value) in self._made

    def settle(self) -> None:
        """At exit: guard what no operation has taken as expected."""
        for made in list(self._made.values()):
            self._settle(None, _Parts(made.nodes, made.numbers))
        self._made.clear()

    # -- what a value is made of ---------------------------------------------------------------------------------------

    def _part(self, value: Any, site: Site, parts: _Parts) -> Any:
        tp = type(value)
        if tp in kinds.NUMBER_TYPES and (sym := self.ledger.scalars.get(value)) is not None:
            parts.numbers.append(value)
            return sym
        if tp in _CONSTANTS or tp in kinds.NUMPY_NUMBERS:
            if tp is str and self.ledger.scalars.get(value) is not None:
                raise _Unknown
            return value
        if (sym := self.context.array_values.sym(value, site)) is not None:
            parts.arrays.append(value)
            return sym
        if tp is type and (value.__module__ == "numpy" or value in (int, float, bool)):
            return value  # a dtype
        if is_array(value) and self.context.arrays.is_plain_array(value):
            parts.plain.append(value)
            return self.ledger.scalars.call(HostCall(value.copy().copy, "array"), (), None)
        if tp not in (list, tuple, deque):
            raise _Unknown
        if (made := self._made.get(id(value))) is not None:
            if made.taken_at != _place(site):
                raise _Unknown
            parts.taken.append(self._made.pop(id(value)))
            parts.nodes += made.nodes
            parts.numbers += made.numbers
            return made.sym
        node = self.refgraph.node(value)
        if node is not None and self._holds_array(value) and node.snapshot is None:
            self.context.contents.read_all(node, site, carry=True)
        elif node is not None:
            return self._of_outside(node, site, parts)
        if tp is deque or len(value) > _MOST_PARTS:
            raise _Unknown
        elements = tuple(self._part(element, site, parts) for element in value)
        return self.ledger.scalars.call(LISTED, elements, list(value))

    def _of_outside(self, node: Node, site: Site, parts: _Parts) -> Sym:
        """A list or deque from outside to which the region has appended numbers."""
        obj, added = node.obj, node.appended
        if type(obj) not in (list, deque) or node.snapshot is None or node.contents_read or not added:
            raise _Unknown
        entry, held = node.snapshot.content, list(natives.elements(obj))
        maxlen = obj.maxlen if type(obj) is deque else None
        now = [*folds.kept(entry, len(added), maxlen), *added][-len(held) :]
        if len(now) != len(held) or not all(map(operator.is_, now, held)) or not all(type(v) in _PARTS for v in held):
            raise _Unknown
        values = self._source(node, entry, site, parts)
        return self.ledger.scalars.call(EXTENDED, (values, maxlen, *(self._part(v, site, parts) for v in added)), held)

    def _source(self, node: Node, entry: Any, site: Site, parts: _Parts) -> Sym:
        """The numbers that it held at entry."""
        source = self.sources.make("numbers", node.source, None)
        self.refgraph.read(source, guard.TYPE, tuple, site)
        parts.nodes.append(node)
        return self.ledger.scalars.source(source, tuple(entry))

    def _give_back(self, parts: _Parts) -> None:
        self._made.update((id(made.value), made) for made in parts.taken)

    # -- the result ----------------------------------------------------------------------------------------------------

    def _of(self, site: Site, fn: Any, syms: tuple[Any, ...], parts: _Parts, result: Any) -> Any:
        if type(result) in kinds.NUMBER_TYPES or type(result) in kinds.BOOLS:
            return self.context.numbers.of_symbols(site, fn, syms, result)
        if any(result is array for array in parts.arrays):
            if result is not parts.arrays[0] or fn.__name__.partition(" ")[0] not in _UNCHANGED:  # `out=`, perhaps
                self._settle(site, parts)
                return result
            same = HostCall(lambda array, *options: fn(array, *options) is array, "is the same array")
            self.context.decisions.decide(self.ledger.scalars.call(same, syms, True), True, "is", site)
            return result
        if any(_shows(result, array) for array in parts.plain):
            self._settle(site, parts)
            return self.context.outside.array_made(result)
        if is_array(result) and not (fn.__name__.startswith(_TO_BE_WRITTEN) and not parts.arrays):
            sym = self.ledger.scalars.call(fn, syms, None)
            grows = parts.nodes or parts.taken  # a list of numbers that the region extends
            keeps = not grows and _keeps_shape(fn, syms, parts)
            self.context.array_values.keep(result, sym, parts.arrays if keeps else None, site)
            return result
        if type(result) is tuple and result and all(map(is_array, result)):
            whole = self.ledger.scalars.call(fn, syms, None)
            for k, array in enumerate(result):
                self.context.array_values.keep(array, self.ledger.scalars.call(ELEMENT, (whole, k), None), None, site)
            return result
        if parts.arrays and type(result) is list and all(self.context.array_values.fix(a, site) for a in parts.arrays):
            if self.context.array_values.listed(result, self.ledger.scalars.call(fn, syms, list(result))):
                return result
        is_list = type(result) is list and not (parts.arrays or parts.plain)
        taken_at = taker_of(site.code, _place(site)) if is_list else None
        if taken_at is None:
            self._settle(site, parts)
            self.context.outside.array_made(result)
            return result
        sym = self.ledger.scalars.call(fn, syms, result)
        self._made[id(result)] = _Made(result, sym, taken_at, parts.nodes, parts.numbers)
        return result

    def _settle(self, site: MaybeSite, parts: _Parts) -> None:
        self.context.numbers.escape_all(site, parts.numbers)
        for array in parts.arrays:
            self.context.arrays.memory_read(site, array)
        for node in parts.nodes:
            self.context.contents.read_all(node, site)


def _shows(result: Any, array: Any) -> bool:
    """Whether a result, or an array in it, shows the memory of ``array``."""
    if type(result) in (list, tuple):
        return any(_shows(one, array) for one in result)
    return is_array(result) and owner_of(result) is owner_of(array)


def _keeps_shape(fn: Any, syms: tuple[Any, ...], parts: _Parts) -> bool:
    """Whether the shape of the result follows from that of the arrays, and from no number, such as an axis."""
    if fn is ELEMENT:
        return not _varies(syms[1])
    return fn in _ELEMENTWISE or (not parts.numbers and fn.__name__.rpartition(".")[2] in _OF_SHAPES)


def _varies(place: Any) -> bool:
    if not isinstance(place, Sym):
        return False
    if place.kind == "call" and place.payload is INDICES:
        return False
    return place.kind != "call" or place.payload not in (PLACES, BOUNDS) or any(map(_varies, place.args))


_ATTRIBUTES = {name: HostCall(operator.attrgetter(name), name) for name in ("T", "shape", "size")}
_OF_SHAPES = ("array", "astype", "concatenate", "copy", "flatten", "hstack", "ravel", "round", "stack", "vstack")
_TO_BE_WRITTEN = ("numpy.zeros", "numpy.ones", "numpy.empty")  # what a program fills itself: its size is guarded instead
_UNCHANGED = ("numpy.asarray", "numpy.asanyarray", "numpy.ascontiguousarray")  # which may return what they are given
_ELEMENTWISE = {called(fn, ()) for fn in (*BINARY.values(), *UNARY.values(), *COMPARE.values())}

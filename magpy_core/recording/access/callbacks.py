"""Callbacks: native code calls its arguments (``sorted`` with a key, ``map``, ``functools.reduce``) without events.

Key type: Callbacks.
"""

from __future__ import annotations

import functools
import gc
import itertools
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import Any, NamedTuple

import torch

from magpy_core._compat.torch.mode_reads import MODE_READS
from magpy_core.findings import HERE
from magpy_core.knowledge import policy
from magpy_core.knowledge.callables import Callback, Reads, entry
from magpy_core.knowledge.modules import Verdict
from magpy_core.monitor.events import MaybeSite
from magpy_core.recording.call_stack import Consumer
from magpy_core.recording.callees import BUILTIN_FUNCTION, DESCRIPTOR, GETTERS, MEMBER
from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds, lookup, natives
from magpy_core.refgraph.kinds import is_a

_NATIVE_CALLABLES = (*BUILTIN_FUNCTION, *DESCRIPTOR, functools.partial, type, *GETTERS)
_MOST_CALLS = 1000  # maximum number of calls of one native callback that are handled one by one
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
_WALKED = (*_VIEWS, range, str, bytes)


def _elements(iterable: Any) -> list[Any] | None:
    """The elements of a built-in container or view, read without running user code; None if unknown."""
    tp = type(iterable)
    if tp not in _WALKED and (kinds.kind_of_type(tp) not in kinds.CONTAINERS or lookup.overrides(tp, "__iter__")):
        return None
    return list(itertools.islice(natives.keys(iterable), _MOST_CALLS + 1))


def _underlying(iterator: Any) -> Iterator[Any]:
    """The containers and generators that native iterators iterate over."""
    todo, seen = [iterator], set[int]()
    while todo:
        value = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if kinds.kind_of(value) in kinds.CONTAINERS or is_a(value, types.GeneratorType):
            yield value
        if is_a(value, types.GeneratorType):
            continue
        if hasattr(type(value), "__next__") or type(value) in (tuple, functools.partial, *_VIEWS):
            todo += gc.get_referents(value)
        elif type(value) in BUILTIN_FUNCTION:  # ``map(values.__getitem__, ...)``
            todo.append(value.__self__)


class _Called(NamedTuple):
    """What a native function calls."""

    fn: Any
    calls: list[tuple[Any, ...]] | None  # the arguments of each call; None: not known in advance
    walked: Iterable[Any]  # what it takes them from


def _with_each(fn: Any, walked: Any, *others: Any) -> _Called:
    """``fn`` is called with each element of ``walked``, and with ``others``."""
    elements = _elements(walked)
    return _Called(fn, None if elements is None else [(e,) for e in (*elements, *others)], (walked,))


def _first_argument(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0] if args else kwargs.get("a", ())  # the functions of `bisect` have names for it


def _key(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Called | None:
    key = kwargs.get("key")
    return None if key is None else _with_each(key, _first_argument(args, kwargs))


def _key_of_all(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Called | None:
    key = kwargs.get("key")
    return None if key is None else _with_each(key, args if len(args) > 1 else _first_argument(args, kwargs))


def _key_of_two(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Called | None:
    key = kwargs.get("key")
    inserted = args[1] if len(args) > 1 else kwargs.get("x")
    return None if key is None else _with_each(key, _first_argument(args, kwargs), inserted)


def _each(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Called | None:
    if not args:
        return None
    lists = [_elements(a) for a in args[1:]]
    known = [elements for elements in lists if elements is not None]
    return _Called(args[0], list(zip(*known, strict=False)) if len(known) == len(lists) else None, args[1:])


def _spread(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Called | None:
    if len(args) != 2:
        return None
    elements = _elements(args[1])
    if elements is None or not all(is_a(e, (tuple, list)) for e in elements):
        return _Called(args[0], None, args[1:])
    return _Called(args[0], [tuple(e) for e in elements], args[1:])


def _factory(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Called | None:
    is_factory = bool(args) and (fn is not iter or len(args) == 2)  # ``iter(container)`` calls nothing
    return _Called(args[0], [()], ()) if is_factory else None


def _first(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Called | None:
    return _Called(args[0], None, args) if args else None


def _second(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Called | None:
    if not args:
        return None
    return _Called(args[1] if len(args) > 1 else kwargs.get("key", kwargs.get("func")), None, args)


_CALLED: dict[Callback | None, Callable[[Any, tuple[Any, ...], dict[str, Any]], _Called | None]] = {
    Callback.KEY: _key,
    Callback.KEY_OF_ALL: _key_of_all,
    Callback.KEY_OF_TWO: _key_of_two,
    Callback.EACH: _each,
    Callback.SPREAD: _spread,
    Callback.FACTORY: _factory,
    Callback.FIRST: _first,
    Callback.SECOND: _second,
}


class Callbacks(Tracker):
    """Calls by native code, handled like calls by the program."""

    consumes: bool = field(default=False, init=False)  # whether native code reads values from generators and functions
    formats: bool = field(default=False, init=False)  # whether it formats those values as text
    last_site: Any = field(default=None, init=False)  # the site of the last native call whose callbacks have been handled
    # whether the program has created iterators that select elements by a function's result
    selects: bool = field(default=False, init=False)

    def guard(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The native function ``fn`` calls its arguments: calls of native callables among them have no events."""
        self.last_site = site
        find = _CALLED.get(entry(fn).calls)
        if find is not None and (found := find(fn, args, kwargs)) is not None:
            self.called(site, *found)

    def called(self, site: MaybeSite, fn: Any, calls: list[tuple[Any, ...]] | None, walked: Iterable[Any]) -> None:
        """Native code calls ``fn`` with the arguments in ``calls`` (None: not known in advance, from ``walked``)."""
        keywords: dict[str, Any] = {}
        before: tuple[Any, ...] = ()
        while is_a(fn, functools.partial):
            before, keywords, fn = (*fn.args, *before), {**fn.keywords, **keywords}, fn.func
        if not is_a(fn, _NATIVE_CALLABLES) or (is_a(fn, type) and kinds.is_heap_type(fn)):
            self._python(site, fn)
            return  # the frames of Python functions are monitored
        if type(fn) is types.BuiltinFunctionType and fn in MODE_READS:
            self._native(site, fn, (), {})
            return
        if policy.verdict(fn) == Verdict.TORCH or is_a(getattr(fn, "__self__", None), torch.Tensor):
            return  # the operator recorder records it
        if calls is not None and len(calls) <= _MOST_CALLS:
            for part in (part for value in walked for part in _underlying(value) if not is_a(part, types.GeneratorType)):
                self.context.arguments.read(site, (part,), {}, 1)  # reads of the elements have no events
            for call in calls:
                self._native(site, fn, (*before, *call), keywords)
            return
        owner = getattr(fn, "__self__", None)
        kind, reads = kinds.kind_of(owner), entry(fn).reads_inside
        self.formats |= reads is Reads.TEXT
        unknown = reads is Reads.ANYTHING and kind != kinds.SCALAR and getattr(fn, "__module__", "") in ("builtins", None)
        if unknown or is_a(fn, GETTERS) or kind in kinds.CONTAINERS or is_a(owner, (*MEMBER, property)):
            text = f"{HERE} calls a C function from C code, so MagPy can't see its arguments."
            hint = "Use a comprehension or a lambda: its reads are observed."
            self.journal.refuse("MP104", text, hint=hint, site=site)
        else:
            self.consumes = True  # `map(int, numbers)` computes with what a generator yields
            if reads is not Reads.NOTHING:
                self.elements_of(site, walked)

    def _python(self, site: MaybeSite, fn: Any) -> None:
        """Native code calls a Python callable: guard the methods of its class that run."""
        if is_a(fn, types.MethodType):
            fn = fn.__func__
        if is_a(fn, types.FunctionType):
            if self.refgraph.node(fn) is not None:
                self.context.functions.guard(fn)
        elif is_a(fn, type):
            self.context.classes.identity_read(fn, site)
            for name in ("__new__", "__init__"):
                self.context.classes.member(fn, name, site)
            self.context.dispatch.constructed_natively(fn)
        else:
            self.context.classes.member(type(fn), "__call__", site)

    def _native(self, site: MaybeSite, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        outermost = not self.context.stack.frames
        if outermost:  # an item read calls a dict's default factory: treat the read as a call
            self.context.stack.enter(site, Consumer.KEEPS)
        call = self.context.stack.frames[-1]
        begun = call.returned
        self.context.dispatch.dispatch(site, fn, args, kwargs)
        self.context.numbers.escape_hidden(site)  # only native code sees the result
        self.context.stack.torch = None
        if fn is vars or call.returned is not begun:
            self.unobservable(site, fn)()
        if call.unobserved is not None:
            call.unobserved()  # the result can't become symbolic, so what it depends on is guarded by value
        call.receive = call.unobserved = None
        if outermost:
            self.context.stack.frames.pop()

    def unobservable(self, site: MaybeSite, fn: Any) -> Callable[[], None]:
        """A function that refuses a call of ``fn``, whose result must be observed, by native code."""
        text = f"{HERE} calls `{policy.shown_name(fn)}` from C code: MagPy can't see its result."
        hint = "Use a comprehension or a lambda: its calls are observed."
        return lambda: self.journal.refuse("MP104", text, hint=hint, site=site)

    def elements_of(self, site: MaybeSite, values: Iterable[Any]) -> None:
        """Native code reads the elements of ``values``: containers, or iterators over containers."""
        for part in itertools.chain.from_iterable(map(_underlying, values)):
            if is_a(part, types.GeneratorType):
                self.consumes = True
            else:
                self.context.arguments.read(site, (part,), {})
                if self.formats:
                    self.context.texts.formatted(part, site)

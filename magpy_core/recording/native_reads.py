"""NativeReads: what native code reads of objects, and calls, without an event of its own.

``operator.attrgetter("a")(p)``, ``"{0.a}".format(p)``, ``case P(a=x)`` and ``copy.copy(p)`` read attributes in C;
``max(d, key=d.get)`` and ``map(log.append, items)`` call a native function from native code. Both are taken here for the
reads and calls they come to. Key type: NativeReads.
"""

from __future__ import annotations

import bisect
import collections
import functools
import gc
import itertools
import operator
import re
import string
import types
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.monitor import policy
from magpy_core.recording.callees import GETTERS
from magpy_core.recording.containers import ContainerEvents
from magpy_core.refgraph import kinds, lookup
from magpy_core.refgraph.fields import instance_dict, odd_dict, slot_names
from magpy_core.refgraph.kinds import is_a

_NATIVE_CALLABLES = (
    types.BuiltinFunctionType, types.MethodWrapperType, types.MethodDescriptorType, types.WrapperDescriptorType,
    types.ClassMethodDescriptorType, functools.partial, type, *GETTERS,
)  # fmt: skip
_MOST_CALLS = 1000  # of one native callback, that are looked at one by one
# Classes that call their first argument with each element of the others; with a tuple's elements; never with known ones.
_FIRST_CALLS = frozenset({map, filter, itertools.filterfalse, itertools.takewhile, itertools.dropwhile})
_BLIND_CALLS = frozenset({functools.reduce, itertools.accumulate, itertools.groupby})
_KEYED = frozenset({sorted, min, max, bisect.bisect_left, bisect.bisect_right, bisect.insort_left, bisect.insort_right})
HIGHER = _FIRST_CALLS | _BLIND_CALLS | _KEYED | {itertools.starmap, iter, collections.defaultdict}
"""Native callables that may call what they are given."""
# Called with whatever it is, these look at nothing from outside that an event or the arguments' guards don't tell of.
_HARMLESS = frozenset({int, float, complex, bool, abs, ord, chr, hex, oct, bin, round, type, callable})
_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType, property)
_TEXTS = frozenset({str, repr, ascii})
# These read what is in a container, and nothing else.
_READS_CONTAINERS = frozenset(
    {len, tuple, list, set, frozenset, dict, sum, min, max, sorted, any, all, enumerate, zip, reversed}
)
_STATE_HOOKS = ("__reduce_ex__", "__reduce__", "__getstate__", "__getnewargs_ex__", "__getnewargs__")
_ITER: dict[int, Any] = {
    kinds.LIST: list.__iter__, kinds.TUPLE: tuple.__iter__, kinds.DEQUE: collections.deque.__iter__,
    kinds.DICT: dict.__iter__, kinds.SET: lambda s: (frozenset if is_a(s, frozenset) else set).__iter__(s),
}  # fmt: skip
_STEP = re.compile(r"\.([^.\[]+)|\[([^\]]*)\]")  # of a field of a format string
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))


def _elements(iterable: Any) -> list[Any] | None:
    """What iterating over a built-in container or view gives, without running anything of the user's; None if unknown."""
    tp = type(iterable)
    if tp in _VIEWS or tp in (range, str, bytes):
        return list(itertools.islice(iterable, _MOST_CALLS + 1))
    kind = kinds.kind_of_type(tp)
    if kind not in kinds.CONTAINERS or is_a(lookup.class_lookup(tp, "__iter__")[0], types.FunctionType):
        return None
    return list(itertools.islice(_ITER[kind](iterable), _MOST_CALLS + 1))


def _behind(iterator: Any) -> Iterator[Any]:
    """The containers that native iterators walk through, and generators among them."""
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
        elif type(value) in (types.BuiltinFunctionType, types.MethodWrapperType):  # ``map(values.__getitem__, ...)``
            todo.append(value.__self__)


class NativeReads(ContainerEvents):
    """Attribute reads and calls made by native code."""

    native_takes = False  # whether native code looks into what generators and functions hand to it
    native_text = False  # whether it makes text of that

    def dispatch_call(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        raise NotImplementedError

    # -- attributes --------------------------------------------------------------------------------------------

    def state_read(self, obj: Any, site: Any) -> None:
        """All attributes of an object are read at once (``object.__reduce_ex__``)."""
        if kinds.kind_of(obj) in (kinds.SCALAR, kinds.IDENTITY, kinds.TENSOR):
            return
        node = self.node_for(obj)
        for name in _STATE_HOOKS:
            self.class_fact(type(obj), name, site)
        if node is None:
            return
        d = instance_dict(obj)
        if d is None and (odd := odd_dict(obj)) is not None:
            self.getset(node, obj, "__dict__", site)
            if (held := self.refgraph.node(odd)) is not None:
                self.contents(held, site)
        if d is not None:
            self.getset(node, obj, "__dict__", site)  # the program may be given this very dict
            names = tuple(dict(d) if node.snapshot is None or node.snapshot.attrs is None else node.snapshot.attrs)
            self.refgraph.read(self.sources.make("dict", node.source, None), guard.KEYS, names, site)
            for name in list(d):
                self.external_attr(node, obj, name, lookup.Found("instance", value=d[name]), site)
        for name in slot_names(type(obj)):
            found = lookup.resolve(obj, name, plain=True)
            if found.where == "slot":
                self.external_attr(node, obj, name, found, site)
        if is_a(obj, BaseException):
            self.value(self.sources.make("field", node.source, "args"), obj.args, site)
            self.read_deep(site, (obj.args,), {})

    def descriptor_read(self, obj: Any, name: str, found: lookup.Found, site: Any) -> None:
        """``obj.name`` is a data descriptor: a property over a getter has no frame."""
        if is_a(found.value, property) and is_a(found.value.fget, GETTERS):
            self.call_getter(site, found.value.fget, (obj,))

    def member_used(self, site: Any, member: Any, name: str, obj: Any) -> None:
        """``C.slot.__get__(obj)``: a slot is used through its descriptor."""
        if is_a(obj, torch.Tensor) or obj is None or name not in ("__get__", "__set__", "__delete__"):
            return
        if lookup.class_lookup(type(obj), member.__name__)[0] is not member:
            self.refuse("MP104", f"{HERE} uses a hidden slot of an object.", site=site)
        elif name == "__get__":
            self.raw_attr(obj, member.__name__, site)
        elif (node := self.writing(obj, site)) is not None:
            node.forced.append(("set_attr", member.__name__))

    def raw_attr(self, obj: Any, name: str, site: Any) -> None:
        raise NotImplementedError

    def printable(self, value: Any) -> bool:
        raise NotImplementedError

    def pickles(self, fn: Any, args: tuple[Any, ...]) -> bool:
        """Whether this is pickle's native code, and it is given objects: whatever state they have would be read."""
        return getattr(fn, "__module__", None) == "_pickle" and not all(map(self.printable, args))

    def call_getter(self, site: Any, fn: Any, args: tuple[Any, ...]) -> None:
        """An ``attrgetter``, ``itemgetter`` or ``methodcaller`` is called."""
        if len(args) != 1:
            return
        obj, (make, given) = args[0], fn.__reduce__()
        keywords: dict[str, Any] = {}
        if is_a(make, functools.partial):  # a methodcaller with keywords
            given, keywords = (*make.args, *given), make.keywords
        if is_a(fn, operator.attrgetter):
            for path in given:
                self._walk(site, obj, [(True, name) for name in path.split(".")])
        elif is_a(fn, operator.itemgetter):
            self.read_deep(site, args, {})
            for key in given:
                self.read_item(obj, key, site)
        else:
            self.read_deep(site, args, {})
            self.read_attr(obj, given[0], site)
            raw, owner = lookup.class_lookup(type(obj), given[0])
            if owner is not None and not is_a(raw, types.FunctionType) and callable(raw):
                self.dispatch_call(site, raw, (obj, *given[1:]), keywords)

    def _walk(self, site: Any, obj: Any, steps: list[tuple[bool, Any]]) -> Any:
        """Native code follows attributes and items one after the other. Gives what it finds, if that is known."""
        for i, (is_attr, key) in enumerate(steps):
            if is_attr:
                self.read_attr(obj, key, site)
                known, obj = self._static(obj, key)
            else:
                self.read_item(obj, key, site)
                known = type(obj) in (dict, list, tuple)
                obj = obj[key] if known else None
            if not known and i + 1 < len(steps):
                self.refuse("MP104", f"{HERE} follows a chain of attributes in native code, past what events can show.",
                            hint="Write the attributes out: `obj.a.b`.", site=site)  # fmt: skip
                return None
        return obj

    @staticmethod
    def _static(obj: Any, name: str) -> tuple[bool, Any]:
        """(whether it is known, the value) of an attribute, without running anything."""
        if is_a(obj, (torch.Tensor, type, types.ModuleType)):
            return False, None
        found = lookup.resolve(obj, name)
        return found.where in ("instance", "slot", "module"), found.value

    def format_fields(self, site: Any, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """``text.format(*args, **kwargs)``: fields may name attributes and items."""
        try:
            for first, steps in _fields(text, itertools.count()):
                if steps:
                    value = self._walk(site, args[first] if type(first) is int else kwargs[first], steps)
                    self.escape_all(site, value)
                    self.read_deep(site, (value,), {})
                    self.text_of(value, site)
        except (ValueError, LookupError, TypeError):
            return  # the program's own call raises the same

    def match_class(self, site: Any, subject: Any, cls: Any, names: Any) -> None:
        """A class pattern: the attributes that it looks at, if the subject is an instance."""
        self.match(site, subject)
        self.class_shape(type(subject), site)
        if type(cls) is type and not issubclass(type(subject), cls):
            return
        positional = getattr(cls, "__match_args__", ()) if kinds.kind_of(subject) not in (kinds.SCALAR, kinds.TENSOR) else ()
        if positional:
            self.read_attr(cls, "__match_args__", site)
            self.read_deep(site, (positional,), {})
        for name in (*positional, *names):
            self.read_attr(subject, name, site)

    def match(self, site: Any, subject: Any) -> None:
        raise NotImplementedError

    def text_of(self, value: Any, site: Any) -> None:
        raise NotImplementedError

    # -- calls from native code --------------------------------------------------------------------------------

    def hands_on(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The native ``fn`` calls what it is given: native callables among that have no events of their own."""
        self.handed_on = site
        if fn in _KEYED:
            if (key := kwargs.get("key")) is not None:
                given = args[0] if len(args) == 1 or fn is sorted else args
                self.native_callback(site, key, _one_by_one(_elements(given)), (given,))
        elif fn in _FIRST_CALLS and args:
            lists = [_elements(a) for a in args[1:]]
            known = all(one is not None for one in lists)
            calls = [tuple(c) for c in zip(*(one or () for one in lists), strict=False)] if known else None
            self.native_callback(site, args[0], calls, args[1:])
        elif fn is itertools.starmap and len(args) == 2:
            each = _elements(args[1])
            known = each is not None and all(is_a(e, (tuple, list)) for e in each)
            self.native_callback(site, args[0], [tuple(e) for e in each or ()] if known else None, args[1:])
        elif fn is iter or fn is collections.defaultdict:
            if args and (fn is not iter or len(args) == 2):
                self.native_callback(site, args[0], [()], ())
        elif fn in _BLIND_CALLS and args:
            index = 0 if fn is functools.reduce else 1
            called = args[index] if len(args) > index else kwargs.get("key", kwargs.get("func"))
            self.native_callback(site, called, None, args)

    def native_callback(self, site: Any, fn: Any, calls: list[tuple[Any, ...]] | None, walked: Iterable[Any]) -> None:
        """Native code calls ``fn`` with ``calls`` (None: with what can't be told beforehand, out of ``walked``)."""
        keywords: dict[str, Any] = {}
        before: tuple[Any, ...] = ()
        while is_a(fn, functools.partial):
            before, keywords, fn = (*fn.args, *before), {**fn.keywords, **keywords}, fn.func
        if not is_a(fn, _NATIVE_CALLABLES) or (is_a(fn, type) and fn.__flags__ & (1 << 9)):
            self.python_callback(site, fn)
            return  # Python: its frames are seen
        if policy.verdict(fn) == policy.TORCH or is_a(getattr(fn, "__self__", None), torch.Tensor):
            return  # the operator recorder sees it
        if calls is not None and len(calls) <= _MOST_CALLS:
            for part in (part for value in walked for part in _behind(value) if not is_a(part, types.GeneratorType)):
                self.read_deep(site, (part,), {}, 1)  # the elements, which no event shows
            for call in calls:
                self._called_natively(site, fn, (*before, *call), keywords)
            return
        owner = getattr(fn, "__self__", None)
        self.native_text = self.native_text or fn in _TEXTS
        if kinds.kind_of(owner) in kinds.CONTAINERS:
            self._any_call(owner, fn.__name__, site)
        elif (
            is_a(fn, GETTERS)
            or is_a(owner, _DESCRIPTORS)
            or (
                fn not in (_READS_CONTAINERS | _HARMLESS | _TEXTS)
                and kinds.kind_of(owner) != kinds.SCALAR
                and getattr(fn, "__module__", "") in ("builtins", None)
            )
        ):
            self.refuse("MP104", f"{HERE} calls native code from native code, on values that no event shows.",
                        hint="Write a comprehension, or a lambda: its reads are seen.", site=site)  # fmt: skip
            return
        if fn not in _HARMLESS:
            self.native_takes = True
            self.read_behind(site, walked)

    def python_callback(self, site: Any, fn: Any) -> None:
        """Native code calls something made in Python, once or often: which methods that starts is said by its class."""
        if is_a(fn, types.MethodType):
            fn = fn.__func__
        if is_a(fn, types.FunctionType):
            if self.refgraph.node(fn) is not None:
                self.function_fact(fn)
        elif is_a(fn, type):
            self.identity_seen(fn, site)
            for name in ("__new__", "__init__"):
                self.class_fact(fn, name, site)
        else:
            self.class_fact(type(fn), "__call__", site)

    def _called_natively(self, site: Any, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.dispatch_call(site, fn, args, kwargs)
        self.escape_hidden(site)  # what it gives is seen by native code alone
        if fn is vars:
            self.refuse("MP104", f"{HERE} calls `vars` from native code, where its result is not seen.", site=site)
        pending, self.pending_call, self.pending_torch = self.pending_call, None, None
        if pending is None:
            return
        # no event will show the result: it can't become a symbol, so what it follows from is guarded as it is
        what, info = pending[1], pending[2]
        if what == "len":
            source, size, _ = info
            self.learned.exact.add(source.path)
            self.refgraph.read(source, guard.EQUAL, size, site)
        elif what in ("next", "draw", "setting", "address"):
            self.refuse("MP104", f"{HERE} calls `{policy.shown_name(fn)}` from native code, where its result is not seen.",
                        hint="Write a comprehension, or a lambda: what it does is seen.", site=site)  # fmt: skip
        elif what not in ("array", "tensor_len", "fast_path"):
            self.escape_all(site, args)

    def _any_call(self, owner: Any, name: str, site: Any) -> None:
        """A method of a container is called with what nobody knows: all of it counts."""
        node = self.node_for(owner)
        if node is None:
            return
        if name not in policy.READ_METHODS and name not in policy.KEYED_READS:
            self.refgraph.snapshot(node)
            self.mark_written(node, site)
        self.contents(node, site)

    def read_behind(self, site: Any, values: Iterable[Any]) -> None:
        """Native code looks into the elements of these: containers, or iterators over containers."""
        for value in values:
            for part in _behind(value):
                if is_a(part, types.GeneratorType):
                    self.native_takes = True
                else:
                    self.read_deep(site, (part,), {})
                    if self.native_text:
                        self.text_of(part, site)


def _fields(text: str, automatic: Iterator[int]) -> Iterator[tuple[Any, list[tuple[bool, Any]]]]:
    """The fields of a format string, those in format specifications too: the argument, and what is looked up in it."""
    for _, field, spec, _ in string.Formatter().parse(text):
        if field is None:
            continue
        first = re.match(r"[^.\[]*", field)[0]  # type: ignore[index]
        steps = [(bool(attr), attr or _key(item)) for attr, item in _STEP.findall(field, len(first))]
        yield _key(first) if first else next(automatic), steps
        if spec:
            yield from _fields(spec, automatic)


def _key(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _one_by_one(elements: list[Any] | None) -> list[tuple[Any, ...]] | None:
    return None if elements is None else [(e,) for e in elements]

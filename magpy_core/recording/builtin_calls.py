"""BuiltinEvents: builtin functions with a meaning of their own (``len``, ``getattr``, ``isinstance``, ``print``, ...)."""

from __future__ import annotations

import _warnings
import abc
import builtins
import collections
import copy
import functools
import gc
import inspect
import sys
import types
from typing import Any, Protocol

import torch

from magpy_core._compat.cpython.class_bodies import Body, class_body
from magpy_core.findings import HERE
from magpy_core.guards import kinds as guard
from magpy_core.monitor import policy
from magpy_core.monitor.record import as_set
from magpy_core.opgraph.scalars import CARRYING
from magpy_core.recording.base import Output
from magpy_core.recording.callees import BUILTIN_FUNCTION
from magpy_core.recording.native_reads import NativeReads
from magpy_core.recording.wording import a_type
from magpy_core.refgraph import kinds, lookup, natives
from magpy_core.refgraph.fields import ABSENT, cell_value, instance_dict, odd_dict
from magpy_core.refgraph.kinds import is_a

_COPY = [f.__code__ for f in vars(copy).values() if is_a(f, types.FunctionType) and f.__module__ == "copy"]
COPYING = frozenset([*_COPY, *(c for code in _COPY for c in code.co_consts if is_a(c, types.CodeType))])
_MOST_COPIED = 12  # containers in one copied tree: each must not be any of the others
_MOST_IN_TEXT = 10_000  # containers in what becomes text
_ITERATORS: dict[int, Any] = {
    kinds.LIST: list.__iter__, kinds.TUPLE: tuple.__iter__, kinds.DEQUE: collections.deque.__iter__,
    kinds.SET: lambda s: (frozenset if is_a(s, frozenset) else set).__iter__(s),
}  # fmt: skip
_PROTOCOL = type(Protocol)
# Whether a class is a protocol that may be asked for, and what its metaclass has found its members to be.
_PROTOCOL_MARKS = ("_is_protocol", "_is_runtime_protocol", "__protocol_attrs__", "__callable_proto_members_only__",
                   "__non_callable_proto_members__")  # fmt: skip
# Classes whose instances are also tensors that carry this mark.
_MARKING: dict[type, str] = {type(torch.nn.Parameter): "_is_param", type(torch.nn.Buffer): "_is_buffer"}
_COPIED = frozenset({list, tuple, dict, set, frozenset, collections.OrderedDict})


def _classes(tree: Any) -> list[type]:
    """The classes in the second argument of ``isinstance``."""
    if is_a(tree, tuple):
        return [cls for part in tree for cls in _classes(part)]
    if is_a(tree, types.UnionType):
        return _classes(tree.__args__)
    return [tree] if is_a(tree, type) else []


def _plain_data(tree: Any, containers: list[Any]) -> bool:
    """Whether a tree is built-in containers of scalars, none of them there twice; ``containers`` gets them."""
    if type(tree) not in _COPIED:
        return kinds.kind_of(tree) == kinds.SCALAR
    if any(tree is known for known in containers) or len(tree) > 1000:
        return False
    containers.append(tree)
    parts = [*tree.keys(), *tree.values()] if is_a(tree, dict) else tree
    return all(_plain_data(part, containers) for part in parts)


class BuiltinEvents(NativeReads):
    """One method per builtin (or a few alike); ``SPECIAL`` names them."""

    def escape_raising(self, fn: Any, numbers: tuple[Any, ...], site: Any) -> None:
        """Arithmetic that raises (a division by zero) decides the program's path: it holds for these very numbers only."""
        try:
            if fn is not None:
                fn(*numbers)
        except Exception:
            self.escape_all(site, numbers)

    def carries(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        return (
            bool(self.scalars)
            and not kwargs
            and all(type(a) in kinds.NUMBER_TYPES for a in args)
            and any(self.scalars.get(a) is not None for a in args)
        )

    def b_len(self, site: Any, fn: Any, args: Any, kwargs: Any) -> None:
        if len(args) != 1:
            return
        if is_a(args[0], torch.Tensor):
            self.pending_call = (site, "tensor_len", ())
            return
        obj = args[0]
        self.memory_read(site, obj)
        if type(obj) is torch.UntypedStorage:
            self.read_attr(obj, "__len__", site)
        if kinds.kind_of(obj) == kinds.OBJECT:
            self.class_fact(type(obj), "__len__", site)
        node = self.node_for(obj)
        if node is not None and node.kind in kinds.CONTAINERS:
            self.pending_len = None
            self.read_len(node, site)
            if self.pending_len is not None:
                self.pending_call = (site, "len", self.pending_len)

    def b_isinstance(self, site: Any, fn: Any, args: Any, kwargs: Any) -> None:
        if args:
            self.read_type(args[0], site)
            self.class_shape(type(args[0]) if fn is isinstance or not is_a(args[0], type) else args[0], site)
            if fn is isinstance and kinds.kind_of(args[0]) == kinds.OBJECT:
                raw, _ = lookup.class_lookup(type(args[0]), "__class__")
                if is_a(raw, property):
                    self.class_fact(type(args[0]), "__class__", site)
            self.read_deep(site, args[1:], {})
            for cls in _classes(args[1:]):
                self.abstract_class(cls, args[0], site)
                if type(cls) in _MARKING and is_a(args[0], torch.Tensor):
                    self.read_attr(args[0], _MARKING[type(cls)], site)

    def abstract_class(self, cls: type, obj: Any, site: Any) -> None:
        """What counts as an instance of an abstract class can be added to; of a protocol, who has the attributes."""
        if is_a(cls, abc.ABCMeta):
            source = self.sources.make("setting", self.const_root(abc.get_cache_token, "abstract classes").source, ())
            self.refgraph.read(source, guard.EQUAL, abc.get_cache_token(), site)
        if not is_a(cls, _PROTOCOL):
            return
        for mark in _PROTOCOL_MARKS:
            self.read_class_attr(cls, mark, site)
        for k in cls.__mro__ if cls.__dict__.get("_is_protocol") else ():
            if k.__dict__.get("_is_protocol"):
                self.class_shape(k, site)
                for name in {**k.__dict__, **inspect.get_annotations(k)}:
                    if not name.startswith(("_abc_", "__")) and name not in _PROTOCOL_MARKS:
                        self.read_attr(obj, name, site)
                        if name in k.__dict__:
                            self.read_class_attr(k, name, site)  # a method that is None there asks for nothing

    def b_getattr(self, site: Any, fn: Any, args: Any, kwargs: Any) -> None:
        if len(args) >= 2 and is_a(args[1], str):
            self.read_attr(args[0], args[1], site)

    def b_setattr(self, site: Any, fn: Any, args: Any, kwargs: Any) -> None:
        if len(args) >= 2 and is_a(args[1], str):
            self.write_attr(args[0], args[1], site, deleted=fn is delattr)

    def import_name(self, site: Any, name: str) -> None:
        raise NotImplementedError

    def b_import(self, site: Any, fn: Any, args: Any, kwargs: Any) -> None:
        given = dict(zip(("name", "globals", "locals", "fromlist", "level"), args, strict=False)) | kwargs
        if is_a(given.get("name"), str) and not given.get("level"):
            self.import_name(site, given["name"])
        else:
            self.host_call(site, fn, policy.UNKNOWN)

    def b_id(self, site: Any, fn: Any, args: Any, kwargs: Any) -> None:
        if len(args) != 1:
            return
        obj = args[0]
        kind = kinds.kind_of(obj)
        if fn is hash and kind in (kinds.SCALAR, kinds.IDENTITY, kinds.TUPLE, kinds.SET):
            self.escape_all(site, obj)
            self.read_deep(site, args, kwargs)
            return
        node = self.refgraph.node(obj)
        if fn is hash and kind == kinds.OBJECT:
            self.operator_facts(obj, site)
            raw, _ = lookup.class_lookup(type(obj), "__hash__")
            if is_a(raw, types.FunctionType):
                self.class_fact(type(obj), "__hash__", site)
                return
        copying = fn is id and self.is_copying(site)
        if node is not None and not copying:
            self.refgraph.read(node.source, guard.IDENTITY, obj, site)
        elif fn is hash or (kind == kinds.SCALAR and not copying):
            self.refuse("MP103", f"{HERE} of an object that the region makes differs at every call.", site=site)
        else:
            if node is not None:
                node.addressed = True
            self.loose_addresses = self.loose_addresses or not copying
            self.pending_call = (site, "address", (obj,))

    def b_repr(self, site: Any, fn: Any, args: Any, kwargs: Any) -> None:
        self.escape_all(site, args, kwargs)
        self.read_deep(site, args, kwargs)
        for a in args:
            self.text_of(a, site)

    def text_of(self, value: Any, site: Any) -> None:
        """Native code makes text of ``value`` and of what is in it: the default repr of an object shows its address."""
        todo: list[Any] = [value]
        seen: set[int] = set()
        while todo and len(seen) < _MOST_IN_TEXT:
            obj = todo.pop()
            kind = kinds.kind_of(obj)
            if is_a(obj, (BaseException, types.SimpleNamespace)) and id(obj) not in seen:
                seen.add(id(obj))
                self.state_read(obj, site)
                if is_a(obj, BaseException):
                    self.names_in_error(obj)
                todo += (shown := obj.args if is_a(obj, BaseException) else tuple(vars(obj).values()))
                self.escape_all(site, shown)
            self.fields_in_text(obj, site)
            if (type(obj).__module__ or "").partition(".")[0] == "numpy":
                self.setting_read(site, numpy_print_options, (), numpy_print_options())
            if type(obj).__flags__ & (1 << 9):  # the default texts have its name
                self.text_of_definition(type(obj), site)
            if kind not in kinds.CONTAINERS:
                self._address_of(obj, site)
            elif id(obj) not in seen and not is_a(lookup.class_lookup(type(obj), "__repr__")[0], types.FunctionType):
                seen.add(id(obj))
                todo += [*dict.keys(obj), *dict.values(obj)] if kind == kinds.DICT else _ITERATORS[kind](obj)

    def _address_of(self, obj: Any, site: Any) -> None:
        self.text_of_definition(obj, site)
        if kinds.kind_of(obj) in (kinds.OBJECT, kinds.OPAQUE):
            raw, _ = lookup.class_lookup(type(obj), "__str__")
            text, _ = lookup.class_lookup(type(obj), "__repr__")
            if raw is object.__str__ and text is object.__repr__:
                node = self.refgraph.node(obj)
                if node is not None:
                    self.refgraph.read(node.source, guard.IDENTITY, obj, site)
                else:
                    self.refuse(
                        "MP103",
                        f"{HERE} turns {a_type(obj)} into text that holds its address, which differs at every call.",
                        hint="Give the class a `__repr__`, or put one of its attributes into the text.",
                        site=site,
                    )

    def b_iterate(self, site: Any, fn: Any, args: Any, kwargs: Any) -> None:
        if fn in CARRYING and self.carries(args, kwargs):
            self.escape_raising(fn, args, site)
            self.pending_call = (site, fn, args)
            return
        self.escape_all(site, args, kwargs)
        if self.scalars and (fn is functools.reduce or callable(kwargs.get("key"))):
            self.escape_hidden(site)  # numbers pass between the callback and native code
        for a in args:
            self.iterate_value(a, site, carry=fn is iter)
            if fn is not iter and kinds.kind_of(a) in kinds.CONTAINERS:
                for v in natives.elements(a):
                    if kinds.kind_of(v) == kinds.OBJECT:
                        self.operator_facts(v, site)
        if fn is not iter:  # it looks at the elements, whatever is in them; of a dict at its keys
            self.read_behind(site, (a for a in args if not is_a(a, dict)))
        self.read_deep(site, (), kwargs)

    def iterate_value(self, obj: Any, site: Any, *, carry: bool = True) -> None:
        raise NotImplementedError

    def b_next(self, site: Any, fn: Any, args: Any, kwargs: Any) -> None:
        if args:
            self.advance(args[0], site)

    def b_build_class(self, site: Any, fn: Any, args: Any, kwargs: Any) -> None:
        """The body of a class statement runs without events: what it takes from outside is guarded before it begins."""
        body = class_body(args[0].__code__)
        if body is None or not self._follows(args[0], body, site):
            self.refuse("MP111", f"The body of the class `{args[1]}` does more than define: the monitor can't follow it.",
                        hint="Define the class outside of the region.", site=site)  # fmt: skip

    def _follows(self, fn: types.FunctionType, body: Body, site: Any) -> bool:
        """Whether all that a class body makes follows from what is guarded now."""
        for name, *attributes in body.chains:
            self.global_value(fn.__globals__, name, site)
            value = fn.__globals__.get(name, getattr(builtins, name, ABSENT))
            for attribute in attributes:
                if not is_a(value, (type, types.ModuleType)):
                    return False
                self.read_attr(value, attribute, site)
                value = getattr(value, attribute, ABSENT)
            if not (body.moves or self._inert(value, site)):
                return False
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        for name in body.outer:
            if name in cells:
                self.cell_read(site, cells[name])
                if not (body.moves or self._inert(cell_value(cells[name]), site)):
                    return False
        return True

    def _inert(self, value: Any, site: Any) -> bool:
        """Whether nothing but guarded values can come of whatever a class body does with it."""
        kind = kinds.kind_of(value)
        if kind == kinds.SCALAR:
            self.escape_all(site, value)
            return True
        if is_a(value, BUILTIN_FUNCTION):
            return policy.verdict(value) in (policy.PURE, policy.TORCH)
        return kind == kinds.IDENTITY or type(value).__module__ == "typing"

    def b_vars(self, site: Any, fn: Any, args: Any, kwargs: Any) -> None:
        if not args:
            return
        obj = args[0]
        if fn is dir:
            self.class_fact(type(obj), "__dir__", site)
        if is_a(obj, types.FunctionType):
            self.read_attr(obj, "__dict__", site)
            if fn is dir and (names := self.function_dict(obj)) is not None:
                self.contents(names, site, values=False)
            return
        node = self.node_for(obj)
        if node is not None and not is_a(obj, (type, types.ModuleType, types.FunctionType)):
            self.getset(node, obj, "__dict__", site)
            table = instance_dict(obj)
            table = odd_dict(obj) if table is None else table
            if fn is dir and table is not None and (names := self.refgraph.node(table)) is not None:
                self.contents(names, site, values=False)
        elif node is not None:
            self.refuse(
                "MP111",
                f"{HERE} takes all of `{obj.__name__}` as one dict, which no guard can watch.",
                site=site,
            )

    def b_print(self, site: Any, fn: Any, args: Any, kwargs: Any) -> None:
        if any(is_a(a, torch.Tensor) for a in args):
            hint = "Print it after the region, or print numbers (`.item()`): those are printed when the graph has run."
            self.refuse(
                "MP102", f"{HERE} puts a tensor's values into text, where the graph can't follow.", hint=hint, site=site
            )
            return
        if any(not self.printable(a) for a in args) or set(kwargs) - {"end", "sep", "flush"}:
            self.refuse("MP113", f"{HERE} prints what replay can't print again the same way.", site=site,
                        hint="Print plain values: numbers, text, and containers of them.")  # fmt: skip
            return
        self.read_deep(site, args, kwargs)
        frozen = {k: self.frozen(v) for k, v in kwargs.items()}
        self.outputs.append(Output("print", (tuple(self.frozen(a) for a in args), frozen), site))
        self.places.remember(None, site)
        self.pause()

    def pause(self) -> None:
        raise NotImplementedError

    def frozen(self, value: Any) -> Any:
        """A printable value as it is now: the program may change its containers later."""
        kind = kinds.kind_of(value)
        if kind not in kinds.CONTAINERS:
            return value
        if kind == kinds.DICT:
            copied = copy.copy(value)
            for k, v in list(value.items()):
                copied[k] = self.frozen(v)
            return copied
        parts = [self.frozen(v) for v in value]
        if kind == kinds.TUPLE:
            return value if type(value) is torch.Size else tuple.__new__(type(value), parts)
        if kind == kinds.DEQUE:
            return collections.deque(parts, value.maxlen)
        return parts if kind == kinds.LIST else type(value)(parts)

    def is_copying(self, site: Any) -> bool:
        """Whether this is ``copy.deepcopy`` itself, whose addresses are keys of its memo: which objects are one is all that
        they tell, and of outside objects that is guarded."""
        return site.code in COPYING

    def copies(self, site: Any, tree: Any) -> bool:
        """``copy.deepcopy`` of plain data, taken as a whole: its frames compare addresses. False for anything else."""
        containers: list[Any] = []
        if not _plain_data(tree, containers) or len(containers) > _MOST_COPIED:
            return False
        self.escape_all(site, tree)
        self.read_deep(site, (tree,), {})
        nodes = [node for c in containers if (node := self.refgraph.node(c)) is not None]
        for i, one in enumerate(nodes):
            for other in nodes[:i]:  # the copy of one object that is there twice is one object too
                self.refgraph.read(one.source, guard.NOT_SAME_AS, other.source, site)
        self.pause()
        return True

    def b_process(self, site: Any, fn: Any, args: Any, kwargs: Any) -> None:
        """A setting of the process that is another one while a call is recorded."""
        self.pending_call = (site, "process", (fn,))

    def process_setting(self, site: Any, fn: Any, result: Any) -> Any:
        """What the program is told: the setting as it is without the recording, which is guarded."""
        result = self.collecting if fn is gc.isenabled else as_set(fn, result)
        self.setting_read(site, fn, (), result)
        return result

    def b_collector(self, site: Any, fn: Any, args: Any, kwargs: Any) -> None:
        self.collecting = fn is gc.enable  # at the recording's end
        self.host_call(site, fn, policy.HOST)

    collecting = True

    def host_call(self, site: Any, fn: Any, what: str) -> None:
        raise NotImplementedError

    def setting_read(self, site: Any, fn: Any, args: tuple[Any, ...], result: Any) -> None:
        raise NotImplementedError

    def printable(self, value: Any) -> bool:
        kind = kinds.kind_of(value)
        if kind in (kinds.SCALAR,):
            return True
        if kind in kinds.CONTAINERS and type(value).__module__ in ("builtins", "collections", "torch"):
            parts = [*value.keys(), *value.values()] if is_a(value, dict) else list(value)
            return all(self.printable(v) for v in parts)
        return False


def numpy_print_options() -> str:
    """How NumPy makes text of numbers."""
    return repr(sys.modules["numpy"].get_printoptions())


SPECIAL: dict[Any, str] = {
    len: "b_len", isinstance: "b_isinstance", issubclass: "b_isinstance", getattr: "b_getattr", hasattr: "b_getattr",
    __import__: "b_import",
    setattr: "b_setattr", delattr: "b_setattr", id: "b_id", hash: "b_id", repr: "b_repr", ascii: "b_repr", format: "b_repr",
    sorted: "b_iterate", sum: "b_iterate", min: "b_iterate", max: "b_iterate", any: "b_iterate", all: "b_iterate",
    iter: "b_iterate", functools.reduce: "b_iterate", next: "b_next", vars: "b_vars", dir: "b_vars", print: "b_print",
    _warnings.warn: "b_warn", builtins.__build_class__: "b_build_class",
    sys.getrecursionlimit: "b_process", sys.getswitchinterval: "b_process", gc.isenabled: "b_process",
    gc.enable: "b_collector", gc.disable: "b_collector",
}  # fmt: skip

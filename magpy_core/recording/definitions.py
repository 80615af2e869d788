"""DefinitionEvents: classes, functions and modules as objects: their attributes, names, bases and metaclasses.

Which class, function or module it is has been fixed by its guard; what it holds may change all the same.
Key type: DefinitionEvents.
"""

from __future__ import annotations

import collections
import functools
import inspect
import types
from typing import Any

import torch

from magpy_core._compat.cpython.native_functions import bound_object
from magpy_core._compat.torch.tensor_guards import no_torch_function
from magpy_core.findings import HERE, Unsupported
from magpy_core.guards import kinds as guard
from magpy_core.monitor.policy import module_of
from magpy_core.opgraph.histories import out_of_reach
from magpy_core.recording.base import Slot
from magpy_core.recording.escapes import EscapeEvents
from magpy_core.recording.wording import a_type
from magpy_core.refgraph import kinds, lookup
from magpy_core.refgraph.fields import ABSENT, instance_dict
from magpy_core.refgraph.graph import Node
from magpy_core.refgraph.kinds import is_a
from magpy_core.refgraph.source import Source

_HEAP_TYPE = 1 << 9
_PLAIN_NAMES = frozenset({"__call__", "__doc__", "__module__", "__name__", "__class__", "__dict__", "__init_subclass__"})
# Metaclasses whose classes are not changed by changing these.
_LIBRARY_METACLASSES = ("abc", "enum", "typing", "torch")
# What C keeps of a class or function, or finds elsewhere than in its ``__dict__``.
_CLASS_NAMES = frozenset({"__name__", "__qualname__"})
_CLASS_TREE = frozenset({"__bases__", "__mro__", "__base__"})
_FUNCTION_TEXTS = frozenset({"__name__", "__qualname__", "__module__", "__doc__"})
_FUNCTION_PARTS = frozenset({"__defaults__", "__code__"})
_FUNCTION_TABLES = frozenset({"__kwdefaults__", "__annotations__"})
WRAPPERS = (property, functools.cached_property, staticmethod, classmethod, type(functools.lru_cache(lambda: None)))
"""Objects around functions that a program may give attributes, or another ``__doc__``."""
_HIDDEN_PARTS = frozenset({"__closure__", "__globals__", "__dict__", "__builtins__"})


def _belongs_elsewhere(raw: Any) -> bool:
    if is_a(raw, (types.BuiltinFunctionType, types.MethodWrapperType)):
        return kinds.kind_of(bound_object(raw)) not in (kinds.IDENTITY, kinds.SCALAR)
    return is_a(raw, (functools.partial, types.MethodType))


class DefinitionEvents(EscapeEvents):
    """Reads of what classes, functions and modules hold."""

    def read_attr(self, obj: Any, name: str, site: Any) -> None:
        raise NotImplementedError

    def class_value(self, source: Any, raw: Any, site: Any) -> None:
        """A class attribute was read: methods by identity, data by value."""
        if is_a(raw, (staticmethod, classmethod)):
            self.refgraph.read(source, guard.IS, raw, site)
            self.function_fact(raw.__func__)
            return
        self.value(source, raw, site)
        self.function_fact(raw)
        self.descriptor_fact(raw, site)

    def descriptor_fact(self, raw: Any, site: Any) -> None:
        """A descriptor of a class of the user's does what that class's methods say."""
        tp = type(raw)
        if tp.__flags__ & (1 << 9) and kinds.kind_of(raw) == kinds.OBJECT:
            self.class_shape(tp, site)  # it may become one
            for name in ("__get__", "__set__", "__delete__"):
                if not lookup.missing(lookup.class_lookup(tp, name)[0]):
                    self.class_fact(tp, name, site)

    def passed_over(self, tp: type, name: str, site: Any) -> None:
        """An object has the attribute itself, and its class has one of that name, which is no data descriptor so far."""
        raw, owner = lookup.class_lookup(tp, name)
        if owner is None or not owner.__flags__ & _HEAP_TYPE or module_of(owner).startswith(lookup.LIBRARIES):
            return
        root = self.const_root(owner)
        if root.snapshot is None or root.snapshot.attr(name) is raw:
            self.refgraph.read(self.sources.attr(root.source, name), guard.TYPE, type(raw), site)
            self.descriptor_fact(raw, site)

    def code_known(self, code: types.CodeType) -> None:
        """The code of a function that is called. That of a module (``FunctionType(compile(...), names)``) runs without a
        clone: it keeps its variables in a dict, which the monitor does not see."""
        self.known_codes.add(code)
        if not code.co_flags & inspect.CO_OPTIMIZED and not self.broken:
            text = f"A function made of the code of a module, `{code.co_name}`, runs in a way the monitor can't follow."
            self.refuse("MP111", text, hint="Put the code into a `def`.")

    def code_constants(self) -> dict[int, Any]:
        """The tuples and frozen sets that the code of functions holds: the same object at every call. By id."""
        waiting: list[Any] = [constant for code in self.known_codes for constant in code.co_consts]
        found: dict[int, Any] = {}
        while waiting:
            constant = waiting.pop()
            if type(constant) in (tuple, frozenset) and id(constant) not in found:
                found[id(constant)] = constant
                waiting += constant
        return found

    # -- classes -----------------------------------------------------------------------------------------------

    def identity_seen(self, obj: Any, site: Any) -> None:
        """What is guarded by its identity was read. Of a class, the methods of a metaclass of the program's decide what
        anything with it does; a container's bound method leads to the container."""
        if not is_a(obj, type):
            owner = bound_object(obj)
            if kinds.kind_of(owner) not in (kinds.IDENTITY, kinds.SCALAR):
                self.value(self.sources.const(owner, obj.__name__), owner, site)
            return
        meta: Any = type(obj)
        if meta in self._metaclasses or module_of(meta).partition(".")[0] in (*_LIBRARY_METACLASSES, "builtins"):
            return
        self._metaclasses.add(meta)
        self.class_shape(meta, site)
        for k in meta.__mro__:
            if k.__flags__ & _HEAP_TYPE and module_of(k).partition(".")[0] not in _LIBRARY_METACLASSES:
                for name, raw in list(k.__dict__.items()):
                    if kinds.kind_of(raw) == kinds.IDENTITY:
                        self.refgraph.read(self.sources.attr(self.const_root(k).source, name), guard.IS, raw, site)
                        self.function_fact(raw)

    _metaclasses: set[type]

    def not_overridden(self, tp: type, name: str, owner: type | None, site: Any) -> None:
        """A class of a library, whose names aren't compared, inherits this one: it must not get one of its own."""
        for k in tp.__mro__[: tp.__mro__.index(owner)] if owner is not None else ():
            if k.__flags__ & _HEAP_TYPE and module_of(k).startswith(lookup.LIBRARIES):
                table = self.sources.make("dict", self.const_root(k).source, None)
                self.refgraph.read(self.sources.item(table, name), guard.ABSENT, None, site)

    def read_class_attr(self, cls: type, name: str, site: Any) -> None:
        raw, owner = lookup.class_lookup(cls, name)
        above, above_owner = lookup.class_lookup(type(cls), name)
        if above_owner is type and cls.__flags__ & _HEAP_TYPE:
            self.read_class_field(cls, name, site)
        elif above_owner is not None and above_owner.__flags__ & _HEAP_TYPE:
            self.class_fact(type(cls), name, site)
            if owner is None:
                self.class_value(self.sources.attr(self.const_root(above_owner).source, name), above, site)
        self.class_shape(cls, site)
        if owner is None:
            if lookup.class_lookup(type(cls), "__getattr__")[1] is not None:
                self.class_fact(type(cls), "__getattr__", site)
            return
        if owner.__flags__ & _HEAP_TYPE and name not in ("__dict__", "__weakref__"):
            root = self.const_root(owner)
            if root.snapshot is not None and root.snapshot.attr(name) is not raw:
                return
            self.class_value(self.sources.attr(root.source, name), raw, site)

    def read_class_field(self, cls: type, name: str, site: Any) -> None:
        """What ``type`` itself answers: names by value, the tuples of bases by identity, the namespace entry by entry."""
        source = self.const_root(cls).source
        if name in _CLASS_NAMES:
            self.refgraph.read(self.sources.make("field", source, name), guard.EQUAL, type.__getattribute__(cls, name), site)
        elif name in _CLASS_TREE:
            self.refgraph.read(self.sources.make("field", source, name), guard.IS, type.__getattribute__(cls, name), site)
        elif name == "__dict__":
            self.class_shape(cls, site)
            for key, raw in list(cls.__dict__.items()):
                if key not in ("__dict__", "__weakref__"):
                    self.class_value(self.sources.attr(source, key), raw, site)

    def value(
        self, source: Source, value: Any, site: Any, store: Slot | None = None, *, handed: bool = False, exact: bool = False
    ) -> Any:
        tp = value if is_a(value, type) else type(value)
        if tp.__flags__ & _HEAP_TYPE and tp not in self._types:
            self.type_seen(tp, site)
        return super().value(source, value, site, store, handed=handed, exact=exact)

    def type_seen(self, tp: type, site: Any) -> None:
        """An object of this class is used. A special method that belongs to another object (``__len__ = entries.__len__``)
        is called by the interpreter where no event shows it."""
        self._types.add(tp)
        for k in tp.__mro__:
            if k.__flags__ & _HEAP_TYPE and not module_of(k).startswith(lookup.LIBRARIES):
                for name, raw in list(k.__dict__.items()):
                    if name[:2] == "__" and name not in _PLAIN_NAMES and _belongs_elsewhere(raw):
                        text = f"`{name}` of the class `{k.__name__}` belongs to another object, which no guard watches."
                        self.refuse("MP111", text, hint="Write it as a method that calls the other object's.", site=site)

    _types: set[type]

    def class_shape(self, tp: type, site: Any) -> None:
        """``tp`` has the same bases, with the same names in them (a descriptor could shadow an instance)."""
        if tp in self.class_checked:
            return
        self.class_checked.add(tp)
        self.type_seen(tp, site)
        if tp.__flags__ & _HEAP_TYPE and not module_of(tp).startswith(lookup.LIBRARIES):
            tree = self.sources.make("field", self.const_root(tp).source, "__mro__")
            self.refgraph.read(tree, guard.IS, type.__getattribute__(tp, "__mro__"), site)
        for k in tp.__mro__:
            if k.__flags__ & _HEAP_TYPE and not module_of(k).startswith(lookup.LIBRARIES):
                root = self.const_root(k).source
                self.refgraph.read(self.sources.make("dict", root, None), guard.NAMES, frozenset(k.__dict__), site)

    def tensor_class(self, tp: type, site: Any) -> None:
        """A name that a class below ``torch.Tensor`` gets would be found before torch's own: a method, ``shape``."""
        if tp in self._tensor_classes:
            return
        self._tensor_classes.add(tp)
        for k in tp.__mro__[: tp.__mro__.index(torch.Tensor)]:
            names = self.sources.make("dict", self.const_root(k).source, None)
            self.refgraph.read(names, guard.NAMES, frozenset(k.__dict__), site)
        if not module_of(tp).startswith(lookup.LIBRARIES):
            tree = self.sources.make("field", self.const_root(tp).source, "__mro__")
            self.refgraph.read(tree, guard.IS, type.__getattribute__(tp, "__mro__"), site)

    _tensor_classes: set[type]

    def hooks_out_of_reach(self) -> None:
        """Compiled, a backward pass calls hooks of every input in autograd: with None where no gradient goes. One inside the
        region (``torch.autograd.grad``) calls none."""
        if not torch.is_grad_enabled():
            return
        inputs = {id(tensor): (tensor, source) for _, source, tensor in self.ops.inputs}
        with no_torch_function():
            if any(node.target is torch.autograd.grad for node in self.ops.graph.nodes):
                apart = [t for t, _ in inputs.values() if t.requires_grad]
            else:
                apart = out_of_reach([t for t, _ in inputs.values()], [t for t, _ in self.ops.values.values()])
            for tensor in apart:
                source = inputs[id(tensor)][1]
                if tensor._backward_hooks is None:
                    self.value(self.sources.make("field", source, "_backward_hooks"), None, self.site)
                else:
                    text = f"`{source.describe()}` has hooks, which a compiled backward pass calls otherwise."
                    self.ops.eager_only.append(("MP902", text, self.site))

    def operator_facts(self, obj: Any, site: Any) -> None:
        """Any special method of the object's class may run: they must stay the ones they are."""
        tp = type(obj)
        if tp is types.MethodType and (node := self.refgraph.node(obj)) is not None:
            # equal methods are those of one object
            self.refgraph.read(self.sources.make("field", node.source, "__self__"), guard.IS, obj.__self__, site)
        self.class_shape(tp, site)
        if tp in self._special_read:
            return
        self._special_read.add(tp)
        for k in tp.__mro__:
            if k.__flags__ & (1 << 9) and not module_of(k).startswith("torch."):
                for name, value in list(k.__dict__.items()):
                    if name.startswith("__") and type(value) is types.FunctionType:
                        self.refgraph.read(self.sources.attr(self.const_root(k).source, name), guard.IS, value, site)
                        self.function_fact(value)

    _special_read: set[type]

    def operands(self, site: Any, *values: Any) -> None:
        """Beside a tensor, or given to torch: an object's class may have, or get, a method that decides what happens."""
        for value in values:
            if kinds.kind_of(value) == kinds.OBJECT and not module_of(type(value)).startswith("torch"):
                self.operator_facts(value, site)

    def torch_called(self, site: Any, fn: Any, args: tuple[Any, ...]) -> None:
        """The operator recorder is about to see a call of torch's."""
        self.operands(site, *args)
        self.pending_torch = (site, fn)

    alone = False
    """Whether the call that is one node keeps what no mode sees: it may not be made once more, on fake tensors."""

    def torch_called_inside(self, fn: Any) -> None:
        """The same inside of what is one node, which calls it again."""
        self.pending_torch = None
        if is_a(getattr(fn, "__self__", None), torch.Generator):
            self.alone = True

    def text_of_definition(self, obj: Any, site: Any) -> None:
        """Native code makes text of a class or function: it has its name in it."""
        if is_a(obj, type) and obj.__flags__ & _HEAP_TYPE:
            for name in _CLASS_NAMES:
                self.read_class_field(obj, name, site)
            self.read_class_attr(obj, "__module__", site)
        elif is_a(obj, types.FunctionType):
            self.read_function_attr(obj, "__qualname__", site)

    def read_wrapper_attr(self, obj: Any, name: str, site: Any) -> None:
        """An attribute of a property or of a function's wrapper written in C."""
        root = self.const_root(obj).source
        value = getattr(obj, name, ABSENT)
        if value is not ABSENT:
            if not is_a(value, (types.BuiltinFunctionType, types.MethodType, types.MethodWrapperType, dict)):
                self.value(self.sources.make("field", root, name), value, site)
        elif instance_dict(obj) is not None:
            self.refgraph.read(self.sources.item(self.sources.make("dict", root, None), name), guard.ABSENT, None, site)

    def fields_in_text(self, obj: Any, site: Any) -> None:
        """What native code puts into the text of ``obj`` besides its contents: fields, what a dict makes, names."""
        if is_a(obj, BaseException):
            native = [k for k in type(obj).__mro__ if not k.__flags__ & _HEAP_TYPE and k not in BaseException.__mro__]
            for name in {n for k in native for n, raw in vars(k).items() if is_a(raw, types.MemberDescriptorType)}:
                self.read_attr(obj, name, site)
        elif is_a(obj, collections.defaultdict):
            self.read_attr(obj, "default_factory", site)
        elif is_a(obj, types.ModuleType):
            for name in ("__spec__", "__name__", "__file__"):
                self.read_module_global(obj, name, site)
        elif type(obj) is types.CellType or type(obj).__module__ == "_thread":
            self.refuse("MP103", f"{HERE} turns {a_type(obj)} into text that holds an address.", site=site)

    def names_in_error(self, error: BaseException) -> None:
        """What native code raises has names of classes and functions in its text, which the program may change."""
        text = " ".join(a for a in BaseException.args.__get__(error) if type(a) is str)  # type: ignore[attr-defined]
        if not text:
            return
        seen = [node.obj for node in self.refgraph.nodes.values()]
        for obj in seen:
            if is_a(obj, torch.Tensor) and type(obj).__name__ in text:
                self.ops.guard_tensor(obj)  # its type is a part of its guard
        for cls in {c for obj in seen for c in (type(obj), obj) if is_a(c, type) and c.__flags__ & _HEAP_TYPE}:
            if type.__getattribute__(cls, "__name__") in text:
                for name in _CLASS_NAMES:
                    self.read_class_field(cls, name, None)
        for module in [obj for obj in seen if type(obj) is types.ModuleType and repr(vars(obj).get("__name__")) in text]:
            self.read_module_global(module, "__name__", None)
        for fn in {id(obj): obj for obj in seen if type(obj) is types.FunctionType}.values():
            if fn.__qualname__ in text:
                self.read_function_attr(fn, "__qualname__", None)

    # -- functions ---------------------------------------------------------------------------------------------

    def read_function_attr(self, fn: Any, name: str, site: Any) -> None:
        if name == "__dict__":
            self.function_dict(fn)  # what is read of it is seen
        elif name in _HIDDEN_PARTS:
            text = f"`{name}` of a function is read; the monitor can't watch what is reached through it."
            self.only_inside.setdefault(id(fn), (fn, Unsupported("MP111", text), site))
        elif not lookup.missing(lookup.class_lookup(types.FunctionType, name)[0]):
            if (node := self.refgraph.node(fn)) is not None and id(fn) not in self.only_inside:
                self.read_function_field(fn, node, name, site)
        elif (table := self.function_dict(fn)) is not None:
            now = fn.__dict__.get(name, ABSENT)
            if table.snapshot is not None and dict(table.snapshot.content).get(name, ABSENT) is not now:
                return
            if now is ABSENT:
                self.refgraph.read(self.sources.item(table.source, name), guard.ABSENT, None, site)
            else:
                self.value(self.sources.attr(self.const_root(fn).source, name), now, site, self.item_store(table, name))

    def function_dict(self, fn: Any) -> Node | None:
        """The node of the attributes of a function from outside; None for one that the region made."""
        known = self._functions.get(id(fn))
        if known is None:
            self._young = None
            known = self._functions[id(fn)] = (fn, bool(self.is_young(fn)))
        if known[1]:
            return None
        return self.refgraph.add(fn.__dict__, self.sources.make("dict", self.const_root(fn).source, None))

    _functions: dict[int, tuple[Any, bool]]  # whose attributes were looked at, by id, and whether the region made them
    _young: set[int] | None

    def is_young(self, obj: Any) -> bool | None:
        raise NotImplementedError

    def missing_arguments(self, site: Any, fn: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """That there is no default for an argument which the call leaves out decides that it raises."""
        code, defaults, named = fn.__code__, fn.__defaults__ or (), fn.__kwdefaults__ or {}
        positional = code.co_varnames[len(args) : code.co_argcount - len(defaults)]
        by_name = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        if all(n in kwargs for n in positional) and all(n in kwargs or n in named for n in by_name):
            return
        source = self.const_root(fn).source
        for name in ("__defaults__", "__kwdefaults__"):
            self.refgraph.read(self.sources.make("field", source, name), guard.IS, getattr(fn, name), site)

    def read_function_field(self, fn: Any, node: Node, name: str, site: Any) -> None:
        source = self.sources.make("field", node.source, name)
        if name in _FUNCTION_TEXTS:
            self.refgraph.read(source, guard.EQUAL, getattr(fn, name), site)
        elif name in _FUNCTION_PARTS:
            self.refgraph.read(source, guard.IS, getattr(fn, name), site)
            self.value(source, getattr(fn, name), site)  # the program may look into the defaults
        elif name in _FUNCTION_TABLES:
            self.value(source, getattr(fn, name), site)
        else:
            table = self.sources.make("dict", node.source, None)
            self.refgraph.read(self.sources.item(table, name), guard.ABSENT, None, site)

    # -- modules -----------------------------------------------------------------------------------------------

    def read_module_global(self, module: types.ModuleType, name: str, site: Any) -> None:
        d = module.__dict__
        if name == "__dict__":
            self.globals_root(d)
            return
        root, written = self.const_root(module, module.__name__), self.refgraph.node(d)
        if written is not None and written.snapshot is not None:  # as functions of the module's write it, too
            if written.snapshot.entry(name) is not d.get(name, ABSENT):
                return
        if name in d:
            self.value(self.sources.attr(root.source, name), d[name], site, None)
            self.function_fact(d[name])
            return
        table = self.sources.make("dict", root.source, None)
        self.refgraph.read(self.sources.item(table, name), guard.ABSENT, None, site)
        if lookup.class_lookup(type(module), name)[1] is not None:
            self.class_fact(type(module), name, site)
        elif name != "__getattr__":
            self.read_module_global(module, "__getattr__", site)  # what is asked for names that are not there

    def globals_root(self, g: dict[str, Any]) -> Node:
        node = self.refgraph.node(g)
        if node is None:
            node = self.refgraph.add(g, self.sources.const(g, f"globals of {g.get('__name__', '?')}"))
        return node

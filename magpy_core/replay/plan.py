"""Planner: the difference between entry and exit becomes a replay plan. Key type: Planner.

Values that replay can't rebuild raise Unsupported(MP110); nothing is approximated.
"""

from __future__ import annotations

import collections
import re
import types
from collections.abc import Callable, Iterable
from typing import Any

import torch

from magpy_core.findings import Unsupported
from magpy_core.guards import kinds as guard
from magpy_core.knowledge.objects import CALLED_WITH_FIELDS, NATIVE_FIELDS
from magpy_core.opgraph.operator_graph import OperatorGraph
from magpy_core.opgraph.scalars import ScalarTable, Sym
from magpy_core.refgraph import kinds, natives
from magpy_core.refgraph.arrays import is_array
from magpy_core.refgraph.fields import ABSENT, instance_dict, slot_names, slot_value
from magpy_core.refgraph.graph import RefGraph
from magpy_core.refgraph.hashing import keys_have_pure_hash
from magpy_core.refgraph.iterators import is_iterator, remaining, sequence_of
from magpy_core.refgraph.lookup import MODULE_TABLES
from magpy_core.refgraph.node import Node
from magpy_core.refgraph.snapshot import Change, slot_name
from magpy_core.refgraph.source import Source
from magpy_core.replay.ir import Build, Const, Effect, Expr, GraphValue, MadeInside, Outside, Plan, Scalar

# Types whose objects a call rebuilds from these attributes.
_CALLS = {tp: NATIVE_FIELDS[tp] for tp in CALLED_WITH_FIELDS}
_OUTPUTS = {"print": "print", "warn": "a warning", "log": "a log record", "write": "a line of a file"}
_NOUNS = {type: "class", types.FunctionType: "function"}
_IMPURE_KEYS = (
    "The keys of a dict or set written here have a Python `__hash__` or `__eq__`: compiled code can't repeat the write "
    "without running that code again."
)
_MADE_OUTSIDE = "Create it once, outside the region, or return the plain data that it is made of."
_SLOTS = frozenset({"attr", "cell", "dict_item", "item", "list_item", "slot"})
# Guarded by identity, but a rebuilt instance is equivalent.
_EQUIVALENT_IF_REBUILT = (types.GenericAlias, types.UnionType, re.Pattern, types.CodeType)


def _not_rebuildable(what: str) -> str:
    return f"{what} created in the region leaves it, but compiled code can't create one."


def _instead(tp: type) -> str:
    """What to do about an object of a type that replay can't rebuild."""
    if "__next__" in vars(tp):
        return "Return a list: `list(values)`, or `[f(x) for x in values]` for a generator."
    if str(tp.__module__).startswith("numpy"):
        return "Return the tensor, and convert it after the call of the region."
    return _MADE_OUTSIDE


class Planner:
    """Builds the plan of one recording. ``is_internal(obj)``: whether the region created the object (None: unknown)."""

    def __init__(
        self, refgraph: RefGraph, ops: OperatorGraph, scalars: ScalarTable, is_internal: Callable[[Any], bool | None]
    ) -> None:
        self.refgraph = refgraph
        self.ops = ops
        self.scalars = scalars
        self.is_internal = is_internal
        self._built: dict[int, tuple[Any, Build]] = {}
        self._open: set[int] = set()  # immutable values being built; their items must not refer back to them
        self.array_writes: list[tuple[Any, tuple[Any, ...], Any, Any]] = []  # array, place, number, site
        self.context_writes: list[tuple[Any, Any, Any]] = []  # context variable, value, site
        self.constants: dict[int, Any] = {}  # tuples and frozen sets that are constants of code
        self.outputs: dict[torch.fx.Node, None] = {}
        self.error_leaves: Callable[[BaseException], None] = lambda error: None  # may raise a more specific refusal
        self.array_leaves: Callable[[Any], Sym | None] = lambda array: None  # what computes it; may raise the same
        self.change_found: Callable[[Node, Change], None] = lambda node, change: None  # called for each difference

    # -- values ------------------------------------------------------------------------------------------------

    def expression(self, value: Any) -> Expr:
        """The expression by which replay obtains ``value``."""
        if type(value) in kinds.NUMBER_TYPES or type(value) is str:
            sym = self.scalars.get(value)
            if sym is not None:
                self.outputs |= dict.fromkeys(leaf.payload for leaf in sym.leaves() if leaf.is_of_graph)
                return Scalar(sym)
        kind = kinds.kind_of(value)
        if kind == kinds.SCALAR or kinds.is_numpy_value(type(value)):
            return Const(value)
        if kind == kinds.TENSOR:
            return self.tensor(value)
        node = self.refgraph.node(value)
        if kind == kinds.IDENTITY:
            if not isinstance(value, _EQUIVALENT_IF_REBUILT) and self.is_internal(value):
                what = next((noun for tp, noun in _NOUNS.items() if isinstance(value, tp)), "object")
                name = getattr(value, "__qualname__", type(value).__name__)
                hint = f"Define the {what} once, outside the region." if what != "object" else _MADE_OUTSIDE
                raise MadeInside("MP110", _not_rebuildable(f"The {what} `{name}`"), hint=hint)
            return Const(value)
        if node is not None:
            return Outside(node.source)
        if id(value) in self.constants:
            return Const(value)
        found = self._built.get(id(value))
        if found is not None:
            if id(value) in self._open:
                text = f"A `{type(value).__name__}` that contains itself leaves the region."
                raise Unsupported("MP110", text, hint="Let the inner one hold a name or an index of the outer one.")
            return found[1]
        if self.is_internal(value) is False:
            text = f"A `{type(value).__name__}` leaves the region, but the monitor doesn't know its access path."
            raise Unsupported("MP111", text, hint="Pass it to the region, or keep it in an attribute of the module.")
        if is_array(value) and (computed := self.array_leaves(value)) is not None:
            return Scalar(computed)
        if isinstance(value, BaseException):
            self.error_leaves(value)
        frozen = kind == kinds.TUPLE or type(value) in _CALLS or isinstance(value, frozenset)
        if frozen:
            self._open.add(id(value))
        built = self.build(value, kind)
        if frozen:
            self._open.discard(id(value))
        return built

    def tensor(self, value: torch.Tensor) -> Expr:
        node = self.refgraph.node(value)
        if node is not None:
            return Outside(node.source)
        found = self.ops.values.node(value)
        if found is None:
            raise Unsupported("MP105", "A tensor that leaves the region was created by an operation that was not recorded.")
        if type(value) not in (torch.Tensor, torch.nn.Parameter):
            hint = "Return a plain tensor: `x.as_subclass(torch.Tensor)`."
            raise Unsupported("MP110", _not_rebuildable(f"A `{type(value).__name__}`"), hint=hint)
        self.outputs.setdefault(found)
        return GraphValue(found)

    def build(self, value: Any, kind: int) -> Build:
        tp = type(value)
        build = Build("object", tp)
        self._built[id(value)] = (value, build)
        if kind == kinds.TUPLE:
            build.how = "tuple"
            build.items = [self.expression(v) for v in value]
            build.attrs = self._attrs(value)
            return build
        if tp in _CALLS:
            build.how = "call"
            build.items = [self.expression(getattr(value, name)) for name in _CALLS[tp]]
            return build
        if is_iterator(value) and (iterated := self._iterated(value)) is not None:
            build.how, build.extra = "iterator", iterated[1]
            build.items = [self.expression(iterated[0])]
            return build
        base = kinds.layout_base(tp) if kinds.is_heap_type(tp) else tp
        if tp is types.SimpleNamespace:
            base = object
        if base is None or kind == kinds.OPAQUE or str(tp.__module__).startswith(("_io", "numpy")):
            raise Unsupported("MP110", _not_rebuildable(f"A `{tp.__name__}`"), hint=_instead(tp))
        slots = {name: slot_value(value, name) for name in slot_names(tp)}
        build.slots = [(name, self.expression(held)) for name, held in slots.items() if held is not ABSENT]
        if kind in (kinds.DICT, kinds.SET) and not keys_have_pure_hash(value):
            raise Unsupported("MP110", _IMPURE_KEYS, hint="Use strings, numbers or tuples of them as keys.")
        if kind == kinds.DICT:
            build.how = "dict"
            build.items = [(self.expression(k), self.expression(v)) for k, v in natives.entries(value)]
            if isinstance(value, collections.defaultdict):
                build.extra = self.expression(value.default_factory)
        elif kind in (kinds.LIST, kinds.SET, kinds.DEQUE):
            build.how = "frozenset" if isinstance(value, frozenset) else kinds.NAMES[kind]
            build.items = [self.expression(v) for v in natives.elements(value)]
            build.extra = value.maxlen if kind == kinds.DEQUE else None
        elif base is not object:
            raise Unsupported("MP110", _not_rebuildable(f"A `{tp.__name__}`"), hint=_instead(tp))
        build.attrs = self._attrs(value)
        return build

    def _iterated(self, iterator: Any) -> tuple[Any, int] | None:
        """The list from outside that an iterator of the region goes over, and how many elements it has returned."""
        if type(iterator) is not type(iter([])):
            return None
        try:
            sequence = sequence_of(iterator)
        except LookupError:
            return None
        known = self.refgraph.node(sequence) is not None
        return (sequence, len(sequence) - remaining(iterator)) if known else None

    def _attrs(self, value: Any) -> list[tuple[str, Any]]:
        return [(k, self.expression(v)) for k, v in (instance_dict(value) or {}).items()]

    # -- effects -----------------------------------------------------------------------------------------------

    def effects(self, contents: Callable[[Node], None]) -> list[Effect]:
        """The effects on all written nodes; ``contents(node)`` guards the contents at entry if an effect needs them."""
        out: list[Effect] = []
        reads = (r.source for r in self.refgraph.reads if r.source.base is not None and r.kind is not guard.ABSENT)
        read = {_place(source): source for source in reads}
        self._merge_namespace_writes(contents)
        for node in list(self.refgraph.written()):
            assert node.snapshot is not None
            if node.source.kind == "dict" and not _is_namespace_of_function(node):
                continue  # an object's own __dict__: the object's node has the same changes
            if not node.snapshot.can_probe_unobserved(node.forced):
                raise Unsupported("MP110", _IMPURE_KEYS, hint="Use strings, numbers or tuples of them as keys.")
            for change in node.snapshot.changes(node.forced):
                self.change_found(node, change)
                if self._writes_back_its_source(node, change):
                    continue
                if change.needs_contents:
                    contents(node)
                effect = self.effect(node, change)
                effect.replaced = read.get((id(node.source), slot_name(change.key)))
                out.append(effect)
        return out

    def _merge_namespace_writes(self, contents: Callable[[Node], None]) -> None:
        """Treats writes to an object's ``__dict__`` as writes to the object, even if they changed nothing."""
        written = list(self.refgraph.written())
        owners = {id(node.source): node for node in written}
        for node in written:
            owner = owners.get(id(node.source.base)) if node.source.kind == "dict" else None
            if owner is None:
                continue
            attributes = {"set_item": "set_attr", "maybe_item": "set_attr", "del_item": "del_attr"}
            owner.forced += [(attributes[op], k) for op, k in node.forced if op in attributes and type(k) is str]
            if any(op not in attributes for op, _ in node.forced):
                contents(node)

    def _writes_back_its_source(self, node: Node, change: Change) -> bool:
        """Whether a value is written back to where it was read from, which is not an effect."""
        if change.op not in ("set_attr", "set_item") or type(change.value) not in kinds.NUMBER_TYPES:
            return False
        sym = self.scalars.get(change.value)
        if sym is None or sym.kind != "source":
            return False
        source = sym.payload
        return source.base is node.source and source.key == change.key

    def effect(self, node: Node, change: Change) -> Effect:
        value: Any
        if change.op == "replace" and node.kind == kinds.DICT:
            value = [(self.expression(k), self.expression(v)) for k, v in change.value]
        elif change.op in ("extend", "replace"):
            value = [self.expression(v) for v in change.value]
        elif change.op in ("del_item", "del_attr", "del_slot", "del_cell"):
            value = None
        else:
            value = self.expression(change.value)
        key = self.expression(change.key) if change.op in ("set_item", "del_item") else change.key
        described = describe(node, change)
        return Effect(change.op, Outside(node.source), key, value, described, node.sites_of(change), type(node.obj))

    def calls(self, items: Iterable[Any]) -> list[Effect]:
        """The effects of prints, warnings and log records, in order."""
        out = []
        for output in items:
            kwargs: dict[str, Any] = {}
            where = None
            if output.what == "print":
                args, kwargs = output.payload
            elif output.what == "write":
                args = output.payload
            elif output.what == "warn":
                args, where = output.payload[:1], output.payload[1:]
            else:
                *args, where = output.payload
            value = ([self.expression(a) for a in args], {k: self.expression(v) for k, v in kwargs.items()})
            out.append(Effect(output.what, None, where, value, _OUTPUTS[output.what], [output.site]))
        return out

    def plan(self, result: Any, contents: Callable[[Node], None], items: Iterable[Any], fields: Iterable[Any]) -> Plan:
        """The plan of a completed run; raises Unsupported if something can't be replayed."""
        expr = self.expression(result)
        effects = self.effects(contents)
        for tensor, name, value, sites in _last(fields):
            target, new = self.expression(tensor), self.expression(value)
            effects.append(Effect("set_field", target, name, new, f".{name} of a tensor", sites))
        for node, times, site in self.refgraph.advanced.values():
            tp, where = type(node.obj), node.source.describe()
            effects.append(Effect("advance", Outside(node.source), None, times, where, [site], tp))
            position = "remaining" if is_iterator(node.obj) else "position"
            effects[-1].replaced = self.refgraph.sources.make(position, node.source, None)
        for array, place, value, site in self.array_writes:
            key = Build("tuple", tuple, [self.expression(k) for k in place])
            effects.append(Effect("set_array", self.expression(array), key, self.expression(value), "a NumPy array", [site]))
        for var, value, site in self.context_writes:
            target, new = self.expression(var), self.expression(value)
            effects.append(Effect("set_context", target, None, new, f"{var.name}.set()", [site]))
        for cls, attribute, value, sites in self.refgraph.class_writes.values():
            described = f"{cls.__qualname__}.{attribute}"
            effects.append(Effect("set_class", Const(cls), attribute, self.expression(value), described, sites))
            root = self.refgraph.node(cls)
            effects[-1].replaced = self.refgraph.sources.attr(root.source, attribute) if root is not None else None
        effects += self.calls(items)
        return Plan(expr, False, effects, list(self.outputs))


def _last(fields: Iterable[Any]) -> list[Any]:
    """The last assignment of each field of a tensor, with the sites of all: earlier ones can't be observed."""
    found: dict[tuple[int, str], Any] = {}
    for tensor, name, value, site in fields:
        *_, sites = found.pop((id(tensor), name), ([],))
        found[id(tensor), name] = tensor, name, value, [*sites, site]
    return list(found.values())


def _place(source: Source) -> tuple[int, Any]:
    """A key that a slot's source has in common with an effect on it; the object replaces its ``__dict__`` as the base."""
    base = source.parent
    if source.kind not in _SLOTS:
        return 0, None
    return id(base.base if base.kind == "dict" else base), slot_name(source.key)


def _is_namespace_of_function(node: Node) -> bool:
    base = node.source.base
    return base is not None and base.kind == "const" and isinstance(base.key, types.FunctionType)


def describe(node: Node, change: Change) -> str:
    """The written target in the user's notation."""
    base = node.source.describe()
    if base.startswith("globals of "):
        return str(change.key)
    if change.op in ("set_attr", "del_attr", "set_slot", "del_slot"):
        return f"{base}.{change.key}"
    if change.op in ("set_item", "del_item"):
        source = node.source
        if source.kind == "dict" or (source.kind == "attr" and source.key in MODULE_TABLES):
            return f"{source.parent.describe()}.{change.key}"
        return f"{base}[{kinds.bounded_repr(change.key)}]"
    return base

"""Generates replay code, which runs after the graph: it rebuilds values, then applies effects.

Everything is computed before the first effect (law: compute first). Key type: ReplayWriter.
"""

from __future__ import annotations

import collections
import logging
import types
import warnings
from typing import Any

import torch
import torch.fx

from magpy_core.guards.codegen import GuardWriter
from magpy_core.opgraph.scalars import Sym
from magpy_core.refgraph import kinds
from magpy_core.refgraph.counters import advance
from magpy_core.refgraph.iterators import is_iterator_type, skip
from magpy_core.replay.ir import Build, Const, Effect, Expr, GraphValue, Outside, Plan, Scalar


def write_log(logger: logging.Logger, level: int, msg: Any, args: Any, caller: tuple[str, int, str]) -> None:
    """Writes a log record like ``Logger._log`` at the recorded line, with the current time."""
    if logger.isEnabledFor(level):
        path, line, function = caller
        logger.handle(logger.makeRecord(logger.name, level, path, line, msg, args, None, function))


def issue_warning(text: str, where: tuple[type[Warning], str, int, dict[str, Any]]) -> None:
    """Issues a warning like ``warnings.warn`` at the recorded line, with the current filters."""
    category, file, line, namespace = where
    registry = namespace.setdefault("__warningregistry__", {})
    warnings.warn_explicit(text, category, file, line, namespace.get("__name__") or "<string>", registry)


def write_text(stream: Any, method: str, *args: Any) -> None:
    """Writes text to a stream, or a row."""
    getattr(stream, method)(*args)


def fill_object(obj: Any, attrs: dict[str, Any]) -> None:
    obj.__dict__.update(attrs)


def iterate(values: list[Any], taken: int) -> Any:
    """An iterator that has returned so many elements."""
    iterator = iter(values)
    skip(iterator, taken)
    return iterator


def replace_list(target: Any, items: list[Any]) -> None:
    list.__setitem__(target, slice(None), items)


def replace_content(target: Any, items: list[Any]) -> None:
    """Replaces all items of a deque or set."""
    cls, fill = (set, set.update) if isinstance(target, set) else (collections.deque, collections.deque.extend)
    cls.clear(target)
    fill(target, items)


def replace_dict(target: Any, pairs: list[tuple[Any, Any]]) -> None:
    cls = collections.OrderedDict if isinstance(target, collections.OrderedDict) else dict
    cls.clear(target)
    for k, v in pairs:
        cls.__setitem__(target, k, v)


HELPERS: dict[str, Any] = {
    "write_log": write_log, "issue_warning": issue_warning,
    "write_text": write_text, "iterate": iterate, "skip": skip,
    "fill_object": fill_object,
    "replace_list": replace_list, "replace_dict": replace_dict, "replace_content": replace_content, "print": print,
    "dict_setitem": dict.__setitem__, "dict_pop": dict.pop, "list_extend": list.extend,
    "ordered_pop": collections.OrderedDict.pop, "deque_extend": collections.deque.extend,
    "ordered_setitem": collections.OrderedDict.__setitem__, "tuple_new": tuple.__new__, "Size": torch.Size,
    "set_add": set.add, "set_discard": set.discard, "list_setitem": list.__setitem__, "setattr": setattr,
    "object_new": object.__new__, "type_setattr": type.__setattr__, "advance": advance,
}  # fmt: skip


_OUTPUTS = {"print": "print", "log": "write_log", "warn": "issue_warning", "write": "write_text"}


class ReplayWriter:
    """Writes a plan's statements with a GuardWriter, whose variables hold the external objects."""

    def __init__(self, writer: GuardWriter, outputs: dict[Any, str]) -> None:
        self.w = writer
        self.w.table.update(HELPERS)
        self.lines: list[str] = []  # computations before the first effect; the GuardWriter has the reads from outside
        self.outputs = outputs  # fx node, read of a clock or symbol -> variable holding its value
        self._built: dict[int, str] = {}
        self._scalars: dict[int, str] = {}

    # -- values ------------------------------------------------------------------------------------------------

    def expr(self, e: Expr) -> str:
        if isinstance(e, Const):
            return self.w.const(e.value)
        if isinstance(e, Outside):
            return self.w.var(e.source)
        if isinstance(e, GraphValue):
            return self.outputs[e.node]
        if isinstance(e, Scalar):
            name = self._scalars.get(id(e.sym))
            if name is None:
                self._share(e.sym)
                name = self._scalars[id(e.sym)] = f"n{len(self._scalars)}"
                self.lines.append(f"{name} = {self.w.scalar(e.sym, self.outputs)}")
            return name
        return self.build(e)

    def _share(self, sym: Sym) -> None:
        """Compute what a number is made of once, if that is more than a number: a list, an array."""
        for part in sym.args:
            if isinstance(part, Sym) and part.kind == "call" and part not in self.outputs:
                self._share(part)
                if type(part.hint) not in kinds.CARRYING:
                    name = f"h{len(self.outputs)}"
                    self.lines.append(f"{name} = {self.w.scalar(part, self.outputs)}")
                    self.outputs[part] = name

    def build(self, b: Build) -> str:
        name = self._built.get(id(b))
        if name is not None:
            return name
        lines, const = self.lines, self.w.const
        name = self._built[id(b)] = f"o{len(self._built)}"
        if b.how in ("tuple", "frozenset", "call"):  # children of immutable values can't refer back to them
            items = [self.expr(i) for i in b.items]
            lines.append(f"{name} = {self.immutable(b, items)}")
        else:
            lines.append(f"{name} = {self.shell(b)}")
            self.fill(b, name)
        if b.attrs:
            pairs = ", ".join(f"{k!r}: {self.expr(v)}" for k, v in b.attrs)
            lines.append(f"fill_object({name}, {{{pairs}}})")
        for slot, value in b.slots:
            lines.append(f"{const(_member(b.type, slot))}.__set__({name}, {self.expr(value)})")
        return name

    def immutable(self, b: Build, items: list[str]) -> str:
        tuple_text = f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        cls = self.w.const(b.type)
        if b.how == "call":
            return f"{cls}({', '.join(items)})"
        if b.type is tuple:  # a tuple of literals would be a constant, the same object at every call
            return f"(*{tuple_text},)" if items and all(isinstance(i, Const) for i in b.items) else tuple_text
        if b.how == "frozenset" or hasattr(b.type, "n_sequence_fields") or b.type is torch.Size:
            return f"{cls}({tuple_text})"
        return f"tuple_new({cls}, {tuple_text})"

    def shell(self, b: Build) -> str:
        cls = self.w.const(b.type)
        if b.how == "iterator":
            return f"iterate({self.expr(b.items[0])}, {b.extra})"
        if b.how == "list" and b.type is list:
            return "[]"
        if b.how == "dict" and b.type is dict:
            return "{}"
        if b.how == "dict" and b.extra is not None:
            return f"{cls}({self.expr(b.extra)})"
        if b.how == "deque":
            return f"{cls}((), {b.extra!r})"
        if b.how == "object":
            return f"object_new({cls})" if kinds.is_heap_type(b.type) else f"{cls}.__new__({cls})"
        return f"{cls}.__new__({cls})" if b.type not in (list, dict, set) else f"{cls}()"

    def fill(self, b: Build, name: str) -> None:
        if b.how == "list" and b.items:
            self.lines.append(f"list_extend({name}, {self.listed(b.items)})")
        elif b.how == "dict":
            for k, v in b.items:
                self.lines.append(self.store(b.type, name, self.expr(k), self.expr(v)))
        elif b.how == "set":
            for i in b.items:
                self.lines.append(f"set_add({name}, {self.expr(i)})")
        elif b.how == "deque":
            self.lines.append(f"{name}.extend({self.listed(b.items)})")

    def listed(self, items: list[Expr]) -> str:
        return f"[{', '.join(map(self.expr, items))}]"

    def store(self, tp: type, target: str, key: str, value: str) -> str:
        """A store; a plain one, during which no other thread can run, if the type has no overridden ``__setitem__``."""
        if tp in (dict, list):
            return f"{target}[{key}] = {value}"
        kind = "list" if issubclass(tp, list) else "ordered" if issubclass(tp, collections.OrderedDict) else "dict"
        return f"{kind}_setitem({target}, {key}, {value})"

    # -- effects -----------------------------------------------------------------------------------------------

    def values(self, plan: Plan) -> tuple[str, list[str]]:
        """First pass: computes every value for the effects and the result, without changing external state."""
        prepared = [self.prepare(e) for e in plan.effects]
        return self.expr(plan.result), prepared

    def conflict_conditions(self, plan: Plan) -> list[str]:
        """Conditions under which a value that an effect replaces is not the one that the call has read: another thread may
        have replaced it since."""
        places = [e.replaced for e in plan.effects if e.replaced is not None]
        differs = {"position": "!=", "remaining": "!="}
        return [
            f"{p.step_kind.expression(self.w, p)} {differs.get(p.kind, 'is not')} {self.w.var(p)}"
            for p in dict.fromkeys(places)
        ]

    def prepare(self, e: Effect) -> str:
        """The statement that applies one effect with precomputed values."""
        if e.target is None:
            args, kwargs = e.value
            given = [*map(self.expr, args), *(f"{k}={self.expr(v)}" for k, v in kwargs.items())]
            given += [self.w.const(e.key)] if e.key is not None else []
            return f"{_OUTPUTS[e.op]}({', '.join(given)})"
        target = self.expr(e.target)
        match e.op:
            case "set_field":
                return f"{target}.{e.key} = {self.expr(e.value)}"
            case "set_array":
                return f"{target}[{self.expr(e.key)}] = {self.expr(e.value)}"
            case "advance":
                return f"{'skip' if is_iterator_type(e.target_type) else 'advance'}({target}, {e.value})"
            case "set_context":
                return f"{target}.set({self.expr(e.value)})"
            case "set_class":
                return f"type_setattr({target}, {e.key!r}, {self.expr(e.value)})"
            case "set_attr":
                return f"{self.dict_var(e)}[{e.key!r}] = {self.expr(e.value)}"
            case "del_attr":
                return f"{self.dict_var(e)}.pop({e.key!r}, None)"
            case "set_slot":
                return f"{self.member(e)}.__set__({target}, {self.expr(e.value)})"
            case "del_slot":
                return f"{self.member(e)}.__delete__({target})"
            case "set_cell":
                return f"{target}.cell_contents = {self.expr(e.value)}"
            case "del_cell":
                return f"del {target}.cell_contents"
            case "add" | "discard":
                return f"set_{e.op}({target}, {self.expr(e.value)})"
            case "set_item":
                return self.store(e.target_type, target, self.expr(e.key), self.expr(e.value))
            case "del_item":
                pop = "ordered_pop" if issubclass(e.target_type, collections.OrderedDict) else "dict_pop"
                return f"{pop}({target}, {self.expr(e.key)}, None)"
            case "extend":
                extend = "deque_extend" if issubclass(e.target_type, collections.deque) else "list_extend"
                return f"{extend}({target}, {self.listed(e.value)})"
            case "replace" if issubclass(e.target_type, dict):
                return f"replace_dict({target}, [{', '.join(f'({self.expr(k)}, {self.expr(v)})' for k, v in e.value)}])"
            case "replace":
                how = "replace_list" if issubclass(e.target_type, list) else "replace_content"
                return f"{how}({target}, {self.listed(e.value)})"
        raise AssertionError(f"unknown effect {e.op!r}")

    def member(self, e: Effect) -> str:
        """The slot's descriptor: ``setattr`` would run a user-defined ``__setattr__`` again."""
        return self.w.const(_member(e.target_type, e.key))

    def dict_var(self, e: Effect) -> str:
        assert isinstance(e.target, Outside)
        return self.w.dict_of(e.target.source)


def _member(tp: type, name: str) -> Any:
    for k in tp.__mro__:
        if isinstance(k.__dict__.get(name), types.MemberDescriptorType):
            return k.__dict__[name]
    raise KeyError(name)

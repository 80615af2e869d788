"""Static attribute resolution: where ``obj.name`` comes from, without running user code.

Key types: Found (where), ``resolve``. The order is CPython's ``object.__getattribute__``.
"""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any

from torch import nn

from magpy_core.refgraph.fields import custom_dict, instance_dict, slot_value
from magpy_core.refgraph.kinds import is_a, is_heap_type

_MISSING = object()

MODULE_TABLES = ("_parameters", "_buffers", "_modules")
"""The dicts that ``nn.Module.__getattr__`` searches, in order."""


@dataclass(slots=True)
class Found:
    """Result of ``resolve``.

    ``where``: ``instance`` (in ``obj.__dict__``), ``custom`` (the same, if it is a subclass of dict), ``slot``, ``class``
    (``owner.__dict__``; ``value`` is the raw class attribute), ``data`` (a data descriptor on the class), ``getset`` (a
    C-level attribute), ``module`` (a parameter, buffer or submodule: ``table`` names the dict), ``python`` (a
    ``__getattr__`` decides), ``override`` (a ``__getattribute__`` decides), ``absent``.
    """

    where: str
    value: Any = None
    owner: type | None = None
    table: str = ""
    class_value: Any = _MISSING

    @property
    def in_class(self) -> bool:
        return self.class_value is not _MISSING


def class_lookup(tp: type, name: str) -> tuple[Any, type | None]:
    """(raw class attribute, owner) along the MRO, or (_MISSING, None)."""
    for k in tp.__mro__:
        d = k.__dict__
        if name in d:
            return d[name], k
    return _MISSING, None


def missing(value: Any) -> bool:
    return value is _MISSING


def is_data_descriptor(value: Any) -> bool:
    tp = type(value)
    return hasattr(tp, "__set__") or hasattr(tp, "__delete__")


def resolve(obj: Any, name: str, *, plain: bool = False) -> Found:
    """Where ``obj.name`` is found (``obj`` is neither a class nor a Python module). ``plain``: ignore overrides of
    ``object.__getattribute__``."""
    tp = type(obj)
    getter, owner = class_lookup(tp, "__getattribute__")
    if is_a(getter, types.FunctionType) and not plain:
        return Found("override", value=getter, owner=owner)
    raw, owner = class_lookup(tp, name)
    if owner is not None and is_data_descriptor(raw):
        if is_a(raw, types.MemberDescriptorType):
            if is_heap_type(owner):
                value = slot_value(obj, name)
                return Found("slot", value=value, owner=owner, class_value=raw)
            return Found("getset", owner=owner, class_value=raw)
        if is_a(raw, types.GetSetDescriptorType):
            return Found("getset", owner=owner, class_value=raw)
        return Found("data", value=raw, owner=owner, class_value=raw)
    d = instance_dict(obj)
    if d is not None and name in d:
        return Found("instance", value=d[name], owner=owner, class_value=raw)
    if d is None and (custom := custom_dict(obj)) is not None and dict.__contains__(custom, name):
        return Found("custom", value=dict.__getitem__(custom, name), owner=owner, class_value=raw)
    if owner is not None:
        return Found("class", value=raw, owner=owner, class_value=raw)
    fallback, fb_owner = class_lookup(tp, "__getattr__")
    if fb_owner is None or plain:
        return Found("absent")
    if fallback is nn.Module.__dict__.get("__getattr__") and d is not None:
        return member(obj, name)
    return Found("python", value=fallback, owner=fb_owner)


def member(module: nn.Module, name: str) -> Found:
    """Where ``nn.Module.__getattr__`` finds a parameter, buffer or submodule."""
    d = instance_dict(module) or {}
    for table in MODULE_TABLES:
        members = d.get(table)
        if type(members) is dict and name in members:
            return Found("module", value=members[name], table=table)
    return Found("absent")


def overrides(tp: type | None, name: str) -> bool:
    """Whether this special method of ``tp`` is a Python function."""
    return tp is not None and is_a(class_lookup(tp, name)[0], types.FunctionType)

"""Snapshots: the shallow state of an object before its first write, and the difference to its state at exit.

Writes are found by comparing states, so it does not matter which code made them. Key types: Snapshot, Change.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import is_
from typing import Any

from magpy_core.refgraph import kinds, natives
from magpy_core.refgraph.fields import ABSENT, cell_value, instance_dict, slot_names, slot_value
from magpy_core.refgraph.hashing import has_pure_hash, hashable, keys_have_pure_hash, same_key
from magpy_core.refgraph.kinds import is_a


@dataclass
class Change:
    """One difference. ``op``:

    list/deque: ``extend`` (value: new tail), ``set_item`` (key, value), ``replace`` (value: whole content)
    dict: ``set_item``, ``del_item``, ``replace`` (value: list of pairs)
    set: ``add``, ``discard``
    object: ``set_attr``, ``del_attr`` (key: name; in ``__dict__``), ``set_slot``
    cell: ``set_cell``, ``del_cell``
    """

    op: str
    key: Any = None
    value: Any = None
    needs_contents: bool = False  # valid only if the content at entry is the recorded one


class Snapshot:
    """Shallow copy of the state of one object; ``kind`` is one of ``kinds``."""

    __slots__ = ("attrs", "content", "kind", "obj", "order", "slots")

    def __init__(self, obj: Any, kind: int) -> None:
        self.obj = obj
        self.kind = kind
        self.content: Any = None
        self.order: tuple[Any, ...] = ()  # of a set: its copy may have another iteration order
        self.attrs: dict[str, Any] | None = None
        self.slots: dict[str, Any] | None = None
        if kind in (kinds.LIST, kinds.DEQUE):
            self.content = list(natives.elements(obj))
        elif kind == kinds.DICT:
            # an OrderedDict looks up its keys to iterate; without pure hashes, order is not needed
            self.content = natives.entries(obj) if keys_have_pure_hash(obj) else list(dict.items(obj))
        elif kind == kinds.SET:
            self.content = set(obj)  # copying a set doesn't hash its elements again
            self.order = tuple(natives.elements(obj))
        elif is_a(obj, types.CellType):
            self.content = cell_value(obj)
        d = instance_dict(obj)
        if d is not None:
            self.attrs = dict(d)
        names = slot_names(type(obj))
        if names:
            self.slots = {n: slot_value(obj, n) for n in names}

    def holds(self, obj: Any) -> bool:
        """Whether this is a reference to ``obj``."""
        held: list[Any] = [*(self.attrs or {}).values(), *(self.slots or {}).values()]
        if is_a(self.content, (list, set)):
            held += [v for pair in self.content for v in pair] if self.kind == kinds.DICT else self.content
        else:
            held.append(self.content)
        return any(v is obj for v in held)

    def attr(self, name: str) -> Any:
        """The entry value of an instance attribute, or ABSENT."""
        if self.attrs is not None and name in self.attrs:
            return self.attrs[name]
        if self.slots is not None:
            return self.slots.get(name, ABSENT)
        return ABSENT

    def entry(self, key: Any) -> Any:
        """The entry value for a key with a pure hash, or ABSENT."""
        return dict(self.content).get(key, ABSENT)

    def can_probe_unobserved(self, forced: Sequence[tuple[str, Any]] = ()) -> bool:
        """Whether the changes can be found, and repeated, without running user code of the keys."""
        if self.kind not in (kinds.DICT, kinds.SET):
            return True
        before = [key for key, _ in self.content] if self.kind == kinds.DICT else self.content
        return keys_have_pure_hash(self.obj) and all(has_pure_hash(key) for key in (*before, *(key for _, key in forced)))

    def changes(self, forced: Sequence[tuple[str, Any]] = ()) -> list[Change]:
        """Changes from the entry state to the current one; ``forced`` (op, key) writes are included even if they changed
        nothing."""
        if self.kind in (kinds.DICT, kinds.SET):
            forced = [(op, key) for op, key in forced if hashable(key)]  # a list as a key: nothing was written
        if self.kind == kinds.DEQUE and self.obj.maxlen is not None and {op for op, _ in forced} == {"append"}:
            # the difference doesn't show what a full deque dropped: it may contain the same value twice
            return [Change("extend", value=[v for _, v in forced])]
        out = self._moved_items(forced) or self._differences(self._moved_attributes(forced))
        if any(c.op == "replace" for c in out):
            return out
        if self.kind == kinds.DICT:
            _by_written_keys(out, forced)
        done = {(c.op, slot_name(c.key)) for c in out}
        for op, key in forced:
            if (op, slot_name(key)) in done:
                continue
            change = self._forced(op, key)
            if change is not None and not any(
                c.op == change.op and c.key is change.key and c.value is change.value for c in out
            ):
                out.append(change)
        return _in_order_of_writes(out, forced) if self.kind in (kinds.DICT, kinds.OBJECT) else out

    def _moved_items(self, forced: Sequence[tuple[str, Any]]) -> list[Change]:
        """Changes of a dict in which keys were deleted and set again, which moves them to the end."""
        if self.kind != kinds.DICT:
            return []
        moved = {k for op, k in forced if op == "del_item" and dict.__contains__(self.obj, k)}
        moved &= {k for k, _ in self.content}
        if not moved:
            return []
        rest = _dict_changes([(k, v) for k, v in self.content if k not in moved], self.obj)
        return [*(Change("del_item", k) for k in moved), *rest]

    def _forced(self, op: str, key: Any) -> Change | None:
        """The effect of a write by name, from the current state."""
        obj = self.obj
        if op in ("set_attr", "del_attr"):
            d = instance_dict(obj) or {}
            if key in d:
                return Change("set_attr", key, d[key])
            if self.slots is not None and key in self.slots:
                value = slot_value(obj, key)
                if value is not ABSENT:
                    return Change("set_slot", key, value)
                return Change("del_slot", key) if self.slots[key] is not ABSENT else None
            return Change("del_attr", key) if self.attrs is not None and key not in self.attrs else None
        if op == "set_item" and self.kind == kinds.DICT:
            value = dict.get(obj, key, ABSENT)
            return Change("del_item", key) if value is ABSENT else Change("set_item", key, value)
        if op == "maybe_item" and self.kind == kinds.DICT:
            value = dict.get(obj, key, ABSENT)
            return None if value is ABSENT else Change("set_item", key, value)
        if op == "set_item" and self.kind == kinds.LIST and type(key) is int and -len(obj) <= key < len(obj):
            index = key % len(obj)
            return Change("set_item", index, list.__getitem__(obj, index)) if index < len(self.content) else None
        if op in ("add", "discard") and self.kind == kinds.SET:
            return Change("add" if key in obj else "discard", value=key)
        if op == "clear":
            content: Any = dict(obj) if self.kind == kinds.DICT else list(obj)
            return Change("replace", value=list(content.items()) if is_a(content, dict) else content)
        if op == "set_cell":
            value = cell_value(obj)
            return Change("del_cell") if value is ABSENT else Change("set_cell", value=value)
        return None

    def _moved_attributes(self, forced: Sequence[tuple[str, Any]]) -> set[str]:
        """Attributes that were deleted and set again, which moves them to the end."""
        now, before = instance_dict(self.obj) or {}, self.attrs or {}
        return {k for op, k in forced if op == "del_attr" and k in now and k in before}

    def _differences(self, moved: Collection[str] = ()) -> list[Change]:
        out: list[Change] = []
        if self.kind in (kinds.LIST, kinds.DEQUE):
            out += _sequence_changes(self.content, self.obj)
        elif self.kind == kinds.DICT:
            out += _dict_changes(self.content, self.obj)
        elif self.kind == kinds.SET:
            now = set(self.obj)
            out += [Change("discard", value=v) for v in self.content - now]
            out += [Change("add", value=v) for v in now - self.content]
        elif is_a(self.obj, types.CellType):
            value = cell_value(self.obj)
            if value is not self.content:
                out.append(Change("del_cell") if value is ABSENT else Change("set_cell", value=value))
        if self.attrs is not None:
            d = instance_dict(self.obj)
            assert d is not None
            out += [Change("del_attr", k) for k in moved]
            out += [Change("set_attr", k, v) for k, v in d.items() if k in moved or self.attrs.get(k, ABSENT) is not v]
            out += [Change("del_attr", k) for k in self.attrs if k not in d]
        if self.slots is not None:
            for name, old in self.slots.items():
                new = slot_value(self.obj, name)
                if new is not old:
                    out.append(Change("del_slot", name) if new is ABSENT else Change("set_slot", name, new))
        return out


def _same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(map(is_, a, b))


def _sequence_changes(old: list[Any], obj: Any) -> list[Change]:
    """Changes of a list or deque."""
    new, n = list(natives.elements(obj)), len(old)
    if _same(old, new[:n]):
        # a full bounded deque drops its head by itself, so the effect is the same append
        return [Change("extend", value=new[n:])] if len(new) > n else []
    if len(new) == n and is_a(obj, list):
        return [Change("set_item", i, b) for i, (a, b) in enumerate(zip(old, new, strict=True)) if a is not b]
    if len(new) == n == obj.maxlen:
        for k in range(1, n):
            if _same(old[k:], new[: n - k]):
                return [Change("extend", value=new[n - k :])]
    return [Change("replace", value=new, needs_contents=True)]


def slot_name(key: Any) -> Any:
    """A key's entry in a table of slots, which must not run the program's ``__hash__``."""
    return key if is_a(key, (str, int)) and has_pure_hash(key) else id(key)


def _by_written_keys(changes: list[Change], forced: Sequence[tuple[str, Any]]) -> None:
    """Use the keys as the program wrote them: a dict with the key ``1`` keeps it when ``1.0`` is set, but a dict that lacks
    it at replay must get ``1.0``."""
    for change in changes:
        if change.op == "set_item":
            written = (key for op, key in forced if op == "set_item" and same_key(key, change.key))
            change.key = next(written, change.key)


def _in_order_of_writes(changes: list[Change], forced: Sequence[tuple[str, Any]]) -> list[Change]:
    """Sort changes into the order of the program's writes, because keys or attributes that existed at recording may be
    missing at replay."""
    written: dict[Any, int] = {}
    for i, (op, key) in enumerate(forced):
        if op.startswith("del_"):
            written.pop(slot_name(key), None)
        else:
            written.setdefault(slot_name(key), i)
    places = [i for i, c in enumerate(changes) if c.op in ("set_item", "set_attr") and slot_name(c.key) in written]
    ordered = sorted((changes[i] for i in places), key=lambda c: written[slot_name(c.key)])
    for i, change in zip(places, ordered, strict=True):
        changes[i] = change
    return changes


def _dict_changes(old_items: list[tuple[Any, Any]], obj: Any) -> list[Change]:
    new_items = natives.entries(obj)
    if _same([*chain(*old_items)], [*chain(*new_items)]):
        return []
    old = {id(k): (k, v) for k, v in old_items}
    new = {id(k): (k, v) for k, v in new_items}
    kept = [id(k) for k, _ in old_items if id(k) in new]
    if list(new)[: len(kept)] != kept:
        return [Change("replace", value=new_items, needs_contents=True)]
    out = [Change("del_item", k) for i, (k, _) in old.items() if i not in new]
    out += [Change("set_item", k, v) for i, (k, v) in new.items() if i not in old or old[i][1] is not v]
    return out

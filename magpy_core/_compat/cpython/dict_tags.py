"""Dict version tags: whether any of many dicts was written to, in a few microseconds for all of them.

CPython 3.11 and 3.12 give every dict a 64-bit ``ma_version_tag``, a new one at each write that changes it (PEP 509; gone in
3.13). A class instance's header says its type and where its ``__dict__`` is. All these words are gathered from memory and
compared by three native operations of torch. The layout is not trusted but probed: ``supported`` tries it out once, and
``Watch`` looks at every object it is given. Key types: Watch, Unwatchable.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import os
import sys
import threading
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from operator import call
from typing import Any

import torch

from magpy_core._compat.cpython.layout import is_heap_type

_TYPE, _TAG = 8, 24  # offsets of ob_type in an object and of ma_version_tag in a dict
_DICT_POINTER = -24  # of an instance's materialised __dict__, before the object
_MANAGED_DICT = 1 << 4  # Py_TPFLAGS_MANAGED_DICT


class Unwatchable(Exception):
    """An object or dict whose changes the tags do not show."""


@functools.cache
def _memory() -> torch.Tensor:
    """The address space as a tensor of words; word ``i`` is at address ``8 * (i + 1)``. Nothing is read until indexed."""
    space = (ctypes.c_int64 * ((1 << 47) // 8 - 1)).from_address(8)
    return torch.frombuffer(space, dtype=torch.int64)


def word(address: int) -> int:
    """The 64 bits at an address, as a signed number."""
    return int(ctypes.c_int64.from_address(address).value)


def version_view(table: dict[str, Any]) -> ctypes.c_uint64 | None:
    """The version tag of ``table``, a dict that is never freed: its ``value`` is another one after each write to the dict.
    None where there are no tags."""
    return ctypes.c_uint64.from_address(id(table) + _TAG) if supported() else None


def supported() -> bool:
    """Whether this interpreter has the tags, where we look for them, and every kind of write changes them.
    ``MAGPY_DICT_TAGS=0`` in the environment switches them off."""
    return os.environ.get("MAGPY_DICT_TAGS") != "0" and _has_tags()


def eagerly() -> bool:
    """Whether to use them from the first call on, for a single check (``MAGPY_DICT_TAGS=always``, for tests)."""
    return os.environ.get("MAGPY_DICT_TAGS") == "always"


def profiling() -> bool:
    """Whether a profiler is on. A user's profile shows the user's operations alone, so the tags can't be looked at then."""
    return bool(torch._C._autograd._profiler_enabled())


@functools.cache
def _has_tags() -> bool:
    if sys.implementation.name != "cpython" or sys.version_info[:2] not in ((3, 11), (3, 12)):
        return False
    if ctypes.sizeof(ctypes.c_void_p) != 8 or hasattr(sys, "gettotalrefcount"):  # a debug build has longer headers
        return False
    return _probe()


def _probe() -> bool:
    class Probe:
        pass

    obj: Any = Probe()
    obj.first = 1
    own, names = obj.__dict__, class_dict(Probe)
    if word(id(obj) + _TYPE) != id(Probe) or not _points_at(obj, own) or names is None:
        return False
    writes: list[tuple[dict[str, Any], Callable[[], object]]] = [
        (own, lambda: setattr(obj, "first", 2)), (own, lambda: setattr(obj, "second", 3)),
        (own, lambda: delattr(obj, "second")), (own, lambda: own.__setitem__("x", 1)), (own, lambda: own.update(x=2)),
        (own, lambda: own.pop("x")), (own, lambda: own.setdefault("y", 1)), (own, lambda: own.popitem()),
        (own, lambda: own.__ior__({"z": 1})), (own, lambda: own.__delitem__("z")), (own, lambda: own.clear()),
        (names, lambda: setattr(Probe, "added", 1)), (names, lambda: setattr(Probe, "added", 2)),
        (names, lambda: type.__setattr__(Probe, "__doc__", "a text")), (names, lambda: delattr(Probe, "added")),
    ]  # fmt: skip
    for table, write in writes:
        before = word(id(table) + _TAG)
        if word(id(table) + _TAG) != before:
            return False
        write()
        if word(id(table) + _TAG) == before:
            return False
    mirror: dict[str, int] = {"a": 1}
    watch = Watch([], [mirror])
    if not watch.holds():
        return False
    mirror["a"] = 2
    return not watch.holds()


def _points_at(obj: Any, own: Any) -> bool:
    return bool(type(obj).__flags__ & _MANAGED_DICT) and word(id(obj) + _DICT_POINTER) == id(own)


def instance_dict(obj: Any) -> dict[str, Any] | None:
    """The ``__dict__`` of an instance whose header says where it is; None if there is none such."""
    try:
        own = object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return None
    return own if type(own) is dict and _points_at(obj, own) else None


def class_dict(cls: type) -> dict[str, Any] | None:
    """The dict behind a class's ``__dict__``, for a class that a class statement made; None for others."""
    if not is_heap_type(cls):
        return None
    behind = gc.get_referents(type.__dict__["__dict__"].__get__(cls))
    return behind[0] if len(behind) == 1 and type(behind[0]) is dict else None


def names_of(value: Any) -> dict[str, Any] | None:
    """The dict of a class's, a module's or a namespace's names, where tags show what is written to it. None for others, and
    for the names of the script that runs: each line of its loops writes there."""
    if issubclass(type(value), type):
        return class_dict(value)
    own = types.ModuleType.__getattribute__(value, "__dict__") if issubclass(type(value), types.ModuleType) else value
    main = sys.modules.get("__main__")
    return own if type(own) is dict and own is not getattr(main, "__dict__", None) else None


def type_is_fixed(value: Any) -> bool:
    """Whether ``value`` can't be given another class: an instance of a class that no class statement made."""
    return not is_heap_type(type(value)) and type(value) is not type(sys)


class Watch:
    """Tells whether instances still have their class and their ``__dict__``, and no dict was written to.

    ``objects`` are instances with a ``__dict__`` each, or None in its place where only the class counts. ``tables`` are
    dicts that the watched ``__dict__``s hold: while those are unchanged they live. ``names`` are dicts of classes
    (``class_dict``) and modules, which the watch keeps. ``slots`` are addresses (``slot_words.py``) in objects that whoever
    made the watch keeps. Objects are not kept alive: when one of
    them dies the watch is ``dead`` for good, before its memory is given back, and calls ``on_death``.
    Raises Unwatchable for an object whose header does not say what it should.
    """

    def __init__(
        self,
        objects: Sequence[tuple[Any, dict[str, Any] | None]],
        tables: Sequence[dict[Any, Any]],
        on_death: Callable[[], None] | None = None,
        names: Sequence[dict[str, Any]] = (),
        slots: Sequence[int] = (),
    ) -> None:
        self.dead = False
        me = weakref.ref(self)

        def died(_: object) -> None:
            watch = me()
            if watch is not None and not watch.dead:
                watch.dead = True
                if on_death is not None:
                    on_death()

        headers: list[int] = list(slots)
        tags: list[int] = []
        self._refs: list[weakref.ref[Any]] = []
        for obj, own in objects:
            try:
                self._refs.append(weakref.ref(obj, died))
            except TypeError as error:
                raise Unwatchable(f"no weak references to {type(obj).__name__}") from error
            headers.append(id(obj) + _TYPE)
            if own is not None:
                if type(own) is not dict or not _points_at(obj, own):
                    raise Unwatchable(f"the __dict__ of {type(obj).__name__} is not where it should be")
                headers.append(id(obj) + _DICT_POINTER)
                tags.append(id(own) + _TAG)
        for table in tables:
            if type(table) is not dict and type(table) is not OrderedDict:
                raise Unwatchable(f"a {type(table).__name__} changes without a trace")
        self._kept = tuple(names)
        tags += [id(own) + _TAG for own in names]
        # in this order: what one of them finds unchanged keeps alive what the next one reads
        self._parts = [_Words(headers), _Words(tags), _Words([id(t) + _TAG for t in tables])]

    def holds(self) -> bool:
        """Whether nothing has changed since the watch began. False does not mean that something has."""
        if self.dead or profiling():
            return False
        # Other threads may let go of a watched object while torch reads: then it must live till the end of the check.
        keep = list(map(call, self._refs)) if len(threading._active) > 1 else None  # type: ignore[attr-defined]
        for part in self._parts:
            if self.dead or not part.same():
                return False
        del keep
        return True

    def changed(self) -> tuple[list[int], list[int]]:
        """Which ``__dict__``s were written to (positions among the objects that have one, and after them ``names``), or,
        if none was, which tables. Nothing at all when a class, a ``__dict__`` or a slot got another or an object died."""
        headers, tags, tables = self._parts
        if self.dead or headers.differences():
            return [], []
        written = tags.differences()
        return written, [] if written else tables.differences()


class _Words:
    """Words of memory and what they were."""

    def __init__(self, addresses: Sequence[int]) -> None:
        self._index = torch.tensor([a // 8 - 1 for a in addresses], dtype=torch.int64, device="cpu")
        self._before = torch.index_select(_memory(), 0, self._index)
        self._now = torch.empty_like(self._before)

    def same(self) -> bool:
        torch.index_select(_memory(), 0, self._index, out=self._now)
        return torch.equal(self._now, self._before)

    def differences(self) -> list[int]:
        now = torch.index_select(_memory(), 0, self._index)
        positions: list[int] = torch.nonzero(now != self._before).flatten().tolist()
        return positions

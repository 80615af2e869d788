"""Dict version tags: whether any of many dicts was written, in a few microseconds for all of them.

In CPython 3.11 and 3.12 every dict has a 64-bit ``ma_version_tag``, which changes at each write (PEP 509; removed in 3.13).
An instance's header has pointers to its type and its ``__dict__``. All these words are read from memory and compared by
three native operations of torch. The layout is not assumed but probed: ``supported`` tests it once, and ``Watch`` checks
every object passed to it. Key types: Watch, Unwatchable.
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
    """The address space as a tensor of words; word ``i`` is at address ``8 * (i + 1)``. Only indexing reads memory."""
    space = (ctypes.c_int64 * ((1 << 47) // 8 - 1)).from_address(8)
    return torch.frombuffer(space, dtype=torch.int64)


def word(address: int) -> int:
    """The 64 bits at an address, as a signed number."""
    return int(ctypes.c_int64.from_address(address).value)


def version_view(table: dict[str, Any]) -> ctypes.c_uint64 | None:
    """The version tag of ``table``, a dict that is never freed: its ``value`` changes at each write to the dict. None if
    there are no tags."""
    return ctypes.c_uint64.from_address(id(table) + _TAG) if supported() else None


def supported() -> bool:
    """Whether this interpreter has the tags at the expected place, and every kind of write changes them.
    ``MAGPY_DICT_TAGS=0`` in the environment switches them off."""
    return os.environ.get("MAGPY_DICT_TAGS") != "0" and _has_tags()


def eagerly() -> bool:
    """Whether to use tags from the first call on, even for a single check (``MAGPY_DICT_TAGS=always``, for tests)."""
    return os.environ.get("MAGPY_DICT_TAGS") == "always"


def profiling() -> bool:
    """Whether a profiler is active. The tags can't be read then: the profile must show only the user's operations."""
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
    """The ``__dict__`` of an instance whose header points at it; None otherwise."""
    try:
        own = object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return None
    return own if type(own) is dict and _points_at(obj, own) else None


def class_dict(cls: type) -> dict[str, Any] | None:
    """The dict behind the ``__dict__`` of a class created by a class statement; None for other classes."""
    if not is_heap_type(cls):
        return None
    behind = gc.get_referents(type.__dict__["__dict__"].__get__(cls))
    return behind[0] if len(behind) == 1 and type(behind[0]) is dict else None


def names_of(value: Any) -> dict[str, Any] | None:
    """The dict of names of a class, a module or a namespace, if tags show writes to it. None for others, and for the main
    script's names, to which its loops write all the time."""
    if issubclass(type(value), type):
        return class_dict(value)
    own = types.ModuleType.__getattribute__(value, "__dict__") if issubclass(type(value), types.ModuleType) else value
    main = sys.modules.get("__main__")
    return own if type(own) is dict and own is not getattr(main, "__dict__", None) else None


def type_is_fixed(value: Any) -> bool:
    """Whether the class of ``value`` can't be changed: it was not created by a class statement."""
    return not is_heap_type(type(value)) and type(value) is not type(sys)


class Watch:
    """Checks that instances have the same class and ``__dict__`` as at the start, and that no dict was written.

    ``objects`` are pairs of an instance and its ``__dict__``, or None if only the class is watched. ``tables`` are dicts in
    the watched ``__dict__``s, which keep them alive while unchanged. ``names`` are dicts of classes (``class_dict``) and
    modules, which the watch keeps alive. ``slots`` are addresses (``slot_words.py``) in objects that the creator of the
    watch keeps alive. ``objects`` are not kept alive: when one of them dies, and before its memory is freed, the watch is
    permanently ``dead`` and calls ``on_death``. Raises Unwatchable for an object with an unexpected header.
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
                raise Unwatchable(f"{type(obj).__name__} does not support weak references") from error
            headers.append(id(obj) + _TYPE)
            if own is not None:
                if type(own) is not dict or not _points_at(obj, own):
                    raise Unwatchable(f"the __dict__ of {type(obj).__name__} is not at the expected address")
                headers.append(id(obj) + _DICT_POINTER)
                tags.append(id(own) + _TAG)
        for table in tables:
            if type(table) is not dict and type(table) is not OrderedDict:
                raise Unwatchable(f"a {type(table).__name__} has no version tag")
        self._kept = tuple(names)
        tags += [id(own) + _TAG for own in names]
        # in this order: each part, if unchanged, keeps the memory alive that the next one reads
        self._parts = [_Words(headers), _Words(tags), _Words([id(t) + _TAG for t in tables])]

    def holds(self) -> bool:
        """Whether nothing has changed since the watch began. May be False although nothing has."""
        if self.dead or profiling():
            return False
        # Other threads may drop a watched object while torch reads: keep all of them alive during the check.
        keep = list(map(call, self._refs)) if len(threading._active) > 1 else None  # type: ignore[attr-defined]
        for part in self._parts:
            if self.dead or not part.same():
                return False
        del keep
        return True

    def changed(self) -> tuple[list[int], list[int]]:
        """Which ``__dict__``s were written (positions among the objects that have one, followed by ``names``), or, if none,
        which tables. Both are empty if a class, ``__dict__`` or slot was replaced or an object died."""
        headers, tags, tables = self._parts
        if self.dead or headers.differences():
            return [], []
        written = tags.differences()
        return written, [] if written else tables.differences()


class _Words:
    """Words of memory and their values at the start."""

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

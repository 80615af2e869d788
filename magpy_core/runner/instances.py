"""Which object of the program has which region. Key type: Instances."""

from __future__ import annotations

import threading
import weakref
from types import CodeType, FrameType
from typing import Any

_Place = tuple[str, str, CodeType | None, int]
_class_name = type.__dict__["__qualname__"].__get__


class Instances:
    """Regions of one kind, one per object, without keeping the object alive.

    When an object has died, the next object of its class that is called from the same location gets its region; the class
    may be a new one of that name, which a function has defined again. Objects created for each call (a loss module inside
    the step) share the region of their location from the start, because the engine may keep the first one alive.
    """

    def __init__(self) -> None:
        self._live: dict[int, tuple[weakref.ref[Any], Any]] = {}
        self._left: dict[_Place, list[Any]] = {}
        self._shared: dict[_Place, Any] = {}
        self.lock = threading.RLock()  # re-entrant: a weak reference may be cleared while we hold it

    def get(self, obj: Any) -> Any:
        entry = self._live.get(id(obj))
        return entry[1] if entry is not None and entry[0]() is obj else None

    def adopt(self, obj: Any, caller: FrameType | None) -> Any:
        """Gives an object the region of another one of its class that was called from the same location, if there is one."""
        place = _place(obj, caller)
        with self.lock:
            left, shared = self._left.get(place), self._shared.get(place)
            region = shared if shared is not None else left.pop() if left else None
            if region is not None:
                self._add(obj, place, region, shared=shared is not None)
            return region

    def add(self, obj: Any, caller: FrameType | None, region: Any, *, shared: bool) -> None:
        """Gives an object a new region, which others may get later. ``shared``: while it is alive, too."""
        place = _place(obj, caller)
        with self.lock:
            if shared:
                self._shared[place] = region
            self._add(obj, place, region, shared=shared)

    def _add(self, obj: Any, place: _Place, region: Any, *, shared: bool) -> None:
        number = id(obj)

        def died(ref: weakref.ref[Any]) -> None:
            with self.lock:
                entry = self._live.get(number)
                if entry is not None and entry[0] is ref:
                    del self._live[number]
                    if not shared:
                        self._left.setdefault(place, []).append(entry[1])

        self._live[number] = (weakref.ref(obj, died), region)

    def clear(self) -> None:
        with self.lock:
            for known in (self._live, self._left, self._shared):
                known.clear()


def _place(obj: Any, caller: FrameType | None) -> _Place:
    if caller is None:
        return _class_name(type(obj)), "", None, -1
    code = caller.f_code
    return _class_name(type(obj)), code.co_filename, code, caller.f_lasti  # code of two files may be equal

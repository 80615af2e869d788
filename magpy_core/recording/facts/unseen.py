"""Unseen: Python functions that native code or a library calls, without an event that shows the function.

``map(partial, xs)`` or a default factory start a frame of which only the code is known; but the function's code and defaults
may change, and so may the class in which a method was found.

Key type: Unseen.
"""

from __future__ import annotations

import gc
import inspect
import types
from typing import Any

from magpy_core.recording.tracker import Tracker
from magpy_core.refgraph import kinds
from magpy_core.refgraph.fields import ABSENT, cell_value
from magpy_core.refgraph.kinds import is_a

# Created where they run, without defaults.
_IN_PLACE = frozenset({"<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"})
_MOST = 16  # maximum number of functions with the same code


def _runs(raw: Any, fn: types.FunctionType) -> bool:
    return raw is fn or (is_a(raw, (staticmethod, classmethod)) and raw.__func__ is fn)


def _closes_over(fn: types.FunctionType, held: dict[str, Any]) -> bool:
    cells = zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)
    return all(held.get(name, ABSENT) is cell_value(cell) for name, cell in cells)


def _methods(first: Any, code: types.CodeType) -> list[types.FunctionType]:
    """The functions with this code among the methods of an object's class, or of the object if it is a class."""
    classes = [k for cls in (type(first), first) if is_a(cls, type) for k in cls.__mro__ if kinds.is_heap_type(k)]
    raws = [raw for k in dict.fromkeys(classes) for raw in k.__dict__.values()]
    functions = (raw.__func__ if is_a(raw, (staticmethod, classmethod)) else raw for raw in raws)
    return [fn for fn in functions if type(fn) is types.FunctionType and fn.__code__ is code]


class Unseen(Tracker):
    """Finds and guards the functions of frames without a call event."""

    def called(self, frame: Any) -> None:
        """A frame starts whose code is not known from a call or guard."""
        code: types.CodeType = frame.f_code
        self.context.functions.known_codes.add(code)
        if code.co_name in _IN_PLACE or not code.co_flags & inspect.CO_NEWLOCALS:
            return  # a comprehension, or a class body
        if any(type(o) is types.FunctionType and o.__code__ is code for o in gc.get_objects(0)):
            return  # the region created it
        found = [o for o in gc.get_referrers(code) if type(o) is types.FunctionType and o.__code__ is code]
        if not found and code.co_argcount:
            found = _methods(frame.f_locals.get(code.co_varnames[0]), code)
        if not found:
            self.journal.skip_call(f"native code called {code.co_name}, whose function object was not found")
            return  # gc.freeze hides existing objects
        if len(found) > 1 and code.co_freevars:
            held = frame.f_locals
            found = [fn for fn in found if _closes_over(fn, held)]
        if len(found) > _MOST:
            self.journal.skip_call(f"native code called one of {len(found)} functions with the same code")
            return
        for fn in found:
            self.context.functions.guard(fn)
            if code.co_argcount:
                self._found_in_class(frame.f_locals.get(code.co_varnames[0]), fn)
            elif code.co_flags & inspect.CO_VARARGS:
                for first in frame.f_locals.get(code.co_varnames[code.co_kwonlyargcount], ())[:1]:
                    self._found_in_class(first, fn)

    def _found_in_class(self, first: Any, fn: types.FunctionType) -> None:
        """Guard the class in which native code found the method."""
        for cls in (type(first), first) if is_a(first, type) else (type(first),):
            names = [n for k in cls.__mro__ if kinds.is_heap_type(k) for n, raw in k.__dict__.items() if _runs(raw, fn)]
            for name in dict.fromkeys(names):
                self.context.classes.member(cls, name, self.journal.site)

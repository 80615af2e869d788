"""Places: source locations of one recording as lines of the user's files, and the call paths to them.

Something that happens inside a library is placed at the user's call into it; the library's line is the end of the call
path. Inspecting frames costs microseconds, so it is done for findings and possible findings, never for every event.
Key type: Places.
"""

from __future__ import annotations

import inspect
import os
import types
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from magpy_core.findings import Finding, Location
from magpy_core.knowledge.library_files import PLUMBING
from magpy_core.monitor.events import MaybeSite
from magpy_core.monitor.positions import (
    frame_location,
    frames_inside,
    has_source,
    instruction_location,
    is_user_file,
    return_location,
    site_location,
)
from magpy_core.monitor.record import is_own_file
from magpy_core.refgraph.kinds import is_a

# Every call of a module, or every operator under a mode, runs these, so they are left out of call paths.
_PLUMBING = frozenset(f.__code__ for f in (nn.Module._call_impl, nn.Module._wrapped_call_impl))
_TORCH = os.path.dirname(torch.__file__) + os.sep
_PLUMBING_FILES = tuple(_TORCH + name.replace("/", os.sep) for name in PLUMBING)
_Stack = list[tuple[types.CodeType, int]]


@dataclass(frozen=True)
class Place:
    """A line of the user, and the call path to the event. ``hidden``: the code without source in which it happened;
    ``deeper``: it happened in a callee that is not the user's code."""

    location: Location
    path: tuple[Location, ...] = ()
    hidden: types.CodeType | None = None
    deeper: bool = False


class Places:
    """The places of one recording, from ``begin`` to ``end``. ``fallback`` returns the location of the region itself;
    ``running``: whether the target is running."""

    def __init__(self, fallback: Callable[[], Location]) -> None:
        self._fallback = fallback
        self._outside: types.FrameType | None = None
        self.running = False
        self._caller: Location | None = None
        self._instructions: dict[tuple[types.CodeType, int], Location] = {}
        self._remembered: dict[tuple[int, Any], _Stack] = {}
        self._hidden: dict[Location, types.CodeType] = {}
        self._function: types.CodeType | None = None

    def begin(self, frame: types.FrameType, target: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """``target`` is about to be called by ``frame``, which is MagPy's."""
        self._outside = frame
        self.running = True
        self._function = _function_of(target, args)

    def finished(self) -> None:
        """The target has returned: later findings are placed at its end."""
        self.running = False

    def end(self) -> None:
        """Drop references to the program's frames."""
        self.caller()
        self._outside = None

    # -- now ---------------------------------------------------------------------------------------------------

    def now(self, site: MaybeSite = None, last: Any = None) -> Place:
        """The place of the event being handled. ``site``: its instruction, if known; ``last``: the last known instruction,
        which determines the end of the region after the run."""
        if site is not None and is_user_file(site.code.co_filename):
            return Place(site_location(site))
        if not self.running:
            return Place(self._exit(last))
        place = self._place(self._stack())
        if last is not None and is_user_file(last.code.co_filename):
            exact = site_location(last)  # the event's columns are those of the value that it reads
            if exact.function == place.location.function and _contains(place.location, exact):
                return replace(place, location=exact)
        return place

    def _stack(self) -> _Stack:
        """The code and instruction of each frame in the region, innermost first: the cheap part of a place."""
        return [(frame.f_code, frame.f_lasti) for frame in frames_inside(self._outside)]

    def _place(self, stack: _Stack) -> Place:
        hidden = None
        for depth, (code, offset) in enumerate(stack):
            if is_user_file(code.co_filename):
                return Place(self._at(code, offset), (), hidden, deeper=depth > 0)
            if hidden is None and _is_hidden(code):
                hidden = code
        return Place(self.caller() or self._fallback(), (), hidden, deeper=True)

    def user_line(self, site: MaybeSite) -> tuple[str, int] | None:
        """The user's line that called the library containing ``site``; cheap enough for every recorded operation."""
        if site is None or is_user_file(site.code.co_filename):
            return None
        for frame in frames_inside(self._outside):
            if is_user_file(frame.f_code.co_filename):
                return frame.f_code.co_filename, frame.f_lineno or 0
        caller = self.caller()
        return None if caller is None else (caller.file, caller.range.start.line + 1)

    def outer(self) -> tuple[types.CodeType, int] | None:
        """The code and instruction that the region's own function is at."""
        stack = self._stack() if self.running else []
        return stack[-1] if stack else None

    def path(self, location: Location) -> tuple[Location, ...]:
        """The call path from the region's call to the current event."""
        return self._path(location, self._stack() if self.running else [])

    def _path(self, location: Location, stack: _Stack) -> tuple[Location, ...]:
        inside = [self._at(*step) for step in reversed(stack) if not _is_plumbing(step[0])]
        caller = self.caller()
        is_stretch = caller is not None and _is_same_function(caller, inside[:1] or [location])  # it may have returned
        path = inside if caller is None or is_stretch else [caller, *inside]
        if inside and (path[-1].file, path[-1].function) == (location.file, location.function):
            path[-1] = location  # the event's columns are more exact than the frame's
        elif location not in path:
            path.append(location)
        return tuple(path)

    def raised(self, error: BaseException) -> Place | None:
        """Where ``error`` was raised: the user's innermost line in its traceback."""
        inside = []
        tb = error.__traceback__
        while tb is not None and tb.tb_frame is not self._outside:
            tb = tb.tb_next
        while tb is not None:
            inside.append((tb.tb_frame.f_code, instruction_location(tb.tb_frame.f_code, tb.tb_lasti)))
            tb = tb.tb_next
        inside = [(code, at) for code, at in inside[1:] if not (_is_plumbing(code) or is_own_file(code.co_filename))]
        users = [at for code, at in inside if is_user_file(code.co_filename)]
        if not users:
            return None
        caller = self.caller()
        return Place(users[-1], (*((caller,) if caller else ()), *(at for _, at in inside)))

    def reported(self, place: Place) -> Location:
        """Note that ``place`` is shown to the user; returns its location."""
        if place.hidden is not None:
            self._hidden.setdefault(place.location, place.hidden)
        return place.location

    def caller(self) -> Location | None:
        """The user's call of the region."""
        if self._caller is None and self._outside is not None:
            frame = self._outside.f_back
            while frame is not None and (not is_user_file(frame.f_code.co_filename) or self._stands_in(frame.f_code)):
                frame = frame.f_back
            self._caller = None if frame is None else frame_location(frame)
        return self._caller

    def _stands_in(self, code: types.CodeType) -> bool:
        """Whether ``code`` is another one in the place of the region's function: that of a step function."""
        own = self._function
        if own is None or code is own:
            return False
        return (code.co_filename, code.co_qualname, code.co_firstlineno) == (
            own.co_filename,
            own.co_qualname,
            own.co_firstlineno,
        )

    def called_at(self) -> str:
        """``train.py:81``, the user's line that calls the region; empty if there is none."""
        called = self.caller()
        return "" if called is None else f"{os.path.basename(called.file)}:{called.range.start.line + 1}"

    def _at(self, code: types.CodeType, offset: int) -> Location:
        key = (code, offset)
        found = self._instructions.get(key)
        if found is None:
            found = self._instructions[key] = instruction_location(code, offset)
        return found

    def _exit(self, site: MaybeSite) -> Location:
        """The end of the region: its ``return`` if unambiguous, else its definition."""
        code = self._function
        if code is None or not is_user_file(code.co_filename):
            return self.caller() or self._fallback()
        line = site.lineno if site is not None and site.code is code else 0
        return return_location(code, line) or self._fallback()

    # -- later -------------------------------------------------------------------------------------------------

    def remember(self, subject: Any, site: MaybeSite) -> None:
        """Keep the place of a read or write of ``subject`` (a Source) that may be reported later, if it is not the site's
        line."""
        if site is None or is_user_file(site.code.co_filename):
            return
        key = (id(subject), site)
        if key not in self._remembered:
            self._remembered[key] = self._stack()

    def of(self, subject: Any, sites: list[Any]) -> Place | None:
        """Where ``subject`` was changed or read: the first of ``sites`` with a line of the user."""
        for site in sites:
            if site is None:
                continue
            if is_user_file(site.code.co_filename):
                return Place(site_location(site))
            stack = self._remembered.get((id(subject), site))
            if stack is not None:
                place = self._place(stack)
                return replace(place, path=self._path(place.location, stack))
        return None

    def hidden_findings(self, region_id: str) -> list[Finding]:
        """One MP911 for each line that calls code without source."""
        return [
            Finding(
                "MP911",
                f"`{code.co_qualname}` has no source code ({_why_hidden(code)}): its findings are reported at this call.",
                location,
                region=region_id,
            )
            for location, code in self._hidden.items()
        ]


def _contains(outer: Location, inner: Location) -> bool:
    return outer.file == inner.file and outer.range.start <= inner.range.start and inner.range.end <= outer.range.end


def _function_of(target: Any, args: tuple[Any, ...]) -> types.CodeType | None:
    """The code that a region runs: that of the function, or of the module's ``forward``."""
    if is_a(target, types.FunctionType) and target.__qualname__.startswith("Module.") and args:
        target = args[0]  # the runner's regions are Module.__call__ with the module as its first argument
    if is_a(target, nn.Module):
        target = target.forward
    inner = inspect.unwrap(target)
    code = getattr(getattr(inner, "__func__", inner), "__code__", None)
    return code if isinstance(code, types.CodeType) else None


def _is_same_function(caller: Location, target: list[Location]) -> bool:
    """Whether the region is a part of its caller's statements."""
    return any((one.file, one.function) == (caller.file, caller.function) for one in target)


def _is_plumbing(code: types.CodeType) -> bool:
    return code in _PLUMBING or code.co_filename.startswith(_PLUMBING_FILES)


def _is_hidden(code: types.CodeType) -> bool:
    """Whether this is user code without source. Generated methods (as in dataclasses) do not count."""
    name = code.co_filename
    if name.startswith("<") and not has_source(name):
        generated = code.co_name.startswith("__") and code.co_name.endswith("__")
        return not name.startswith("<frozen ") and not generated
    return not has_source(name)


def _why_hidden(code: types.CodeType) -> str:
    name = code.co_filename
    return f"compiled at run time, in {name}" if name.startswith("<") else f"{name} does not exist"

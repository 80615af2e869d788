"""Recording: :class:`record` runs a block with every Python frame of this thread instrumented, reporting to an Observer.

    with record(observer) as recording:
        result = function(*args)
    recording.observer_failure      # None, or the exception that ended the recording early

The block's own frame is not instrumented; functions it calls are. A failure of the observer (or of the monitor) ends the
recording, never the program. Key type: :class:`record`.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from _thread import get_ident
from functools import partial
from types import CodeType, TracebackType
from typing import Final

from magpy_core._compat.cpython.own_builtins import OWN_BUILTINS
from magpy_core._compat.torch.dynamo import Marks, bypass, lift_marks, lift_marks_of, restore_marks, torch_has_compiled
from magpy_core._compat.torch.eval_frame import Frame, Interception, disable, never_intercepted, prepare_clone, restore
from magpy_core._compat.versions import PY314, check_versions
from magpy_core.monitor.clone import instrument
from magpy_core.monitor.events import Observer
from magpy_core.monitor.hooks import Handlers, active, belongs_to_user, contain
from magpy_core.stretches.originals import cut_codes, original_of

__builtins__ = OWN_BUILTINS  # type: ignore[assignment]

OWN_DIRECTORY: Final[str] = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_CO_OPTIMIZED: Final = 0x1

_clones: dict[int, tuple[CodeType, CodeType | None, int]] = {}
"""id(original code) -> (the original, kept alive; its clone, or None if it must not be instrumented; how many references to
the original there are because of this)."""

_HEADROOM: Final = 200
_SWITCH_INTERVAL: Final = 1e-4


class _ProcessWide:
    """Process-wide settings while any thread records: the first recording changes them, the last one restores them.

    The recursion limit is raised, so that hooks use no levels of the user's code. The thread switch interval is shortened:
    torch releases the GIL whenever an instrumented frame starts, and while another thread is busy would get it back only
    after that interval, 5 ms. Code that the user's own torch.compile marked as skipped is made visible.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._recordings = 0
        self._raised_limit = 0
        self._interval = self._short_interval = 0.0
        self._marks: Marks = []

    def enter(self) -> None:
        with self._lock:
            if self._recordings == 0:
                if torch_has_compiled():
                    self._marks = lift_marks(keep=never_intercepted())
                else:
                    self._marks = lift_marks_of(cut_codes())
                self._raised_limit = sys.getrecursionlimit() + _HEADROOM
                sys.setrecursionlimit(self._raised_limit)
                self._interval = sys.getswitchinterval()
                sys.setswitchinterval(min(self._interval, _SWITCH_INTERVAL))
                self._short_interval = sys.getswitchinterval()
            self._recordings += 1

    def leave(self) -> None:
        with self._lock:
            self._recordings -= 1
            if self._recordings:
                return
            _forget_dead_code()
            if sys.getrecursionlimit() == self._raised_limit:  # otherwise the user has set it meanwhile
                sys.setrecursionlimit(self._raised_limit - _HEADROOM)
            if sys.getswitchinterval() == self._short_interval:
                sys.setswitchinterval(self._interval + 5e-7)  # setswitchinterval truncates to microseconds
            restore_marks(self._marks)
            self._marks = []

    def user_setting(self, fn: object, found: float) -> float:
        """What ``sys.getrecursionlimit`` or ``sys.getswitchinterval`` would return without a recording."""
        if fn is sys.getrecursionlimit and found == self._raised_limit:
            return found - _HEADROOM
        return self._interval if fn is sys.getswitchinterval and found == self._short_interval else found


_process_wide = _ProcessWide()
user_setting = _process_wide.user_setting


_IMPORT_SYSTEM: Final = "<frozen importlib"


def is_own_file(filename: str) -> bool:
    """Whether code from this file is never instrumented: MagPy's own, and the import system's."""
    return filename.startswith((OWN_DIRECTORY, _IMPORT_SYSTEM))


def clone_of(code: CodeType) -> CodeType | None:
    """The clone of a code object, created once; None if it must not be instrumented. Frames of the import system start with
    an event, but are never replaced.

    Only functions are instrumented: module and class bodies keep their variables in a dict that the clone's frame lacks.
    """
    known = _clones.get(id(code))
    if known is not None:
        return known[1]
    clone, before = None, sys.getrefcount(code)
    if code.co_filename.startswith(_IMPORT_SYSTEM):
        clone = code
    elif code.co_flags & _CO_OPTIMIZED and not is_own_file(code.co_filename):
        clone = instrument(bypass(code) or original_of(code) or code)
        prepare_clone(clone)
    _clones[id(code)] = (code, clone, 0)
    _clones[id(code)] = (code, clone, sys.getrefcount(code) - before)
    return clone


def _forget_dead_code() -> None:
    """Drop clones of code that nothing but its clone refers to (code objects have no weak references to each other: a clone
    names its original in each of its sites)."""
    in_here = 1 if PY314 else 2  # the loop's variable; the argument, unless it is borrowed
    dead = [key for key, (code, _, ours) in _clones.items() if sys.getrefcount(code) <= ours + in_here]
    for key in dead:
        del _clones[key]


class ForkedChild(RuntimeError):
    """The process forked during a recording, which continues in the parent only."""


def _after_fork() -> None:
    for handlers in active.values():
        handlers.fail(ForkedChild("this process was forked during a recording"))


os.register_at_fork(after_in_child=_after_fork)


def _text(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error, chain=False))
    except Exception as another:  # the standard library runs with the program's builtins, which it may have replaced
        return f"{type(error).__name__} (its traceback could not be formatted: {type(another).__name__})"


class record:
    """Context manager: instrument the functions that this thread calls inside the block, and report to ``observer``.

    Per thread, and nestable: while an inner recording runs, only it gets the events. ``observer_failure`` is the first
    exception that a method of the observer, or the monitor itself, raised: nothing is reported after it. It has no
    traceback, which would keep the user's objects alive; ``failure_traceback`` has its text.
    """

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.failure_traceback = ""
        self._handlers = Handlers(observer, self.fail)
        self._outer: Handlers | None = None
        self._interception = Interception(clone_of, self._enter, partial(contain, self._handlers))

    @property
    def observer_failure(self) -> BaseException | None:
        return self._handlers.error or self._interception.error

    def fail(self, error: BaseException) -> None:
        """End the recording because of ``error`` (the first one is kept); the program continues."""
        handlers = self._handlers
        if not self.failure_traceback:
            handlers.error = error
            handlers[:] = [None] * len(handlers)
            self._interception.stop()
            self.failure_traceback = _text(error)
            if not belongs_to_user(error):
                error.__traceback__ = error.__context__ = None

    def _enter(self, frame: Frame) -> bool:
        enters = self.observer_failure is None and self.observer.enter_frame(frame)
        return enters and not frame.f_code.co_filename.startswith(_IMPORT_SYSTEM)

    def __enter__(self) -> record:
        token = disable()  # an outer recording must not see what follows
        try:
            check_versions()
            _process_wide.enter()
        except BaseException:
            restore(token)
            raise
        thread = get_ident()
        self._outer = active.get(thread)
        active[thread] = self._handlers
        self._interception.install(token)
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        disable()  # an outer recording must not see the rest either
        thread = self._interception.thread
        if self._outer is None:
            active.pop(thread, None)
        else:
            active[thread] = self._outer
        pending = self._interception.remove()
        _process_wide.leave()  # last: removing a code object's cache entries removes torch's mark with them
        if pending is not None and exc is None:
            raise pending

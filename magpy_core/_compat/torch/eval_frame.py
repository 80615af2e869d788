"""Frame interception on top of torch's private frame-evaluation hook (``torch._C._dynamo.eval_frame``).

An :class:`Interception` sees every Python frame that starts on its thread, called from Python or from C, and may replace its
code object by another one (a *clone*). How torch's hook works:

* A callback's result is stored as a *cache entry* on the original code object. Later frames of that code do not reach the
  callback: the entry's guard decides. MagPy's guard delegates to the interception of the running thread, so an entry has no
  effect without an active interception. Entries are removed when the last interception ends (:func:`_release`). They can't
  be removed one by one, so on code with entries of the user's own torch.compile, MagPy's are stored beforehand in another
  list (torch's "precompile entries").
* A guard can't distinguish a starting generator from one being resumed, and a started frame must never be replaced. Entries
  on generator code therefore never match; :func:`generator_started`, which clones of generators call first, removes them
  before they accumulate.
* An intercepted call is a C call, but a plain one is not: deep recursion would end in RecursionError on 3.12 and 3.13,
  whatever the recursion limit, and in a crash on 3.11. If an interception is stopped or the stack is too deep, the next
  frame switches interception off for the thread (:func:`_escaping`), and eager mode continues from there.
* An exception in a callback would reach user code and corrupt torch's count of intercepting threads: nothing here raises.
  The user's exceptions (Ctrl-C) are raised by the frame that was about to start.
* A code object with the SKIP strategy is evaluated without a callback; with recursive SKIP, so is everything it calls.
  :func:`never_intercept` sets this on MagPy's hot functions.

Key types: :class:`Frame` (a frame about to start), :class:`Interception`.
"""

from __future__ import annotations

import dis
import os
import sys
import threading
from _thread import get_ident
from collections import deque
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar, cast

from torch._C._dynamo.eval_frame import (
    _debug_get_cache_entry_list,
    _debug_get_precompile_entries,
    _FrameAction,
    _FrameExecStrategy,
    _load_precompile_entry,
    _reset_precompile_entries,
    reset_code,
    set_eval_frame,
)
from torch._C._dynamo.guards import RootGuardManager

from magpy_core._compat.cpython.assembler import Instr, assemble, decode
from magpy_core._compat.cpython.own_builtins import OWN_BUILTINS
from magpy_core._compat.torch.dynamo import bypass, compiled_codes, marks_of, restore_marks, set_mark, torch_has_compiled
from magpy_core._compat.versions import PY312, PY313

__builtins__ = OWN_BUILTINS  # type: ignore[assignment]

_F = TypeVar("_F", bound=Callable[..., Any])

_CO_OPTIMIZED = 0x1
_GENERATOR = 0x20 | 0x80 | 0x200  # CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR
_MAX_GENERATOR_ENTRIES = 32

Token = Any
"""What :func:`disable` returns and :func:`restore` takes."""


class Frame:
    """A frame about to start: ``f_code`` (the original code) and ``f_locals`` (arguments and contents of cells by name).

    It is not a ``types.FrameType`` and has no ``f_globals``, ``f_back`` or ``f_lasti``, which torch's cache guard does not
    provide. Events can use the real frame (``sys._getframe``).
    """

    __slots__ = ("f_code", "f_locals")

    def __init__(self, f_code: CodeType, f_locals: dict[str, Any]) -> None:
        self.f_code = f_code
        self.f_locals = f_locals


class _Answer:
    """The result of a frame callback (with the fields of ``torch._dynamo.types.ConvertFrameReturn``)."""

    frame_exec_strategy = _FrameExecStrategy(_FrameAction.DEFAULT, _FrameAction.DEFAULT)
    apply_to_code = False
    skip_reason = None

    def __init__(self, guarded_code: _GuardedClone | None) -> None:
        self.guarded_code = guarded_code


class _CompileId:
    """A replacement for torch's compile id, which a cache entry only stores and prints."""

    frame_id = -1
    frame_compile_id = -1

    def __str__(self) -> str:
        return "magpy"


class _GuardManager:
    """The guard of a cache entry. torch aborts the process if either root is missing, and sets the two back references."""

    def __init__(self, guard: Callable[[dict[str, Any]], bool] | None) -> None:
        self.root = RootGuardManager()
        if guard is None:  # never matches: a frame's variables are not None
            self.root.add_none_match_guard(["a generator starts"], None)
        else:
            self.root.add_lambda_guard(guard, ["magpy recording is active"], None)
        self.diff_guard_root = self.root
        self.cache_entry: Any = None
        self.extra_state: Any = None
        self.id_matched_objs: dict[str, Any] = {}


class _GuardedClone:
    """A clone with its guard (with the fields of ``torch._dynamo.types.GuardedCode``)."""

    compile_id = _CompileId()
    trace_annotation = "magpy"

    def __init__(self, clone: CodeType, guard: Callable[[dict[str, Any]], bool] | None) -> None:
        self.code = clone
        self.guard_manager = _GuardManager(guard)


class RecursionTooDeep(RuntimeError):
    """A recording ended because too many nested frames were running."""


AT_LIMIT = RecursionError("the program is at its recursion limit")
"""Replaces an exception that can't be handled at the recursion limit."""

MAX_DEPTH = 350 if PY312 and not PY313 else 1500
"""Maximum number of frames inside an interception: 3.12 allows 1500 nested C calls, two to four per frame (3.13: 10,000); a
frame uses 1 to 2 KB of C stack, which 3.11 does not limit."""

_LAST_BEFORE_START = 0 if PY313 else -1
"""``f_lasti`` of a frame about to start: in 3.13 the next instruction, in earlier versions the one before it."""

_PLAIN = _Answer(None)
_marked: dict[int, CodeType] = {}
_lock = threading.RLock()
_active: dict[int, Interception] = {}
"""The innermost interception of each thread."""
_entries: dict[int, CodeType] = {}
"""Code objects that may hold a cache entry of MagPy, by id."""
_preloaded: dict[int, CodeType] = {}
"""Code objects that hold a precompile entry of MagPy, by id."""


def never_intercept(function: _F) -> _F:
    """Mark a Python function: its frames, and all frames that they call, are evaluated without interception."""
    code = cast(FunctionType, function).__code__
    assert bypass(code) is None, "a wrapper's code is shared by everything that torch's compiler wraps"
    _marked[id(code)] = code
    set_mark(code, (1, 1))
    return function


def never_intercepted() -> set[int]:
    """The ids of the code objects that :func:`never_intercept` marked."""
    return set(_marked)


def hide(function: _F) -> _F:
    """Exclude a function of MagPy from the user's torch.compile: it is neither inlined into its callers nor compiled.
    Functions that it calls are not excluded (:func:`never_intercept` does that)."""
    set_mark(cast(FunctionType, function).__code__, (1, 0))
    function._torchdynamo_disable = True  # type: ignore[attr-defined]
    function._torchdynamo_disable_msg = "MagPy runs it"  # type: ignore[attr-defined]
    return function


def prepare_clone(clone: CodeType) -> None:
    """Must be called once for a new clone: its own frames (resumed generators) are not intercepted, those it calls are.

    Intercepting a resumed generator would not only be slow: torch keeps the frame's variables alive during the callback, and
    a signal could arrive in the callback instead of in the generator.
    """
    set_mark(clone, (1, 0))


class Interception:
    """Frame interception on one thread, from :meth:`install` to :meth:`remove`; nestable (only the innermost is active).

    ``clone_of(code)`` returns the clone to evaluate instead of ``code``, or None for no interception; ``enter(frame)`` then
    decides for one frame. ``failed`` gets the exceptions of both, and re-raises the user's.
    """

    def __init__(
        self,
        clone_of: Callable[[CodeType], CodeType | None],
        enter: Callable[[Frame], bool],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._clone_of = clone_of
        self._enter = enter
        self._failed = failed
        self._declined: CodeType | None = None
        self._pending: BaseException | None = None
        self._outer: Interception | None = None
        self._token: Token = None
        self._stopping = False
        self.error: BaseException | None = None
        self._base_depth = 0
        self._starts_left = 0
        self.thread = -1

    def install(self, token: Token) -> None:
        """Start on the current thread, where interception is off; ``token`` is the result of :func:`disable`."""
        self._token = token
        self.thread = get_ident()
        _preload(self._clone_of)
        self._base_depth = _depth()
        self._starts_left = MAX_DEPTH
        with _lock:
            self._outer = _active.get(self.thread)
            _active[self.thread] = self
        set_eval_frame(_CALLBACK)

    def stop(self) -> None:
        """Make the next frame that starts switch interception off; can be called from anywhere on the thread."""
        self._stopping = True

    def remove(self) -> BaseException | None:
        """Stop, and restore the outer interception of this thread.

        Returns an exception of the user (Ctrl-C in a callback) that no frame has raised.
        """
        set_eval_frame(None)
        with _lock:
            if self._outer is None:
                _active.pop(self.thread, None)
            else:
                _active[self.thread] = self._outer
            _release()
        set_eval_frame(self._token)
        return self._pending

    def _count_start(self) -> None:
        """Stop if the stack is too deep. It grows by at most one frame per start, so it is not counted each time."""
        self._starts_left -= 1
        if self._starts_left > 0 or self._stopping:
            return
        depth = _depth() - self._base_depth
        self._starts_left = MAX_DEPTH - depth
        if self._starts_left <= 0:
            self.stop()
            self._failed(RecursionTooDeep(f"more than {MAX_DEPTH} nested calls inside a recording"))

    def _frame_starts(self, frame: Any) -> _Answer:
        """The callback: for a frame whose code has no matching cache entry."""
        code: CodeType = frame.f_code
        declined, self._declined = self._declined, None
        replaceable = frame.f_lasti <= _LAST_BEFORE_START and code.co_flags & _CO_OPTIMIZED
        answer = _PLAIN
        try:
            if not self._stopping and declined is not code:  # otherwise its entry's guard has just declined
                self._count_start()
                if replaceable and not self._stopping:
                    clone = self._clone_of(code)
                    if clone is not None and self._starts(code, frame.f_locals):
                        answer = _replace_by(code, clone, None if code.co_flags & _GENERATOR else _guard_for(code))
        except BaseException as error:
            self._contain(error)
        return self._escape(code) if self._stopping and replaceable else answer

    def _starts(self, code: CodeType, f_locals: dict[str, Any]) -> bool:
        """Whether the frame's code is to be replaced."""
        if not self._enter(Frame(code, f_locals)):
            return False  # guards of other code get the same dict
        f_locals.clear()  # torch keeps it until the frame ends, but the program may empty cells that are in it before
        return True

    def _escape(self, code: CodeType) -> _Answer:
        """Make the frame that is about to start switch interception off, and raise the pending exception."""
        try:
            answer = _replace_by(code, _escaping(code, self._pending), None)
        except Exception as error:  # the next frame tries again
            self._contain(error)
            return _PLAIN
        self._pending = None
        return answer

    def _contain(self, error: BaseException) -> None:
        """Keep an exception inside a callback or guard; the user's is raised by the next frame that starts."""
        if self.error is None:
            self.error = AT_LIMIT  # first, because nothing can be called at the recursion limit
        self._stopping = True
        try:
            self._failed(error)
        except RecursionError:
            pass  # the user's code is at the limit: its next call raises
        except BaseException as users:
            self._pending = users

    def _guard_holds(self, code: CodeType, f_locals: dict[str, Any]) -> bool:
        """The guard: for a frame whose code has a cache entry of MagPy."""
        try:
            self._count_start()
            if not self._stopping and self._starts(code, f_locals):
                return True
        except BaseException as error:
            self._contain(error)
        self._declined = code
        return False


def _replace_by(code: CodeType, clone: CodeType, guard: Callable[[dict[str, Any]], bool] | None) -> _Answer:
    _entries[id(code)] = code
    return _Answer(_GuardedClone(clone, guard))


def _depth() -> int:
    frame: FrameType | None = sys._getframe(1)
    depth = 0
    while frame is not None:
        depth += 1
        frame = frame.f_back
    return depth


def _escaping(code: CodeType, error: BaseException | None) -> CodeType:
    """``code`` that first switches interception off for the thread, and then raises ``error`` if given.

    Only an intercepted frame can do that: functions called by MagPy run with interception off, and it is restored after.
    """
    decoded = decode(code)
    start = next(k for k, instr in enumerate(decoded.instrs) if instr.op in _STARTS)
    first = decoded.instrs[start]
    consts = (*code.co_consts, set_eval_frame, None, _raise, error)
    added = []
    for index in range(len(code.co_consts), len(consts) if error is not None else len(consts) - 2, 2):
        steps = [("LOAD_CONST", index), ("LOAD_CONST", index + 1), ("PRECALL", 0), ("CALL", 0), ("POP_TOP", 0)]
        added += [Instr(dis.opmap[name], arg, first.pos) for name, arg in steps if name in dis.opmap]
    instrs = [*decoded.instrs[:start], *added, *decoded.instrs[start:]]
    return assemble(decoded, instrs, {first: added[0]}, consts, 2)


def _raise(error: BaseException) -> None:
    raise error.with_traceback(None)


_STARTS = frozenset((dis.opmap["RETURN_GENERATOR"], dis.opmap["RESUME"]))


def _callback(frame: Any, cache_entry: Any, frame_state: Any) -> _Answer:
    interception = _active.get(get_ident())
    return _PLAIN if interception is None else interception._frame_starts(frame)


_CALLBACK: Any = _callback


def _guard_for(code: CodeType) -> Callable[[dict[str, Any]], bool]:
    def guard(f_locals: dict[str, Any]) -> bool:
        interception = _active.get(get_ident())
        return False if interception is None else interception._guard_holds(code, f_locals)

    return guard


def generator_started(code: CodeType) -> None:
    """Called by a generator's clone before anything else: removes the entries of earlier starts from its code."""
    if len(_debug_get_cache_entry_list(code)) > _MAX_GENERATOR_ENTRIES:
        with _lock:
            # Interceptions on other threads may be reading the entries; new ones wait for the lock.
            if _active.keys() == {get_ident()} and not _torch_compiling_elsewhere():
                reset_code(code)


def _preload(clone_of: Callable[[CodeType], CodeType | None]) -> None:
    """Add a precompile entry to code that the user's torch.compile has compiled: these can be removed separately."""
    for code in compiled_codes():
        if id(code) in _preloaded or not _debug_get_cache_entry_list(code) or _debug_get_precompile_entries(code):
            continue
        clone = clone_of(code)
        if clone is not None and not code.co_flags & _GENERATOR:
            with _lock:
                if id(code) not in _preloaded:
                    _preloaded[id(code)] = code
                    _load_precompile_entry(code, cast(Any, _GuardManager(_guard_for(code))), clone)


def _is_ours(entry: Any) -> bool:
    return isinstance(entry.guard_manager, _GuardManager)


def _retire(code: CodeType) -> None:
    """Invalidate MagPy's entries on code that also holds entries of torch.compile, as torch invalidates its own."""
    from torch._dynamo.guards import DeletedGuardManagerWrapper

    for entry in _debug_get_cache_entry_list(code):
        if _is_ours(entry):
            extra_state: Any = entry.guard_manager.extra_state
            extra_state.invalidate(entry, DeletedGuardManagerWrapper("the recording by MagPy is over"))


def _after_fork() -> None:
    """In a forked child, stop its copies of interceptions; no other thread holds the lock."""
    global _lock
    _lock = threading.RLock()
    for interception in _active.values():
        interception.stop()


os.register_at_fork(after_in_child=_after_fork)


def _torch_compiling_elsewhere() -> bool:
    """Whether another thread runs torch's compiler, which holds raw pointers into caches of code objects."""
    if "torch._dynamo.convert_frame" not in sys.modules:
        return False
    frames = sys._current_frames()
    del frames[get_ident()]  # a frame that refers to itself would keep its callers' locals until a collection
    for frame in frames.values():
        inner: FrameType | None = frame
        while inner is not None:
            if "_dynamo" in inner.f_code.co_filename:
                return True
            inner = inner.f_back
    return False


def _release() -> None:
    """Remove MagPy's entries from code objects, unless another thread may be reading them (then the next release does)."""
    if _active or not (_entries or _preloaded) or _torch_compiling_elsewhere():
        return
    alone = []
    for code in _entries.values():
        if all(map(_is_ours, _debug_get_cache_entry_list(code))):
            alone.append(code)
        else:
            _retire(code)
    preloaded = list(_preloaded.values())
    marks = marks_of(alone) if torch_has_compiled() else []
    _entries.clear()
    _preloaded.clear()
    # C-level loops: no thread switch between the check above and the last reset.
    deque(map(reset_code, alone), maxlen=0)
    deque(map(_reset_precompile_entries, preloaded), maxlen=0)
    restore_marks(marks)


def disable() -> Token:
    """Switch interception off on this thread (cheap, for hot paths); pass the result to :func:`restore`."""
    return set_eval_frame(None)


def restore(token: Token) -> None:
    """Undo :func:`disable`."""
    set_eval_frame(token)


never_intercept(_callback)
never_intercept(generator_started)

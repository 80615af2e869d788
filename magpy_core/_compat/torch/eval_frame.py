"""Frame interception on top of torch's private frame-evaluation hook (``torch._C._dynamo.eval_frame``).

An :class:`Interception` sees every Python frame that starts on its thread, entered from Python or from C, and may have
another code object (a *clone* of the frame's own) evaluated in its place. What torch's hook does underneath:

* A callback's answer is kept as a *cache entry* on the original code object. Later frames of that code do not reach the
  callback: the entry's guard decides. Our guard asks the interception of the running thread, so an entry means nothing
  when no interception is active. Entries are taken off again when the last interception ends (:func:`_release`). They
  cannot be taken off one by one, so code that holds entries of the user's own torch.compile gets ours in another list
  (torch's "precompile entries") beforehand.
* A guard cannot tell a starting generator from one being resumed, and a started frame must never be replaced. Entries on
  generator code therefore never match; :func:`generator_started`, which clones of generators call first, removes them
  before they pile up.
* An intercepted call is a C call, where a plain one is not: deep recursion would end in RecursionError on 3.12 and 3.13,
  whatever the recursion limit, and in a crash on 3.11. An interception that is told to stop, or finds the stack too deep,
  has the next frame switch interception off for the thread (:func:`_escaping`), and plain Python goes on from there.
* An exception in a callback reaches user code, and leaves torch's count of intercepting threads wrong: nothing here raises.
  What belongs to the user (Ctrl-C) is raised by the frame that was about to start.
* A code object with the SKIP strategy is evaluated without asking anybody; with recursive SKIP so is everything it calls.
  That is what :func:`never_intercept` sets on our own hot functions.

Key types: :class:`Frame` (what a starting frame shows), :class:`Interception`.
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
    """A frame about to start: ``f_code`` (the original code) and ``f_locals`` (its arguments and cells' contents by name).

    It is not a ``types.FrameType``: there is no ``f_globals``, ``f_back`` or ``f_lasti``, because torch's cache guard does
    not give them. Events can use the real frame (``sys._getframe``) instead.
    """

    __slots__ = ("f_code", "f_locals")

    def __init__(self, f_code: CodeType, f_locals: dict[str, Any]) -> None:
        self.f_code = f_code
        self.f_locals = f_locals


class _Answer:
    """What a frame callback returns (shape of ``torch._dynamo.types.ConvertFrameReturn``)."""

    frame_exec_strategy = _FrameExecStrategy(_FrameAction.DEFAULT, _FrameAction.DEFAULT)
    apply_to_code = False
    skip_reason = None

    def __init__(self, guarded_code: _Delivery | None) -> None:
        self.guarded_code = guarded_code


class _CompileId:
    """Stands where torch expects a compile id; a cache entry only stores and prints it."""

    frame_id = -1
    frame_compile_id = -1

    def __str__(self) -> str:
        return "magpy"


class _GuardManager:
    """The guard of a cache entry. torch needs both roots, or it aborts the process; it sets the two back references."""

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


class _Delivery:
    """A clone for a code object, as torch wants it (shape of ``torch._dynamo.types.GuardedCode``)."""

    compile_id = _CompileId()
    trace_annotation = "magpy"

    def __init__(self, clone: CodeType, guard: Callable[[dict[str, Any]], bool] | None) -> None:
        self.code = clone
        self.guard_manager = _GuardManager(guard)


class RecursionTooDeep(RuntimeError):
    """So many frames were running inside a recording that it had to end."""


AT_LIMIT = RecursionError("the program is at its recursion limit")
"""Stands for an exception that could not even be handled."""

MAX_DEPTH = 350 if PY312 and not PY313 else 1500
"""Frames inside an interception: 3.12 allows 1500 nested C calls, two to four a frame (3.13 allows 10,000); a frame takes
1 to 2 KB of C stack, and 3.11 does not count."""

_LAST_BEFORE_START = 0 if PY313 else -1
"""``f_lasti`` of a frame about to start: 3.13 keeps the instruction to come, earlier versions the one before it."""

_PLAIN = _Answer(None)
_marked: dict[int, CodeType] = {}
_lock = threading.RLock()
_active: dict[int, Interception] = {}
"""The innermost interception of each thread."""
_entries: dict[int, CodeType] = {}
"""Code objects that may hold a cache entry of ours, by id."""
_preloaded: dict[int, CodeType] = {}
"""Code objects that hold a precompile entry of ours, by id."""


def never_intercept(function: _F) -> _F:
    """Mark a Python function: its frames, and all that they call, are evaluated without interception. Costs nothing."""
    code = cast(FunctionType, function).__code__
    assert bypass(code) is None, "a wrapper's code is shared by everything that torch's compiler wraps"
    _marked[id(code)] = code
    set_mark(code, (1, 1))
    return function


def never_intercepted() -> set[int]:
    """The ids of the code objects that :func:`never_intercept` marked."""
    return set(_marked)


def hide(function: _F) -> _F:
    """Make a user's torch.compile leave a function of ours alone: not traced from its callers, nor looked at when it runs.
    What it calls is not hidden (:func:`never_intercept` does that)."""
    set_mark(cast(FunctionType, function).__code__, (1, 0))
    function._torchdynamo_disable = True  # type: ignore[attr-defined]
    function._torchdynamo_disable_msg = "MagPy runs it"  # type: ignore[attr-defined]
    return function


def prepare_clone(clone: CodeType) -> None:
    """To be called once on a new clone: frames that run it (resumed generators) are not intercepted, those it calls are.

    Being asked for a resumed generator would cost more than time: torch holds the frame's variables alive meanwhile, and a
    signal could arrive in the callback instead of in the generator.
    """
    set_mark(clone, (1, 0))


class Interception:
    """Frame interception on one thread, from :meth:`install` to :meth:`remove`; nestable (the inner one has the thread).

    ``clone_of(code)`` gives the clone to evaluate instead of ``code``, or None to leave its frames alone;
    ``enter(frame)`` then decides for one frame. ``failed`` is told what either of them raised; it raises what is the user's.
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
        """Start on the current thread, where interception is off; ``token`` is what switching it off gave."""
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
        """Let the next frame that starts switch interception off; callable from anywhere on the thread."""
        self._stopping = True

    def remove(self) -> BaseException | None:
        """Stop; what was installed on this thread before is in force again.

        Returns an exception of the user's (Ctrl-C in a callback of ours) that no frame was there to raise.
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
        """Stop if the stack is too deep: it grows by at most one frame a start, so it need not be counted each time."""
        self._starts_left -= 1
        if self._starts_left > 0 or self._stopping:
            return
        depth = _depth() - self._base_depth
        self._starts_left = MAX_DEPTH - depth
        if self._starts_left <= 0:
            self.stop()
            self._failed(RecursionTooDeep(f"more than {MAX_DEPTH} nested calls inside a recording"))

    def _starts(self, frame: Any) -> _Answer:
        """The callback proper: a frame whose code has no matching cache entry."""
        code: CodeType = frame.f_code
        declined, self._declined = self._declined, None
        replaceable = frame.f_lasti <= _LAST_BEFORE_START and code.co_flags & _CO_OPTIMIZED
        answer = _PLAIN
        try:
            if not self._stopping and declined is not code:  # otherwise its entry's guard has just asked
                self._count_start()
                if replaceable and not self._stopping:
                    clone = self._clone_of(code)
                    if clone is not None and self._enter(Frame(code, frame.f_locals)):
                        answer = _deliver(code, clone, None if code.co_flags & _GENERATOR else _guard_for(code))
        except BaseException as error:
            self._contain(error)
        return self._escape(code) if self._stopping and replaceable else answer

    def _escape(self, code: CodeType) -> _Answer:
        """Have the frame that is about to start switch interception off, and raise what is pending."""
        try:
            answer = _deliver(code, _escaping(code, self._pending), None)
        except Exception as error:  # another frame will do
            self._contain(error)
            return _PLAIN
        self._pending = None
        return answer

    def _contain(self, error: BaseException) -> None:
        """An exception may not leave a callback or guard; one that is the user's is raised by the next frame that starts."""
        if self.error is None:
            self.error = AT_LIMIT  # before anything is called: at the recursion limit nothing can be
        self._stopping = True
        try:
            self._failed(error)
        except RecursionError:
            pass  # the user's code is at the limit, and its next call will say so
        except BaseException as users:
            self._pending = users

    def _starts_again(self, code: CodeType, f_locals: dict[str, Any]) -> bool:
        """The guard proper: a frame whose code has an entry of ours."""
        try:
            self._count_start()
            if not self._stopping and self._enter(Frame(code, f_locals)):
                return True
        except BaseException as error:
            self._contain(error)
        self._declined = code
        return False


def _deliver(code: CodeType, clone: CodeType, guard: Callable[[dict[str, Any]], bool] | None) -> _Answer:
    _entries[id(code)] = code
    return _Answer(_Delivery(clone, guard))


def _depth() -> int:
    frame: FrameType | None = sys._getframe(1)
    depth = 0
    while frame is not None:
        depth += 1
        frame = frame.f_back
    return depth


def _escaping(code: CodeType, error: BaseException | None) -> CodeType:
    """``code`` with a first step that switches interception off for the thread, and then one that raises ``error`` if given.

    Only a frame can do that which is itself intercepted: whoever is called by us has it off, and on again when done.
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
    return _PLAIN if interception is None else interception._starts(frame)


_CALLBACK: Any = _callback


def _guard_for(code: CodeType) -> Callable[[dict[str, Any]], bool]:
    def guard(f_locals: dict[str, Any]) -> bool:
        interception = _active.get(get_ident())
        return False if interception is None else interception._starts_again(code, f_locals)

    return guard


def generator_started(code: CodeType) -> None:
    """Called by a generator's clone before anything else: drop the entries that earlier starts left on its code."""
    if len(_debug_get_cache_entry_list(code)) > _MAX_GENERATOR_ENTRIES:
        with _lock:
            # Other threads' interceptions may be reading the entries at any time; they wait for the lock to begin.
            if _active.keys() == {get_ident()} and not _torch_compiling_elsewhere():
                reset_code(code)


def _preload(clone_of: Callable[[CodeType], CodeType | None]) -> None:
    """Give code that the user's torch.compile has compiled a precompile entry: these can be taken off alone."""
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
    """Make our entries on code that came to hold others meanwhile void, the way torch does it with its own."""
    from torch._dynamo.guards import DeletedGuardManagerWrapper

    for entry in _debug_get_cache_entry_list(code):
        if _is_ours(entry):
            extra_state: Any = entry.guard_manager.extra_state
            extra_state.invalidate(entry, DeletedGuardManagerWrapper("the recording by MagPy is over"))


def _after_fork() -> None:
    """In a forked child: its copies of interceptions stop, and no other thread holds anything."""
    global _lock
    _lock = threading.RLock()
    for interception in _active.values():
        interception.stop()


os.register_at_fork(after_in_child=_after_fork)


def _torch_compiling_elsewhere() -> bool:
    """Whether another thread is inside torch's own compiler, which holds raw pointers into code objects' caches."""
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
    """Take our entries off the code objects, unless somebody may be reading them (then the next release does it)."""
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
    """Switch interception off on this thread (cheap: for hot paths); give the result to :func:`restore`."""
    return set_eval_frame(None)


def restore(token: Token) -> None:
    """Undo :func:`disable`."""
    set_eval_frame(token)


never_intercept(_callback)
never_intercept(generator_started)

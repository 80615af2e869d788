"""Recording code that the user's own torch.compile has wrapped or marked.

* :func:`bypass`: the wrappers of ``torch.compile`` and ``torch._dynamo.disable`` switch frame interception to their own
  callback, or off. Inside a recording they are replaced by a plain call of the wrapped function.
* :func:`lift_marks`: torch's compiler permanently marks code objects "skip" or "run only"; frames of such code are never
  intercepted. During a recording the marks are removed, then restored. There is no API to read a mark, so its address is
  found by writing known marks to a code object of MagPy; if that fails, the recording must not start.
"""

from __future__ import annotations

import ctypes
import dis
import functools
import gc
import os
from collections.abc import Iterable
from types import CodeType, FunctionType
from typing import Any, Final

from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy

from magpy_core._compat.cpython.assembler import Decoded, Instr, assemble, decode
from magpy_core._compat.cpython.imports import imported
from magpy_core._compat.cpython.own_builtins import OWN_BUILTINS
from magpy_core._compat.versions import PY312, PY313, PY314, UnsupportedVersion

__builtins__ = OWN_BUILTINS  # type: ignore[assignment]

_OP: Final = dis.opmap
_WRAPPERS: Final = {
    ("compile_wrapper", os.path.join("torch", "_dynamo", "eval_frame.py")),
    ("_fn", os.path.join("torch", "_dynamo", "eval_frame.py")),
    ("inner", os.path.join("torch", "_compile.py")),
}
_TORCH_COMPILER: Final = os.sep + os.path.join("torch", "_dynamo") + os.sep
_VARARGS, _VARKEYWORDS = 0x4, 0x8
_CONVERT_FRAME, _EVAL_FRAME = "torch._dynamo.convert_frame", "torch._dynamo.eval_frame"


def local_names(code: CodeType) -> tuple[str, ...]:
    """The names of a frame's variables in the order of instruction arguments: locals, other cells, free variables."""
    cells = [name for name in code.co_cellvars if name not in code.co_varnames]
    return (*code.co_varnames, *cells, *code.co_freevars)


def _is_wrapper(code: CodeType) -> bool:
    return (
        any(code.co_name == name and code.co_filename.endswith(os.sep + file) for name, file in _WRAPPERS)
        and "fn" in code.co_freevars
        and code.co_flags & (_VARARGS | _VARKEYWORDS) == _VARARGS | _VARKEYWORDS
        and code.co_argcount + code.co_kwonlyargcount == 0
    )


def bypass(code: CodeType) -> CodeType | None:
    """For a wrapper of torch's compiler: code with the same variables that only runs ``return fn(*args, **kwargs)``."""
    if not _is_wrapper(code):
        return None
    decoded = decode(code)
    resume = next(k for k, instr in enumerate(decoded.instrs) if instr.op == _OP["RESUME"])
    # the position of the original call: warnings name the caller's line
    position = [instr.pos for instr in decoded.instrs if instr.op == _OP["CALL_FUNCTION_EX"]][-1]
    names = local_names(code)

    def load(name: str) -> Instr:
        cell = name in code.co_cellvars or name in code.co_freevars
        return Instr(_OP["LOAD_DEREF" if cell else "LOAD_FAST"], names.index(name), position)

    null = Instr(_OP["PUSH_NULL"], 0, position)
    instrs = [
        *decoded.instrs[: resume + 1],
        *((load("fn"), null) if PY313 else (null, load("fn"))),
        load(code.co_varnames[0]),
        load(code.co_varnames[1]),
        Instr(_OP["CALL_FUNCTION_EX"], 0 if PY314 else 1, position),  # 1: with keyword arguments, as 3.14 always has
        Instr(_OP["RETURN_VALUE"], 0, position),
    ]
    return assemble(Decoded(code, instrs, []), instrs, {}, code.co_consts, 4)


def compiles_for_operators() -> list[FunctionType]:
    """The functions of torch that every call of torch.cond and similar operators (while_loop, scan, map, flex_attention)
    runs before its own torch.compile."""
    from torch._higher_order_ops import utils

    prepare = getattr(utils, "setup_compilation_env", None)
    plain = getattr(prepare, "__wrapped__", None)  # a context manager's generator function
    return [plain] if isinstance(plain, FunctionType) else []


_get_extra = ctypes.pythonapi["PyUnstable_Code_GetExtra" if PY312 else "_PyCode_GetExtra"]
_get_extra.argtypes = [ctypes.py_object, ctypes.c_ssize_t, ctypes.POINTER(ctypes.c_void_p)]
_get_extra.restype = ctypes.c_int

Mark = tuple[int, int]
"""What torch does with frames of a code object, and with frames that they call: 0 default, 1 skip, 2 run only."""
Marks = list[tuple[CodeType, Mark]]


def set_mark(code: CodeType, mark: Mark) -> None:
    """Set the mark of a code object."""
    set_code_exec_strategy(code, _FrameExecStrategy(_FrameAction(mark[0]), _FrameAction(mark[1])))


def _extra(code: CodeType, index: int) -> int | None:
    found = ctypes.c_void_p()
    if _get_extra(code, index, ctypes.byref(found)) != 0:
        return None
    return found.value


_SEARCHED: Final = 160  # bytes; the mark is at 56 to 112 in torch 2.11 to 2.13


def _mark_at(address: int, offset: int) -> Mark:
    pair = (ctypes.c_int * 2).from_address(address + offset)
    return (pair[0], pair[1])


@functools.cache
def _place_of_marks() -> tuple[int, int]:
    """The index of torch's data on a code object, and the offset of the mark in it."""
    probe = compile("0", "<magpy probe>", "eval")
    set_mark(probe, (0, 0))
    index = next((k for k in range(16) if _extra(probe, k)), -1)
    offsets = set(range(0, _SEARCHED, 4))
    for mark in ((1, 2), (2, 1), (0, 1), (1, 0), (2, 2), (0, 0)):
        set_mark(probe, mark)
        address = _extra(probe, index)
        offsets = {offset for offset in offsets if address and _mark_at(address, offset) == mark}
    if len(offsets) != 1:
        raise UnsupportedVersion("MagPy cannot read torch.compile's marks on code objects with this build of torch.")
    return index, offsets.pop()


def read_mark(code: CodeType) -> Mark | None:
    """The mark that torch's compiler set on a code object (None: torch has no data there)."""
    index, offset = _place_of_marks()
    address = _extra(code, index)
    return None if address is None else _mark_at(address, offset)


def dynamo_is_imported() -> bool:
    """Whether functions can be compiled by torch's compiler, and `before_first_frame` can watch it."""
    return imported(_CONVERT_FRAME) is not None


def torch_has_compiled() -> bool:
    """Whether torch's compiler has processed any frame in this process (only then are there marks).

    ``torch._dynamo.reset()`` clears the compiler's counters but not the marks; the permanent sign is that it has patched the
    optimizers, which it does once, before the first compilation.
    """
    module, eval_frame = imported(_CONVERT_FRAME), imported(_EVAL_FRAME)
    if module is None or eval_frame is None:
        return False
    patched = eval_frame.TorchPatcher.patch.cache_info().currsize > 0
    return bool(patched or module.FRAME_COUNTER or len(module.input_codes.seen))


def compiled_codes() -> list[CodeType]:
    """The code objects that torch's compiler has processed (some of them hold compiled code)."""
    module = imported(_CONVERT_FRAME)
    if module is None:
        return []
    return [code for reference in list(module.input_codes.seen) if (code := reference()) is not None]


def _all_codes() -> list[CodeType]:
    """The code of every function in the process, including functions defined in it, without the compiler's own."""
    found: dict[int, CodeType] = {}
    work = [thing.__code__ for thing in gc.get_objects() if type(thing) is FunctionType]
    while work:
        code = work.pop()
        if id(code) not in found:
            found[id(code)] = code
            work.extend(const for const in code.co_consts if type(const) is CodeType)
    return [code for code in found.values() if _TORCH_COMPILER not in code.co_filename or _is_wrapper(code)]


def marks_of(codes: Iterable[CodeType]) -> Marks:
    """The marks of those codes that have one."""
    return [(code, mark) for code in codes if (mark := read_mark(code)) and mark != (0, 0)]


def lift_marks(keep: set[int]) -> Marks:
    """Remove the marks of all code, except code that MagPy marked (ids in ``keep``). Returns the removed marks."""
    return lift_marks_of(code for code in _all_codes() if id(code) not in keep)


def lift_marks_of(codes: Iterable[CodeType]) -> Marks:
    """Remove the marks of ``codes``. Returns the removed marks."""
    marks = marks_of(codes)
    for code, _ in marks:
        set_mark(code, (0, 0))
    return marks


def restore_marks(marks: Marks) -> None:
    """Restore removed marks."""
    for code, mark in marks:
        set_mark(code, mark)


def disabled_version(fn: Any) -> Any:
    """The function that is called by a torch function wrapped by ``torch._disable_dynamo``; None before its first call."""
    return getattr(getattr(fn, "__wrapped__", None), "__dynamo_disable", None)

"""The name and location of a region. Key functions: variable_of, definition_of, call_site."""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import linecache
import os
import re
import sys
from itertools import pairwise
from types import CodeType, FrameType

from magpy_core.runner.tracebacks import is_ours, is_user

_DEFINITION = re.compile(r"\s*(async\s+)?def\s")


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The nearest frame of user code at or above ``frame``, else the nearest frame that is not ours."""
    first = None
    while frame is not None:
        filename = frame.f_code.co_filename
        if is_user(filename):
            return frame
        if first is None and not is_ours(filename):
            first = frame
        frame = frame.f_back
    return first


def variable_of(value: object, caller: FrameType | None, *, method: bool = False) -> str | None:
    """The program's name for ``value``: its name in the calling expression, else a global variable.

    The expression is read from the source at the call's own position. Reading the frame's local variables instead would
    have effects: ``f_locals`` is a snapshot that the frame keeps (and that the program may have got from ``locals()``).
    With ``method`` the call is ``<name>.method(...)``.
    """
    frame = user_frame(caller)
    if frame is None:
        return None
    if frame is caller and (called := _called_name(frame, method)) is not None:
        return called
    names = (name for name, found in list(frame.f_globals.items()) if found is value)
    return next((name for name in names if not name.startswith("__")), None)


def created_for_this_call(caller: FrameType | None) -> bool:
    """Whether the code that calls a module also creates it: ``nn.MSELoss()(a, b)``, or ``f = nn.MSELoss(); f(a, b)``.

    Such code creates a new module each time it runs, but a reader sees them as one.
    """
    if caller is None or (function := _called(caller)) is None:
        return False
    if any(isinstance(part, ast.Call) for part in ast.walk(function)):
        return True
    if not isinstance(function, ast.Name):
        return False
    return any(
        before.opname.startswith("CALL")
        and store.opname.startswith("STORE_")
        and function.id == (store.argval[0] if isinstance(store.argval, tuple) else store.argval)  # 3.13: two in one
        for before, store in pairwise(dis.get_instructions(caller.f_code))
    )


def _called(frame: FrameType) -> ast.expr | None:
    """The callee expression at the current instruction of ``frame``."""
    from magpy_core.monitor.positions import frame_location, text_at  # imports torch, which the program has imported by now

    try:
        call = ast.parse(f"({text_at(frame_location(frame), sys.maxsize)})", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return call.func if isinstance(call, ast.Call) else None


def _called_name(frame: FrameType, method: bool) -> str | None:
    function = _called(frame)
    if method:
        function = function.value if isinstance(function, ast.Attribute) else None
    if function is None:
        return None
    if isinstance(function, ast.Name) and hasattr(builtins, function.id):
        return None  # `list(map(model, batches))`: the module is called from C
    if any(isinstance(part, ast.Call | ast.Lambda) for part in ast.walk(function)):
        return None
    name = ast.unparse(function).removeprefix("self.")
    return name if len(name) <= 60 else None


def definition_of(function: object) -> tuple[str, int] | None:
    """File and line of the ``def`` (not of a decorator above it, nor of its wrapper) if it is in the user's own code."""
    try:
        inner = inspect.unwrap(function)  # type: ignore[arg-type]
    except ValueError:
        return None
    code = getattr(getattr(inner, "__func__", inner), "__code__", None)
    if not isinstance(code, CodeType) or not is_user(code.co_filename):
        return None
    first = code.co_firstlineno
    lines = range(first, first + 50) if linecache.getline(code.co_filename, first).lstrip().startswith("@") else ()
    defined = (n for n in lines if _DEFINITION.match(linecache.getline(code.co_filename, n)))
    return os.path.abspath(code.co_filename), next(defined, first)


def call_site(frame: FrameType | None) -> tuple[str, int]:
    """The current file and line of ``frame``."""
    if frame is None:
        return "", 1
    return os.path.abspath(frame.f_code.co_filename), frame.f_lineno or 1

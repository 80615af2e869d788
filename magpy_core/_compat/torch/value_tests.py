"""Functions of torch, written in Python, that look at a tensor's values. Key functions: how_to_avoid, body_of."""

from __future__ import annotations

import dis
import types
from collections.abc import Callable
from typing import Any

from torch.nn.modules import transformer

from magpy_core._compat.cpython.weak_caches import by_object

_CAUSAL = (
    "If the mask is always causal, pass `is_causal=True` (to a decoder, `tgt_is_causal`), else False: then torch does "
    "not read the mask's values."
)
_AVOIDED_BY = {
    function.__code__: hint
    for function, hint in ((getattr(transformer, "_detect_is_causal_mask", None), _CAUSAL),)
    if isinstance(function, types.FunctionType)  # another version of torch may have no such function
}


def how_to_avoid(code: types.CodeType) -> str:
    """What the caller can pass so that ``code`` tests no values; empty if nothing is known."""
    return _AVOIDED_BY.get(code, "")


_TESTS = frozenset({"any", "all", "equal", "allclose", "is_nonzero"})
_DISPATCHES = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")


def body_of(fn: Any) -> Callable[..., Any] | None:
    """What ``fn`` does once it has been dispatched to a function mode, if it then branches on a tensor's values: a mode in
    force sees the operations that it consists of. None for any other function."""
    if type(fn) is not types.FunctionType or not _branches_on_values(fn.__code__):
        return None
    names = {name: _no_torch_function for name in _DISPATCHES if name in fn.__globals__}
    body = types.FunctionType(fn.__code__, {**fn.__globals__, **names}, fn.__name__, fn.__defaults__, fn.__closure__)
    body.__kwdefaults__ = fn.__kwdefaults__
    return body


def _no_torch_function(*values: object) -> bool:
    return False


@by_object
def _branches_on_values(code: types.CodeType) -> bool:
    """Whether the result of a method or function of torch that tests values decides a jump."""
    if not set(_DISPATCHES) & set(code.co_names) or not _TESTS & set(code.co_names):
        return False
    tests = False  # whether such a function has been loaded and not yet used
    called = False
    for now in dis.get_instructions(code):
        if now.opname in ("CACHE", "PRECALL", "TO_BOOL", "EXTENDED_ARG"):
            continue
        if called and now.opname.startswith("POP_JUMP_") and "_IF_" in now.opname:
            return True
        called = tests and now.opname == "CALL"
        if now.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            tests = now.argval in _TESTS
        elif called:
            tests = False
    return False

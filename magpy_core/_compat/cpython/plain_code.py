"""Plain code: functions that do nothing but compare and hash attributes, told by their bytecode.

The interpreter's instructions differ from one version to the next; a function with any instruction that is not known here
counts as one that may do more. Key function: attributes_compared.
"""

from __future__ import annotations

import builtins
import dis
import types
import weakref
from typing import Any

_BUILTINS = frozenset(
    {"hash", "isinstance", "type", "id", "tuple", "frozenset", "NotImplemented", "bool", "len", "issubclass"}
)
_QUIET = frozenset({
    "RESUME", "NOP", "CACHE", "PRECALL", "CALL", "KW_NAMES", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_LOAD_FAST",
    "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST", "BUILD_TUPLE", "COMPARE_OP", "IS_OP", "CONTAINS_OP", "BINARY_OP",
    "UNARY_NOT", "UNARY_INVERT", "UNARY_NEGATIVE", "TO_BOOL", "POP_TOP", "COPY", "SWAP", "JUMP_FORWARD",
    "JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP", "POP_JUMP_IF_FALSE", "POP_JUMP_IF_TRUE", "POP_JUMP_IF_NONE",
    "POP_JUMP_IF_NOT_NONE", "POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_FORWARD_IF_NONE",
    "POP_JUMP_FORWARD_IF_NOT_NONE",
})  # fmt: skip
_LOCALS = frozenset({"LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_LOAD_FAST"})


_KNOWN: weakref.WeakKeyDictionary[types.FunctionType, frozenset[str] | None] = weakref.WeakKeyDictionary()


def attributes_compared(fn: types.FunctionType) -> frozenset[str] | None:
    """The attributes of its arguments that ``fn`` reads, if it does nothing else than compare and hash them, look at classes
    and give a result; None for every other function."""
    if fn not in _KNOWN:
        _KNOWN[fn] = _attributes(fn)
    return _KNOWN[fn]


def _attributes(fn: types.FunctionType) -> frozenset[str] | None:
    names: set[str] = set()
    before = ""
    instructions = list(dis.get_instructions(fn))
    for instruction, following in zip(instructions, [*instructions[1:], None], strict=True):
        name, low = instruction.opname, bool((instruction.arg or 0) & 1)
        if name == "LOAD_GLOBAL":
            if not _known_global(
                fn, str(instruction.argval), low or (following is not None and following.opname == "PUSH_NULL")
            ):
                return None
        elif name == "LOAD_ATTR":
            # of an argument, not of what an attribute of one has; and no method (before 3.12: LOAD_METHOD)
            if before not in _LOCALS or (low and "LOAD_METHOD" not in dis.opmap):
                return None
            names.add(str(instruction.argval))
        elif name not in _QUIET:
            return None
        before = name
    return frozenset(names)


def _known_global(fn: types.FunctionType, name: str, called: bool) -> bool:
    value: Any = fn.__globals__.get(name, getattr(builtins, name, None))
    if name in _BUILTINS:
        return value is getattr(builtins, name)
    return isinstance(value, type) and not called

"""Class bodies: what the body of a class statement takes from outside, told by its bytecode.

A class body keeps its variables in a dict, so it runs without a clone and has no events. Most do nothing but name functions
and constants. The interpreter's instructions differ from one version to the next; a body with any that is not known here
counts as one that does more. Key function: class_body; key type: Body.
"""

from __future__ import annotations

import dis
import functools
import types
from typing import NamedTuple

_MOVES = frozenset({
    "RESUME", "NOP", "CACHE", "EXTENDED_ARG", "COPY_FREE_VARS", "MAKE_CELL", "LOAD_CONST", "LOAD_CLOSURE", "LOAD_FAST",
    "BUILD_TUPLE", "BUILD_LIST", "BUILD_MAP", "BUILD_CONST_KEY_MAP", "MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE", "STORE_NAME",
    "STORE_DEREF", "DELETE_NAME", "RETURN_VALUE", "RETURN_CONST", "POP_TOP", "PUSH_NULL", "SETUP_ANNOTATIONS", "LOAD_LOCALS",
    "COPY", "SWAP",
})  # fmt: skip
_COMPUTES = frozenset({
    "CALL", "PRECALL", "KW_NAMES", "CALL_KW", "BINARY_SUBSCR", "BINARY_OP", "COMPARE_OP", "UNARY_NEGATIVE", "UNARY_INVERT",
    "UNARY_NOT", "TO_BOOL", "IS_OP", "CONTAINS_OP", "LOAD_BUILD_CLASS", "LIST_EXTEND", "SET_UPDATE", "BUILD_SET",
    "BUILD_STRING", "FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE",
})  # fmt: skip
_NAMES = frozenset({"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"})
_OUTER = frozenset({"LOAD_CLASSDEREF", "LOAD_DEREF", "LOAD_FROM_DICT_OR_DEREF"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_OF_A_PROPERTY = frozenset({"setter", "getter", "deleter"})
_GIVEN = frozenset({"__name__", "__annotations__", "__module__", "__qualname__"})


class Body(NamedTuple):
    """What a class body takes from outside."""

    chains: tuple[tuple[str, ...], ...]
    """Global names, each with the attributes that are looked up on it."""
    outer: tuple[str, ...]
    """Variables of the function around it."""
    moves: bool
    """It computes nothing: it only gives names to what it takes, to constants and to functions that it makes."""


@functools.lru_cache(maxsize=1024)
def class_body(code: types.CodeType) -> Body | None:
    """What the body takes from outside; None for one that may do more than compute with it."""
    instructions = list(dis.get_instructions(code))
    own = set(_GIVEN)
    chains: list[tuple[str, ...]] = []
    outer: list[str] = []
    moves, open_chain, property_of_own = True, False, False
    for at, instruction in enumerate(instructions):
        name, value = instruction.opname, instruction.argval
        if name in _ATTRIBUTES:
            moves = False
            if open_chain:
                chains[-1] = (*chains[-1], value)
            elif not (property_of_own and value in _OF_A_PROPERTY):
                return None
            continue
        open_chain = property_of_own = False
        if name in _NAMES:
            if value in own:
                property_of_own = True
            else:
                chains.append((value,))
                open_chain = True
        elif name in _OUTER:
            outer.append(value)
        elif name == "STORE_SUBSCR":
            if at < 2 or instructions[at - 2].argval != "__annotations__":
                return None
        elif name in _COMPUTES:
            moves = False
            if name == "LOAD_BUILD_CLASS":
                inner = next((class_body(i.argval) for i in instructions[at:] if isinstance(i.argval, types.CodeType)), None)
                if inner is None:
                    return None
                chains += inner.chains
                outer += inner.outer
        elif name not in _MOVES:
            return None
        elif name == "STORE_NAME":
            own.add(value)
    return Body(tuple(chains), tuple(name for name in outer if name != "__class__"), moves)

"""Values that code computes only for a later operation of the same expression: in ``f(values[-3:])``, the slice is on the
stack until ``f`` is called, and nothing else can get it. Key function: taker_of."""

from __future__ import annotations

import dis
from types import CodeType
from typing import Any

from magpy_core._compat.cpython.weak_caches import by_object

Place = tuple[int | None, int | None, int | None, int | None]
"""First and last line (1-based), first and last column (0-based, UTF-8 bytes), as in ``code.co_positions()``."""

_PUSHES = frozenset({
    "LOAD_CONST", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_SMALL_INT", "LOAD_DEREF", "LOAD_NAME",
    "PUSH_NULL",
})  # fmt: skip
_NEITHER = frozenset({"PRECALL", "KW_NAMES", "NOP", "EXTENDED_ARG"})
_TAKES = {"BINARY_SUBSCR": 2, "BINARY_OP": 2, "UNARY_NEGATIVE": 1, "COMPARE_OP": 2, "BINARY_SLICE": 3}
_MAKERS = frozenset({"CALL", "CALL_KW", "BINARY_SUBSCR", "BINARY_SLICE", "BINARY_OP"})


def taker_of(code: CodeType, place: Place) -> Place | None:
    """Where the value that is computed at ``place`` is taken by a call, as an argument, or by a subscription. None if it may
    be stored or copied before."""
    return _takers(code).get(place)


@by_object
def _takers(code: CodeType) -> dict[Place, Place | None]:
    instructions = [now for now in dis.get_instructions(code) if now.opname != "CACHE"]
    found: dict[Place, Place | None] = {}
    for i, made in enumerate(instructions):
        if made.opname in _MAKERS and made.positions is not None:
            place = _place(made)
            taken = _taker(instructions[i + 1 :])
            # two operations at one place can't be told apart
            found[place] = taken if place not in found else None
    return found


def _place(instruction: dis.Instruction) -> Place:
    at: Any = instruction.positions
    return at.lineno, at.end_lineno, at.col_offset, at.end_col_offset


def _taker(following: list[dis.Instruction]) -> Place | None:
    above = 0  # values on the stack above the one that is looked for
    for now in following:
        name, arg = now.opname, now.arg or 0
        if now.is_jump_target:
            return None
        if name in _PUSHES or name in _NEITHER:
            above += name not in _NEITHER
            continue
        if name == "LOAD_GLOBAL":
            above += 1 + (arg & 1)
            continue
        if name in ("LOAD_ATTR", "LOAD_METHOD") and above:
            above += dis.stack_effect(now.opcode, now.arg)
            continue
        if name in ("CALL", "CALL_KW"):
            arguments = arg + (name == "CALL_KW")
            if above < arguments:
                return _place(now)
            above -= arguments + 1  # the callable and a NULL become the result
        elif name in _TAKES or name == "BUILD_SLICE":
            takes = _TAKES.get(name, arg)
            if above < takes:
                return _place(now) if name in ("BINARY_SUBSCR", "BINARY_SLICE") or _is_subscription(now) else None
            above -= takes - 1
        else:
            return None
        if above < 1:
            return None
    return None


def _is_subscription(instruction: dis.Instruction) -> bool:
    return instruction.opname == "BINARY_OP" and instruction.argrepr == "[]"

"""The source position of an event, if the compiler gives its instruction the position of a larger construct.
Key function: operand_position."""

from __future__ import annotations

from typing import Final

from magpy_core._compat.cpython.assembler import Instr, Position

_OF_OPERAND: Final = ("POP_JUMP_", "JUMP_IF_", "GET_ITER", "FORMAT_VALUE")


def operand_position(instrs: list[Instr], at: int, joins: set[Instr]) -> Position:
    """The position of the instruction ``at``; for one that only tests or uses a value, the position of that value.

    On 3.11 a conditional jump may have the position of the whole ``if`` statement, and likewise the iterable of a ``for``
    and the fields of an f-string (later versions are more exact). ``joins``: jump targets, whose operands come from more
    than one place.
    """
    instr = instrs[at]
    if not instr.name.startswith(_OF_OPERAND) or instr in joins:
        return instr.pos
    if instr.name == "FORMAT_VALUE" and instr.arg & 4:  # the value is followed by its format
        at -= 1
        if instrs[at].name != "LOAD_CONST":
            return instr.pos
    before = instrs[at - 1] if at > 0 else instr
    if before.name == "COPY" and at > 1:  # ``a and b`` on 3.12: a copy is tested, and the value kept
        before = instrs[at - 2]
    elif at > 1 and before.name.startswith("STORE_") and instrs[at - 2].name == "COPY":
        before = instrs[at - 2]  # ``(name := value)``
    return before.pos if before.pos[0] is not None else instr.pos

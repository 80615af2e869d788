"""Branches whose other side only raises: ``assert``, ``if not valid: raise ValueError(...)``. Key function: only_raises."""

from __future__ import annotations

import dis
from types import CodeType

from magpy_core._compat.cpython.weak_caches import by_object
from magpy_core.monitor.events import Site

_MAX_INSTRUCTIONS = 80  # to build and raise the error
_CONTINUES = ("JUMP", "RETURN", "YIELD", "FOR_ITER", "SEND", "STORE_GLOBAL", "STORE_NAME", "STORE_ATTR", "STORE_SUBSCR",
            "STORE_DEREF", "DELETE", "PUSH_EXC_INFO", "BEFORE_WITH", "LOAD_SPECIAL", "IMPORT")  # fmt: skip


@by_object
def _instructions(code: CodeType) -> tuple[list[dis.Instruction], dict[int, int]]:
    found = [i for i in dis.get_instructions(code) if i.opname != "CACHE"]
    return found, {instr.offset: n for n, instr in enumerate(found)}


def _jump_of(site: Site, instructions: list[dis.Instruction]) -> int | None:
    """The conditional jump that decides at ``site``, or right after the comparison there."""
    for n, instr in enumerate(instructions):
        where = instr.positions
        if where is None or (where.lineno, where.col_offset, where.end_col_offset) != (site.lineno, site.col, site.end_col):
            continue
        if instr.opname.startswith("POP_JUMP"):
            return n
        if n + 1 < len(instructions) and instructions[n + 1].opname.startswith("POP_JUMP"):
            return n + 1
    return None


def only_raises(site: Site, outcome: object) -> bool:
    """Whether the branch at ``site`` that is not taken for ``outcome`` only builds and raises an error.

    This affects only how a graph is run, not correctness: every branch is checked.
    """
    if type(outcome) is not bool:
        return False
    instructions, at = _instructions(site.code)
    jump = _jump_of(site, instructions)
    if jump is None or "NONE" in instructions[jump].opname:
        return False
    jumped = ("TRUE" in instructions[jump].opname) is outcome
    other = jump + 1 if jumped else at.get(instructions[jump].argval, len(instructions))
    for instr in instructions[other : other + _MAX_INSTRUCTIONS]:
        if instr.opname in ("RAISE_VARARGS", "RERAISE"):
            return instr.opname == "RAISE_VARARGS"
        if any(part in instr.opname for part in _CONTINUES):
            return False
    return False

"""Looking at the interpreter's real value stack: what is the depth, and which slots are NULL, before every instruction.

:func:`probed` gives a copy of a code object that calls a probe before each instruction; the probe reads the running frame's
memory and compares it with what the static analysis (``_compat/cpython/slots.py``) says. Key type: :class:`Probe`.

Layout used (CPython 3.11 to 3.14, 64 bits): ``PyFrameObject`` keeps a pointer to the interpreter's frame at byte 24; that
one has ``stacktop`` (an int: how many slots of ``localsplus`` are in use) at byte 64, and ``localsplus`` from byte 72 on. In
3.14, byte 64 has a pointer to the first free slot, ``localsplus`` is from byte 80 on, and a NULL is a 1.
"""

from __future__ import annotations

import ctypes
import dis
import sys
from types import CodeType
from typing import Any

from magpy_core._compat.cpython.assembler import Decoded, Instr, assemble, decode
from magpy_core._compat.cpython.slots import stack_states
from magpy_core._compat.torch.dynamo import local_names
from magpy_core._compat.versions import PY312, PY313, PY314
from magpy_core.monitor.clone import _Instrumenter

_OP = dis.opmap
_CO_OPTIMIZED = 0x1
_FRAME, _STACKTOP, _SLOTS = 24, 64, 80 if PY314 else 72
_NULL = 1 if PY314 else None

# A resumed generator must be at its RESUME, and 3.13 jumps over END_FOR and the POP_TOP (3.14: POP_ITER) behind it.
_NEVER = frozenset(_OP[name] for name in ("RESUME", "END_FOR", "END_SEND") if name in _OP)
# KW_NAMES belongs to the next call, PRECALL to its CALL.
_WITH_NEXT = frozenset(_OP[name] for name in ("KW_NAMES", "PRECALL", "END_FOR") if name in _OP)


class Mismatch(AssertionError):
    """The analysis and the interpreter disagree."""


class Probe:
    """Called before an instruction with what the analysis says about it; counts the comparisons."""

    def __init__(self) -> None:
        self.count = 0
        self.nulls = 0
        self.mismatches: list[str] = []

    def look(self, state: str, where: str) -> None:
        frame = sys._getframe(1)
        address = ctypes.c_void_p.from_address(id(frame) + _FRAME).value
        assert address is not None
        locals_ = len(local_names(frame.f_code))
        if PY314:
            free = ctypes.c_void_p.from_address(address + _STACKTOP).value
            assert free is not None
            depth = (free - address - _SLOTS) // 8 - locals_
        else:
            depth = ctypes.c_int.from_address(address + _STACKTOP).value - locals_
        self.count += 1
        if depth != len(state):
            self.mismatches.append(f"{where}: the stack is {depth} deep, not {len(state)} ({state})")
            return
        slots = (ctypes.c_void_p * depth).from_address(address + _SLOTS + 8 * locals_)
        real = "".join("N" if slot == _NULL else "V" for slot in slots)
        self.nulls += real.count("N")
        if any(said not in ("?", is_) for said, is_ in zip(state, real, strict=True)):
            self.mismatches.append(f"{where}: the stack is {real}, not {state}")

    def check(self) -> None:
        """Raise Mismatch with the first disagreements, if there were any."""
        if self.mismatches:
            raise Mismatch("\n".join(self.mismatches[:5]))


def probed(code: CodeType, probe: Probe) -> CodeType:
    """The instrumented clone of ``code``, and of all code in it, with a probe before every instruction."""
    consts = tuple(probed(const, probe) if isinstance(const, CodeType) else const for const in code.co_consts)
    code = code.replace(co_consts=consts)
    if not code.co_flags & _CO_OPTIMIZED:
        return code
    instrumenter = _Instrumenter(decode(code))
    rewritten = {instr for instr in instrumenter.decoded.instrs if dis.opname[instr.op] == "LOAD_SUPER_ATTR"}
    clone = instrumenter.run()
    decoded = decode(clone)
    states = stack_states(decoded)
    for instr, copy in zip(instrumenter.out, decoded.instrs, strict=True):
        before = None if instr in rewritten else instrumenter.states.get(instr)
        if before is not None and not states[copy].startswith(before):  # some operations happen above what their hook needs
            raise Mismatch(f"{code.co_qualname}: {instr!r} is met with {states[copy]}, not {before}")
    return with_probes(decoded, states, probe)


def with_probes(decoded: Decoded, states: dict[Instr, str], probe: Probe) -> CodeType:
    """Code with a probe before every instruction that ``states`` has an entry for."""
    code = decoded.code
    look = len(code.co_consts)
    consts: list[Any] = [*code.co_consts, probe.look]
    out: list[Instr] = []
    labels: dict[Instr, Instr] = {}
    started = False
    held = False
    for instr in decoded.instrs:
        if started and not held and instr in states and instr.op not in _NEVER:
            where = f"{code.co_qualname}:{instr.pos[0]} {instr!r}"
            consts += [states[instr], where]
            steps = [
                *([] if PY313 else [("PUSH_NULL", 0)]),
                ("LOAD_CONST", look),
                *([("PUSH_NULL", 0)] if PY313 else []),
                ("LOAD_CONST", len(consts) - 2),
                ("LOAD_CONST", len(consts) - 1),
                *([] if PY312 else [("PRECALL", 2)]),
                ("CALL", 2),
                ("POP_TOP", 0),
            ]
            added = [Instr(_OP[name], arg, instr.pos) for name, arg in steps]
            out += added
            labels[instr] = added[0]
        out.append(instr)
        started = started or instr.op == _OP["RESUME"]
        held = instr.op in _WITH_NEXT
    return assemble(decoded, out, labels, tuple(consts), 6)

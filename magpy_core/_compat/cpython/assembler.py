"""Decoding and re-encoding of CPython 3.11 to 3.14 code objects, instruction by instruction.

Unlike a general bytecode library this preserves exactly what tracebacks and unwinding depend on: the exception table's
depths, and the position (line, end line, column, end column) of every instruction.

Key types: :class:`Instr` (one instruction; jumps point at other instructions), :class:`Handler` (one exception-table
row), :class:`Decoded` (a decoded code object). Key function: :func:`assemble` (encodes a changed one).
"""

from __future__ import annotations

import dis
import opcode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

from magpy_core._compat.cpython.own_builtins import OWN_BUILTINS

__builtins__ = OWN_BUILTINS  # type: ignore[assignment]

EXTENDED_ARG: int = dis.opmap["EXTENDED_ARG"]


_SIZES: Any = opcode._inline_cache_entries  # type: ignore[attr-defined]
_CACHES: Sequence[int] = [_SIZES.get(name, 0) for name in dis.opname] if isinstance(_SIZES, Mapping) else _SIZES
"""The number of inline cache units after each opcode (3.13 stores them by name, 3.15 in a mapping that is no dict)."""
_JUMPS = frozenset(dis.hasjrel)
_BACKWARD = frozenset(op for name, op in dis.opmap.items() if "BACKWARD" in name or name == "END_ASYNC_FOR")
"""Relative jumps to what is above. From 3.14 on, END_ASYNC_FOR names the END_SEND of its loop in the same way (for
``sys.monitoring``), and does not jump."""

Position = tuple[int | None, int | None, int | None, int | None]
"""(line, end line, column, end column), as in ``code.co_positions()``."""


@dataclass(eq=False, repr=False, slots=True)
class Instr:
    """One instruction. ``target`` is the instruction a jump goes to; ``offset`` is its byte offset in the original."""

    op: int
    arg: int
    pos: Position
    offset: int = -1
    target: Instr | None = None

    @property
    def name(self) -> str:
        return dis.opname[self.op]

    def __repr__(self) -> str:
        return f"<{self.offset} {self.name} {self.arg}>"


@dataclass(eq=False, slots=True)
class Handler:
    """One row of the exception table: instructions ``start`` .. ``stop`` (exclusive; None is the end) go to ``target``."""

    start: Instr
    stop: Instr | None
    target: Instr
    depth: int
    lasti: bool


@dataclass(eq=False, slots=True)
class Decoded:
    """A decoded code object."""

    code: CodeType
    instrs: list[Instr]
    handlers: list[Handler]


def decode(code: CodeType) -> Decoded:
    """Decode a code object (without inline caches; EXTENDED_ARGs are folded into arguments)."""
    raw = code.co_code
    positions = list(code.co_positions())
    positions += [(None, None, None, None)] * (len(raw) // 2 - len(positions))  # code may have no positions
    instrs: list[Instr] = []
    by_offset: dict[int, Instr] = {}
    jumps: list[tuple[Instr, int]] = []
    i, start, extended = 0, 0, 0
    size = len(raw)
    while i < size:
        op, arg = raw[i], raw[i + 1] | extended
        if op == EXTENDED_ARG:
            extended = arg << 8
            i += 2
            continue
        instr = Instr(op, arg, positions[i // 2], i)
        instrs.append(instr)
        by_offset[start] = instr  # a jump lands on the first EXTENDED_ARG
        i += 2 + 2 * _CACHES[op]
        if op in _JUMPS:
            jumps.append((instr, i - 2 * arg if op in _BACKWARD else i + 2 * arg))
        start, extended = i, 0
    for instr, offset in jumps:
        instr.target = by_offset[offset]
    handlers = []
    rows = _decode_rows(code.co_exceptiontable)
    for begin, length, goal, depth_lasti in zip(rows[::4], rows[1::4], rows[2::4], rows[3::4], strict=True):
        stop = by_offset.get(2 * (begin + length))
        handlers.append(Handler(by_offset[2 * begin], stop, by_offset[2 * goal], depth_lasti >> 1, bool(depth_lasti & 1)))
    return Decoded(code, instrs, handlers)


def _units(instr: Instr) -> int:
    arg = instr.arg
    return (1 if arg < 0x100 else 2 if arg < 0x10000 else 3 if arg < 0x1000000 else 4) + _CACHES[instr.op]


def assemble(
    decoded: Decoded, instrs: list[Instr], labels: dict[Instr, Instr], consts: tuple[Any, ...], extra_stack: int
) -> CodeType:
    """Encode ``instrs`` (the decoded ones in order, with inserted ones between) as a code object like ``decoded.code``.

    ``labels[i]`` is the new target of a jump to ``i`` (or of a handler range that starts or stops at ``i``) if it is not
    ``i`` itself: the first instruction inserted before it.
    """
    code = decoded.code
    targets = {i: labels.get(i.target, i.target) for i in instrs if i.target is not None}
    sizes = [_units(i) for i in instrs]
    starts: dict[Instr, int] = {}
    while True:  # widening one jump can require widening another; sizes only grow, so this terminates
        at = 0
        for instr, size in zip(instrs, sizes, strict=True):
            starts[instr] = at
            at += size
        total = at
        known = sizes
        for instr, size in zip(instrs, known, strict=True):
            if instr in targets:
                distance = starts[targets[instr]] - starts[instr] - size
                instr.arg = -distance if instr.op in _BACKWARD else distance
                if instr.arg < 0:
                    raise ValueError(f"jump in the wrong direction in {code.co_qualname}: {instr!r}")
        sizes = [max(size, _units(i)) if i in targets else size for i, size in zip(instrs, known, strict=True)]
        if sizes == known:
            break
    out = bytearray()
    table = bytearray()
    line = code.co_firstlineno
    position, units = instrs[0].pos, 0  # hooks have their instruction's position: one entry covers all
    for instr, size in zip(instrs, sizes, strict=True):
        caches = _CACHES[instr.op]
        arg = instr.arg
        for shift in range(8 * (size - caches - 1), 0, -8):
            out += bytes((EXTENDED_ARG, (arg >> shift) & 0xFF))
        out += bytes((instr.op, arg & 0xFF))
        out += bytes(2 * caches)
        if instr.pos != position:
            line = _encode_location(table, position, units, line)
            position, units = instr.pos, 0
        units += size
    _encode_location(table, position, units, line)
    rows = bytearray()
    for handler in decoded.handlers:
        begin = starts[labels.get(handler.start, handler.start)]
        end = total if handler.stop is None else starts[labels.get(handler.stop, handler.stop)]
        goal = starts[labels.get(handler.target, handler.target)]
        _encode_row(rows, begin, end - begin, goal, handler.depth << 1 | handler.lasti)
    return code.replace(
        co_code=bytes(out),
        co_consts=consts,
        co_linetable=bytes(table),
        co_exceptiontable=bytes(rows),
        co_stacksize=code.co_stacksize + extra_stack,
    )


def _varint(out: bytearray, value: int) -> None:
    while value >= 0x40:
        out.append(0x40 | (value & 0x3F))
        value >>= 6
    out.append(value)


def _encode_location(out: bytearray, pos: Position, units: int, line: int) -> int:
    """Append the location-table entries for ``units`` code units (PEP 626/657 format); returns the line they end on."""
    start, end, col, end_col = pos
    while units > 0:
        length = min(units, 8)
        units -= length
        if start is None:
            out.append(0x80 | 15 << 3 | length - 1)
            continue
        delta = start - line
        line = start
        values = [-delta << 1 | 1 if delta < 0 else delta << 1]
        if end is not None and col is not None and end_col is not None:
            values += [end - start, col + 1, end_col + 1]
        out.append(0x80 | (14 if len(values) > 1 else 13) << 3 | length - 1)
        for value in values:
            _varint(out, value)
    return line


def _decode_rows(table: bytes) -> list[int]:
    """The numbers in an exception table, four a row: start, length, target (in code units), depth and lasti bit."""
    numbers = []
    value = 0
    for byte in table:
        value = value << 6 | byte & 0x3F
        if not byte & 0x40:
            numbers.append(value)
            value = 0
    return numbers


def _encode_row(out: bytearray, *values: int) -> None:
    """Append one exception-table row: big-endian 6-bit groups; bit 7 marks the row's first byte, bit 6 "more follows"."""
    start = len(out)
    for value in values:
        groups = [value & 0x3F]
        while value := value >> 6:
            groups.insert(0, value & 0x3F | 0x40)
        out += bytes(groups)
    out[start] |= 0x80

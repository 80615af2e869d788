"""Emitting instrumented bytecode: hooks, copies of operands, and the stack they need. Key type: :class:`Emitter`.

Hooks are called as ``[hook, site, operands...]``: next to a callable, CPython expects either a NULL or a first argument. Up
to 3.12 the NULL is below the callable, ``[NULL, f, arguments...]`` or ``[f, first, arguments...]``; from 3.13 on it is
above, ``[f, NULL, arguments...]`` or ``[f, first, arguments...]``.
"""

from __future__ import annotations

import dis
from typing import Any, Final

from magpy_core._compat.cpython.assembler import Decoded, Instr, Position
from magpy_core._compat.cpython.own_builtins import OWN_BUILTINS
from magpy_core._compat.cpython.slots import UnknownStack, stack_states
from magpy_core._compat.versions import PY312, PY313
from magpy_core.monitor.events import Site
from magpy_core.monitor.hooks import HOOKS
from magpy_core.monitor.operands import operand_position

__builtins__ = OWN_BUILTINS  # type: ignore[assignment]

WITH_RESULT: Final = frozenset({"T", "shape", "size"})  # attributes whose value is reported as well: those of arrays


class Emitter:
    """A clone under construction: its instructions, constants and stack size so far."""

    def __init__(self, decoded: Decoded) -> None:
        self.code = decoded.code
        self.decoded = decoded
        self.states = stack_states(decoded)
        self.out: list[Instr] = []
        self.labels: dict[Instr, Instr] = {}
        self.consts: list[Any] = list(self.code.co_consts)
        self.const_index: dict[int, int] = {}
        self.extra_stack = 0
        self.joins = {instr.target for instr in decoded.instrs if instr.target is not None}
        self.position: Position = (None, None, None, None)
        self.at = 0

    def emit(self, name: str, arg: int = 0) -> Instr:
        instr = Instr(dis.opmap[name], arg, self.position)
        self.out.append(instr)
        return instr

    def const(self, value: object) -> None:
        """Push a constant that the original code doesn't have."""
        index = self.const_index.get(id(value))
        if index is None:
            index = self.const_index[id(value)] = len(self.consts)
            self.consts.append(value)
        self.emit("LOAD_CONST", index)

    def call(self, args: int) -> None:
        if not PY312:
            self.emit("PRECALL", args)
        self.emit("CALL", args)

    def site(self, name: str | None = None, instr: Instr | None = None, offset: int = 0) -> Site:
        position = instr.pos if instr else operand_position(self.decoded.instrs, self.at, self.joins)
        return Site(self.code, self.at + offset, (instr or self.decoded.instrs[self.at]).name, name, position)

    def hook(self, name: str, site: Site) -> None:
        self.const(HOOKS[name])
        self.const(site)

    def reserve_stack(self, slots: int) -> None:
        self.extra_stack = max(self.extra_stack, slots)

    def before(self, event: str, site: Site, *depths: int) -> None:
        """Call an event's hook with copies of the operands at these depths (1 is the top of the stack; 0: None)."""
        self.hook(event, site)
        for pushed, depth in enumerate(depths):
            if depth:
                self.emit("COPY", depth + 2 + pushed)
            else:
                self.const(None)
        self.call(len(depths))
        self.emit("POP_TOP")
        self.reserve_stack(2 + len(depths))

    def name(self, index: int) -> str:
        return self.code.co_names[index]

    # Calls

    def before_call(
        self, site: Site, instr: Instr, args: int, names: tuple[str, ...] | None, beside: str, above: int = 0
    ) -> None:
        """Report a call.

        ``beside`` is the state of the stack slot next to the callable: N (NULL), or V if it holds one more argument.
        ``above`` is the number of slots above the arguments (1: the names of keyword arguments).
        """
        if beside == "?":
            raise UnknownStack(f"unknown layout of the call at {instr!r}")
        self.hook("call" if names is None else "call_kw", site)
        values = args if beside == "N" else args + 1
        # each copy moves the operands one deeper, and the next operand is one shallower: the depth stays the same
        self.emit("COPY", values + 3 + above + (PY313 and beside == "N"))
        for _ in range(values):
            self.emit("COPY", values + 3 + above)
        self.emit("BUILD_TUPLE", values)
        if names is not None:
            self.const(names)
        self.call(2 if names is None else 3)
        self.emit("POP_TOP")
        self.reserve_stack(values + 4)

    def around(self, event: str, site: Site, group: list[Instr], operands: int, nones: int = 0) -> None:
        """The operation itself, ``group``, then its hook, called with the operands, ``nones`` times None and the result. The
        hook returns the result."""
        self.hook(event, site)
        for _ in range(operands):
            self.emit("COPY", operands + 2)
        for _ in range(nones):
            self.const(None)
        for _ in range(operands):
            self.emit("COPY", operands + nones)
        self.out.extend(group)
        self.call(operands + nones + 1)
        self.emit("SWAP", operands + 1)
        for _ in range(operands):
            self.emit("POP_TOP")
        self.reserve_stack(2 * operands + nones + 2)

    def after_call(self, site: Site) -> None:
        """Pass the result on top of the stack to the hook, and replace it by the hook's return value."""
        self.const(HOOKS["call_result"])
        self.emit("SWAP", 2)
        self.const(site)
        self.call(1)
        self.reserve_stack(2)

    def attribute(self, instr: Instr, index: int, method: bool) -> None:
        """A plain attribute load instead of ``instr``, with a NULL if it was a method load."""
        site = self.site(self.name(index), instr)
        self.before("attr_read", site, 1)
        instr.op, instr.arg = dis.opmap["LOAD_ATTR"], index << 1 if PY312 else index
        if self.name(index) in WITH_RESULT and not method:
            self.around("attr_result", site, [instr], 1)
        else:
            self.out.append(instr)
        if method:
            self.emit("PUSH_NULL")
            if not PY313:
                self.emit("SWAP", 2)
            self.reserve_stack(1)

"""Instrumented clones: the same bytecode, with calls to hooks beside the operations.

:func:`instrument` returns a clone of a code object with the same name, variables, flags, positions and exception table.
The operations stay in place; hooks get copies of their operands. Some instructions are expanded into equivalent sequences,
so that a call's stack layout is known and every operation has its event: a method load becomes an attribute load and a
NULL, ``LOAD_SUPER_ATTR`` (3.12+) becomes the call of super and the attribute load, ``f(*x)`` turns an x that is not a tuple
into one before the call, a 3.13 comparison that includes a truth test becomes a comparison and a test, and the method that a
with block looks up (``LOAD_SPECIAL``, 3.14) is bound and followed by a NULL.
Key type: :class:`_Instrumenter`.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import CodeType
from typing import Final

from magpy_core._compat.cpython.assembler import Instr, assemble, decode
from magpy_core._compat.cpython.own_builtins import OWN_BUILTINS
from magpy_core._compat.cpython.slots import UnknownStack
from magpy_core._compat.cpython.special_methods import SPECIAL_METHODS
from magpy_core._compat.torch.dynamo import local_names
from magpy_core._compat.torch.eval_frame import generator_started
from magpy_core._compat.versions import PY312, PY313, PY314
from magpy_core.monitor.emit import Emitter
from magpy_core.monitor.hooks import HOOKS

__builtins__ = OWN_BUILTINS  # type: ignore[assignment]

_OP: Final = dis.opmap
_COMPARE_TO_BOOL: Final = 16  # 3.13: COMPARE_OP also does what TO_BOOL does
_BINARY_OPS: Final[tuple[str, ...]] = tuple(symbol for _, symbol in dis._nb_ops)  # type: ignore[attr-defined]
_CONVERSIONS: Final = (None, "s", "r", "a")
_INTRINSIC_UNARY_POSITIVE: Final = 5
_INTRINSIC_LIST_TO_TUPLE: Final = 6

Rewriter = Callable[["_Instrumenter", Instr], None]
_Name = str | tuple[str, ...] | Callable[["_Instrumenter", Instr], str] | None


class _Instrumenter(Emitter):
    """Builds one clone: walks the original's instructions and emits them with hooks around them."""

    def run(self) -> CodeType:
        instrs = self.decoded.instrs
        while self.at < len(instrs):
            instr = instrs[self.at]
            first = len(self.out)
            self.position = instr.pos
            rewriter = _REWRITERS.get(instr.name) if instr in self.states else None
            if rewriter is None:
                self.out.append(instr)
            else:
                rewriter(self, instr)
            if self.out[first] is not instr:
                self.labels[instr] = self.out[first]
            self.at += 1
        return assemble(self.decoded, self.out, self.labels, tuple(self.consts), self.extra_stack)


def _event(event: str, *depths: int, name: _Name = None, result: str = "") -> Rewriter:
    """An event before the instruction, with the operands at these depths (0: None), and one after it for its ``result``.
    If ``name`` is a tuple, the instruction's argument is the index into it."""

    def rewrite(self: _Instrumenter, instr: Instr) -> None:
        of_arg = name[instr.arg] if isinstance(name, tuple) else name
        site = self.site(of_arg(self, instr) if callable(of_arg) else of_arg)
        self.before(event, site, *depths)
        if result:
            self.around(result, site, [instr], len(depths))
        else:
            self.out.append(instr)

    return rewrite


def _co_name(self: _Instrumenter, instr: Instr) -> str:
    return self.name(instr.arg)


def _cell(event: str) -> Rewriter:
    def rewrite(self: _Instrumenter, instr: Instr) -> None:
        self.hook(event, self.site(local_names(self.code)[instr.arg]))
        writes = event == "cell_write"
        self.emit("LOAD_FAST" if PY313 else "LOAD_CLOSURE", instr.arg)
        if writes:
            self.emit("COPY", 4)
        self.call(2 if writes else 1)
        self.emit("POP_TOP")
        self.reserve_stack(4)
        self.out.append(instr)

    return rewrite


def _load_attr(self: _Instrumenter, instr: Instr) -> None:
    if PY312:
        self.attribute(instr, instr.arg >> 1, bool(instr.arg & 1))
    else:
        self.attribute(instr, instr.arg, instr.name != "LOAD_ATTR")


def _load_super_attr(self: _Instrumenter, instr: Instr) -> None:
    index, two_args, method = instr.arg >> 2, bool(instr.arg & 2), bool(instr.arg & 1)
    self.emit("PUSH_NULL")
    place = 3 if PY313 else 4  # position of the NULL: above super, or below it
    # super, class, self, NULL -> NULL, super, class, self (or super, NULL, class, self)
    # or, without arguments, -> NULL, super, self, class (or super, NULL, self, class) -> NULL, super (or super, NULL)
    for depth in range(place, 1 if two_args else 2, -1):
        self.emit("SWAP", depth)
    args = 2 if two_args else 0
    for _ in range(2 - args):
        self.emit("POP_TOP")
    site = self.site(None, instr, offset=len(self.decoded.instrs))
    self.reserve_stack(1)
    self.before_call(site, instr, args, None, "N")
    self.extra_stack += 1  # the calls above happen one slot higher than the original's stack
    self.call(args)
    self.after_call(site)
    self.attribute(instr, index, method)


def _call(self: _Instrumenter, instr: Instr) -> None:
    """A complete call: KW_NAMES, PRECALL and CALL (up to 3.12) stay together."""
    group = [instr]
    while group[-1].name != "CALL":
        group.append(self.decoded.instrs[self.at + len(group)])
    names = self.code.co_consts[instr.arg] if instr.name == "KW_NAMES" else None
    last = group[-1]
    site = self.site(None, last, len(group) - 1)
    self.position = last.pos
    enters = self.decoded.instrs[self.at - 1].name == "LOAD_SPECIAL"  # the call of ``__enter__``, whose event is with_enter
    if not enters:
        self.before_call(site, instr, last.arg, names, self.states[instr][-(last.arg + (1 if PY313 else 2))])
    if PY313:
        # a specialized CALL enters a class's __init__ without the frame evaluation hook (PEP 523); CALL_KW always uses it
        self.const(())
        instr.op = _OP["CALL_KW"]
        self.reserve_stack(1)
    self.out.extend(group)
    self.at += len(group) - 1
    if not enters:
        self.after_call(site)


def _call_kw(self: _Instrumenter, instr: Instr) -> None:
    """3.13: the keyword names are the topmost operand, a constant."""
    previous = self.decoded.instrs[self.at - 1]
    if previous.name != "LOAD_CONST":
        raise UnknownStack(f"no names for the call at {instr!r}")
    site = self.site()
    self.before_call(
        site, instr, instr.arg, self.code.co_consts[previous.arg], self.states[instr][-(instr.arg + 2)], above=1
    )
    self.out.append(instr)
    self.after_call(site)


def _call_ex(self: _Instrumenter, instr: Instr) -> None:
    site = self.site()
    has_kwargs = self.states[instr].endswith("V") if PY314 else bool(instr.arg & 1)
    above = has_kwargs or PY314  # 3.14: keyword arguments or a NULL are always on top
    previous = self.decoded.instrs[self.at - (2 if PY314 else 1)]
    if has_kwargs or not _makes_tuple(previous):
        if above:
            self.emit("SWAP", 2)
        self.hook("call_star", site)
        self.emit("COPY", 3)
        self.call(1)
        skip = self.emit("POP_JUMP_IF_FALSE" if PY312 else "POP_JUMP_FORWARD_IF_FALSE")
        self.emit("BUILD_LIST", 0)
        self.emit("SWAP", 2)
        self.emit("LIST_EXTEND", 1)
        if PY312:
            self.emit("CALL_INTRINSIC_1", _INTRINSIC_LIST_TO_TUPLE)
        else:
            self.emit("LIST_TO_TUPLE")
        skip.target = self.emit("NOP")
        if above:
            self.emit("SWAP", 2)
        self.reserve_stack(4)
    self.before("call_ex", site, 2 + above + PY313, 1 + above, int(has_kwargs))
    self.out.append(instr)
    self.after_call(site)


def _makes_tuple(instr: Instr) -> bool:
    if instr.name == "CALL_INTRINSIC_1":
        return instr.arg == _INTRINSIC_LIST_TO_TUPLE
    return instr.name in ("LIST_TO_TUPLE", "BUILD_TUPLE")


_UNARY_POSITIVE: Final = _event("unary", 1, name="+", result="unary_result")
_COMPARISON_SHIFT: Final = 5 if PY313 else 4 if PY312 else 0
_COMPARE: Final = _event(
    "compare", 2, 1, name=lambda self, instr: dis.cmp_op[instr.arg >> _COMPARISON_SHIFT], result="compare_result"
)
_SUBSCRIPT: Final = _event("item_read", 2, 1, result="item_read_result")
_BINARY: Final = _event("binary", 2, 1, name=_BINARY_OPS, result="binary_result")


def _intrinsic(self: _Instrumenter, instr: Instr) -> None:
    if instr.arg == _INTRINSIC_UNARY_POSITIVE:
        _UNARY_POSITIVE(self, instr)
    else:
        self.out.append(instr)


def _compare(self: _Instrumenter, instr: Instr) -> None:
    _COMPARE(self, instr)
    if PY313 and instr.arg & _COMPARE_TO_BOOL:
        instr.arg &= ~_COMPARE_TO_BOOL
        self.before("truth", self.site(None, instr, offset=len(self.decoded.instrs)), 1)
        self.emit("TO_BOOL")


def _slice(self: _Instrumenter, instr: Instr) -> None:
    """``x[a:b]`` compiled without a slice object: expanded into building the slice and a subscript."""
    self.emit("BUILD_SLICE", 2)
    instr.op, instr.arg = (_OP["BINARY_OP"], _BINARY_OPS.index("[]")) if PY314 else (_OP["BINARY_SUBSCR"], 0)
    _SUBSCRIPT(self, instr)


def _binary(self: _Instrumenter, instr: Instr) -> None:
    (_SUBSCRIPT if _BINARY_OPS[instr.arg] == "[]" else _BINARY)(self, instr)  # 3.14: a subscript is an operator


def _extend(self: _Instrumenter, instr: Instr) -> None:
    # [1, 2, 3] is compiled as the extension of an empty list by a constant, which is not an event of the program
    if self.decoded.instrs[self.at - 1].name != "LOAD_CONST":
        self.before("extend", self.site(), instr.arg + 1, 1)
    self.out.append(instr)


def _display(step: int) -> Rewriter:
    """BUILD_SET (step 1) and BUILD_MAP (step 2: a key below each value)."""

    def rewrite(self: _Instrumenter, instr: Instr) -> None:
        site = self.site()
        for depth in range(instr.arg * step, 0, -step):
            self.before("hashed", site, depth)
        self.out.append(instr)

    return rewrite


def _format(self: _Instrumenter, instr: Instr) -> None:
    """FORMAT_VALUE: conversion and formatting in one instruction."""
    _formatting(self, [instr], _CONVERSIONS[instr.arg & 3], bool(instr.arg & 4))


def _convert(self: _Instrumenter, instr: Instr) -> None:
    """3.13: conversion is a separate instruction, and a separate event if a format specification follows."""
    following = self.decoded.instrs[self.at + 1]
    group = [instr, following] if following.name == "FORMAT_SIMPLE" else [instr]
    _formatting(self, group, _CONVERSIONS[instr.arg], False)
    self.at += len(group) - 1


def _formatting(self: _Instrumenter, group: list[Instr], conversion: str | None, has_spec: bool) -> None:
    site = self.site(conversion)
    self.before("format", site, *((2, 1) if has_spec else (1, 0)))
    self.around("format_result", site, group, 1 + has_spec, nones=0 if has_spec else 1)


def _joined(self: _Instrumenter, instr: Instr) -> None:
    """BUILD_STRING: the hook gets a tuple of the parts."""
    parts = instr.arg
    self.hook("joined_result", self.site())
    for _ in range(parts):
        self.emit("COPY", parts + 2)
    self.emit("BUILD_TUPLE", parts)
    for _ in range(parts):
        self.emit("COPY", parts + 3)
    self.out.append(instr)
    self.call(2)
    self.emit("SWAP", parts + 1)
    for _ in range(parts):
        self.emit("POP_TOP")
    self.reserve_stack(parts + 3)


def _interpolation(self: _Instrumenter, instr: Instr) -> None:
    """3.14: a field of a template string keeps its value, which native code shows when the template is printed."""
    has_spec = instr.arg & 1
    self.before("format", self.site(_CONVERSIONS[instr.arg >> 2]), 2 + has_spec, has_spec)
    self.out.append(instr)


def _load_special(self: _Instrumenter, instr: Instr) -> None:
    """3.14: a with block looks up ``__exit__``, then ``__enter__``; afterwards, the stack has something bound and a NULL."""
    name = SPECIAL_METHODS[instr.arg]
    if name.endswith("exit__"):
        self.before("with_enter", self.site(), 1)
    self.const(HOOKS["special_method"])
    self.const(name)
    self.emit("COPY", 3)
    self.call(1)
    self.emit("COPY", 1)
    itself = self.emit("POP_JUMP_IF_NONE")
    self.emit("SWAP", 2)
    self.emit("POP_TOP")
    self.emit("PUSH_NULL")
    done = self.emit("JUMP_FORWARD")
    itself.target = self.emit("POP_TOP")
    self.out.append(instr)
    done.target = self.emit("NOP")
    self.reserve_stack(3)


def _with_except(self: _Instrumenter, instr: Instr) -> None:
    site = self.site()
    self.before("call_exit", site, 5 if PY314 else 4, 1)  # 3.14: a NULL is above the method
    self.out.append(instr)
    self.after_call(site)


def _raise(self: _Instrumenter, instr: Instr) -> None:
    event, depths = ("raise_", [instr.arg]) if instr.arg else ("reraise", [])
    self.before(event, self.site(), *depths)
    self.out.append(instr)


def _generator(self: _Instrumenter, instr: Instr) -> None:
    self.const(generator_started)
    self.const(self.code)
    self.call(0)
    self.emit("POP_TOP")
    self.reserve_stack(2)
    self.out.append(instr)


# the bytecode doesn't show how a branch on None is written in the source
_IS_NONE: Final = _event("is_", 1, 0, name="is")
_REWRITERS: Final[dict[str, Rewriter]] = {
    "LOAD_GLOBAL": _event("global_read", name=lambda self, instr: self.name(instr.arg >> 1)),
    "STORE_GLOBAL": _event("global_write", 1, name=_co_name),
    "DELETE_GLOBAL": _event("global_delete", name=_co_name),
    "LOAD_DEREF": _cell("cell_read"),
    "STORE_DEREF": _cell("cell_write"),
    "DELETE_DEREF": _cell("cell_delete"),
    "LOAD_ATTR": _load_attr,
    "LOAD_METHOD": _load_attr,
    "LOAD_SUPER_ATTR": _load_super_attr,
    "STORE_ATTR": _event("attr_write", 1, 2, name=_co_name),
    "DELETE_ATTR": _event("attr_delete", 1, name=_co_name),
    "BINARY_SUBSCR": _SUBSCRIPT,
    "STORE_SUBSCR": _event("item_write", 2, 1, 3),
    "DELETE_SUBSCR": _event("item_delete", 2, 1),
    "BINARY_SLICE": _slice,
    "STORE_SLICE": _event("item_write_slice", 3, 2, 1, 4),
    "KW_NAMES": _call,
    "PRECALL": _call,
    "CALL": _call,
    "CALL_KW": _call_kw,
    "CALL_FUNCTION_EX": _call_ex,
    "BINARY_OP": _binary,
    "UNARY_NEGATIVE": _event("unary", 1, name="-", result="unary_result"),
    "UNARY_POSITIVE": _UNARY_POSITIVE,
    "UNARY_INVERT": _event("unary", 1, name="~", result="unary_result"),
    "TO_BOOL" if PY313 else "UNARY_NOT": _event("truth", 1),
    "CALL_INTRINSIC_1": _intrinsic,
    "COMPARE_OP": _compare,
    "IS_OP": _event("is_", 2, 1, name=("is", "is not"), result="is_result"),
    "CONTAINS_OP": _event("contains", 2, 1, name=("in", "not in")),
    "GET_ITER": _event("iterate", 1, result="iterate_result"),
    "GET_YIELD_FROM_ITER": _event("iterate", 1),
    "UNPACK_SEQUENCE": _event("unpack", 1),
    "UNPACK_EX": _event("unpack", 1),
    "BUILD_SET": _display(1),
    "BUILD_MAP": _display(2),
    "SET_ADD": _event("hashed", 1),
    "MAP_ADD": _event("hashed", 2),
    "LIST_EXTEND": _extend,
    "SET_UPDATE": _extend,
    "DICT_UPDATE": _extend,
    "DICT_MERGE": _extend,
    "MATCH_SEQUENCE": _event("match", 1),
    "MATCH_MAPPING": _event("match", 1),
    "MATCH_KEYS": _event("match", 2),
    "MATCH_CLASS": _event("match_class", 3, 2, 1),
    "GET_LEN": _event("match", 1),
    "FORMAT_VALUE": _format,
    "CONVERT_VALUE": _convert,
    "FORMAT_SIMPLE": lambda self, instr: _formatting(self, [instr], None, False),
    "FORMAT_WITH_SPEC": lambda self, instr: _formatting(self, [instr], None, True),
    "BUILD_STRING": _joined,
    "BEFORE_WITH": _event("with_enter", 1),
    "BEFORE_ASYNC_WITH": _event("with_enter", 1),
    "BUILD_INTERPOLATION": _interpolation,
    "LOAD_SPECIAL": _load_special,
    "WITH_EXCEPT_START": _with_except,
    "IMPORT_NAME": _event("import_name", name=_co_name),
    "IMPORT_FROM": _event("import_from", 1, name=_co_name),
    "CHECK_EXC_MATCH": _event("caught", 2, 1),
    "CHECK_EG_MATCH": _event("caught", 2, 1),
    "RAISE_VARARGS": _raise,
    "YIELD_VALUE": _event("yield_", 1),
    "RETURN_VALUE": _event("return_", 1),
    "RETURN_GENERATOR": _generator,
    **{
        name: _IS_NONE if name.endswith("NONE") else _event("truth", 1)
        for name in _OP
        if name.startswith(("POP_JUMP_", "JUMP_IF_")) and (name.endswith("NONE") or not PY313)
    },
}


def instrument(code: CodeType) -> CodeType:
    """The instrumented clone of a function's code. Raises UnknownStack if its stack layout can't be determined."""
    return _Instrumenter(decode(code)).run()

"""Instrumented clones: the same bytecode with calls to hooks beside the instructions that events are made of.

:func:`instrument` takes a code object and gives a clone with the same name, variables, flags, positions and exception table.
The real operations stay where they are; hooks get copies of their operands. Three instructions are rewritten into equal
longer forms, so that a call's stack layout is known: a method load becomes a plain attribute load above a NULL, 3.12's
``LOAD_SUPER_ATTR`` becomes the call of super and the attribute load that it stands for, and ``f(*x)`` spreads an x that is
no tuple before the call instead of in it.

Hooks are called as ``[hook, site, operands...]``: in the place below a call's first argument CPython takes either a NULL, or
a method whose first argument follows. Key type: :class:`_Instrumenter`.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import CodeType
from typing import Any, Final

from magpy_core._compat.assembler import Decoded, Instr, Position, assemble, decode
from magpy_core._compat.dynamo import local_names
from magpy_core._compat.eval_frame import generator_started
from magpy_core._compat.own_builtins import OWN_BUILTINS
from magpy_core._compat.slots import UnknownStack, stack_states
from magpy_core._compat.versions import PY312
from magpy_core.monitor.events import Site
from magpy_core.monitor.hooks import HOOKS
from magpy_core.monitor.operands import operand_position

__builtins__ = OWN_BUILTINS  # type: ignore[assignment]

_OP: Final = dis.opmap
_LOAD_CONST: Final = _OP["LOAD_CONST"]
_COPY: Final = _OP["COPY"]
_SWAP: Final = _OP["SWAP"]
_POP_TOP: Final = _OP["POP_TOP"]
_PUSH_NULL: Final = _OP["PUSH_NULL"]
_CALL: Final = _OP["CALL"]
_PRECALL: Final = -1 if PY312 else _OP["PRECALL"]
_KW_NAMES: Final = _OP["KW_NAMES"]
_LOAD_ATTR: Final = _OP["LOAD_ATTR"]
_BINARY_OPS: Final[list[str]] = [symbol for _, symbol in dis._nb_ops]  # type: ignore[attr-defined]
_CONVERSIONS: Final = (None, "s", "r", "a")
_INTRINSIC_UNARY_POSITIVE: Final = 5
_INTRINSIC_LIST_TO_TUPLE: Final = 6

Rewriter = Callable[["_Instrumenter", Instr], None]


class _Instrumenter:
    """Builds one clone: walks the original's instructions and emits them with hooks around them."""

    def __init__(self, decoded: Decoded) -> None:
        self.code = decoded.code
        self.decoded = decoded
        self.states = stack_states(decoded)
        self.out: list[Instr] = []
        self.labels: dict[Instr, Instr] = {}
        self.consts: list[Any] = list(self.code.co_consts)
        self.const_index: dict[int, int] = {}
        self.extra_stack = 0
        self.joins = {instr.target for instr in self.decoded.instrs if instr.target is not None}
        self.position: Position = (None, None, None, None)
        self.at = 0

    def run(self) -> CodeType:
        instrs = self.decoded.instrs
        while self.at < len(instrs):
            instr = instrs[self.at]
            first = len(self.out)
            self.position = instr.pos
            rewriter = _REWRITERS.get(instr.op) if instr in self.states else None
            if rewriter is None:
                self.out.append(instr)
            else:
                rewriter(self, instr)
            if self.out[first] is not instr:
                self.labels[instr] = self.out[first]
            self.at += 1
        return assemble(self.decoded, self.out, self.labels, tuple(self.consts), self.extra_stack)

    # Emitting

    def emit(self, op: int, arg: int = 0) -> Instr:
        instr = Instr(op, arg, self.position)
        self.out.append(instr)
        return instr

    def const(self, value: object) -> None:
        """Push a constant of ours."""
        index = self.const_index.get(id(value))
        if index is None:
            index = self.const_index[id(value)] = len(self.consts)
            self.consts.append(value)
        self.emit(_LOAD_CONST, index)

    def call(self, args: int) -> None:
        if not PY312:
            self.emit(_PRECALL, args)
        self.emit(_CALL, args)

    def site(self, name: str | None = None, instr: Instr | None = None, offset: int = 0) -> Site:
        position = instr.pos if instr else operand_position(self.decoded.instrs, self.at, self.joins)
        opname = dis.opname[(instr or self.decoded.instrs[self.at]).op]
        return Site(self.code, self.at + offset, opname, name, position)

    def hook(self, name: str, site: Site) -> None:
        self.const(HOOKS[name])
        self.const(site)

    def room(self, slots: int) -> None:
        self.extra_stack = max(self.extra_stack, slots)

    def before(self, event: str, site: Site, *depths: int) -> None:
        """Call an event's hook with copies of the operands at these depths (1 is the top of the stack)."""
        self.hook(event, site)
        for pushed, depth in enumerate(depths):
            self.emit(_COPY, depth + 2 + pushed)
        self.call(len(depths))
        self.emit(_POP_TOP)
        self.room(2 + len(depths))

    def name(self, index: int) -> str:
        return self.code.co_names[index]

    # Calls

    def before_call(self, site: Site, instr: Instr, args: int, names: tuple[str, ...] | None, below: str) -> None:
        """Report a call; ``below`` is the state's letter below the callable: N, or V when that is the real callable."""
        if below == "?":
            raise UnknownStack(f"unknown layout of the call at {instr!r}")
        self.hook("call" if names is None else "call_kw", site)
        values = args if below == "N" else args + 1
        for _ in range(values + 1):  # every copy makes the next operand one deeper, and the next operand is one shallower
            self.emit(_COPY, values + 3)
        self.emit(_OP["BUILD_TUPLE"], values)
        if names is not None:
            self.const(names)
        self.call(2 if names is None else 3)
        self.emit(_POP_TOP)
        self.room(values + 4)

    def after_call(self, site: Site) -> None:
        """Hand the result on top of the stack to the hook, and take what it returns in its place."""
        self.const(HOOKS["call_result"])
        self.emit(_SWAP, 2)
        self.const(site)
        self.call(1)
        self.room(2)

    def attribute(self, instr: Instr, index: int, method: bool, offset: int = 0) -> None:
        """A plain attribute load in the place of ``instr``, above a NULL if it was a method load."""
        self.before("attr_read", self.site(self.name(index), instr, offset), 1)
        instr.op, instr.arg = _LOAD_ATTR, index << 1 if PY312 else index
        self.out.append(instr)
        if method:
            self.emit(_PUSH_NULL)
            self.emit(_SWAP, 2)
            self.room(1)


def _simple(event: str, *depths: int) -> Rewriter:
    """An event before the instruction, with the operands at these depths and no name."""

    def rewrite(self: _Instrumenter, instr: Instr) -> None:
        self.before(event, self.site(), *depths)
        self.out.append(instr)

    return rewrite


def _named(event: str, *depths: int) -> Rewriter:
    """An event before an instruction whose argument is an index into co_names."""

    def rewrite(self: _Instrumenter, instr: Instr) -> None:
        self.before(event, self.site(self.name(instr.arg)), *depths)
        self.out.append(instr)

    return rewrite


def _load_global(self: _Instrumenter, instr: Instr) -> None:
    self.before("global_read", self.site(self.name(instr.arg >> 1)))
    self.out.append(instr)


def _cell(event: str) -> Rewriter:
    def rewrite(self: _Instrumenter, instr: Instr) -> None:
        self.hook(event, self.site(local_names(self.code)[instr.arg]))
        writes = event == "cell_write"
        if writes:
            self.emit(_COPY, 3)
        self.emit(_OP["LOAD_CLOSURE"], instr.arg)
        self.call(2 if writes else 1)
        self.emit(_POP_TOP)
        self.room(4)
        self.out.append(instr)

    return rewrite


def _load_attr(self: _Instrumenter, instr: Instr) -> None:
    if PY312:
        self.attribute(instr, instr.arg >> 1, bool(instr.arg & 1))
    else:
        self.attribute(instr, instr.arg, instr.op != _LOAD_ATTR)


def _load_super_attr(self: _Instrumenter, instr: Instr) -> None:
    index, two_args, method = instr.arg >> 2, bool(instr.arg & 2), bool(instr.arg & 1)
    self.emit(_PUSH_NULL)
    if two_args:  # super, class, self, NULL -> NULL, super, class, self
        for depth in (4, 3, 2):
            self.emit(_SWAP, depth)
        args = 2
    else:  # super, class, self, NULL -> NULL, super, self, class -> NULL, super
        self.emit(_SWAP, 4)
        self.emit(_SWAP, 3)
        self.emit(_POP_TOP)
        self.emit(_POP_TOP)
        args = 0
    site = self.site(None, instr, offset=len(self.decoded.instrs))
    self.room(1)
    self.before_call(site, instr, args, None, "N")
    self.extra_stack += 1  # the calls above happen one slot higher than the original's stack
    self.call(args)
    self.after_call(site)
    self.attribute(instr, index, method)


def _call(self: _Instrumenter, instr: Instr) -> None:
    """A whole call: KW_NAMES, PRECALL and CALL stay together."""
    instrs = self.decoded.instrs
    names: tuple[str, ...] | None = None
    group = [instr]
    while group[-1].op != _CALL:
        group.append(instrs[self.at + len(group)])
    if instr.op == _KW_NAMES:
        names = self.code.co_consts[instr.arg]
    last = group[-1]
    state = self.states[instr]
    site = self.site(None, last, len(group) - 1)
    self.position = last.pos
    self.before_call(site, instr, last.arg, names, state[-(last.arg + 2)])
    self.out.extend(group)
    self.at += len(group) - 1
    self.after_call(site)


def _call_ex(self: _Instrumenter, instr: Instr) -> None:
    site = self.site()
    has_kwargs = bool(instr.arg & 1)
    previous = self.decoded.instrs[self.at - 1]
    if has_kwargs or not _makes_tuple(previous):
        if has_kwargs:
            self.emit(_SWAP, 2)
        self.hook("call_star", site)
        self.emit(_COPY, 3)
        self.call(1)
        skip = self.emit(_OP["POP_JUMP_IF_FALSE" if PY312 else "POP_JUMP_FORWARD_IF_FALSE"])
        self.emit(_OP["BUILD_LIST"], 0)
        self.emit(_SWAP, 2)
        self.emit(_OP["LIST_EXTEND"], 1)
        if PY312:
            self.emit(_OP["CALL_INTRINSIC_1"], _INTRINSIC_LIST_TO_TUPLE)
        else:
            self.emit(_OP["LIST_TO_TUPLE"])
        skip.target = self.emit(_OP["NOP"])
        if has_kwargs:
            self.emit(_SWAP, 2)
        self.room(4)
    self.hook("call_ex", site)
    for _ in range(2 + has_kwargs):
        self.emit(_COPY, 4 + has_kwargs)
    if not has_kwargs:
        self.const(None)
    self.call(3)
    self.emit(_POP_TOP)
    self.room(6)
    self.out.append(instr)
    self.after_call(site)


def _makes_tuple(instr: Instr) -> bool:
    if PY312 and instr.op == _OP["CALL_INTRINSIC_1"]:
        return instr.arg == _INTRINSIC_LIST_TO_TUPLE
    return instr.op in (_OP.get("LIST_TO_TUPLE"), _OP["BUILD_TUPLE"])


def _with_result(self: _Instrumenter, instr: Instr, event: str, site: Site) -> None:
    """An operation on two operands: ``event`` before it, and its result, with the operands, to the ``_result`` event."""
    self.before(event, site, 2, 1)
    self.hook(event.removesuffix("_") + "_result", site)
    for depth in (4, 4, 2, 2):
        self.emit(_COPY, depth)
    self.out.append(instr)
    self.call(3)
    self.emit(_SWAP, 3)
    self.emit(_POP_TOP)
    self.emit(_POP_TOP)
    self.room(6)


def _binary(self: _Instrumenter, instr: Instr) -> None:
    _with_result(self, instr, "binary", self.site(_BINARY_OPS[instr.arg]))


def _unary(symbol: str) -> Rewriter:
    def rewrite(self: _Instrumenter, instr: Instr) -> None:
        site = self.site(symbol)
        self.before("unary", site, 1)
        self.hook("unary_result", site)
        self.emit(_COPY, 3)
        self.emit(_COPY, 1)
        self.out.append(instr)
        self.call(2)
        self.emit(_SWAP, 2)
        self.emit(_POP_TOP)
        self.room(4)

    return rewrite


def _intrinsic(self: _Instrumenter, instr: Instr) -> None:
    if instr.arg == _INTRINSIC_UNARY_POSITIVE:
        _unary("+")(self, instr)
    else:
        self.out.append(instr)


def _compare(self: _Instrumenter, instr: Instr) -> None:
    self.before("compare", self.site(dis.cmp_op[instr.arg >> 4 if PY312 else instr.arg]), 2, 1)
    self.out.append(instr)


def _is(self: _Instrumenter, instr: Instr) -> None:
    _with_result(self, instr, "is_", self.site("is not" if instr.arg else "is"))


def _is_none(self: _Instrumenter, instr: Instr) -> None:
    self.hook("is_", self.site("is"))  # how it is written in the source is not to be known
    self.emit(_COPY, 3)
    self.const(None)
    self.call(2)
    self.emit(_POP_TOP)
    self.room(4)
    self.out.append(instr)


def _contains(self: _Instrumenter, instr: Instr) -> None:
    self.before("contains", self.site("not in" if instr.arg else "in"), 2, 1)
    self.out.append(instr)


def _extend(self: _Instrumenter, instr: Instr) -> None:
    # [1, 2, 3] is compiled as the extension of an empty list by a constant: no event of the program's.
    if self.decoded.instrs[self.at - 1].op != _LOAD_CONST:
        self.before("extend", self.site(), instr.arg + 1, 1)
    self.out.append(instr)


def _display(step: int) -> Rewriter:
    """BUILD_SET (step 1) and BUILD_MAP (step 2: a key below each value)."""

    def rewrite(self: _Instrumenter, instr: Instr) -> None:
        if instr.arg:
            site = self.site()
            for depth in range(instr.arg * step, 0, -step):
                self.before("hashed", site, depth)
        self.out.append(instr)

    return rewrite


def _format(self: _Instrumenter, instr: Instr) -> None:
    has_spec = bool(instr.arg & 4)
    site = self.site(_CONVERSIONS[instr.arg & 3])
    self.hook("format", site)
    if has_spec:
        self.emit(_COPY, 4)
        self.emit(_COPY, 4)
    else:
        self.emit(_COPY, 3)
        self.const(None)
    self.call(2)
    self.emit(_POP_TOP)
    self.hook("format_result", site)
    if has_spec:
        for depth in (4, 4, 2, 2):
            self.emit(_COPY, depth)
    else:
        self.emit(_COPY, 3)
        self.const(None)
        self.emit(_COPY, 2)
    self.out.append(instr)
    self.call(3)
    if has_spec:
        self.emit(_SWAP, 3)
        self.emit(_POP_TOP)
    else:
        self.emit(_SWAP, 2)
    self.emit(_POP_TOP)
    self.room(6)


def _with_except(self: _Instrumenter, instr: Instr) -> None:
    site = self.site()
    self.before("call_exit", site, 4, 1)
    self.out.append(instr)
    self.after_call(site)


def _import_name(self: _Instrumenter, instr: Instr) -> None:
    self.before("import_name", self.site(self.name(instr.arg)))
    self.out.append(instr)


def _raise(self: _Instrumenter, instr: Instr) -> None:
    if instr.arg == 0:
        self.before("reraise", self.site())
    else:
        self.before("raise_", self.site(), instr.arg)
    self.out.append(instr)


def _generator(self: _Instrumenter, instr: Instr) -> None:
    self.const(generator_started)
    self.const(self.code)
    self.call(0)
    self.emit(_POP_TOP)
    self.room(2)
    self.out.append(instr)


_BY_NAME: Final[dict[str, Rewriter]] = {
    "LOAD_GLOBAL": _load_global,
    "STORE_GLOBAL": _named("global_write", 1),
    "DELETE_GLOBAL": _named("global_delete"),
    "LOAD_DEREF": _cell("cell_read"),
    "STORE_DEREF": _cell("cell_write"),
    "DELETE_DEREF": _cell("cell_delete"),
    "LOAD_ATTR": _load_attr,
    "LOAD_METHOD": _load_attr,
    "LOAD_SUPER_ATTR": _load_super_attr,
    "STORE_ATTR": _named("attr_write", 1, 2),
    "DELETE_ATTR": _named("attr_delete", 1),
    "BINARY_SUBSCR": _simple("item_read", 2, 1),
    "STORE_SUBSCR": _simple("item_write", 2, 1, 3),
    "DELETE_SUBSCR": _simple("item_delete", 2, 1),
    "BINARY_SLICE": _simple("item_read_slice", 3, 2, 1),
    "STORE_SLICE": _simple("item_write_slice", 3, 2, 1, 4),
    "KW_NAMES": _call,
    "PRECALL": _call,
    "CALL": _call,
    "CALL_FUNCTION_EX": _call_ex,
    "BINARY_OP": _binary,
    "UNARY_NEGATIVE": _unary("-"),
    "UNARY_POSITIVE": _unary("+"),
    "UNARY_INVERT": _unary("~"),
    "UNARY_NOT": _simple("truth", 1),
    "CALL_INTRINSIC_1": _intrinsic,
    "COMPARE_OP": _compare,
    "IS_OP": _is,
    "CONTAINS_OP": _contains,
    "GET_ITER": _simple("iterate", 1),
    "GET_YIELD_FROM_ITER": _simple("iterate", 1),
    "UNPACK_SEQUENCE": _simple("unpack", 1),
    "UNPACK_EX": _simple("unpack", 1),
    "BUILD_SET": _display(1),
    "BUILD_MAP": _display(2),
    "SET_ADD": _simple("hashed", 1),
    "MAP_ADD": _simple("hashed", 2),
    "LIST_EXTEND": _extend,
    "SET_UPDATE": _extend,
    "DICT_UPDATE": _extend,
    "DICT_MERGE": _extend,
    "MATCH_SEQUENCE": _simple("match", 1),
    "MATCH_MAPPING": _simple("match", 1),
    "MATCH_KEYS": _simple("match", 2),
    "MATCH_CLASS": _simple("match", 3),
    "GET_LEN": _simple("match", 1),
    "FORMAT_VALUE": _format,
    "BEFORE_WITH": _simple("with_enter", 1),
    "BEFORE_ASYNC_WITH": _simple("with_enter", 1),
    "WITH_EXCEPT_START": _with_except,
    "IMPORT_NAME": _import_name,
    "IMPORT_FROM": _named("import_from", 1),
    "RAISE_VARARGS": _raise,
    "YIELD_VALUE": _simple("yield_", 1),
    "RETURN_VALUE": _simple("return_", 1),
    "RETURN_GENERATOR": _generator,
    **{
        name: _is_none if name.endswith("NONE") else _simple("truth", 1)
        for name in _OP
        if name.startswith(("POP_JUMP_", "JUMP_IF_"))
    },
}
_REWRITERS: Final[dict[int, Rewriter]] = {_OP[name]: rewriter for name, rewriter in _BY_NAME.items() if name in _OP}


def instrument(code: CodeType) -> CodeType:
    """The instrumented clone of a function's code. Raises UnknownStack when its stack layout cannot be worked out."""
    return _Instrumenter(decode(code)).run()

"""Static analysis of the value stack: its depth at every instruction, and which slots hold a NULL.

CPython has NULLs on the value stack (next to a callable; a local saved by an inlined comprehension). ``COPY`` of a NULL
crashes the interpreter, so code that inserts COPYs must know the stack layout before every call. Key function:
:func:`stack_states`; a state is a string with one letter for every slot, bottom first: ``V`` a value, ``N`` a NULL, ``?``
either. LOAD_METHOD (3.11), LOAD_ATTR with the method bit (3.12 and later) and LOAD_SPECIAL (3.14) are modeled as the
instrumentation rewrites them: a NULL and the attribute. Up to 3.12 the NULL is below the callable, from 3.13 on above it.
"""

from __future__ import annotations

import dis
from itertools import pairwise

from magpy_core._compat.cpython.assembler import Decoded, Instr
from magpy_core._compat.cpython.own_builtins import OWN_BUILTINS
from magpy_core._compat.versions import PY312, PY313, PY314

__builtins__ = OWN_BUILTINS  # type: ignore[assignment]

_NO_FALLTHROUGH = frozenset({
    "RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD",
    "JUMP_BACKWARD_NO_INTERRUPT", "INTERPRETER_EXIT",
})  # fmt: skip
_CALLABLE = "VN" if PY313 else "NV"
"""A callable without a bound first argument."""


class UnknownStack(Exception):
    """The stack layout of a code object can't be determined; it must not be instrumented."""


def _step(state: str, instr: Instr, jump: bool) -> str:
    """The state after ``instr``."""
    op, arg = instr.op, instr.arg
    match instr.name:
        case "PUSH_NULL":
            return state + "N"
        case "LOAD_GLOBAL":
            return state + (_CALLABLE if arg & 1 else "V")
        case "LOAD_METHOD":
            return state[:-1] + _CALLABLE
        case "LOAD_ATTR" if PY312 and arg & 1:
            return state[:-1] + _CALLABLE
        case "LOAD_SUPER_ATTR":
            return state[:-3] + (_CALLABLE if arg & 1 else "V")
        case "COPY":
            return state + state[-arg]
        case "SWAP":
            return state[:-arg] + state[-1] + state[len(state) - arg + 1 : -1] + state[-arg]
        case "LOAD_FAST_AND_CLEAR":
            return state + "?"
        case "STORE_FAST_LOAD_FAST":
            return state[:-1] + "V"
        case "RETURN_GENERATOR":  # resumed with the sent value
            return state + "V"
        case "PRECALL":  # CALL has the entire effect
            return state
        case "CALL":
            return state[: -(arg + 2)] + "V"
        case "CALL_KW":
            return state[: -(arg + 3)] + "V"
        case "LOAD_SPECIAL":
            return state[:-1] + _CALLABLE
        case "CALL_FUNCTION_EX" if PY314:  # the callable, a NULL, the arguments, the keyword arguments or a NULL
            return state[:-4] + "V"
        case "CALL_FUNCTION_EX":
            return state[: -(3 + (arg & 1))] + "V"
    effect = dis.stack_effect(op, arg if op >= dis.HAVE_ARGUMENT else None, jump=jump)
    return state + "V" * effect if effect > 0 else state[: len(state) + effect]


def _merge(a: str, b: str, instr: Instr) -> str:
    if len(a) != len(b):
        raise UnknownStack(f"stack depths {len(a)} and {len(b)} meet at {instr!r}")
    return "".join(x if x == y else "?" for x, y in zip(a, b, strict=True))


def stack_states(decoded: Decoded) -> dict[Instr, str]:
    """The stack before every reachable instruction (unreachable ones are absent).

    Raises UnknownStack if the analysis fails (depths disagree, or exceed the frame's stack).
    """
    instrs = decoded.instrs
    following: dict[Instr, Instr] = dict(pairwise(instrs))
    order = {instr: k for k, instr in enumerate(instrs)}
    covering: list[list[tuple[Instr, int, bool]]] = [[] for _ in instrs]
    for handler in decoded.handlers:
        stop = len(instrs) if handler.stop is None else order[handler.stop]
        for k in range(order[handler.start], stop):
            covering[k].append((handler.target, handler.depth, handler.lasti))
    limit = decoded.code.co_stacksize
    states: dict[Instr, str] = {}
    work: list[tuple[Instr, str]] = [(instrs[0], "")]
    while work:
        instr, state = work.pop()
        known = states.get(instr)
        if known is not None:
            state = _merge(known, state, instr)
            if state == known:
                continue
        states[instr] = state
        if len(state) > limit:
            raise UnknownStack(f"stack deeper than {limit} at {instr!r}")
        for target, depth, lasti in covering[order[instr]]:
            if len(state) < depth:
                raise UnknownStack(f"handler depth {depth} above the stack at {instr!r}")
            work.append((target, state[:depth] + ("V" if lasti else "") + "V"))
        if instr.target is not None and instr.name != "END_ASYNC_FOR":
            work.append((instr.target, _step(state, instr, jump=True)))
        if instr.name not in _NO_FALLTHROUGH and instr in following:
            work.append((following[instr], _step(state, instr, jump=False)))
    return states

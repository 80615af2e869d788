"""The static stack analysis agrees with what CPython does: checked on generated code and on the standard library."""

from __future__ import annotations

import dis
import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from magpy_core._compat.cpython.assembler import decode
from magpy_core._compat.cpython.slots import UnknownStack, stack_states
from magpy_core._compat.versions import PY313, PY314
from magpy_core.monitor.clone import instrument
from magpy_core.monitor.events import Observer
from magpy_core.monitor.record import record
from tests.unit.monitor.stack_probe import Mismatch, Probe, probed, with_probes


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from codes(const)


def check(code: types.CodeType) -> None:
    """Invariants that only hold if every state is right: a function returns with one value; a call finds no NULL above."""
    decoded = decode(code)
    states = stack_states(decoded)
    for instr, state in states.items():
        name = dis.opname[instr.op]
        if name == "RETURN_VALUE":
            assert state == "V", (code, instr, state)
        elif name == "RETURN_CONST":
            assert state == "", (code, instr, state)
        elif name in ("CALL", "CALL_KW"):
            given = state[-(instr.arg + 2 + (name == "CALL_KW")) :]
            beside = given[1] if PY313 else given[0]
            assert beside in "NV", (code, instr, state)
            assert set(given.replace(beside, "", 1)) == {"V"}, (code, instr, state)
        elif name == "CALL_FUNCTION_EX" and PY314:
            assert state.endswith(("VNVV", "VNVN")), (code, instr, state)
        elif name == "CALL_FUNCTION_EX":
            given = state[-(3 + (instr.arg & 1)) :]
            assert given == ("VN" if PY313 else "NV") + "V" * (1 + (instr.arg & 1)), (code, instr, state)


names = st.sampled_from(["a", "b", "c", "d"])
atoms = st.one_of(names, st.sampled_from(["1", "None", "'s'", "len", "True"]))


def expressions(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(inner, inner)
    return st.one_of(
        two.map(lambda p: f"({p[0]} + {p[1]})"),
        two.map(lambda p: f"({p[0]} if {p[1]} else a.m({p[0]}))"),
        two.map(lambda p: f"f({p[0]}, k={p[1]})"),
        two.map(lambda p: f"f(*{p[0]}, **{p[1]})"),
        two.map(lambda p: f"a.m(g({p[0]}), *{p[1]})"),
        two.map(lambda p: f"[{p[0]} for a in {p[1]} if a]"),
        two.map(lambda p: f"f(x for x in {p[0]} for y in {p[1]})"),
        two.map(lambda p: f"(lambda b: {p[0]} < b <= {p[1]})"),
        two.map(lambda p: f"({p[0]} and {p[1]} or not {p[0]})"),
        st.tuples(names, names).map(lambda p: f"f'{{{p[0]}!r:>{{{p[1]}}}}}'"),
        two.map(lambda p: f"{{**{p[0]}, 'k': {p[1]}}}"),
        two.map(lambda p: f"super().m({p[0]}, super(A, {p[1]}).x)"),
        two.map(lambda p: f"a[{p[0]}:{p[1]}]"),
        inner.map(lambda e: f"({e} is not None)"),
    )


exprs = st.recursive(atoms, expressions, max_leaves=6)


def indent(block: str) -> str:
    return "\n".join("    " + line for line in block.splitlines())


def statements(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(exprs, inner)
    two = st.tuples(inner, inner)
    return st.one_of(
        pair.map(lambda p: f"if {p[0]}:\n{indent(p[1])}\nelse:\n    a = {p[0]}"),
        pair.map(lambda p: f"for a, *b in {p[0]}:\n{indent(p[1])}\n    if a: break\nelse:\n    pass"),
        pair.map(lambda p: f"while {p[0]}:\n{indent(p[1])}\n    continue"),
        pair.map(lambda p: f"with {p[0]} as c, a.m():\n{indent(p[1])}"),
        two.map(lambda p: f"try:\n{indent(p[0])}\nexcept E as e:\n{indent(p[1])}\nfinally:\n    a.m(1)"),
        two.map(lambda p: f"try:\n{indent(p[0])}\nexcept* E:\n{indent(p[1])}"),
        pair.map(
            lambda p: f"match {p[0]}:\n    case {{'k': [x, *y]}} if x:\n{indent(indent(p[1]))}\n    case C(z=1):\n        a"
        ),
        two.map(lambda p: f"{p[0]}\n{p[1]}"),
        inner.map(lambda s: f"class D(a):\n{indent(s)}\n    def m(self): return __class__, super().m()"),
    )


simple = st.one_of(
    exprs,
    exprs.map(lambda e: f"a = {e}"),
    exprs.map(lambda e: f"(w := {e}).m(w)"),
    exprs.map(lambda e: f"a.x += {e}"),
    exprs.map(lambda e: f"a[{e}] -= 1"),
    exprs.map(lambda e: f"assert {e}, {e}"),
    exprs.map(lambda e: f"raise E({e}) from a"),
    exprs.map(lambda e: f"del a[{e}]"),
)
blocks = st.recursive(simple, statements, max_leaves=6)
pytestmark = pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::hypothesis.errors.HypothesisWarning")


@settings(max_examples=200, deadline=None)
@given(blocks, st.sampled_from(["def f", "async def f"]), st.booleans())
def test_generated_functions(block: str, kind: str, generator: bool) -> None:
    extra = "    yield a\n" if generator else ""
    if kind == "async def f":
        extra += "    await a\n    async with a as q: await q\n    r = [x async for x in a]\n"
    source = f"class A:\n  {kind}(self, a, b=1, *c, d=2):\n{indent(indent(block))}\n{indent(extra)}"
    for code in codes(compile(source, "<generated>", "exec")):
        check(code)
        if code.co_flags & 0x1:
            clone = instrument(code)
            decode(clone)


class E(Exception):
    """What generated programs raise and catch."""


class Thing:
    """What generated programs work on; ends every loop over it."""

    x = 1

    def m(self, *args: object, **kwargs: object) -> tuple[object, ...]:
        return args

    def __enter__(self) -> int:
        return 1

    def __exit__(self, *_: object) -> bool:
        return True

    def __getitem__(self, key: object) -> int:
        if isinstance(key, int) and key > 2:
            raise IndexError
        return 5

    def __setitem__(self, key: object, value: object) -> None:
        pass

    __delitem__ = __getitem__


def outcome(block: str, prepare: Callable[[types.CodeType], types.CodeType], generator: bool = False) -> object:
    """What a generated program comes to: a result's type, or an exception."""
    budget = iter(range(200))

    def step(*args: object, **kwargs: object) -> object:
        next(budget)  # a loop without end stops here
        return args[0] if args else None

    body = indent(block.replace("while ", "while g(1) and "))
    source = f"def main(a, b=1, c=(), d=2):\n{body}\n    return a"
    if generator:
        source = source.replace("return a", "yield a")
    scope = {"f": step, "g": step, "E": E, "C": Thing, "A": Thing, "x": 1, "y": 2, "w": 3}
    exec(prepare(compile(source, "<generated>", "exec")), scope)
    try:
        result = scope["main"](Thing())  # type: ignore[operator]
        if generator:
            return [type(value).__name__ for value in result]
        return type(result).__name__
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | Mismatch):
            raise
        return type(error).__name__, str(error).split(" object at ")[0]


def same(code: types.CodeType) -> types.CodeType:
    return code


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(blocks)
def test_generated_functions_do_the_same_when_instrumented(block: str) -> None:
    """Most raise soon; what matters is that both ways end alike, and that the interpreter survives."""
    plain = outcome(block, same)
    with record(Observer()) as recording:
        monitored = outcome(block, same)
    assert recording.observer_failure is None, recording.failure_traceback
    assert monitored == plain


# Once a recording has installed its frame evaluator, the interpreter no longer writes a stack's depth where it can be read.
own_process = pytest.mark.skipif(
    "MAGPY_OWN_PROCESS" not in os.environ, reason="runs in a process of its own: test_the_interpreters_real_stacks"
)


@pytest.mark.slow
def test_the_interpreters_real_stacks() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", __file__]
    command += ["-k", "the_interpreter_has or every_layout or notices_a_wrong"]
    ran = subprocess.run(command, env={**os.environ, "MAGPY_OWN_PROCESS": "1"}, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0 and "4 passed" in ran.stdout, ran.stdout + ran.stderr


@own_process
@settings(max_examples=150, deadline=None)
@given(blocks, st.booleans())
def test_the_interpreter_has_the_stack_that_the_analysis_says(block: str, generator: bool) -> None:
    probe = Probe()
    assert outcome(block, lambda code: probed(code, probe), generator) == outcome(block, same, generator)
    probe.check()


EVERY_LAYOUT = """
try:
    with a as c, a:
        x = [y for y in (1, 2) if [c for c in (y,)]]
        for b, *d in ((1, 2), (3,)):
            f(*d, k=b, **{'z': a.m(b, j=f'{b!r:>{5}} {c}')})
            if b > 1: raise E(b, x)
except E as e:
    try:
        {**a}
    except TypeError:
        b = (lambda k: k and b)(a.x) if a else None
    finally:
        a.m([[(v := g(u)) for u in (1,)] for b in (1, 2)])
match {'k': [1, 2]}:
    case {'k': [x, *y]} if x: a[x:2]
class D(Thing_):
    def m(self, *q): return __class__, super().m(*q), super(D, self).x, [lambda: q for q in q]
D().m(1, 2), g(g(1), k=g(2))
"""


@own_process
@pytest.mark.parametrize("generator", [False, True])
def test_every_layout_is_met(generator: bool) -> None:
    probe = Probe()
    block = EVERY_LAYOUT.strip().replace("Thing_", "A")
    assert outcome(block, lambda code: probed(code, probe), generator) == outcome(block, same, generator)
    probe.check()
    assert probe.count > 400 and probe.nulls > 100


@own_process
def test_the_probe_notices_a_wrong_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(a: int) -> int:
        return max(a, 1)

    decoded = decode(f.__code__)
    wrong = {instr: state.replace("N", "V") for instr, state in stack_states(decoded).items()}
    probe = Probe()
    monkeypatch.setattr(f, "__code__", with_probes(decoded, wrong, probe))
    assert f(2) == 2
    with pytest.raises(Mismatch, match="the stack is"):
        probe.check()


@pytest.mark.parametrize("package", ["", "asyncio", "concurrent/futures", "email", "unittest"])
def test_standard_library(package: str) -> None:
    folder = os.path.join(os.path.dirname(os.__file__), package)
    count = 0
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                for code in codes(compile(file.read(), name, "exec")):
                    check(code)
                    count += 1
    assert count > 20


def test_code_that_does_not_fit_is_refused() -> None:
    def f(a: int) -> int:
        return a + 1

    code = f.__code__.replace(co_stacksize=1)
    with pytest.raises(UnknownStack):
        stack_states(decode(code))

"""Instrumented code is the same program: same answers, exceptions, tracebacks, positions, attributes."""

from __future__ import annotations

import contextlib
import dis
import inspect
import os
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from magpy_core._compat.cpython.assembler import assemble, decode
from magpy_core.monitor.clone import instrument
from magpy_core.monitor.events import Observer
from magpy_core.monitor.record import record
from tests.unit.monitor.log import run


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _codes(const)


def _library(*names: str) -> list[types.CodeType]:
    folder = os.path.dirname(os.__file__)
    found = []
    for name in names:
        path = os.path.join(folder, name)
        with open(path, encoding="utf-8") as file:
            found.extend(_codes(compile(file.read(), path, "exec")))
    return found


LIBRARY = _library("argparse.py", "inspect.py", "typing.py", "asyncio/base_events.py", "contextlib.py", "dataclasses.py")


def test_reassembling_unchanged_code_gives_it_back() -> None:
    for code in LIBRARY:
        decoded = decode(code)
        again = assemble(decoded, decoded.instrs, {}, code.co_consts, 0)
        assert again.co_code == code.co_code
        assert again.co_exceptiontable == code.co_exceptiontable
        assert list(again.co_positions()) == list(code.co_positions())


def test_the_clone_has_everything_but_the_hooks_in_common() -> None:
    for code in LIBRARY:
        clone = instrument(code)
        for name in (
            "co_name co_qualname co_filename co_firstlineno co_flags co_varnames co_freevars co_cellvars co_names "
            "co_argcount co_posonlyargcount co_kwonlyargcount co_nlocals"
        ).split():
            assert getattr(clone, name) == getattr(code, name), (code, name)
        assert clone.co_consts[: len(code.co_consts)] == code.co_consts


def test_the_originals_instructions_keep_their_order_and_positions() -> None:
    rewritten = {"LOAD_METHOD", "LOAD_ATTR", "LOAD_SUPER_ATTR", "BINARY_SLICE"}
    if sys.version_info >= (3, 13):
        rewritten.add("CALL")
    for code in LIBRARY:
        theirs = [i for i in decode(code).instrs if dis.opname[i.op] not in rewritten]
        ours = iter([(i.op, i.pos) for i in decode(instrument(code)).instrs])
        for instr in theirs:  # a subsequence of the clone's instructions
            assert any(pair == (instr.op, instr.pos) for pair in ours), (code, instr)


class Boom(Exception):
    """What the functions below raise."""


def _boom(*_: Any, **__: Any) -> Any:
    raise Boom


class Bad:
    """Raises in whatever is done to it."""

    __getattr__ = __getitem__ = __add__ = __iadd__ = __neg__ = __bool__ = __iter__ = __contains__ = __format__ = _boom
    __call__ = __lt__ = __len__ = __enter__ = __setitem__ = __delitem__ = _boom
    __exit__ = None

    def __setattr__(self, name: str, value: object) -> None:
        raise Boom

    def __delattr__(self, name: str) -> None:
        raise Boom


FAILING = [
    "x.a",
    "x.m(1)",
    "x.a = 1",
    "del x.a",
    "x[0]",
    "x[0] = 1",
    "x[1:2]",
    "x[1:2] = 1",
    "del x[0]",
    "x()",
    "x(1, k=2)",
    "x(*[1], **{'k': 1})",
    "f(*x)",
    "x + 1",
    "x += 1",
    "-x",
    "not x",
    "x < 1",
    "1 in x",
    "x if x else 0",
    "x and 1",
    "for _ in x: pass",
    "[y for y in x]",
    "a, b = x",
    "a, *b = x",
    "[*x]",
    "{*x}",
    "f'{x}'",
    "f'{x:>{x}}'",
    "with x: pass",
    "raise x.a",
    "raise Boom",
    "assert x",
    "missing",
    "import missing_module",
    "from os import missing",
    "def g(): return x.a\ng()",
    "(y := x.a)",
    "lambda: x\nx.a",
    "x.a.b(x.c, x.d)",
]


@pytest.mark.parametrize("statement", FAILING)
@pytest.mark.parametrize("shape", ["plain", "try", "finally", "with", "nested", "loop", "star"])
def test_exceptions_unwind_as_without_hooks(statement: str, shape: str) -> None:
    body = statement.replace("\n", "\n        ")
    inner = statement.replace("\n", "\n                ")
    shapes = {
        "plain": f"""
def f(x, log):
        {body}
""",
        "try": f"""
def f(x, log):
    try:
        {body}
    except Boom as e:
        log.append(type(e))
    except (NameError, ImportError) as e:
        log.append(str(e))
        raise
    else:
        log.append("else")
    return [1, 2, *(3, 4)]
""",
        "finally": f"""
def f(x, log):
    try:
        {body}
    finally:
        log.append("finally")
""",
        "with": f"""
def f(x, log):
    with suppress(Boom) as s, note(log):
        {body}
    return log
""",
        "nested": f"""
def f(x, log):
    a, b = 1, 2
    try:
        a + sum([b, len([a]), f(x, log) if a > 1 else 0])
        try:
                {inner}
        except Boom:
            log.append("inner")
            raise ValueError(a, b)
    except ValueError as e:
        log.append(e.args)
        log.append(type(e.__context__))
    return a, b
""",
        "loop": f"""
def f(x, log):
    total = 0
    for k in range(3):
        try:
                {inner}
        except Boom:
            total = total + k
            continue
        finally:
            log.append(k)
    return total
""",
        "star": f"""
def f(x, log):
    try:
        {body}
    except* Boom as group:
        log.append(type(group))
    return log
""",
    }
    namespace: dict[str, Any] = {"Boom": Boom, "suppress": contextlib.suppress}

    @contextlib.contextmanager
    def note(log: list[Any]) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            log.append(type(error))
            raise

    namespace["note"] = note
    exec(compile(shapes[shape], "<shape>", "exec"), namespace)
    function = namespace["f"]

    def attempt() -> tuple[Any, ...]:
        log: list[Any] = []
        try:
            return function(Bad(), log), log
        except Exception as error:
            frames = [
                (entry.name, entry.lineno, entry.colno, entry.end_lineno, entry.end_colno)
                for entry in traceback.extract_tb(error.__traceback__)
                if entry.filename == "<shape>"
            ]
            return type(error), str(error), frames, log

    plain = attempt()
    with record(Observer()) as recording:
        monitored = attempt()
    assert recording.observer_failure is None, recording.failure_traceback
    assert monitored == plain
    logged, _ = run(attempt)
    assert logged == plain


def _formatted(function: Callable[[], Any]) -> str:
    try:
        function()
    except Exception:
        return traceback.format_exc()
    raise AssertionError("it did not raise")


def test_tracebacks_with_carets_are_the_same() -> None:
    def deep(x: Any) -> Any:
        é = {"k": x}
        return (lambda y: é["k"] + y.missing)(
            x,
        )

    def cut(text: str) -> str:
        return text[text.index("in deep") :]

    plain = _formatted(lambda: deep(1))
    assert "^" in plain
    assert cut(run(lambda: _formatted(lambda: deep(1)))[0]) == cut(plain)


def test_generators_keep_their_protocol() -> None:
    def inner() -> Any:
        received = []
        try:
            while True:
                try:
                    received.append((yield len(received)))
                except KeyError as error:
                    received.append(error)
        finally:
            received.append("closed")

    def outer() -> Any:
        result = yield from inner()
        return result

    def drive() -> Any:
        generator = outer()
        out = [next(generator), generator.send("a"), generator.throw(KeyError), inspect.getgeneratorstate(generator)]
        generator.close()
        return [*out, inspect.getgeneratorstate(generator)]

    assert run(drive)[0] == drive()


def test_locals_and_scopes() -> None:
    def f(a: int, *args: int, k: int = 2, **kw: int) -> Any:
        b = a
        del a

        def g() -> int:
            nonlocal b
            b += 1
            return b

        class C:
            attribute = b

            def __init__(self) -> None:
                self.type = __class__  # type: ignore[name-defined]

        g()
        squares = [b * x for x in args if (y := x)]
        return sorted(locals()), squares, y, C.attribute, C().type.__name__, eval("b"), {x: b for x in kw}

    assert run(f, 1, 2, 3, z=4)[0] == f(1, 2, 3, z=4)


def test_an_iterable_for_star_arguments_is_consumed_once_and_in_order() -> None:
    log: list[Any] = []

    def numbers() -> Iterator[int]:
        log.append("numbers")
        yield 1

    def keywords() -> dict[str, int]:
        log.append("keywords")
        return {"k": 2}

    def target(*args: int, **kwargs: int) -> Any:
        return args, kwargs

    def f() -> Any:
        return target(*numbers(), **keywords())

    assert run(f)[0] == f() == ((1,), {"k": 2})
    assert log == ["keywords", "numbers"] * 2 or log == ["numbers", "keywords"] * 2


def test_many_arguments_and_far_jumps() -> None:
    lines = "\n".join(f"    if x == {k}:\n        x.real\n        total += f(*[x], k={k})" for k in range(400))
    source = (
        f"def f(*a, k): return k\ndef g(x):\n    total = 0\n{lines}\n    return total, h({', '.join(map(str, range(300)))})"
    )
    namespace: dict[str, Any] = {"h": lambda *a: sum(a)}
    exec(source, namespace)
    assert run(namespace["g"], 399)[0] == namespace["g"](399) == (399, sum(range(300)))


def test_outcomes_do_not_depend_on_frame_introspection() -> None:
    def where() -> Any:
        frame = sys._getframe(1)
        return frame.f_lineno - frame.f_code.co_firstlineno, frame.f_code.co_name, sorted(frame.f_locals)

    def f(x: int) -> Any:
        y = x
        return where(), y

    assert run(f, 1)[0] == f(1)

"""Bytecode that only Python 3.14 has. Its syntax is in texts: other versions, and ruff, read this file too."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from magpy_core._compat.cpython.assembler import assemble, decode
from magpy_core._compat.cpython.special_methods import SPECIAL_METHODS, bound_special
from magpy_core._compat.versions import PY314
from tests.unit.monitor.log import events_of, run

pytestmark = pytest.mark.skipif(not PY314, reason="needs Python 3.14")


def made(source: str, name: str = "f", **names: Any) -> Any:
    exec(compile(source, "<3.14>", "exec"), names)
    return names[name]


def test_template_strings() -> None:
    f = made("def f(a, w): return t'{a!r:>{w}} and {a}'")
    result, log = run(f, 5, 3)
    assert [e for e in log.events if e[0] == "format"] == [
        ("format", None, 3, None),
        ("format", "r", 5, ">3"),
        ("format", None, 5, None),
    ]
    assert [(i.value, i.conversion, i.format_spec) for i in result.interpolations] == [(5, "r", ">3"), (5, None, "")]
    assert result.strings == ("", " and ", "")


class Plain:
    def __enter__(self) -> int:
        return 1

    def __exit__(self, *args: Any) -> bool:
        return args[0] is KeyError


class Unbound(Plain):
    __enter__ = staticmethod(lambda: 2)  # type: ignore[assignment]
    __exit__ = staticmethod(lambda *args: True)  # type: ignore[assignment]


class Computed(Plain):
    __enter__ = property(lambda self: lambda: 3)  # type: ignore[assignment]
    __exit__ = property(lambda self: lambda *args: True)  # type: ignore[assignment]


@pytest.mark.parametrize(("manager", "entered"), [(Plain(), 1), (Unbound(), 2), (Computed(), 3)])
@pytest.mark.parametrize("error", [None, KeyError])
def test_with_blocks(manager: Any, entered: int, error: Any) -> None:
    def f() -> Any:
        with manager as value:
            if error is not None:
                raise error
        return value

    result, log = run(f)
    assert result == entered
    assert [e for e in log.events if e[0] == "with_enter"] == [("with_enter", None, manager)]
    left = [e for e in log.events if e[0] == "call"]
    assert len(left) == 1 and len(left[0][3]) == 3 and left[0][3][0] is error


def test_a_manager_without_methods_raises_what_it_does_without_us() -> None:
    class Half:
        def __enter__(self) -> None: ...

    def f(manager: Any) -> str:
        try:
            with manager:
                return ""
        except TypeError as error:
            return str(error)

    for manager in (Half(), object()):
        assert run(f, manager)[0] == f(manager) != ""


def test_what_a_with_block_looks_up() -> None:
    manager = Plain()
    assert SPECIAL_METHODS[:2] == ("__enter__", "__exit__")
    assert bound_special("__exit__", manager) == manager.__exit__
    for other in (Unbound(), Computed(), object()):
        assert bound_special("__enter__", other) is None
    lock = asyncio.Lock()
    assert bound_special("__aexit__", lock) == lock.__aexit__


def test_subscripts_are_items() -> None:
    data = [1, 2]

    def f(d: Any) -> Any:
        d[0] += d[1]
        return d[0] + d[-1]

    assert [e[0] for e in events_of(f, data) if e[0] in ("binary", "item_read", "item_write")] == [
        "item_read", "item_read", "binary", "item_write", "item_read", "item_read", "binary",
    ]  # fmt: skip


def test_long_asynchronous_loops_keep_the_instruction_that_they_name() -> None:
    """END_ASYNC_FOR names the END_SEND above it, which widens with the loop, and does not jump there."""
    body = "\n".join(f"        total += a * {n} + len([a, a])" for n in range(120))
    f = made(f"async def f(it):\n    total = 0\n    async for a in it:\n{body}\n    return total\n")
    decoded = decode(f.__code__)
    (end,) = (instr for instr in decoded.instrs if instr.name == "END_ASYNC_FOR")
    assert end.target is not None and end.target.name == "END_SEND"
    assert assemble(decoded, decoded.instrs, {}, f.__code__.co_consts, 0).co_code == f.__code__.co_code

    async def numbers() -> Any:
        for n in range(3):
            yield n

    assert run(lambda: asyncio.run(f(numbers())))[0] == asyncio.run(f(numbers()))


def test_builtins_that_are_loops() -> None:
    f = made("def f(d): return any(v > 1 for v in d), all(v > 1 for v in d), tuple(v for v in d)")
    result, log = run(f, [1, 2, 3])
    assert result == (True, False, (1, 2, 3))
    assert [e[1] for e in log.events if e[0] == "enter"].count("<genexpr>") == 3

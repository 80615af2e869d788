"""Functions with all kinds of statements, to be cut everywhere. Each takes no argument and returns what it has seen."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any


def call(*args: Any) -> Any:
    return args[0] if args else None


def exits() -> Any:
    seen = []
    for i in range(10):
        x = call(i * 2)
        if x == 4:
            continue
        seen.append(x)
        if call(i) == 6:
            break
    else:
        seen.append("not left")
    while call(True):
        x += 1
        if x > 20:
            return seen, x, i
    return None


def unbound() -> Any:
    seen = []
    if call(False):
        y = call(1)
    try:
        seen.append(y)
    except Exception as error:
        seen.append("unbound" if "'y'" in str(error) else error)
    y = call(2)
    del y
    y = call(3)
    return seen, y


def closures() -> Any:
    total = 0
    added = []

    def add(n: int) -> None:
        nonlocal total
        total += n
        added.append(total)

    for i in range(4):
        add(call(i))
        later = lambda: (i, total)  # noqa: E731, B023
    squares = [call(i) ** 2 + total for i in range(3)]
    return total, added, later(), squares, add.__qualname__


def tests_of_branches() -> Any:
    seen = []
    for i in range(6):
        x = call(i) * 3
        if x > 6:
            seen.append(call(x))
        elif call(x) == 3:
            x += 1
            if not call(x) % 2:
                seen.append("even")
        else:
            seen.append(x)
        y = call(x) - 4
        if not (y + 1):
            continue
        z = y * call(2)
        if (w := z + 1) > 3 and call(w):
            seen.append(w)
    x = call(None)
    try:
        y = call(2)
        if x + y:
            seen.append("never")
    except TypeError as error:
        seen.append(str(error))
    x = call(1)
    if call(later) is x or x < call(0) < 3 or x in call([]):
        seen.append("never")
    bool = call(len)
    if bool(call([x])):
        seen.append("one")
    bool = call(lambda given: given == [])
    if bool(call([x])):
        seen.append("rebound")
    x = call(1)
    if [x, call(2)] == [1, 2]:
        return seen, x, y, z, w
    return None


def tests_of_loops() -> Any:
    n = call(0)
    seen = []
    while n * 2 < 10:
        seen.append(n)
        n += call(1)
    while n > call(0):
        m = call(0)
        while not m == call(n):
            seen.append((n, m))
            m += call(1)
        n = call(n) - 1
    while call(n) < 3:
        n += 1
        if n == 2:
            continue
        n = call(n) + 0
    while call(n) < 6:
        n = call(n) + 1
    else:
        seen.append("else")
    while n + 1 < 20:
        if n == 9:
            break
        seen.append(n)
        n = call(n) + 1
    while n + missing < 0:
        n = call(n)
    return seen, n, m


later = 7
missing = 1


def exceptions() -> Any:
    seen = []
    for i in range(4):
        try:
            seen.append(call(i))
            if i == 1:
                raise ValueError(i)
            if i == 2:
                continue
            seen.append(call("after"))
        except ValueError as error:
            seen.append(str(error))
        else:
            seen.append("else")
        finally:
            seen.append(call("finally"))
    return seen


def contexts() -> Any:
    seen = []

    @contextlib.contextmanager
    def noted(name: str) -> Iterator[str]:
        seen.append(call("in " + name))
        yield name
        seen.append(call("out " + name))

    with noted("a") as a, noted("b"):
        for i in range(3):
            if call(i) == 1:
                return seen, a, i
            seen.append(i)
    return None


def annotated() -> Any:
    x: int = call(3)
    y: list[int]
    y = [call(x)]
    (z := call(5))
    return x, y, z, [w := call(k) for k in range(3)], w


def matches() -> Any:
    seen = []
    for value in ([1, 2, 3], {"a": 1, "b": 2}, "text", 5):
        match call(value):
            case [first, *rest]:
                seen.append((first, rest))
            case {"a": a, **others}:
                seen.append((a, others))
            case str() as text:
                seen.append(call(text))
            case _:
                break
    return seen, first, rest, a, others, text


def imports() -> Any:
    import os.path as p
    import sys
    from collections import Counter as C

    return p is os.path, call(sys.__name__), C("aab")["a"]


def definitions() -> Any:
    class Inner:
        name = call("n")

        def method(self) -> str:
            return type(self).__qualname__ + call(".m")

    def inner(n: int, m: int = call(2)) -> int:
        return n + m

    return Inner().method(), Inner.name, inner(1), inner.__qualname__, inner.__code__.co_name


counter = 0


def global_names() -> Any:
    global counter
    counter = call(0)
    for _ in range(3):
        counter += call(1)
    return counter


def nested_loops() -> Any:
    """A docstring."""
    seen = []
    for i in range(3):
        for j in range(3):
            if call(j) > i:
                break
            if call(i + j) == 2:
                continue
            seen.append((i, j))
        else:
            seen.append(call("all"))
            continue
        seen.append(call("left"))
    return seen, nested_loops.__doc__


def generator() -> Any:
    def numbers() -> Iterator[int]:
        for i in range(3):
            x = call(i) + 1
            yield x
            x = call(x)

    return list(numbers())


class _Base:
    def value(self) -> int:
        return 1


class _Derived(_Base):
    __private = 5

    def value(self) -> int:
        x = call(super().value())
        y = call(self.__private)
        x += y
        return x


def methods() -> Any:
    return _Derived().value()


def swaps() -> Any:
    a, b = call(1), call(2)
    a, b = b, a
    *most, last = call([1, 2, 3])
    d = {}
    d["k"] = call(a)
    d["k"] += 1
    return a, b, most, last, d


THOUSAND = 1000
PAIR = (1.5, "pair")


def identities() -> Any:
    n, pair = call(THOUSAND), call(PAIR)
    same = [n is 1000, pair is (1.5, "pair")]  # noqa: F632
    n = call(2000)
    return same, n is 2000, n is THOUSAND  # noqa: F632


def expressions() -> Any:
    seen: list[Any] = []

    def log(name: Any, value: Any = None) -> Any:
        seen.append(name)
        return name if value is None else value

    class Box:
        def __init__(self, value: Any) -> None:
            self.value = log("box", value)

        def give(self, *args: Any, **names: Any) -> Any:
            log((args, sorted(names.items())), 1)
            return self.value

    class Rows:
        def __getitem__(self, key: Any) -> str:
            return str(key)

    box = Box(log(3))
    x = log(2) + box.give(log(1), *log("ab"), key=log("ü")).bit_length() * log(4)
    x += log(x, Box(5).give(log(6)))
    for i in log(range(log(3))).__iter__():
        if i and log(i) > log(1) < log(5) and not Box(i).give().__bool__():
            continue
        seen.append([log(i), (log(8), {log(9): log(10), **log("d", {1: 2})}), f"ü {log(11)!r:>{log(12)}}"][log(i, -1)])
    while log("while", x).__add__(log(-1)) > 8:
        x -= log(2)
    first = (kept := log(7)) + log(kept) if log("if", True) else log("else")
    made = [log(one) for one in log("abc").split(log("b"))] + list(log(one) for one in box.give(log(4)).to_bytes(2, "big"))
    seen[log(0)] = log("first").upper() + log("ü")[log(0, 0) :] + log("rows", Rows())[log("a"), log(0) : log(1)]
    later = log("lambda", lambda: log("later").upper())
    named: int = log(later().lower(), 1).bit_length()
    return seen, x, first, made, named, log("return").upper().lower()


def expressions_of_generators() -> Any:
    def numbers() -> Iterator[int]:
        for i in call(call(range(3))).__iter__():
            got = call((yield call(i).__neg__())), call(i).__abs__()
            if call(got[1]).__bool__():
                yield call(got[1])

    return list(numbers())


FUNCTIONS: list[Callable[[], Any]] = [
    exits, unbound, closures, exceptions, contexts, annotated, matches, imports, definitions, global_names, nested_loops,
    generator, methods, swaps, identities, tests_of_branches, tests_of_loops, expressions, expressions_of_generators,
]  # fmt: skip
METHODS = [_Derived.value]

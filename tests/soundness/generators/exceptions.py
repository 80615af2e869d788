"""Exceptions: every way something is raised times every way it is dealt with, and what is left of it afterwards.

An exception is an object with state of its own (arguments, notes, cause, context, traceback) that the interpreter writes
while it unwinds; what it skips must not be done at a replay, what came before must. Whether anything is raised changes
between the calls. `python -m tests.soundness.generators.exceptions`. Key function: raised.
"""

# ruff: noqa: B012, B904  (each idiom as programs write it)
from __future__ import annotations

import contextlib
import functools
import io
import itertools
import logging
import operator
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

import magpy_core
from tests.soundness.harness.families import Family, difference, main


class Fault(Exception):
    """With arguments and attributes of its own."""

    def __init__(self, code: int, detail: Any = None) -> None:
        super().__init__(f"fault {code}", detail)
        self.code = code


class Store:
    """What the regions read and write."""

    def __init__(self) -> None:
        self.on = True
        self.error: BaseException = Fault(7)
        self.kind: type[BaseException] = ValueError
        self.kinds: tuple[type[BaseException], ...] = (ValueError, KeyError)
        self.log: list[Any] = []
        self.table = {"a": 1}
        self.list = [1, 2]
        self.depth = 0
        self.last: Any = None
        self.numbers = iter(range(100))

    @property
    def bad(self) -> int:
        self.log.append("bad")
        if self.on:
            raise AttributeError("bad")
        return 1

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        vars(self)["log"].append(name)
        return 2.0

    def shown(self) -> Any:
        left = (_shown(self.last), _shown(self.error), self.depth, dict(self.table), list(self.list))
        return [_shown(v) for v in self.log], *left


class Context:
    """Writes what it sees, and swallows what it is told to."""

    def __init__(self, store: Store, swallow: bool) -> None:
        self.store, self.swallow = store, swallow

    def __enter__(self) -> Context:
        self.store.depth += 1
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        self.store.log.append((kind, _shown(error), _frames(trace)))
        self.store.depth -= 1
        return self.swallow


class Resource:
    """Whose end raises."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __enter__(self) -> None:
        self.store.log.append("enter")

    def __exit__(self, *_args: Any) -> None:
        self.store.log.append("exit")
        raise OSError("exit")


def _frames(trace: types.TracebackType | None) -> list[str]:
    return [f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(trace) if "tests/soundness" in frame.filename]


def _shown(error: Any, seen: tuple[int, ...] = ()) -> Any:
    if not isinstance(error, BaseException) or id(error) in seen:
        return error if isinstance(error, (int, float, str, tuple, list)) else type(error)
    seen = (*seen, id(error))
    chain = _shown(error.__cause__, seen), _shown(error.__context__, seen), error.__suppress_context__
    inner = [_shown(e, seen) for e in error.exceptions] if isinstance(error, BaseExceptionGroup) else None
    notes = list(getattr(error, "__notes__", []))
    trace = [line for line in _frames(error.__traceback__) if not line.startswith(("_life", "raised"))]
    args = [a if isinstance(a, (int, float, str, type(None))) else type(a) for a in error.args]
    return type(error), args, notes, chain, inner, trace


def _raise(error: Any) -> Any:
    raise error


def _raise_from(error: Any, cause: Any) -> Any:
    raise error from cause


def _wrapped(s: Store) -> None:
    try:
        s.table["missing"]
    except KeyError as error:
        raise Fault(2) from error


def _while_handling(s: Store) -> None:
    try:
        s.list[9]
    except IndexError:
        s.table["missing"]


def _from_none(s: Store) -> None:
    try:
        s.list[9]
    except IndexError:
        raise Fault(3) from None


def _again(s: Store) -> None:
    try:
        raise s.error
    except BaseException:
        s.log.append("again")
        raise


def _in_finally(s: Store) -> None:
    try:
        raise Fault(4)
    finally:
        s.log.append("finally")
        s.table["b"] = s.table.get("b", 0) + 1


def _in_generator(s: Store) -> Any:
    def numbers() -> Iterator[int]:
        try:
            yield 1
            raise StopIteration
        finally:
            s.log.append("closed")

    return list(numbers())


def _thrown(s: Store) -> Any:
    def numbers() -> Iterator[int]:
        while True:
            try:
                yield 1
            except ValueError as error:
                s.log.append(error)
                raise Fault(5) from error

    generator = numbers()
    next(generator)
    return generator.throw(ValueError("thrown"))  # type: ignore[attr-defined]


def _asserted(s: Store) -> None:
    assert not s.on, "asserted"


def _deep(s: Store, n: int) -> Any:
    s.depth += 1
    return _deep(s, n - 1) if n else s.table["deep"]


def _partial(s: Store) -> Any:
    s.list.extend(n if n < 3 else _raise(Fault(n)) for n in range(5))


def _warned() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.warn("warned", stacklevel=1)


def _two(s: Store) -> None:
    try:
        _raise(Fault(1))
    except Fault as first:
        try:
            _raise(s.kind("two"))
        except s.kind as second:
            s.log += [first, second]
            raise first


def _grouped(s: Store) -> None:
    raise ExceptionGroup("group", [ValueError(1), ExceptionGroup("inner", [Fault(2), TypeError("t")])])


def _by_stack(s: Store) -> None:
    with contextlib.ExitStack() as stack:
        stack.callback(s.log.append, "callback")
        stack.enter_context(Context(s, False))
        stack.push(lambda *e: s.log.append(_shown(e[1])))
        raise Fault(6)


RAISES: dict[str, Callable[[Store], Any]] = {
    "one from outside": lambda s: _raise(s.error),
    "a class from outside": lambda s: _raise(s.kind),
    "made": lambda s: _raise(s.kind("made", s.depth)),
    "own class": lambda s: _raise(Fault(1, s.table)),
    "from one from outside": lambda s: _raise_from(Fault(8), s.error),
    "one from outside from a class": lambda s: _raise_from(s.error, s.kind),
    "with a note": lambda s: (s.error.add_note("noted"), _raise(s.error)),
    "without a traceback": lambda s: _raise(s.error.with_traceback(None)),
    "division": lambda s: 1 / (s.depth - s.depth),
    "key": lambda s: s.table["missing"],
    "index": lambda s: s.list[9],
    "pop": lambda s: [s.list.pop() for _ in range(9)],
    "attribute": lambda s: s.table.missing,  # type: ignore[attr-defined]
    "property": lambda s: s.bad,
    "name": lambda s: not_a_name,  # type: ignore[name-defined]  # noqa: F821
    "type": lambda s: "a" + 1,  # type: ignore[operator]
    "value": lambda s: float("x"),
    "call": lambda s: _raise(1, 2),  # type: ignore[call-arg]
    "unpacking": lambda s: operator.add(*s.list, 3),
    "remove": lambda s: s.list.remove(99),
    "next": lambda s: next(iter([])),
    "iterator": lambda s: [next(s.numbers), next(s.numbers), _raise(Fault(9))],
    "map": lambda s: list(map(lambda n: s.log.append(n) or 1 // (1 - n), range(3))),
    "sorted": lambda s: sorted([2, 1, "a"], key=lambda n: s.log.append(n) or n),
    "comprehension": lambda s: [s.log.append(n) or 1 // (1 - n) for n in range(3)],
    "extend": _partial,
    "tensor": lambda s: torch.ones(2) @ torch.ones(3),
    "tensor number": lambda s: torch.ones(2).item(),
    "tensor after write": lambda s: (s.list.append(5), torch.ones(2).view(3)),
    "wrapped": _wrapped,
    "while handling": _while_handling,
    "from none": _from_none,
    "again": _again,
    "finally": _in_finally,
    "generator": _in_generator,
    "thrown": _thrown,
    "assert": _asserted,
    "deep": lambda s: _deep(s, 3),
    "warning": lambda s: _warned(),
    "two": _two,
    "group": _grouped,
    "stack": _by_stack,
    "end of a context": lambda s: Resource(s).__exit__(),
    "exit": lambda s: sys.exit(3),
    "interrupt": lambda s: _raise(KeyboardInterrupt()),
    "not an exception": lambda s: _raise(s.table),
    "nothing": lambda s: None,
}


def _told(s: Store, do: Callable[[], Any]) -> Any:
    try:
        return do()
    except BaseException as error:
        return _shown(error)


def _kept(s: Store, do: Callable[[], Any]) -> Any:
    try:
        do()
    except BaseException as error:
        s.last = error
        error.add_note("kept")


def _noted(s: Store, do: Callable[[], Any]) -> Any:
    try:
        do()
    except Exception as error:
        error.add_note(f"at {s.depth}")
        error.handled = True  # type: ignore[attr-defined]
        raise


def _by_kinds(s: Store, do: Callable[[], Any]) -> Any:
    try:
        do()
    except s.kinds as error:
        return "known", error.args
    except (Fault, OSError) as error:
        s.log.append(error)
        return "fault", getattr(error, "code", 0)
    except Exception:
        s.log.append("other")
    else:
        s.log.append("else")
    finally:
        s.log.append("finally")
    return "end"


def _returned_in_finally(s: Store, do: Callable[[], Any]) -> Any:
    try:
        do()
    finally:
        s.depth += 1
        return "finally"


def _in_loop(s: Store, do: Callable[[], Any]) -> Any:
    failed = []
    for n in range(3):
        try:
            do()
        except (ValueError, LookupError) as error:
            failed.append(type(error).__name__)
            continue
        except Fault:
            break
        finally:
            s.log.append(n)
    else:
        s.log.append("all")
    return failed


def _retried(s: Store, do: Callable[[], Any]) -> Any:
    for left in (2, 1, 0):
        try:
            return do()
        except Exception as error:
            s.last = error
            if not left:
                raise RuntimeError("gave up") from error


def _in_context(s: Store, do: Callable[[], Any]) -> Any:
    with Context(s, True) as inside:
        do()
        s.log.append("not reached")
    return inside.store.depth


def _in_two_contexts(s: Store, do: Callable[[], Any]) -> Any:
    with Context(s, True), Context(s, False):
        do()


def _ended_badly(s: Store, do: Callable[[], Any]) -> Any:
    with Resource(s):
        do()


def _suppressed(s: Store, do: Callable[[], Any]) -> Any:
    with contextlib.suppress(ValueError, LookupError, Fault):
        do()
        s.log.append("done")
    return len(s.log)


def _by_info(s: Store, do: Callable[[], Any]) -> Any:
    try:
        do()
    except Exception:
        kind, error, trace = sys.exc_info()
        return kind, _shown(error), _frames(trace), sys.exc_info()[1] is error
    return sys.exc_info()


def _by_text(s: Store, do: Callable[[], Any]) -> Any:
    try:
        do()
    except Exception as error:
        s.log.append(traceback.format_exception_only(error))
        return str(error), repr(error)


def _logged(s: Store, do: Callable[[], Any]) -> Any:
    try:
        do()
    except Exception:
        logging.getLogger("magpy.test").exception("failed at %s", s.depth)


def _split(s: Store, do: Callable[[], Any]) -> Any:
    try:
        do()
    except* ValueError as group:
        s.log.append([type(e) for e in group.exceptions])
    except* (Fault, TypeError) as group:
        s.last = group


def _translated(s: Store, do: Callable[[], Any]) -> Any:
    try:
        do()
    except Exception as error:
        raise LookupError(*error.args[:1]) from error


def _masked(s: Store, do: Callable[[], Any]) -> Any:
    try:
        do()
    except Exception:
        raise RuntimeError("masked")


def _from_generator(s: Store, do: Callable[[], Any]) -> Any:
    def steps() -> Iterator[Any]:
        try:
            yield 1
            yield do()
        except ValueError as error:
            yield error.args
        finally:
            s.log.append("end")

    return [type(v) for v in itertools.islice(steps(), 3)]


@contextlib.contextmanager
def _managed(s: Store) -> Iterator[int]:
    s.depth += 1
    try:
        yield s.depth
    except LookupError as error:
        s.log.append(error)
    finally:
        s.depth -= 1


def _by_manager(s: Store, do: Callable[[], Any]) -> Any:
    with _managed(s) as depth:
        do()
    return depth


@functools.singledispatch
def _dealt(error: Any) -> Any:
    return "any"


@_dealt.register
def _(error: ValueError) -> Any:
    return "value", error.args


def _dispatched(s: Store, do: Callable[[], Any]) -> Any:
    try:
        do()
    except Exception as error:
        return _dealt(error), isinstance(error, s.kinds), issubclass(type(error), s.kind)


def _compared(s: Store, do: Callable[[], Any]) -> Any:
    try:
        do()
    except Exception as error:
        return error is s.error, error == s.error, error.args == s.error.args, error.__cause__ is s.error


def _written(s: Store, do: Callable[[], Any]) -> Any:
    try:
        do()
    except Exception as error:
        error.args = (*error.args, s.depth)
        error.__cause__ = None
        s.error = error
        s.depth += 1


def _collected(s: Store, do: Callable[[], Any]) -> Any:
    found = []
    for work in (do, lambda: s.table["none"]):
        try:
            work()
        except Exception as error:
            found.append(error)
    if found:
        raise ExceptionGroup("collected", found)


HANDLES: dict[str, Callable[[Store, Callable[[], Any]], Any]] = {
    "told": _told,
    "kept": _kept,
    "noted": _noted,
    "by kinds": _by_kinds,
    "returned in finally": _returned_in_finally,
    "in a loop": _in_loop,
    "retried": _retried,
    "in a context": _in_context,
    "in two contexts": _in_two_contexts,
    "ended badly": _ended_badly,
    "suppressed": _suppressed,
    "by exc_info": _by_info,
    "by text": _by_text,
    "logged": _logged,
    "split": _split,
    "translated": _translated,
    "masked": _masked,
    "from a generator": _from_generator,
    "by a manager": _by_manager,
    "dispatched": _dispatched,
    "compared": _compared,
    "written": _written,
    "collected": _collected,
    "let through": lambda s, do: do(),
}


class Lines(logging.Handler):
    """Keeps what is logged, with what was raised."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append((record.getMessage(), _shown(record.exc_info[1]) if record.exc_info else None))


def _life(how: str, handled: str, compiled: bool, calls: int = 8) -> list[Any]:
    store = Store()
    do, handle = RAISES[how], HANDLES[handled]
    lines = Lines()
    logger = logging.getLogger("magpy.test")
    logger.propagate, logger.handlers = False, [lines]

    def region(x: torch.Tensor) -> Any:
        store.depth += 1
        y = x + store.depth
        value = handle(store, lambda: do(store) if store.on else None)
        store.list.append(len(store.log))
        return y * 2, value

    target = magpy_core.compile(region, backend="eager") if compiled else region
    seen: list[Any] = []
    for call in range(calls):
        if call == 3:
            store.on = False
        if call == 4:
            store.on, store.error = True, ValueError("other")
        if call == 5:
            store.kind = store.error.__class__ if compiled is None else KeyError
        if call == 6:
            store.kinds = (ArithmeticError, LookupError, AttributeError)
        with contextlib.redirect_stderr(io.StringIO()) as text:
            try:
                y, value = target(torch.ones(1))
                result = y.item(), _shown(value) if isinstance(value, BaseException) else repr(value)
            except BaseException as error:
                result = _shown(error), None
                held = sys.exc_info()[1] is error
                seen.append(held)
        seen.append((result, store.shown(), list(lines.seen), text.getvalue(), sys.exc_info()[0]))
        store.depth = 0
        lines.seen.clear()
    return seen


def raised(how: str, handled: str) -> str | None:
    """How a region that raises and deals with it so differs from eager mode over some calls; None where it doesn't."""
    return difference(_life, how, handled)


FAMILY = Family.product(raised, how=RAISES, handled=HANDLES)


if __name__ == "__main__":
    raise SystemExit(main(FAMILY))

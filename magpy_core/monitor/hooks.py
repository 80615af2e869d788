"""The functions that instrumented code calls: from an instruction in a user's frame to a method of the thread's Observer.

A hook looks up the recording of the running thread (none: nothing happens), calls the observer's method if it is
overridden, and lets no exception of ours out. Clones hold these functions as constants, so they outlive recordings.

Key names: :data:`active` (thread id -> :class:`Handlers` of its innermost recording), :data:`HOOKS` (event name -> hook).
"""

from __future__ import annotations

import signal
import sys
from _thread import get_ident
from collections.abc import Callable
from types import CellType, FunctionType, TracebackType
from typing import Any, Final, cast

from magpy_core._compat.cpython.own_builtins import OWN_BUILTINS
from magpy_core._compat.torch.eval_frame import AT_LIMIT, never_intercept
from magpy_core.monitor.events import Observer, Site

__builtins__ = OWN_BUILTINS  # type: ignore[assignment]

EVENTS: Final[tuple[str, ...]] = tuple(
    name for name, value in vars(Observer).items() if isinstance(value, FunctionType) and name != "enter_frame"
)
_INDEX: Final = {name: k for k, name in enumerate(EVENTS)}

Handler = Callable[..., Any]


class Handlers(list["Handler | None"]):
    """An observer's overridden methods, by event number; None where there is nothing to call.

    ``error`` is set to AT_LIMIT before anything is called about an exception: at the recursion limit nothing can be called
    any more. (The exception itself would keep the user's frames alive.)
    """

    __slots__ = ("error", "fail")

    def __init__(self, observer: Observer, fail: Callable[[BaseException], None]) -> None:
        methods = ((getattr(observer, name), getattr(Observer, name)) for name in EVENTS)
        super().__init__(None if getattr(m, "__func__", None) is default else m for m, default in methods)
        self.fail = fail
        self.error: BaseException | None = None


active: dict[int, Handlers] = {}


def _from_signal_handler(traceback: TracebackType | None) -> bool:
    """Whether a signal handler raised an exception: Python may run one while a frame of ours is on top."""
    codes = set()
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        code = getattr(handler, "__code__", None) or getattr(getattr(handler, "__func__", None), "__code__", None)
        codes.add(code)
    codes.discard(None)
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            return True
        traceback = traceback.tb_next
    return False


def belongs_to_user(error: BaseException) -> bool:
    """Whether an exception caught in our code is the user's: Ctrl-C, or whatever else a signal handler raised."""
    return isinstance(error, KeyboardInterrupt) or _from_signal_handler(error.__traceback__)


def contain(handlers: Handlers, error: BaseException) -> None:
    """Keep an exception of a hook from user code: it becomes the recording's failure. Exceptions of signals go on.

    At the recursion limit this raises RecursionError itself; so would the user's next call.
    """
    users = belongs_to_user(error)
    handlers.fail(error)
    if users:
        raise error


def _event0(name: str) -> Handler:
    index = _INDEX[name]

    def hook(site: Site) -> None:
        handlers = active.get(get_ident())
        if handlers is not None and (handler := handlers[index]) is not None:
            try:
                handler(site)
            except BaseException as error:
                handlers.error = AT_LIMIT
                contain(handlers, error)

    return hook


def _event1(name: str) -> Handler:
    index = _INDEX[name]

    def hook(site: Site, a: object) -> None:
        handlers = active.get(get_ident())
        if handlers is not None and (handler := handlers[index]) is not None:
            try:
                handler(site, a)
            except BaseException as error:
                handlers.error = AT_LIMIT
                contain(handlers, error)

    return hook


def _event2(name: str) -> Handler:
    index = _INDEX[name]

    def hook(site: Site, a: object, b: object) -> None:
        handlers = active.get(get_ident())
        if handlers is not None and (handler := handlers[index]) is not None:
            try:
                handler(site, a, b)
            except BaseException as error:
                handlers.error = AT_LIMIT
                contain(handlers, error)

    return hook


def _event3(name: str) -> Handler:
    index = _INDEX[name]

    def hook(site: Site, a: object, b: object, c: object) -> None:
        handlers = active.get(get_ident())
        if handlers is not None and (handler := handlers[index]) is not None:
            try:
                handler(site, a, b, c)
            except BaseException as error:
                handlers.error = AT_LIMIT
                contain(handlers, error)

    return hook


class ChangedResult(TypeError):
    """An observer returned a result of another type; the user's value is kept."""


def _same_type(handlers: Handlers, site: Site, result: object, changed: object) -> object:
    if type(changed) is type(result):
        return changed
    handlers.fail(ChangedResult(f"{site!r}: {type(result).__name__} became {type(changed).__name__}"))
    return result


def _result1(name: str) -> Handler:
    index = _INDEX[name]

    def hook(site: Site, a: object, result: object) -> object:
        handlers = active.get(get_ident())
        if handlers is not None and (handler := handlers[index]) is not None:
            try:
                changed = handler(site, a, result)
                return result if changed is result else _same_type(handlers, site, result, changed)
            except BaseException as error:
                handlers.error = AT_LIMIT
                contain(handlers, error)
        return result

    return hook


def _result2(name: str) -> Handler:
    index = _INDEX[name]

    def hook(site: Site, a: object, b: object, result: object) -> object:
        handlers = active.get(get_ident())
        if handlers is not None and (handler := handlers[index]) is not None:
            try:
                changed = handler(site, a, b, result)
                return result if changed is result else _same_type(handlers, site, result, changed)
            except BaseException as error:
                handlers.error = AT_LIMIT
                contain(handlers, error)
        return result

    return hook


def _iterate_result(site: Site, obj: object, iterator: object) -> object:
    """After ``iter(obj)``: the observer may give another iterator over equal elements."""
    handlers = active.get(get_ident())
    if handlers is not None and (handler := handlers[_INDEX["iterate_result"]]) is not None:
        try:
            return handler(site, obj, iterator)
        except BaseException as error:
            handlers.error = AT_LIMIT
            contain(handlers, error)
    return iterator


_CALL: Final = _INDEX["call"]
_CALL_RESULT: Final = _INDEX["call_result"]
_EXTEND: Final = _INDEX["extend"]
_RAISE: Final = _INDEX["raise_"]


def call(site: Site, fn: object, args: tuple[Any, ...]) -> None:
    """Before a call without keywords."""
    handlers = active.get(get_ident())
    if handlers is not None and (handler := handlers[_CALL]) is not None:
        try:
            handler(site, fn, args, None)
        except BaseException as error:
            handlers.error = AT_LIMIT
            contain(handlers, error)


def call_kw(site: Site, fn: object, values: tuple[Any, ...], names: tuple[str, ...]) -> None:
    """Before a call whose last values are keyword arguments of these names."""
    handlers = active.get(get_ident())
    if handlers is not None and (handler := handlers[_CALL]) is not None:
        try:
            split = len(values) - len(names)
            handler(site, fn, values[:split], dict(zip(names, values[split:], strict=True)))
        except BaseException as error:
            handlers.error = AT_LIMIT
            contain(handlers, error)


_mro_of: Final[Callable[[type], tuple[type, ...]]] = type.__dict__["__mro__"].__get__
_dict_of: Final[Callable[[type], dict[str, Any]]] = type.__dict__["__dict__"].__get__


def _iterable(kind: type) -> bool:
    """Whether the interpreter would try to iterate over instances of a type (asked without running a metaclass's code)."""
    return any("__iter__" in names or "__getitem__" in names for names in map(_dict_of, _mro_of(kind)))


def call_star(site: Site, args: object) -> bool:
    """Before ``f(*args)``: reports the reading of args; whether the clone must spread args into a tuple itself.

    Only iterables are spread there: for anything else the call raises its own error.
    """
    handlers = active.get(get_ident())
    if handlers is None:
        return False
    if (handler := handlers[_EXTEND]) is not None:
        try:
            handler(site, None, args)
        except BaseException as error:
            handlers.error = AT_LIMIT
            contain(handlers, error)
    return type(args) is not tuple and _iterable(type(args))


def call_ex(site: Site, fn: object, args: object, kwargs: object) -> None:
    """Before ``f(*args, **kwargs)``; args that are no tuple are no iterable either, and the call is about to fail."""
    handlers = active.get(get_ident())
    if handlers is not None and (handler := handlers[_CALL]) is not None and type(args) is tuple:
        try:
            handler(site, fn, args, dict(cast("dict[str, Any]", kwargs)) if kwargs else None)
        except BaseException as error:
            handlers.error = AT_LIMIT
            contain(handlers, error)


def call_exit(site: Site, fn: object, exc: BaseException) -> None:
    """Before a with block calls ``__exit__`` (or ``__aexit__``) because of an exception."""
    handlers = active.get(get_ident())
    if handlers is not None and (handler := handlers[_CALL]) is not None:
        try:
            handler(site, fn, (type(exc), exc, exc.__traceback__), None)
        except BaseException as error:
            handlers.error = AT_LIMIT
            contain(handlers, error)


def call_result(result: object, site: Site) -> object:
    """After a call (the result comes first: it is already on the stack)."""
    handlers = active.get(get_ident())
    if handlers is not None and (handler := handlers[_CALL_RESULT]) is not None:
        try:
            changed = handler(site, result)
            return result if changed is result else _same_type(handlers, site, result, changed)
        except BaseException as error:
            handlers.error = AT_LIMIT
            contain(handlers, error)
    return result


def reraise(site: Site) -> None:
    """Before a bare ``raise``."""
    handlers = active.get(get_ident())
    if handlers is not None and (handler := handlers[_RAISE]) is not None:
        try:
            handler(site, sys.exception())
        except BaseException as error:
            handlers.error = AT_LIMIT
            contain(handlers, error)


def import_name(site: Site) -> None:
    """Before an import statement."""
    handlers = active.get(get_ident())
    if handlers is not None and (handler := handlers[_INDEX["import_name"]]) is not None:
        try:
            handler(site, site.name)
        except BaseException as error:
            handlers.error = AT_LIMIT
            contain(handlers, error)


def item_write_slice(site: Site, obj: object, start: object, stop: object, value: object) -> None:
    """Before ``obj[start:stop] = value`` where the compiler made no slice object (3.12)."""
    HOOKS["item_write"](site, obj, slice(start, stop), value)


def _cell_write(site: Site, value: object, cell: CellType) -> None:
    _CELL_WRITE(site, cell, value)


_CELL_WRITE: Final = _event2("cell_write")

HOOKS: Final[dict[str, Handler]] = {
    **{name: _event0(name) for name in ("global_read", "global_delete")},
    **{
        name: _event1(name)
        for name in (
            "global_write",
            "cell_read",
            "cell_delete",
            "attr_read",
            "attr_delete",
            "unary",
            "truth",
            "iterate",
            "unpack",
            "hashed",
            "match",
            "with_enter",
            "import_from",
            "raise_",
            "yield_",
            "return_",
        )
    },
    **{
        name: _event2(name)
        for name in (
            "attr_write",
            "item_read",
            "item_delete",
            "binary",
            "compare",
            "is_",
            "contains",
            "extend",
            "format",
            "caught",
        )
    },
    "item_write": _event3("item_write"),
    "match_class": _event3("match_class"),
    "unary_result": _result1("unary_result"),
    "binary_result": _result2("binary_result"),
    "is_result": _result2("is_result"),
    "compare_result": _result2("compare_result"),
    "item_read_result": _result2("item_read_result"),
    "attr_result": _result1("attr_result"),
    "iterate_result": _iterate_result,
    "format_result": _result2("format_result"),
    "cell_write": _cell_write,
    **{
        function.__name__: function
        for function in (
            call,
            call_kw,
            call_star,
            call_ex,
            call_exit,
            call_result,
            reraise,
            import_name,
            item_write_slice,
        )
    },
}

for _hook in HOOKS.values():
    never_intercept(_hook)

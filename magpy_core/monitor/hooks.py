"""The functions that instrumented code calls: from an instruction in a user's frame to a method of the thread's Observer.

A hook looks up the recording of the running thread (none: nothing happens), calls the observer's method if it is
overridden, and lets no exception of ours out. Clones hold these functions as constants, so they outlive recordings. Hooks
are all alike and on the hot path, so they are written from one text, as the observer's methods say.

Key names: :data:`active` (thread id -> :class:`Handlers` of its innermost recording), :data:`HOOKS` (event name -> hook).
"""

from __future__ import annotations

import signal
import sys
from _thread import get_ident
from collections.abc import Callable
from inspect import signature
from types import FunctionType, TracebackType
from typing import Any, Final

from magpy_core._compat.cpython.own_builtins import OWN_BUILTINS
from magpy_core._compat.torch.eval_frame import AT_LIMIT, never_intercept
from magpy_core.monitor.events import Observer, Site

__builtins__ = OWN_BUILTINS  # type: ignore[assignment]

EVENTS: Final[tuple[str, ...]] = tuple(
    name for name, value in vars(Observer).items() if isinstance(value, FunctionType) and name != "enter_frame"
)

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
    codes = {getattr(signal.getsignal(number), "__code__", None) for number in signal.valid_signals()} - {None}
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


class ChangedResult(TypeError):
    """An observer returned a result of another type; the user's value is kept."""


def _same_type(handlers: Handlers, site: Site, result: object, changed: object) -> object:
    if type(changed) is type(result) or site.opname == "GET_ITER":  # an iterator of another type will do
        return changed
    handlers.fail(ChangedResult(f"{site!r}: {type(result).__name__} became {type(changed).__name__}"))
    return result


_mro_of: Final[Callable[[type], tuple[type, ...]]] = type.__dict__["__mro__"].__get__
_dict_of: Final[Callable[[type], dict[str, Any]]] = type.__dict__["__dict__"].__get__


def _iterable(kind: type) -> bool:
    """Whether the interpreter would try to iterate over instances of a type (asked without running a metaclass's code)."""
    return any("__iter__" in names or "__getitem__" in names for names in map(_dict_of, _mro_of(kind)))


_TEXT: Final = """
def {name}({takes}):
    handlers = active.get(get_ident())
    if handlers is not None and (handler := handlers[{index}]) is not None:
        try:
            {tell}
        except BaseException as error:
            handlers.error = AT_LIMIT
            contain(handlers, error)
    return {result}
"""
_TAKE_RESULT: Final = "if (changed := handler({tells})) is not result: return _same_type(handlers, site, result, changed)"

_OTHERS: Final = {
    # hook: its event, what the clone gives it, what it tells the observer, what the clone gets
    "call_result": ("call_result", "result, site", _TAKE_RESULT.format(tells="site, result"), "result"),
    "call": ("call", "site, fn, args", "handler(site, fn, args, None)", "None"),
    "call_kw": (  # the last values are keyword arguments of these names
        "call", "site, fn, values, names",
        "handler(site, fn, values[:-len(names)], dict(zip(names, values[-len(names):], strict=True)))", "None",
    ),
    "call_ex": (  # args that are no tuple are no iterable either, and the call is about to fail
        "call", "site, fn, args, kwargs",
        "if type(args) is tuple: handler(site, fn, args, dict(kwargs) if kwargs else None)", "None",
    ),
    "call_exit": ("call", "site, fn, error", "handler(site, fn, (type(error), error, error.__traceback__), None)", "None"),
    # before ``f(*args)``: whether the clone must spread args into a tuple; what can't be is left to the call's own error
    "call_star": ("extend", "site, args", "handler(site, None, args)", "type(args) is not tuple and _iterable(type(args))"),
    "item_write_slice": ("item_write", "site, obj, a, b, value", "handler(site, obj, slice(a, b), value)", "None"),
    "import_name": ("import_name", "site", "handler(site, site.name)", "None"),
    "reraise": ("raise_", "site", "handler(site, sys.exception())", "None"),
}  # fmt: skip


def _text_of(name: str) -> str:
    if name in _OTHERS:
        event, takes, tell, result = _OTHERS[name]
    else:  # it takes what the observer's method takes
        event, takes = name, ", ".join([*signature(getattr(Observer, name)).parameters][1:])
        tell, result = f"handler({takes})", "None"
        if name.endswith("_result"):
            tell, result = _TAKE_RESULT.format(tells=takes), "result"
    return _TEXT.format(name=name, takes=takes, index=EVENTS.index(event), tell=tell, result=result)


FILE: Final = __file__.removesuffix(".py") + ".generated"
"""Where the hooks' code says it is."""
HOOKS: Final[dict[str, Handler]] = {}
_NAMES: Final[dict[str, Any]] = {
    "__builtins__": OWN_BUILTINS, "active": active, "get_ident": get_ident, "sys": sys, "AT_LIMIT": AT_LIMIT,
    "contain": contain, "_same_type": _same_type, "_iterable": _iterable,
}  # fmt: skip
exec(compile("".join(map(_text_of, dict.fromkeys([*EVENTS, *_OTHERS]))), FILE, "exec"), _NAMES, HOOKS)

for _hook in HOOKS.values():
    never_intercept(_hook)

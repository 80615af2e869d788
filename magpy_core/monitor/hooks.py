"""The functions that instrumented code calls; they pass an event to the method of the thread's Observer.

A hook looks up the recording of the running thread (without one, it does nothing), calls the observer's method if it is
overridden, and contains exceptions of MagPy. Clones hold these functions as constants, so they outlive recordings. Hooks
are on the hot path and have the same structure, so they are generated from one template and the observer's signatures.

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
from magpy_core._compat.cpython.special_methods import bound_special
from magpy_core._compat.torch.eval_frame import AT_LIMIT, never_intercept
from magpy_core.monitor.events import Observer, Site

__builtins__ = OWN_BUILTINS  # type: ignore[assignment]

EVENTS: Final[tuple[str, ...]] = tuple(
    name for name, value in vars(Observer).items() if isinstance(value, FunctionType) and name != "enter_frame"
)

Handler = Callable[..., Any]


class Handlers(list["Handler | None"]):
    """An observer's overridden methods, by event number; None for a method that is not overridden.

    ``error`` is set to AT_LIMIT before an exception is handled, because nothing can be called at the recursion limit. (The
    exception itself would keep the user's frames alive.)
    """

    __slots__ = ("error", "fail")

    def __init__(self, observer: Observer, fail: Callable[[BaseException], None]) -> None:
        methods = ((getattr(observer, name), getattr(Observer, name)) for name in EVENTS)
        super().__init__(None if getattr(m, "__func__", None) is default else m for m, default in methods)
        self.fail = fail
        self.error: BaseException | None = None


active: dict[int, Handlers] = {}


def _from_signal_handler(traceback: TracebackType | None) -> bool:
    """Whether a signal handler raised an exception: Python may run one while a frame of MagPy is on top."""
    codes = {getattr(signal.getsignal(number), "__code__", None) for number in signal.valid_signals()} - {None}
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            return True
        traceback = traceback.tb_next
    return False


def belongs_to_user(error: BaseException) -> bool:
    """Whether an exception caught in MagPy's code is the user's: Ctrl-C, or raised by a signal handler."""
    return isinstance(error, KeyboardInterrupt) or _from_signal_handler(error.__traceback__)


def contain(handlers: Handlers, error: BaseException) -> None:
    """Store an exception of a hook as the recording's failure, so that user code doesn't see it. Re-raise it if it is the
    user's (a signal).

    At the recursion limit this raises RecursionError itself; so would the user's next call.
    """
    users = belongs_to_user(error)
    handlers.fail(error)
    if users:
        raise error


class ChangedResult(TypeError):
    """An observer returned a result of another type; the user's value is kept."""


def _same_type(handlers: Handlers, site: Site, result: object, changed: object) -> object:
    if type(changed) is type(result) or site.opname == "GET_ITER":  # an iterator may have another type
        return changed
    handlers.fail(ChangedResult(f"{site!r}: {type(result).__name__} became {type(changed).__name__}"))
    return result


_mro_of: Final[Callable[[type], tuple[type, ...]]] = type.__dict__["__mro__"].__get__
_dict_of: Final[Callable[[type], dict[str, Any]]] = type.__dict__["__dict__"].__get__


def _iterable(kind: type) -> bool:
    """Whether the interpreter would try to iterate over instances of a type; runs no code of a metaclass."""
    return any("__iter__" in names or "__getitem__" in names for names in map(_dict_of, _mro_of(kind)))


_TEXT: Final = """
def {name}({parameters}):
    handlers = active.get(get_ident())
    if handlers is not None and (handler := handlers[{index}]) is not None:
        try:
            {notify}
        except BaseException as error:
            handlers.error = AT_LIMIT
            contain(handlers, error)
    return {result}
"""
_RESULT: Final = "if (changed := handler({arguments})) is not result: return _same_type(handlers, site, result, changed)"

_OTHERS: Final = {
    # hook: its event, parameters, call of the observer's method, return value
    "call_result": ("call_result", "result, site", _RESULT.format(arguments="site, result"), "result"),
    "call": ("call", "site, fn, args", "handler(site, fn, args, None)", "None"),
    "call_kw": (  # the last values are keyword arguments of these names
        "call", "site, fn, values, names",
        "handler(site, fn, values[:-len(names)], dict(zip(names, values[-len(names):], strict=True)))", "None",
    ),
    "call_ex": (  # args that are not a tuple are not iterable either, and the call is about to fail
        "call", "site, fn, args, kwargs",
        "if type(args) is tuple: handler(site, fn, args, dict(kwargs) if kwargs else None)", "None",
    ),
    "call_exit": ("call", "site, fn, error", "handler(site, fn, (type(error), error, error.__traceback__), None)", "None"),
    # before ``f(*args)``: whether the clone must convert args to a tuple; if it is not iterable, the call itself fails
    "call_star": ("extend", "site, args", "handler(site, None, args)", "type(args) is not tuple and _iterable(type(args))"),
    "item_write_slice": ("item_write", "site, obj, a, b, value", "handler(site, obj, slice(a, b), value)", "None"),
    "import_name": ("import_name", "site", "handler(site, site.name)", "None"),
    "reraise": ("raise_", "site", "handler(site, sys.exception())", "None"),
}  # fmt: skip


def _text_of(name: str) -> str:
    if name in _OTHERS:
        event, parameters, notify, result = _OTHERS[name]
    else:  # the parameters of the observer's method
        event, parameters = name, ", ".join([*signature(getattr(Observer, name)).parameters][1:])
        notify, result = f"handler({parameters})", "None"
        if name.endswith("_result"):
            notify, result = _RESULT.format(arguments=parameters), "result"
    return _TEXT.format(name=name, parameters=parameters, index=EVENTS.index(event), notify=notify, result=result)


FILE: Final = __file__.removesuffix(".py") + ".generated"
"""The file name in the hooks' code objects."""
HOOKS: Final[dict[str, Handler]] = {}
_NAMES: Final[dict[str, Any]] = {
    "__builtins__": OWN_BUILTINS, "active": active, "get_ident": get_ident, "sys": sys, "AT_LIMIT": AT_LIMIT,
    "contain": contain, "_same_type": _same_type, "_iterable": _iterable,
}  # fmt: skip
exec(compile("".join(map(_text_of, dict.fromkeys([*EVENTS, *_OTHERS]))), FILE, "exec"), _NAMES, HOOKS)


def _special_method(name: str, manager: object) -> object:
    """Not an event: `bound_special`, for what a with block calls (3.14)."""
    try:
        return bound_special(name, manager)
    except BaseException as error:
        if belongs_to_user(error):
            raise
    return None  # the interpreter itself looks it up, and raises what there is to raise


HOOKS["special_method"] = _special_method

for _hook in HOOKS.values():
    never_intercept(_hook)

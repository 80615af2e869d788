"""StandIn: what `magpy_core.compile` and `magpy_core.disable` give for a callable that is not a function.

A partial, a bound method, a cached function, an object with ``__call__``: it has attributes, state and comparisons of its
own, which a function around it would hide. All of them are the target's; only calls go elsewhere. Key type: StandIn.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

from magpy_core._compat.torch.eval_frame import hide

TARGET = "__magpy_target__"
"""The attribute of a StandIn that is its target."""
# What concerns the class of an object, not the object.
_OF_CLASS = frozenset({
    "__new__", "__init__", "__del__", "__init_subclass__", "__class_getitem__", "__subclasshook__", "__getattr__",
    "__set_name__", "__set__", "__delete__",
})  # fmt: skip


class StandIn:
    """Stands for ``target``; a call of it is one of ``call``."""

    __slots__ = ("__weakref__", "_call", "_target")

    def __init__(self, target: Callable[..., Any], call: Callable[..., Any]) -> None:
        _set_target(self, target)
        _set_call(self, call)

    @hide
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return call_of(self)(*args, **kwargs)

    def __getattribute__(self, name: str) -> Any:
        target = target_of(self)
        if name == TARGET:
            return target
        if name == "__signature__":  # else `inspect` would find that of our `__call__`
            return _signature(target)
        return getattr(target, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(target_of(self), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(target_of(self), name)

    def __get__(self, obj: Any, owner: Any = None) -> Any:
        """In a class: what the target gives for an instance. A method of it is one of the stand-in."""
        target = target_of(self)
        bind = getattr(type(target), "__get__", None)
        bound = target if bind is None else bind(target, obj, owner)
        if bound is target:
            return self
        return types.MethodType(self, obj) if type(bound) is types.MethodType and bound.__func__ is target else bound

    def __eq__(self, other: object) -> bool:
        return bool(target_of(self) == (target_of(other) if issubclass(type(other), StandIn) else other))

    def __hash__(self) -> int:
        return hash(target_of(self))

    def __repr__(self) -> str:
        return repr(target_of(self))

    def __str__(self) -> str:
        return str(target_of(self))

    def __dir__(self) -> list[str]:
        return dir(target_of(self))


_SLOTS: Any = vars(StandIn)
target_of: Callable[[Any], Any] = _SLOTS["_target"].__get__
call_of: Callable[[Any], Any] = _SLOTS["_call"].__get__
_set_target, _set_call = _SLOTS["_target"].__set__, _SLOTS["_call"].__set__


def _signature(target: Any) -> inspect.Signature:
    try:
        return inspect.signature(target)
    except (TypeError, ValueError) as error:
        raise AttributeError("__signature__") from error


def _forwarded(name: str) -> Callable[..., Any]:
    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        target = target_of(self)
        return getattr(type(target), name)(target, *args, **kwargs)

    return method


# Frames of MagPy's own files are not reported to a recording; this one has to be, and so its call.
_SOURCE = """
def calling(target):
    def call(*args, **kwargs):
        return target(*args, **kwargs)
    return call
"""
_made: dict[str, Any] = {}
exec(compile(_SOURCE, "<magpy_core.compile>", "exec"), _made)


def observed(target: Callable[..., Any]) -> Callable[..., Any]:
    """``target``, or a function that calls it if its call starts no frame of its own: a partial, a cached function."""
    called = target.__func__ if type(target) is types.MethodType else target
    own = type(called).__call__ if type(called) is not types.FunctionType else called
    return target if type(own) is types.FunctionType else _made["calling"](target)


def stand_in(target: Callable[..., Any], call: Callable[..., Any]) -> StandIn:
    """A StandIn whose class also has the special methods that the target's class defines in Python."""
    names = {
        name
        for cls in type(target).__mro__
        for name, value in vars(cls).items()
        if name[:2] == name[-2:] == "__" and type(value) is types.FunctionType
    }
    methods = {name: _forwarded(name) for name in names if name not in _OF_CLASS and name not in _SLOTS}
    cls: type[StandIn] = type(type(target).__name__, (StandIn,), {"__slots__": (), **methods})
    return cls(target, call)

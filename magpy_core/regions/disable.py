"""What `magpy_core.disable` makes: a function or module whose calls are in no capture. Key function: plain_function."""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable
from typing import Any

from torch import nn

from magpy_core._compat.torch.eval_frame import hide
from magpy_core._compat.torch.module_calls import CALL, COMPILED_CALL
from magpy_core.recording.uncaptured import never_captured
from magpy_core.refgraph.stand_in import stand_in
from magpy_core.regions.threads import outside_regions

# Frames of MagPy's own files are not reported to a recording; these have to be.
_SOURCE = """
def function(call, target):
    def plain(*args, **kwargs):
        return call(target, args, kwargs)
    return plain

def method(call):
    def plain(self, /, *args, **kwargs):
        return call(self, args, kwargs)
    return plain
"""
_made: dict[str, Any] = {}
exec(compile(_SOURCE, "<magpy_core.disable>", "exec"), _made)


@hide
def _call(target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    with outside_regions():
        return target(*args, **kwargs)


def plain_function(target: Callable[..., Any]) -> Callable[..., Any]:
    """``target`` in eager mode. What it calls that the program has compiled is a region of its own there."""
    plain: Callable[..., Any] = never_captured(_made["function"](_call, target))
    return functools.wraps(target)(plain) if type(target) is types.FunctionType else stand_in(target, plain)


class PlainCall:
    """What ``nn.Module.__call__`` calls of a disabled module. The module owns it: its reference back is weak."""

    def __init__(self, module: nn.Module) -> None:
        self._module = weakref.ref(module)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return _call(CALL, (self._module(), *args), kwargs)

    __call__ = never_captured(_made["method"](hide(_call)))

    def __reduce__(self) -> Any:
        return type(None), ()  # as in module_call: a copy is a plain module


def disable_module(module: nn.Module) -> None:
    vars(module)[COMPILED_CALL] = PlainCall(module)


def is_disabled(module: nn.Module) -> bool:
    return type(vars(module).get(COMPILED_CALL)) is PlainCall

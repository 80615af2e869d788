"""torch's functions that tell which modes are in force, without MagPy's own modes. Key names: MODE_READS, asks_to_dispatch,
reads_modes, is_of_program, function_modes.

A recording is a function mode and a dispatch mode. Functions of torch written in Python pass themselves to it only because
these functions count it; everyone else has to see what they return without it. (Private; the same in torch 2.11 to 2.13.)
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, Final

import torch
from torch.overrides import handle_torch_function

_TORCH_ROOT: Final = os.path.join(os.path.dirname(torch.__file__), "")
_FILES = tuple(_TORCH_ROOT + name for name in ("overrides.py", os.path.join("utils", "_python_dispatch.py")))
_OFF = torch._C._disabled_torch_function_impl
_LISTS: tuple[type, ...] = (tuple, list, set, frozenset, dict, type({}.keys()), type({}.values()))
_Modes = tuple[Any, ...]


def asks_to_dispatch(code: CodeType) -> bool:
    """Whether a function of torch with this code asks for modes in order to pass itself to them."""
    passes = "handle_torch_function" in code.co_names or code is handle_torch_function.__code__
    return passes and code.co_filename.startswith(_TORCH_ROOT)


def is_of_program(fn: Any) -> bool:
    """Whether a mode got a function that is not torch's: the program passed it to ``handle_torch_function``."""
    return type(fn) is FunctionType and not fn.__code__.co_filename.startswith((_TORCH_ROOT, "<"))


def _without(stack: list[Any], own: _Modes) -> list[Any]:
    return [mode for mode in stack if not any(mode is one for one in own)]


def function_modes() -> list[Any]:
    """The function modes in force on this thread, innermost last. No recording observes this call, unlike that of torch's
    Python function."""
    return [torch._C._get_function_stack_at(i) for i in range(torch._C._len_torch_function_stack())]


def dispatch_modes() -> list[Any]:
    return [torch._C._get_dispatch_stack_at(i) for i in range(torch._C._len_torch_dispatch_stack())]


def _functions(own: _Modes) -> list[Any]:
    return _without(function_modes(), own)


def _dispatch(own: _Modes) -> list[Any]:
    return _without(dispatch_modes(), own)


def _overrides(value: Any) -> bool:
    """Whether ``value`` has its own ``__torch_function__``. Runs no code of the program, such as its ``__getattr__``."""
    found = inspect.getattr_static(value, "__torch_function__", _OFF)
    return type(value) is not torch.Tensor and found is not _OFF


def arguments_of(fn: Any, args: _Modes) -> _Modes:
    """The values whose types ``fn`` of MODE_READS looks at."""
    if fn is torch._C._has_torch_function:
        return tuple(args[0]) if args and type(args[0]) in _LISTS else ()
    return args if fn in (torch._C._has_torch_function_unary, torch._C._has_torch_function_variadic) else ()


def _has_override(fn: Any, result: Any, args: _Modes, own: _Modes) -> bool:
    if not result or _functions(own):
        return bool(result)
    return torch._C._is_torch_function_enabled() and any(map(_overrides, arguments_of(fn, args)))


def _at(modes: list[Any], result: Any, args: _Modes) -> Any:
    return modes[args[0]] if args and args[0] < len(modes) else result


#: (function, result, arguments, MagPy's modes) -> what the function returns without these modes.
MODE_READS: dict[Callable[..., Any], Callable[[Any, Any, _Modes, _Modes], Any]] = {
    torch._C._has_torch_function: _has_override,
    torch._C._has_torch_function_unary: _has_override,
    torch._C._has_torch_function_variadic: _has_override,
    torch._C._is_torch_function_mode_enabled: lambda fn, result, args, own: bool(result and _functions(own)),
    torch._C._len_torch_function_stack: lambda fn, result, args, own: len(_functions(own)),
    torch._C._len_torch_dispatch_stack: lambda fn, result, args, own: len(_dispatch(own)),
    torch._C._get_function_stack_at: lambda fn, result, args, own: _at(_functions(own), result, args),
    torch._C._get_dispatch_stack_at: lambda fn, result, args, own: _at(_dispatch(own), result, args),
}
_NAMES = frozenset(fn.__name__ for fn in MODE_READS)


def reads_modes(code: CodeType) -> bool:
    """Whether this is the code of a function of torch that only reads the modes (``_get_current_function_mode``)."""
    return code.co_filename.startswith(_FILES) and not asks_to_dispatch(code) and not _NAMES.isdisjoint(code.co_names)

"""What is in force around a call that a recording cannot be part of: the program's torch modes, functorch transforms,
forward-mode levels, tracers, and functions of ``torch.Tensor`` that the program has replaced.

All of these see or change single operations, ours among them. Key functions: ``foreign``, ``same_surroundings``.
"""

from __future__ import annotations

import copyreg
import functools
import operator
import os
import sys
import types
from collections.abc import Callable
from typing import Any

import torch
from torch._C._functorch import peek_interpreter_stack
from torch.autograd import forward_ad
from torch.fx._symbolic_trace import is_fx_symbolic_tracing
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from magpy_core._compat.cpython.dict_tags import class_dict, version_view

_TENSOR = torch.Tensor.__dict__
copyreg._slotnames(torch.Tensor)  # type: ignore[attr-defined]  # the first copy or pickle of a tensor keeps this in the class
# As torch made the class: a function mode looks the operators up there, so what is replaced runs where it would not.
_ORIGINAL = dict(_TENSOR)
_NATIVE = torch._C.TensorBase.__dict__


_MODULE = torch.nn.Module.__dict__
#: What a recording takes for granted of every module (its call is summarised, its tables are looked into).
_get_members = operator.itemgetter(
    "__call__", "_call_impl", "_wrapped_call_impl", "__getattr__", "__setattr__", "__delattr__"
)


_FUNCTIONAL = vars(torch.nn.functional)
_TORCH_ROOT = os.path.dirname(torch.__file__)


def _overridable() -> list[str]:
    """The functions of torch.nn.functional that hand themselves to a function mode by their name. If a program puts its
    own wrapper there, a mode is given that one, and what it does is done twice."""
    return [
        name
        for name, fn in _FUNCTIONAL.items()
        if type(fn) is types.FunctionType
        and (
            ("handle_torch_function" in fn.__code__.co_names and fn.__name__ == name)
            or not fn.__code__.co_filename.startswith((_TORCH_ROOT, "<"))  # replaced before we looked
        )
    ]


_get_functional = operator.itemgetter(*_overridable())
_ORIGINAL_FUNCTIONAL = _get_functional(_FUNCTIONAL)


_ORIGINAL_BY_CODE = {fn.__code__: fn for fn in _ORIGINAL_FUNCTIONAL}


def asked_for(fn: Any) -> Any:
    """The function that asks a function mode to take its place; called by the mode. ``fn``: what it gave as itself, which
    it looks up by its name: where the program has put a wrapper of its own under that name, that one."""
    if type(fn) is not types.FunctionType:
        return fn
    caller = sys._getframe(2).f_back  # between them, torch's `handle_torch_function`
    return fn if caller is None else _ORIGINAL_BY_CODE.get(caller.f_code, fn)


def _replaced_functional() -> str:
    """A function of torch.nn.functional that is not torch's; empty when all are."""
    for original, now in zip(_ORIGINAL_FUNCTIONAL, _get_functional(_FUNCTIONAL), strict=True):
        if original is not now or not now.__code__.co_filename.startswith((_TORCH_ROOT, "<")):
            return str(original.__name__)
    return ""


def _members(names: Any) -> tuple[Any, ...]:
    """The members; a ``__call__`` of the runner's own, which finds the regions, counts as the one it stands for."""
    call, *others = _get_members(names)
    return (getattr(call, "magpy_original", call), *others)


_ORIGINAL_MEMBERS = _members(_MODULE)


def _replaced_method() -> str | None:
    """A name of ``torch.Tensor`` that means something else than what torch made it."""
    names = (
        n for n, value in _TENSOR.items() if _ORIGINAL.get(n, value) is not value or (n not in _ORIGINAL and n in _NATIVE)
    )
    return next(names, None) or next((n for n in _ORIGINAL if n not in _TENSOR), None)


def foreign() -> str:
    """What is in force that a recording would disturb or miss, as a phrase; empty when there is nothing."""
    # that of the default device only says where tensors are made
    modes = [mode for mode in _get_current_function_mode_stack() if type(mode) is not DeviceContext]
    if modes := [*modes, *_get_current_dispatch_mode_stack()]:
        return f"the torch mode `{type(modes[-1]).__name__}`"
    if peek_interpreter_stack() is not None:
        return "a transform of torch.func (grad, vmap, jvp, ...)"
    if forward_ad._current_level >= 0:
        return "forward-mode differentiation"
    if in_tracer():
        return "torch.jit.trace"
    if is_fx_symbolic_tracing():
        return "torch.fx's tracing"
    # they see every tensor that autograd keeps, and may end the call there by raising
    if torch._C._autograd._top_saved_tensors_default_hooks(True) is not None:
        return "hooks of saved tensors (activation checkpointing, `save_on_cpu`)"
    if _members(_MODULE) != _ORIGINAL_MEMBERS:
        return "a replaced method of `torch.nn.Module` itself"
    if replaced := _replaced_method():
        return f"a replaced `torch.Tensor.{replaced}`"
    if functional := _replaced_functional():
        return f"a replaced `torch.nn.functional.{functional}`"
    return ""


def backward_pass() -> tuple[int, bool]:
    """The backward pass that runs now on this thread: its number, and whether it keeps what its graph saved."""
    return torch._C._current_graph_task_id(), bool(torch._C._autograd._get_current_graph_task_keep_graph())


def at_end_of_backward(callback: Callable[[], None]) -> None:
    """Calls ``callback`` when the backward pass ends that runs now on this thread; not if it raises."""
    torch.autograd.Variable._execution_engine.queue_callback(callback)


def in_tracer() -> bool:
    """Whether ``torch.jit.trace`` is recording on this thread."""
    return torch._C._get_tracing_state() is not None


def watched(tensors: Any) -> bool:
    """``torch.overrides.has_torch_function``, as it is without the innermost mode."""
    if torch._C._len_torch_function_stack() > 1:
        return True
    off = torch._C._disabled_torch_function_impl
    return any(getattr(type(t), "__torch_function__", off) is not off for t in tensors if type(t) is not torch.Tensor)


def _device_modes() -> tuple[Any, ...]:
    return tuple(mode.device if type(mode) is DeviceContext else mode for mode in _get_current_function_mode_stack())


@functools.cache
def _versions() -> Callable[[], Any]:
    """A function that gives something else after each write to the names of ``torch.Tensor``, ``nn.Module`` and
    ``nn.functional``, in a fraction of the time that comparing them takes. Where there are no version tags: always."""
    tables = (class_dict(torch.Tensor), class_dict(torch.nn.Module), _FUNCTIONAL)
    views = [None if table is None else version_view(table) for table in tables]
    tensor, module, functional = views
    if tensor is None or module is None or functional is None:
        return object
    return lambda: (tensor.value, module.value, functional.value)


def same_surroundings() -> Callable[[], bool]:
    """A function that tells whether modes, forward-mode level, tracer and the functions of ``torch.Tensor`` are as now."""
    functions, dispatch = torch._C._len_torch_function_stack, torch._C._len_torch_dispatch_stack
    tracing = torch._C._get_tracing_state
    saving = torch._C._autograd._top_saved_tensors_default_hooks
    members = tuple(_TENSOR.values())
    of_modules = _get_members(_MODULE)
    functional = _get_functional(_FUNCTIONAL)
    modes = _device_modes()
    depth = dispatch()
    versions, compared = _versions(), None

    def check() -> bool:
        return (
            dispatch() == depth
            and (not modes if functions() == 0 else _device_modes() == modes)
            and forward_ad._current_level < 0
            and tracing() is None
            and saving(True) is None
            and (versions() == compared or same_names())
        )

    def same_names() -> bool:
        nonlocal compared
        now = versions()  # before they are compared: another thread may write meanwhile
        same = (
            tuple(_TENSOR.values()) == members
            and _get_members(_MODULE) == of_modules
            and _get_functional(_FUNCTIONAL) == functional
        )
        if same:
            compared = now
        return same

    return check

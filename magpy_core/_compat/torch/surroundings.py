"""State around a call under which nothing can be recorded: the program's torch modes, functorch transforms, forward-mode
levels, tracers, and functions of ``torch.Tensor`` that the program has replaced.

All of these see or change single operations, including MagPy's. Key functions: ``foreign``, ``same_surroundings``.
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
from torch.utils._device import DeviceContext

from magpy_core._compat.cpython.dict_tags import class_dict, version_view
from magpy_core._compat.torch.mode_reads import dispatch_modes, function_modes

_TENSOR = torch.Tensor.__dict__
copyreg._slotnames(torch.Tensor)  # type: ignore[attr-defined]  # the first copy or pickle of a tensor keeps this in the class
# The class as torch defined it: a function mode looks up operators there, so it would run replaced ones as well.
_ORIGINAL = dict(_TENSOR)
_NATIVE = torch._C.TensorBase.__dict__


_MODULE = torch.nn.Module.__dict__
#: Methods that a recording assumes for every module (its call is summarized, its tables are read).
_get_members = operator.itemgetter(
    "__call__", "_call_impl", "_wrapped_call_impl", "__getattr__", "__setattr__", "__delattr__"
)


_FUNCTIONAL = vars(torch.nn.functional)
_TORCH_ROOT = os.path.dirname(torch.__file__)


def _overridable() -> list[str]:
    """The functions of torch.nn.functional that pass themselves to a function mode by name. If a program has replaced one
    by a wrapper, the mode gets the wrapper, whose code would then run twice."""
    return [
        name
        for name, fn in _FUNCTIONAL.items()
        if type(fn) is types.FunctionType
        and (
            ("handle_torch_function" in fn.__code__.co_names and fn.__name__ == name)
            or not fn.__code__.co_filename.startswith((_TORCH_ROOT, "<"))  # already replaced
        )
    ]


_get_functional = operator.itemgetter(*_overridable())
_ORIGINAL_FUNCTIONAL = _get_functional(_FUNCTIONAL)


_ORIGINAL_BY_CODE = {fn.__code__: fn for fn in _ORIGINAL_FUNCTIONAL}


def dispatched_function(fn: Any) -> Any:
    """The function that dispatches to a function mode; must be called by the mode. ``fn`` is the function that the mode got,
    which was looked up by name: if the program has replaced it by a wrapper, that is the wrapper."""
    if type(fn) is not types.FunctionType:
        return fn
    caller = sys._getframe(2).f_back  # between them, torch's `handle_torch_function`
    return fn if caller is None else _ORIGINAL_BY_CODE.get(caller.f_code, fn)


def _replaced_functional() -> str:
    """The name of a function of torch.nn.functional that is not torch's; empty if all are."""
    for original, now in zip(_ORIGINAL_FUNCTIONAL, _get_functional(_FUNCTIONAL), strict=True):
        if original is not now or not now.__code__.co_filename.startswith((_TORCH_ROOT, "<")):
            return str(original.__name__)
    return ""


def _members(names: Any) -> tuple[Any, ...]:
    """The members; the runner's ``__call__``, which finds regions, counts as the original."""
    call, *others = _get_members(names)
    return (getattr(call, "magpy_original", call), *others)


_ORIGINAL_MEMBERS = _members(_MODULE)


def _replaced_method() -> str | None:
    """The name of an attribute of ``torch.Tensor`` that the program has replaced."""
    names = (
        n for n, value in _TENSOR.items() if _ORIGINAL.get(n, value) is not value or (n not in _ORIGINAL and n in _NATIVE)
    )
    return next(names, None) or next((n for n in _ORIGINAL if n not in _TENSOR), None)


def foreign() -> str:
    """The active mode or replaced function that rules out a recording, as a phrase; empty if there is none."""
    # the mode of the default device only determines where tensors are created
    modes = [mode for mode in function_modes() if type(mode) is not DeviceContext]
    if modes := [*modes, *dispatch_modes()]:
        return f"the torch mode `{type(modes[-1]).__name__}`"
    if peek_interpreter_stack() is not None:
        return "a transform of torch.func (grad, vmap, jvp, ...)"
    if forward_ad._current_level >= 0:
        return "forward-mode differentiation"
    if in_tracer():
        return "torch.jit.trace"
    if in_cuda_graph():
        return "the recording of a CUDA graph"
    if is_fx_symbolic_tracing():
        return "torch.fx's tracing"
    # they see every tensor that autograd saves, and may raise
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
    """The backward pass running on this thread: its number, and whether it retains the graph."""
    return torch._C._current_graph_task_id(), bool(torch._C._autograd._get_current_graph_task_keep_graph())


def at_end_of_backward(callback: Callable[[], None]) -> None:
    """Calls ``callback`` at the end of the backward pass running on this thread, unless it raises."""
    torch.autograd.Variable._execution_engine.queue_callback(callback)


def in_tracer() -> bool:
    """Whether ``torch.jit.trace`` is recording on this thread."""
    return torch._C._get_tracing_state() is not None


def in_cuda_graph() -> bool:
    """Whether the program is recording a CUDA graph on the current stream: whatever waits for the device would end that, as
    compiling does where it measures kernels."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def current_stream_number(index: int) -> int:
    """Of the accelerator's device with that index."""
    return int(torch._C._accelerator_getStream(index).stream_id)


def current_device_of(selection: str) -> Callable[[], int] | None:
    """The function that returns the current device, of those that ``torch._C``'s function of that name selects from; None
    if no device is in use yet, because asking or selecting would initialize it."""
    if not torch.cuda.is_initialized():
        return None
    name = "_cuda_getDevice" if selection.startswith("_cuda_") else "_accelerator_getDeviceIndex"
    getter: Callable[[], int] | None = getattr(torch._C, name, None)
    return getter


def _device_modes() -> tuple[Any, ...]:
    return tuple(mode.device if type(mode) is DeviceContext else mode for mode in function_modes())


@functools.cache
def _versions() -> Callable[[], Any]:
    """A function whose result changes with each write to the names of ``torch.Tensor``, ``nn.Module`` and
    ``nn.functional``, much faster than comparing them. Without version tags, it changes at every call."""
    tables = (class_dict(torch.Tensor), class_dict(torch.nn.Module), _FUNCTIONAL)
    views = [None if table is None else version_view(table) for table in tables]
    tensor, module, functional = views
    if tensor is None or module is None or functional is None:
        return object
    return lambda: (tensor.value, module.value, functional.value)


def same_surroundings() -> Callable[[], bool]:
    """A function that checks whether modes, forward-mode level, tracer and functions of ``torch.Tensor`` are unchanged."""
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
        now = versions()  # before the comparison: another thread may write during it
        same = (
            tuple(_TENSOR.values()) == members
            and _get_members(_MODULE) == of_modules
            and _get_functional(_FUNCTIONAL) == functional
        )
        if same:
            compared = now
        return same

    return check

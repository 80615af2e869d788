"""Functions of torch that change torch's state in ways that a graph can't contain.

The frames of those written in Python are not monitored, because the other functions in their files only call operators. Key
functions: ``state_changers``, ``changes_setting``, ``cuda_settings``.
"""

from __future__ import annotations

import types
from typing import Any

import torch
import torch.autograd.profiler
import torch.nn.attention
import torch.utils.checkpoint
from torch.utils import _python_dispatch

_PLACES: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (torch, ("set_default_tensor_type", "set_default_dtype", "set_default_device", "use_deterministic_algorithms",
             "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_warn_always")),
    (torch.compiler, ("set_stance", "set_default_backend", "set_enable_guard_collectives")),
    (torch.utils.checkpoint, ("set_checkpoint_early_stop",)),
    (torch.nn.attention, ("_sdpa_kernel",)),
    (_python_dispatch, ("_push_mode",)),
)  # fmt: skip
_ENTERED: tuple[tuple[Any, str, str], ...] = (
    (torch.autograd.grad_mode, "set_multithreading_enabled", "__init__"),
    (torch.autograd.grad_mode, "enforce_grad_layout_policy", "__init__"),
    (torch.autograd.grad_mode, "_force_original_view_tracking", "__init__"),
    (torch.autograd.profiler, "emit_itt", "__enter__"),
    (torch.autograd.profiler, "emit_nvtx", "__enter__"),
    (torch.autograd.profiler, "profile", "_start_trace"),
    (torch.utils.checkpoint, "GraphExecGroup", "__enter__"),
)


def state_changers() -> dict[types.CodeType, str]:
    """The code of each function, and its name in programs; not every version of torch has all of them."""
    found: dict[types.CodeType, str] = {}
    for module, names in _PLACES:
        for name in names:
            fn: Any = getattr(module, name, None)
            while hasattr(fn, "__wrapped__"):
                fn = fn.__wrapped__
            if isinstance(fn, types.FunctionType):
                found[fn.__code__] = f"{module.__name__}.{name.removeprefix('_')}"
    for module, owner, name in _ENTERED:
        method = vars(getattr(module, owner, object)).get(name)
        if isinstance(method, types.FunctionType):
            found[method.__code__] = f"{module.__name__}.{owner}"
    return found


_SETTINGS = (
    "_set_cudnn_enabled", "_set_cudnn_benchmark", "_set_cudnn_deterministic", "_set_cudnn_allow_tf32",
    "_set_cudnn_depthwise_kernel", "_cuda_set_cudnn_benchmark_limit", "_set_fp32_precision_setter",
)  # fmt: skip
_SETTERS = {name: getattr(torch._C, name, None) for name in _SETTINGS}  # not every version of torch has all of them


SET_SAVED_TENSORS_HOOKS: Any = torch._C._autograd._push_saved_tensors_default_hooks


def changes_setting(fn: Any) -> bool:
    """Whether a function changes a setting of torch's backends (``torch.backends.cudnn.flags(...)``), which is stored in
    C++ and visible in no object."""
    return fn is not None and _SETTERS.get(getattr(fn, "__name__", "")) is fn


def changes_cuda_setting(fn: Any, args: tuple[Any, ...]) -> bool:
    """Whether a call changes a setting that affects only operators on CUDA devices (`torch.backends.cudnn.flags`)."""
    return changes_setting(fn) and ("cudnn" in fn.__name__ or args[:1] == ("cuda",))


def cuda_settings() -> list[tuple[Any, tuple[Any, ...], Any]]:
    """All settings that affect only CUDA devices: the getter, its arguments and the current value."""
    getters = (getattr(torch._C, name.replace("_set_", "_get_"), None) for name in _SETTINGS if "cudnn" in name)
    found = [(getter, (), getter()) for getter in getters if getter is not None]
    precision: Any = getattr(torch._C, "_get_fp32_precision_getter", None)
    of = ("all", "conv", "rnn", "matmul") if precision is not None else ()
    return found + [(precision, ("cuda", name), precision("cuda", name)) for name in of]

"""Saving and restoring the torch state that a program can see, around MagPy's work. Key function: `preserve_torch_state`."""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch.overrides import TorchFunctionMode, _pop_mode, _push_mode
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from magpy_core._compat.torch.mode_reads import dispatch_modes, function_modes

#: Calls that only change the thread's state, without tensors or a result.
SET_GRAD: Any = torch._C._set_grad_enabled
STATE_CALLS: frozenset[Any] = frozenset({SET_GRAD})
_SWITCHES = frozenset({"_set_grad_enabled", "_enter_autocast", "_exit_autocast"})


def switches_modes(target: Any) -> bool:
    """Whether a graph node's target changes the thread's modes."""
    return getattr(target, "__name__", "") in _SWITCHES


#: Created once: creating a device is an operation that the program's modes see.
_CPU = torch.device("cpu")


def default_device() -> torch.device:
    """`torch.get_default_device` without running an operation, which the program's modes would see."""
    for mode in reversed(function_modes()):
        if isinstance(mode, DeviceContext):
            device: torch.device = mode.device
            return device
    return _CPU


@contextmanager
def no_function_modes() -> Iterator[None]:
    """Removes all function modes (including the default-device mode) from this thread's stack inside the block."""
    taken = [_pop_mode() for _ in function_modes()]
    try:
        yield
    finally:
        while len(function_modes()):
            _pop_mode()
        for mode in reversed(taken):
            _push_mode(mode)


Modes = tuple[bool, bool, torch.dtype, bool, bool, torch.dtype, int]


def get_modes() -> Modes:
    """Grad mode and autocast of this thread."""
    torch.autocast_increment_nesting()
    depth = torch.autocast_decrement_nesting()
    return (
        torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"),
        torch.is_autocast_cache_enabled(), torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda"), depth,
    )  # fmt: skip


def set_modes(modes: Modes) -> None:
    """Restores the result of ``get_modes``, for example after a graph that did not run to its end."""
    grad, on, dtype, cache, cuda_on, cuda_dtype, depth = modes
    torch._C._set_grad_enabled(grad)
    torch.set_autocast_enabled("cpu", on)
    torch.set_autocast_dtype("cpu", dtype)
    torch.set_autocast_enabled("cuda", cuda_on)
    torch.set_autocast_dtype("cuda", cuda_dtype)
    torch.set_autocast_cache_enabled(cache)
    torch.autocast_increment_nesting()
    while torch.autocast_decrement_nesting() > depth:
        pass
    if depth == 0:
        torch.clear_autocast_cache()


@contextmanager
def no_autograd() -> Iterator[None]:
    """Switches off grad mode and autocast on every device."""
    with torch.no_grad(), torch._C._DisableAutocast():
        yield


@contextmanager
def preserve_torch_state() -> Iterator[None]:
    """Restores the torch state that the program can see after the block.

    Covers the random streams (torch on every initialised device, Python, NumPy if loaded), grad mode, autocast and its cache
    flag, default dtype, deterministic flags, float32 matmul precision, and the function and dispatch mode stacks.
    """
    python_random = random.getstate()
    numpy_random: Any = sys.modules["numpy"].random.get_state() if "numpy" in sys.modules else None
    streams, modes = random_streams(), get_modes()
    default_dtype = torch.get_default_dtype()
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    precision = torch.get_float32_matmul_precision()
    with torch._C._PreserveDispatchKeyGuard(), no_function_modes(), _disable_current_modes():
        try:
            yield
        finally:
            set_modes(modes)
            torch.set_default_dtype(default_dtype)
            torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
            if torch.get_float32_matmul_precision() != precision:
                torch.set_float32_matmul_precision(precision)
            restore_streams(streams)
            random.setstate(python_random)
            if numpy_random is not None:
                sys.modules["numpy"].random.set_state(numpy_random)


@functools.cache
def look_up_accelerator() -> None:
    """Make torch look up the module of its build's accelerator.

    It does so at an optimizer's first step, and caches the result: a recording of that step would include this write.
    """
    accelerator = torch.accelerator.current_accelerator()
    if accelerator is not None:
        torch.get_device_module(accelerator)


def accelerator_in_use() -> Any:
    """The module of the accelerator (`torch.cuda`), if the process has used one; None on the CPU."""
    accelerator = torch.accelerator.current_accelerator()
    module = None if accelerator is None else torch.get_device_module(accelerator)
    return module if module is not None and module.is_initialized() else None


def random_streams() -> list[torch.Tensor]:
    """The states of torch's own random streams."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else []
    return [torch.get_rng_state(), *cuda]


def same_streams(a: list[torch.Tensor], b: list[torch.Tensor]) -> bool:
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def restore_streams(states: list[torch.Tensor]) -> None:
    torch.set_rng_state(states[0])
    if len(states) > 1:
        torch.cuda.set_rng_state_all(states[1:])


def suspend_mode(mode: Any) -> bool:
    """Remove a mode from the thread's stack, if it is the innermost one of its kind; returns whether it was."""
    if isinstance(mode, TorchFunctionMode):
        if function_modes()[-1:] != [mode]:
            return False
        _pop_mode()
        return True
    if dispatch_modes()[-1:] != [mode]:
        return False
    torch._C._pop_torch_dispatch_stack(None)
    return True


def resume_mode(mode: Any) -> None:
    """Undo ``suspend_mode``."""
    (_push_mode if isinstance(mode, TorchFunctionMode) else torch._C._push_on_torch_dispatch_stack)(mode)


#: Whether TorchDynamo, which compiles nothing under such a mode, looks at the stack of modes. Before torch 2.13 it read a
#: flag, which had to be set although programs see it.
_READS_STACK = hasattr(torch.utils._python_dispatch, "any_torch_dispatch_mode_on_stack")


class PlainDispatchMode(TorchDispatchMode):
    """A dispatch mode whose ``__torch_dispatch__`` is the function as written.

    torch wraps that of other modes in ``torch._disable_dynamo``: all wrapped functions (such as ``Optimizer.zero_grad``)
    share one code object, so that a mark on it would affect all of them. ``is_in_torch_dispatch_mode()`` doesn't count it.
    """

    def __enter__(self) -> Self:
        if not _READS_STACK:
            return super().__enter__()  # type: ignore[no-untyped-call, no-any-return]
        torch._C._push_on_torch_dispatch_stack(self)
        return self

    def __exit__(self, *error: object) -> None:
        if not _READS_STACK:
            super().__exit__(*error)  # type: ignore[no-untyped-call]
        else:
            torch._C._pop_torch_dispatch_stack(None)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

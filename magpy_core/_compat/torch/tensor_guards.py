"""torch's native tensor and global-state checks (private, stable over 2.11-2.13).

Key functions: ``tensor_check``, ``global_check``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence, Set
from typing import Any

import torch
from torch._C._dynamo.guards import GlobalStateGuard, TensorGuards

from magpy_core._compat.torch.surroundings import same_surroundings

#: The native constructor of ``torch.Tensor`` and of subclasses without their own. A subclass's raises under a dispatch mode.
TENSOR_NEW = torch._C.TensorBase.__dict__["__new__"]


def tensor_check(tensors: Sequence[torch.Tensor], dynamic_dims: Sequence[Set[int]]) -> Callable[..., bool]:
    """A function that checks as many tensors: type, dtype, device, dispatch keys, requires_grad, sizes and strides
    must be the same; no two may be the same object. Dimensions of tensor ``i`` in ``dynamic_dims[i]`` are dynamic (sizes
    and strides)."""
    if not tensors:
        return lambda: True
    given = list(zip(tensors, dynamic_dims, strict=True))
    sizes: Any = [[None if d in dims else int(s) for d, s in enumerate(t.shape)] for t, dims in given]
    strides: Any = [[None if dims and s != 1 else int(s) for s in t.stride()] for t, dims in given]
    guards = TensorGuards(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides)
    check: Callable[..., bool] = guards.check
    return check


def has_sizes_and_strides(tensor: torch.Tensor) -> bool:
    """Whether ``tensor_check`` supports the tensor: it must not be nested, or sparse with compressed rows or columns."""
    with torch._C.DisableTorchFunctionSubclass():
        return not tensor.is_nested and (tensor.layout in (torch.strided, torch.sparse_coo) or tensor.is_mkldnn)


def global_check() -> Callable[[], bool]:
    """A function that checks whether grad mode, autocast, default dtype, determinism flags, inference mode and the active
    modes (``surroundings``) are unchanged."""
    state = GlobalStateGuard()
    inference = torch.is_inference_mode_enabled()
    around = same_surroundings()
    native = state.check
    is_inference = torch.is_inference_mode_enabled

    def check() -> bool:
        return bool(native()) and is_inference() is inference and around()

    return check


def mode_depth() -> tuple[int, int]:
    """The numbers of active torch function modes and dispatch modes."""
    return (torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack())


def _global_facts() -> dict[str, str]:
    """torch's global state as text, the most often changed settings first."""

    def on(flag: bool) -> str:
        return "on" if flag else "off"

    types = [kind for kind in ("cpu", "cuda") if torch.is_autocast_enabled(kind)]
    return {
        "inference mode": on(torch.is_inference_mode_enabled()),
        "grad mode": on(torch.is_grad_enabled()),
        "autocast": ", ".join(f"{kind} {torch.get_autocast_dtype(kind)}" for kind in types) or "off",
        "default dtype": str(torch.get_default_dtype()),
        "deterministic algorithms": on(torch.are_deterministic_algorithms_enabled()),
        "number of threads": str(torch.get_num_threads()),
        "number of modes in force": str(sum(mode_depth())),
    }


def global_reason() -> Callable[[], tuple[str, str, str]]:
    """A function that returns what has changed since this call: its name, old and new value."""
    state, before = GlobalStateGuard(), _global_facts()

    def reason() -> tuple[str, str, str]:
        for name, now in _global_facts().items():
            if before[name] != now:
                return (name, before[name], now)
        return (str(state.reason()).strip() or "global state", "as before", "different")

    return reason


def is_tensor_base(cls: type) -> bool:
    """Whether ``cls`` is ``torch.Tensor``, its C base class, which has most tensor methods, or a subclass."""
    return issubclass(cls, torch._C.TensorBase)


def keep_version(tensor: torch.Tensor) -> Any:
    """Context manager: writes to ``tensor`` inside don't change its version counter (tensors created in inference mode have
    none)."""
    if tensor.is_inference():
        return torch.inference_mode()
    return torch.autograd._unsafe_preserve_version_counter(tensor)  # type: ignore[attr-defined]


def version_of(tensor: torch.Tensor) -> int | None:
    """The version counter of ``tensor``; None for tensors created in inference mode."""
    return None if tensor.is_inference() else tensor._version


def set_versions(tensors: Sequence[torch.Tensor], versions: Sequence[int]) -> None:
    """Sets the version counters that autograd compares at the backward pass."""
    torch._C._autograd._unsafe_set_version_counter(tuple(tensors), tuple(versions))


def no_torch_function() -> Any:
    """Context manager: tensor operations inside call no ``__torch_function__`` of subclasses or modes."""
    return torch._C.DisableTorchFunction()


def no_subclass_functions() -> Any:
    """Context manager: tensor operations inside call ``__torch_function__`` of modes, but not of subclasses."""
    return torch._C.DisableTorchFunctionSubclass()


def has_own_functions(cls: type) -> bool:
    """Whether operations on instances run a ``__torch_function__`` that isn't torch's."""
    found = getattr(cls, "__torch_function__", None)
    plain = torch.Tensor.__torch_function__.__func__  # type: ignore[attr-defined]
    return getattr(found, "__func__", None) is not plain and found is not torch._C._disabled_torch_function_impl


def has_own_kernels(cls: type) -> bool:
    """Whether operations on instances run a ``__torch_dispatch__`` that isn't torch's."""
    return cls is not torch.Tensor and cls.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__  # type: ignore[attr-defined]


def is_view(tensor: torch.Tensor) -> bool:
    return tensor._is_view()


def tensor_users(tensor: torch.Tensor) -> int:
    """The number of C++ owners of a tensor: 1 if only its Python object is one (autograd may have saved it)."""
    return int(tensor._use_count())  # type: ignore[attr-defined]


def _storage_counts(tensor: torch.Tensor) -> tuple[int, int]:
    memory = tensor.untyped_storage()
    return sys.getrefcount(memory), int(torch._C._storage_Use_Count(memory._cdata))


_ONE = _storage_counts(torch.empty(1))


def tensors_in_storage(tensor: torch.Tensor) -> int:
    """The number of tensors that own the storage of this one; 0 if Python has a reference to the storage itself."""
    references, users = _storage_counts(tensor)
    return users - _ONE[1] + 1 if references == _ONE[0] else 0


def storage_address(tensor: torch.Tensor) -> int:
    """Where a tensor's memory begins (0 if it has none). Two storages may show the same memory: `torch.from_numpy`."""
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError):
        return 0


def storage_key(tensor: torch.Tensor) -> int:
    """The identity of a tensor's memory (0 if it has none)."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):
        return 0

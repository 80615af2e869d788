"""Private parts of torch.autograd: mode switches as graph nodes; the modes of a thread, saved and restored."""

from __future__ import annotations

from typing import Any

import torch

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
    """The modes as ``get_modes`` found them, whatever a graph that did not run to its end has left."""
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


def switches_modes(target: Any) -> bool:
    """Whether a graph node's target changes the thread's modes."""
    return getattr(target, "__name__", "") in _SWITCHES


_SWITCHES = frozenset({"_set_grad_enabled", "_enter_autocast", "_exit_autocast"})


def backward_pass() -> tuple[int, bool]:
    """The backward pass that runs now on this thread: its number, and whether it keeps what its graph saved."""
    return torch._C._current_graph_task_id(), bool(torch._C._autograd._get_current_graph_task_keep_graph())


def is_view(tensor: torch.Tensor) -> bool:
    return tensor._is_view()

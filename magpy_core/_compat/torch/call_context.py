"""Where a module call happens: inside a backward pass, inside a tracer. Private names of torch; imports torch."""

from __future__ import annotations

import torch


def in_backward() -> bool:
    """Whether this thread is executing a backward pass (a checkpoint's recomputation, a hook)."""
    return bool(torch._C._current_graph_task_id() != -1)


def in_tracer() -> bool:
    """Whether ``torch.jit.trace`` is recording on this thread."""
    return torch._C._get_tracing_state() is not None

"""Wrappers that keep the copies of a module in several processes alike. Key function: ``wraps_for_processes``."""

from __future__ import annotations

from typing import Any

from torch.nn.parallel import DistributedDataParallel


def wraps_for_processes(module: Any) -> bool:
    """Whether a module talks to other processes around the call of the module that it holds as ``module``: work that has to
    be done at each call, and that no graph can hold. What can be compiled is the module inside."""
    return isinstance(module, DistributedDataParallel)

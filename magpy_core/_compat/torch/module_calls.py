"""How ``nn.Module.__call__`` reaches ``forward``, and which modules only wrap another. Names: CALL, COMPILED_CALL."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.jit import _recursive
from torch.nn.parallel import DistributedDataParallel

CALL = nn.Module._call_impl  # hooks and forward, whatever is compiled
COMPILED_CALL = "_compiled_call_impl"  # what `__call__` calls instead, where a module has it
_recursive.ignored_attributes.append(COMPILED_CALL)  # torch.jit.script leaves it out, as pickling does


def wraps_for_processes(module: Any) -> bool:
    """Whether a module talks to other processes around the call of the module that it holds as ``module``: work that has to
    be done at each call, and that no graph can hold. What can be compiled is the module inside."""
    return isinstance(module, DistributedDataParallel)

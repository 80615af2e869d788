"""How ``nn.Module.__call__`` reaches ``forward``. Names: CALL, COMPILED_CALL."""

from __future__ import annotations

from torch import nn
from torch.jit import _recursive

CALL = nn.Module._call_impl  # runs hooks and forward, never compiled code
COMPILED_CALL = "_compiled_call_impl"  # `__call__` calls this attribute instead, if a module has it
_recursive.ignored_attributes.append(COMPILED_CALL)  # torch.jit.script leaves it out, as pickling does

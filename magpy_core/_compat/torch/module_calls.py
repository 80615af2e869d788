"""How ``nn.Module.__call__`` reaches ``forward``. Names: CALL, COMPILED_CALL."""

from __future__ import annotations

from torch import nn
from torch.jit import _recursive

CALL = nn.Module._call_impl  # hooks and forward, whatever is compiled
COMPILED_CALL = "_compiled_call_impl"  # what `__call__` calls instead, where a module has it
_recursive.ignored_attributes.append(COMPILED_CALL)  # torch.jit.script leaves it out, as pickling does

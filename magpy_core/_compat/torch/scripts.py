"""torch.jit's compiled functions, methods and modules. Key type: SCRIPTED; key function: ``tracers``."""

from __future__ import annotations

from typing import Any

import torch

ScriptMethod: Any = torch._C.ScriptMethod
SCRIPTED = (torch.jit.ScriptFunction, ScriptMethod)


def tracers() -> list[Any]:
    """The functions of torch.jit that trace operations."""
    traced: Any = torch.jit._trace
    return [traced.trace, traced.trace_module, traced._get_trace_graph, traced.ONNXTracedModule.forward]

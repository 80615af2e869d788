"""torch.jit's compiled functions, methods and modules. Key type: SCRIPTED; key functions: ``cpp_module``, ``tracers``."""

from __future__ import annotations

from typing import Any

import torch

ScriptMethod: Any = torch._C.ScriptMethod
SCRIPTED = (torch.jit.ScriptFunction, ScriptMethod)
CACHED_FORWARD: type = type(torch.jit.ScriptModule.__dict__["forward"])
"""The class attribute that stands for a script's ``forward`` until it is asked for."""


def tracers() -> list[Any]:
    """The functions of torch.jit that note down the operations of what they are given."""
    traced: Any = torch.jit._trace
    return [traced.trace, traced.trace_module, traced._get_trace_graph, traced.ONNXTracedModule.forward]


def cpp_module(module: Any) -> Any:
    """The compiled module behind a ``torch.jit.ScriptModule``."""
    own = object.__getattribute__(module, "__dict__")
    inner = own.get("_actual_script_module")
    return own["_c"] if inner is None else object.__getattribute__(inner, "__dict__")["_c"]


def has_script_attribute(cpp: Any, name: str) -> bool:
    return bool(cpp.hasattr(name))


def has_script_method(cpp: Any, name: str) -> bool:
    return bool(cpp._has_method(name))

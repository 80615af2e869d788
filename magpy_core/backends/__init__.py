"""Backends: operator graph in, callable out.

backend = get_backend("inductor")
inputs = make_fake_inputs(real_inputs)
compiled = backend.compile(graph_module, inputs.fakes, dynamic=False)
outputs = compiled.fn(*real_inputs)
"""

from magpy_core.backends.base import Backend, CompiledGraph, ShapeGuard
from magpy_core.backends.fakes import FakeInputs, guard_namespace, make_fake_inputs
from magpy_core.backends.registry import UnknownBackend, backend_names, get_backend

__all__ = [
    "Backend",
    "CompiledGraph",
    "FakeInputs",
    "ShapeGuard",
    "UnknownBackend",
    "backend_names",
    "get_backend",
    "guard_namespace",
    "make_fake_inputs",
]

"""What compilers are known to make something else of, where the recording tells. Key functions: `compiled_wrongly`,
`complex_results`."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import torch

from magpy_core._compat.tensor_guards import no_torch_function
from magpy_core.refgraph.kinds import is_a
from magpy_core.runtime.recording.recording import Recorded


def complex_results(backend: str, recorded: Recorded) -> set[torch.fx.Node]:
    """Nodes whose values are complex and take part in autograd; none under the backend that compiles nothing."""
    if backend == "eager":
        return set()
    with no_torch_function():
        return {node for t, node in recorded.recording.ops.values.values() if t.is_complex() and t.requires_grad}


def compiled_wrongly(
    backend: str, inputs: Sequence[Any], outputs: Sequence[Any], complex_nodes: Container[Any], recorded: Recorded
) -> str | None:
    """Why a compiler would make something else of a graph with these inputs; None where nothing is known."""
    if backend == "eager":
        return None
    with no_torch_function():  # a subclass of the program's is not asked
        reversed_inputs = any(is_a(v, torch.Tensor) and (v.is_neg() or v.is_conj()) for v in inputs)
    if reversed_inputs:
        return "An input is a conjugate or negative view: kernels take its memory as it is."
    if any(node in complex_nodes for node in outputs):
        return "A complex result takes part in autograd: its gradient may be a conjugate view."
    if backend == "inductor" and recorded.recording.with_history:  # it saves what the input was as the input itself
        return f"Autograd takes note of a write to `{min(recorded.recording.with_history)}`: its backward pass would raise."
    return None

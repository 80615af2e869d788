"""What compilers are known to make something else of, where the recording tells. Key function: `compiled_wrongly`."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import torch

from magpy_core.refgraph.kinds import is_a
from magpy_core.runtime.recording.recording import Recorded


def compiled_wrongly(
    backend: str, inputs: Sequence[Any], outputs: Sequence[Any], complex_nodes: Container[Any], recorded: Recorded
) -> str | None:
    """Why a compiler would make something else of a graph with these inputs; None where nothing is known."""
    if backend == "eager":
        return None
    if any(is_a(v, torch.Tensor) and (v.is_neg() or v.is_conj()) for v in inputs):
        return "An input is a conjugate or negative view: kernels take its memory as it is."
    if any(node in complex_nodes for node in outputs):
        return "A complex result takes part in autograd: its gradient may be a conjugate view."
    if backend == "inductor" and recorded.recording.with_history:  # it saves what the input was as the input itself
        return f"Autograd takes note of a write to `{min(recorded.recording.with_history)}`: its backward pass would raise."
    return None

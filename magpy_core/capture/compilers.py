"""Known miscompilations that can be detected from the trace. Key function: compiled_wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from magpy_core._compat.torch.tensor_guards import no_torch_function
from magpy_core.recording.trace import Trace
from magpy_core.refgraph.kinds import is_a

_SPARSE = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)


def compiled_wrongly(backend: str, inputs: Sequence[Any], outputs: Sequence[Any], trace: Trace) -> str | None:
    """Why the compiled graph would compute something else for these inputs; None if no reason is known."""
    if backend == "eager":
        return None
    with no_torch_function():  # don't run the code of a tensor subclass
        reversed_inputs = any(is_a(v, torch.Tensor) and (v.is_neg() or v.is_conj()) for v in inputs)
    if reversed_inputs:
        return "An input is a conjugate or negative view, whose sign or conjugation compiled kernels ignore."
    if (reason := next((trace.doubtful[node] for node in outputs if node in trace.doubtful), None)) is not None:
        return reason
    if backend == "inductor" and trace.writes.with_history:  # its backward pass saves the input instead of a copy
        return f"Autograd records a write to `{min(trace.writes.with_history)}`, so the compiled backward pass would raise."
    return None


def sparse_input(backend: str, inputs: Sequence[Any]) -> int | None:
    """The position of an input that Inductor has no kernels for: a sparse tensor. None if there is none."""
    if backend != "inductor":
        return None
    with no_torch_function():
        found = (i for i, v in enumerate(inputs) if is_a(v, torch.Tensor) and v.layout in _SPARSE)
        return next(found, None)
